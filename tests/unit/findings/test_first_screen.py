"""The first screen: which lines there are, in which order, in which words, and what each of them must hold. Numbers are
worked by hand.
"""

import re
from dataclasses import replace
from types import SimpleNamespace

import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_rules import hold
from first_screen_samples import MS, efficiency, gain, idle, replay, run, tables

from causeway.command_line.first_screen_lines import first_screen_lines
from causeway.core.names.work_classes import OTHER
from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.findings.device_time.facts_said import _of_slow_steps
from causeway.findings.document import summarise
from causeway.findings.first_screen import losses, outliers, work
from causeway.findings.first_screen.advice import RECORD_CALLS, advice
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.losses import CopiesFact, LateRankFact, LossFact, late_rank_facts, loss_facts
from causeway.findings.first_screen.outliers import WAITS, EventFact, GapFact, SlowStepsFact, behind_steps, gap_facts
from causeway.findings.first_screen.plan import QUESTIONS, _outliers, plan
from causeway.findings.first_screen.run_facts import StepsFact, recording_facts, run_fact
from causeway.findings.first_screen.words import run_words, work_words
from causeway.findings.first_screen.work import class_facts, variation_facts
from causeway.levels.windows.window import _slowest_step


def answers(given, question):
    return [line.answer for line in plan(DatasetFacts(given)) if line.question == question]


def test_lines_stand_in_the_order_of_the_questions_and_only_with_an_answer():
    given = tables(waiting=[made.wait(800)], replay=[made.replay("host_free", 350)])
    asked = [line.question for line in plan(DatasetFacts(given))]
    assert asked == sorted(asked, key=QUESTIONS.index)
    assert asked[:2] == ["Run", "Where"]
    assert {"Recording", "Outliers", "What varies", "Which rank"}.isdisjoint(asked)


def test_the_parts_of_a_run_add_up_to_its_devices_time():
    fact = run_fact(tables())
    assert sum(fact.parts.values()) == fact.gpu_ns == 2000 * MS
    said = run_words.whole(fact.parts, fact.gpu_ns)
    assert said == "compute 40 %, exposed communication 15 %, exposed copies 5 %, idle 40 %"
    assert sum(int(one) for one in re.findall(r"(\d+) %", said)) == 100


def test_the_largest_loss_is_said_whatever_a_replay_says():
    """64 % idle stood sixth, as small, because no replay removed it."""
    given = tables(
        waiting=[made.wait(800, "unknown", "enqueued on an idle device")], replay=[made.replay("host_free", 3)]
    )
    (where,) = answers(given, "Where")
    assert where == "Idle 40 % (400 ms of 1 s per GPU): not explained 400 ms. What its removal wins is not known."
    assert answers(given, "What to do") == [RECORD_CALLS]


def test_a_kernel_queued_behind_its_own_stream_is_not_explained():
    behind = "queued behind a kernel of its own stream; events are not recorded"
    facts = loss_facts(tables(waiting=[made.wait(500, "dependency_stalled", behind), made.wait(300)]), run())
    (fact,) = [one for one in facts if one.part == "orchestration"]
    assert (fact.unknown_ns, fact.reasons, fact.gain) == (
        500 * MS,
        [("launch_starved", "host code not recorded", 300 * MS)],
        None,
    )


def test_what_makes_others_wait_is_said_beside_the_larger_loss():
    """One rank allocates for 15 ms, the others wait in a collective: the smaller loss wins more of the run."""
    parts = {part: ms * MS for part, ms in {"useful": 400, "communication": 1200, "orchestration": 400}.items()}
    given = tables(
        efficiency=made.efficiency(waterfall_ns={**parts, "transfers": 0, "outside": 0}),
        waiting=[made.wait(400, "blocked_host", "cudaFree")],
        replay=[made.replay("collectives_free", 270), made.replay("host_free", 500, "collective")],
    )
    first, second = answers(given, "Where")
    assert first.startswith("Communication outside compute 60 %")
    assert (
        second
        == "Idle 20 % (200 ms of 1 s per GPU): cudaFree 200 ms. Without this and the waits that it causes the run is 500 ms (50 %) shorter; then collectives limit it."
    )
    assert answers(given, "What to do")[0] == "Allocate once, or from a pool: cudaFree 200 ms."
    replays = [made.replay("collectives_free", 270), made.replay("host_free", 500, "wait")]
    assert answers(replace(given, replay=replays), "Where")[1].endswith("; then waits for other work limit it.")
    replays = [made.replay("collectives_free", 270), made.replay("host_free", 140)]
    assert len(answers(replace(given, replay=replays), "Where")) == 2  # half of the gain of the larger loss
    assert len(answers(replace(given, replay=[replays[0], made.replay("host_free", 130)]), "Where")) == 1


def test_removing_what_nothing_waits_for_wins_nothing_and_nothing_is_advised():
    fact = idle([("launch_starved", "data loader: next", 800)], won_ms=2)
    assert run_words.of_loss(fact, run()).endswith("Removing it alone wins less than 1 %: kernels limit the run.")
    assert advice(run(), [], [fact], [], []) == []


@pytest.mark.parametrize(
    ("reason", "detail", "step"),
    [
        ("launch_starved", "data loader: enumerate(DataLoader)#next", "Load data earlier, with more workers or prefetching: data loader 400 ms."),
        ("launch_starved", "range: Optimizer.zero_grad#SGD.zero_grad", "Call zero_grad with set_to_none=True: SGD.zero_grad 400 ms."),
        ("blocked_host", "cudaStreamSynchronize", "Avoid these waits of the host, so that it launches ahead: cudaStreamSynchronize 400 ms."),
        ("launch_starved", "host code not recorded", "Record ranges or call stacks of the host: host code that is not recorded 400 ms."),
        ("launch_starved", "in cudaGraphInstantiate", "Instantiate graphs once and update them (cudaGraphExecUpdate): cudaGraphInstantiate 400 ms."),
        ("launch_starved", "in cudaGraphInstantiateWithFlags_v11040", "Instantiate graphs once and update them (cudaGraphExecUpdate): cudaGraphInstantiateWithFlags_v11040 400 ms."),
        ("launch_starved", "in hipGraphInstantiate", "Instantiate graphs once and update them (hipGraphExecUpdate): hipGraphInstantiate 400 ms."),
    ],
)  # fmt: skip
def test_advice_names_the_recorded_fact(reason, detail, step):
    fact = idle([(reason, detail, 800)], won_ms=390)
    said = [one.words for one in advice(run(launches=100), [], [fact], [], [])]
    assert step in said
    assert all(one.saved_ns <= 390 * MS for one in advice(run(), [], [fact], [], []))


def test_graphs_that_are_seldom_instantiated_are_not_advised_upon():
    """Of the idle time a tenth is spent in it; a range of the program that has its name says nothing of the call."""
    few = idle([("launch_starved", "in cudaGraphInstantiate", 80), ("launch_starved", "range: gc", 720)], won_ms=390)
    named = idle([("launch_starved", "range: cudaGraphInstantiate", 800)], won_ms=390)
    for fact in (few, named):
        said = [one.words for one in advice(run(launches=100), [], [fact], [], [])]
        assert len(said) == 1
        assert said[0].startswith("Do less of it")


def test_ranges_that_are_recorded_are_not_asked_for():
    fact = idle([("launch_starved", "host code not recorded", 800)], won_ms=390)
    said = [one.words for one in advice(run(launches=100, recorded=("kernels", "ranges")), [], [fact], [], [])]
    assert "Record call stacks of the host: host code that is not recorded 400 ms." in said


@pytest.mark.parametrize(
    ("detail", "long_ms", "launches", "steps"),
    [
        ("operator: aten::mm", 0, 8000, ["Capture the launches in a CUDA or HIP graph: the device waits 100 µs for the host before each."]),
        ("in cudaLaunchKernel", 0, 8000, ["Capture the launches in a CUDA or HIP graph: the device waits 100 µs for the host before each."]),
        ("operator: gc.collect", 790, 8000, ["Do less of it on the thread that launches: gc.collect 400 ms."]),
        ("operator: aten::mm", 0, 1000, []),
        ("host code not recorded", 0, 1000, ["Record ranges or call stacks of the host: host code that is not recorded 400 ms."]),
        ("host code not recorded", 790, 8000, ["Record ranges or call stacks of the host: host code that is not recorded 400 ms."]),
    ],
)  # fmt: skip
def test_one_long_gap_is_not_the_time_of_launching(detail, long_ms, launches, steps):
    """One gap of 60 ms over 1,200 launches is 50 us for each, and no graph of launches removes it."""
    fact = replace(idle([("launch_starved", detail, 800)], won_ms=390), long_ns=long_ms * MS)
    assert [one.words for one in advice(run(launches=launches), [], [fact], [], [])] == steps


@pytest.mark.parametrize(
    ("waits", "step"),
    [
        (4000, "Wait less often for the device, so that the host launches ahead: cudaDeviceSynchronize 4,000 times for 8,000 launches."),
        (100, "Capture the launches in a CUDA or HIP graph: the device waits 100 µs for the host before each."),
    ],
)  # fmt: skip
def test_a_host_that_waits_for_every_other_launch_cannot_launch_ahead(waits, step):
    """And a graph cannot hold launches between which the host waits."""
    fact = replace(idle([("launch_starved", "in cudaLaunchKernel", 800)], won_ms=390), waits=(SYNC, waits))
    assert [one.words for one in advice(run(launches=8000), [], [fact], [], [])] == [step]


def test_what_is_next_to_nothing_is_not_named_beside_much():
    fact = idle([("launch_starved", "range: gc", 800), ("launch_starved", "range: other", 40)], won_ms=390)
    said = [one.words for one in advice(run(launches=100), [], [fact], [], [])]
    assert said == ["Do less of it on the thread that launches: gc 400 ms."]


SYNC = "cudaDeviceSynchronize"


def test_waits_of_the_host_are_counted_by_call(tmp_path):
    names = [SYNC] * 3 + ["cudaStreamSynchronize_v3020", "cudaLaunchKernel", "cudaLaunchKernel"] * 2
    write_table_of_calls(tmp_path, names)
    assert losses._waits(tables(folders=[tmp_path])) == (SYNC, 3)
    write_table_of_calls(tmp_path, names + ["hipMemcpy", "hipMemcpyAsync"] * 4)  # which waits for the device, too
    assert losses._waits(tables(folders=[tmp_path])) == ("hipMemcpy", 4)
    assert losses._waits(tables(folders=[tmp_path / "none"])) is None


def write_table_of_calls(folder, names):
    rows = len(names)
    columns = {"start_ns": range(rows), "name": names}
    schema = SCHEMAS["calls"]
    made = {}
    for name in schema.names:
        field = schema.field(name)
        values = columns.get(name, [None if field.nullable else 0] * rows)
        made[name] = pa.array(list(values)).cast(field.type) if name in columns else pa.array(values, field.type)
    write_table(pa.table(made, schema=schema), folder / "calls.parquet", "calls")


def test_waits_are_in_the_collectives_that_ranks_end_together():
    """A root's broadcasts, 24 ms on all ranks, were told for the most of what was 300 ms of waits in all-reduces."""
    rate = {"bytes": 1 << 20, "median_ns": MS, "bus_gb_per_s": None, "best_bus_gb_per_s": None, "ranks": 2}
    cast = rate | {"operation": "broadcast", "matched": False, "collectives": 12, "total_ns": 24 * MS}
    reduced = rate | {"operation": "all_reduce", "matched": True, "collectives": 15, "total_ns": 10 * MS}
    for waiting_ms, first in ((300, "all_reduce"), (12, "broadcast")):
        stragglers = {"groups": [{"waiting_ns": waiting_ms * MS}]}
        losses = loss_facts(tables(collectives=[cast, reduced], stragglers=stragglers), run())
        (found,) = (fact for fact in losses if fact.collectives)
        assert found.collectives[0].operation == first
    assert "Most of it is waiting for other ranks." in run_words.of_loss(replace(found, waited_ns=found.lost_ns), run())


def test_receives_beyond_their_usual_time_wait_for_their_peers():
    """A pipeline's bubble: 10 receives of one size take 1 ms each, usually, and 200 ms in all."""
    size = {"operation": "send_recv", "bytes": 1 << 21, "matched": False, "bus_gb_per_s": 2.0, "best_bus_gb_per_s": 2.0}
    size |= {"collectives": 10, "median_ns": MS, "total_ns": 200 * MS}
    (found,) = (
        fact
        for fact in loss_facts(tables(collectives=[size], replay=[replay("collectives_free", 80)]), run())
        if fact.collectives
    )
    assert (found.peers_ns, found.waited_ns) == (190 * MS, 190 * MS)
    assert "Of it 95 ms is waiting for other ranks." in run_words.of_loss(found, run())
    step = "Balance the stages of the pipeline, or use more and smaller microbatches: receives wait 95 ms."
    assert [one.words for one in advice(run(), [], [found], [], [])] == [step]
    hidden = efficiency()
    for one in hidden["breakdown"].values():
        one["communication_ns"] *= 2
    for given in (
        tables(collectives=[size | {"operation": "all_reduce"}]),
        tables(collectives=[size | {"bytes": None}]),
        tables(collectives=[size], efficiency=hidden),
    ):
        assert all(fact.waited_ns == 0 for fact in loss_facts(given, run()))


def test_collectives_are_told_by_the_time_of_all_their_kernels():
    """18 all-reduces of 4 ranks with 7.2 ms each on a rank, beside 36 kernels that others did not record with 15 ms in
    all: recordings that begin apart.
    """
    some = {"operation": "all_reduce", "bytes": 1 << 21, "bus_gb_per_s": 7.0, "best_bus_gb_per_s": 7.0, "median_ns": 1}
    both = some | {"ranks": 4, "matched": True, "collectives": 18, "total_ns": 72 * MS // 10}
    alone = some | {"ranks": 4, "matched": False, "collectives": 36, "total_ns": 15 * MS}
    replays = [replay("collectives_free", 80)]
    for rows in ([both, alone], [alone, both]):
        facts = loss_facts(tables(collectives=rows, replay=replays), run())
        assert [[one.count for one in fact.collectives] for fact in facts if fact.collectives] == [[18, 36]]


def test_copies_that_compute_cannot_hide_are_not_to_be_overlapped():
    """22 ms of compute beside 921 ms of copies from pinned memory: overlap wins 2 % at most."""
    copies = {
        "kind": 1,
        "bytes": 25_000_000_000,
        "copies": 225,
        "duration_ns": 900 * MS,
        "sized_ns": 900 * MS,
        "limit_gb_per_s": None,
    }
    devices = {"0/0": made.device(22, 0, 921), "1/0": made.device(22, 0, 921)}
    parts = {"useful": 44 * MS, "communication": 0, "transfers": 1842 * MS, "orchestration": 114 * MS, "outside": 0}
    given = tables(
        efficiency=made.efficiency(copies=[copies], breakdown=devices, waterfall_ns=parts),
        replay=[made.replay("copies_free", 440, "launch")],
    )
    (where,) = answers(given, "Where")
    assert "Without this the run is at least 440 ms (44 %) shorter. Overlap with compute wins 2.2 % at most." in where
    assert not [one for one in answers(given, "What to do") if "stream of its own" in one or "Pin" in one]


@pytest.mark.parametrize(
    ("ns", "words_"), [(0.00031, "< 0.1 %"), (0.0449, "4.5 %"), (0.9999, "99.9 %"), (1.0, "100 %"), (0.0, "0 %")]
)
def test_nothing_that_is_there_reads_as_none_or_all(ns, words_):
    assert run_words.percent(ns) == words_


def late(**changes):
    facts = {"group": 0, "ranks": [2], "of_ranks": 4, "last": 400, "collectives": 560, "waited_ns": 315 * MS}
    facts |= {
        "saved_ns": 92 * MS,
        "is_bound": False,
        "cause": "compute",
        "kernel": "gemm",
        "is_often": True,
        "query": "",
    }
    return LateRankFact(**facts | changes)


def test_a_late_rank_costs_what_each_other_rank_waits():
    said = run_words.of_late_rank(late(), run())
    assert said == (
        "Rank 2 is last in 400 of 560 collectives, as its kernels run longer (gemm). Each of the other 3 waits 105 ms on"
        " average. On time, the run is 92 ms (9.2 %) shorter."
    )
    assert "most of it in few long waits" in run_words.of_late_rank(late(is_often=False), run())


def test_a_rank_that_costs_less_than_a_hundredth_is_not_named():
    rank = {"rank": 2, "pattern": "persistent", "last_collectives": 9, "waiting_for_it_ns": 8 * MS, "alone_ns": 3 * MS}
    group = {"verdict": "straggler", "ranks": [rank], "n_ranks": 2, "collectives": 9, "waiting_ns": 8 * MS}
    given = tables(stragglers={"groups": [group]})
    assert late_rank_facts(given, run()) == []
    group["ranks"][0]["waiting_for_it_ns"] = 10 * MS
    assert [one.ranks for one in late_rank_facts(given, run())] == [[2]]


def test_variation_below_a_hundredth_or_of_collectives_is_not_said():
    rows = [
        made.kernel("a", cost_ms=19),
        made.kernel("ncclAllReduce", cost_ms=500, kind="communication"),
        made.kernel("b", cost_ms=21),
    ]
    given = tables(targets={"kernel_variability": rows})
    assert [fact.name for fact in variation_facts(given, run())] == ["b"]


def test_a_trend_is_no_noise_and_has_no_price():
    (fact,) = variation_facts(tables(targets={"kernel_variability": [made.kernel("fan", cost_ms=300)]}), run())
    said = work_words.of_variation(replace(fact, trend=work.Trend(begins_ns=508e3, ends_ns=42e3)), run())
    assert said.endswith(
        "508 µs in the first tenth of 1,000 launches, 42 µs in the last: a trend over the run, not noise."
    )
    assert (
        "No cause is supported. Launches above their mean take 150 ms per GPU (15 %) more."
        in work_words.of_variation(fact, run())
    )


def test_gaps_are_told_by_the_work_around_them():
    gap = GapFact(
        after="gemm",
        before="a copy (host to device)",
        count=12,
        devices=2,
        total_ns=768 * MS,
        median_ns=64 * MS,
        longest_ns=64 * MS,
        start_ns=MS,
        per_step=True,
    )
    steps = made.run().steps
    assert steps is None
    said = run_words.of_gap(replace(gap, per_step=False), run())
    assert said == "6 gaps per GPU of 64 ms, after gemm, before a copy (host to device) (38 %)"
    one = replace(gap, count=1, devices=1, total_ns=64 * MS, per_step=False)
    assert run_words.of_gap(one, run(devices=1)).startswith("A gap of 64 ms at 1 ms, after gemm")
    each = replace(gap, count=2, devices=2, total_ns=122 * MS, per_step=False)  # 64 ms at 1 ms, and 58 ms elsewhere
    assert run_words.of_gap(each, run()).startswith("A gap of up to 64 ms per GPU, the longest at 1 ms, after gemm")


def test_a_single_copy_that_stands_out_is_named_with_its_memory():
    event = EventFact(
        what="host to device",
        is_copy=True,
        count=2,
        devices=2,
        longest_ns=152 * MS,
        total_ns=304 * MS,
        usual_ns=2 * MS,
        start_ns=700 * MS,
        bytes=4_200_000_000,
        memory="pinned",
    )
    assert run_words.of_event(event, run()) == (
        "2 copies host to device of 4.2 GB from pinned memory take up to 152 ms, usually 2 ms, the longest at 700 ms"
        " (15 % of the run)"
    )
    larger = replace(event, usual_bytes=67_108_864)  # at the same rate, but of another size
    assert " take up to 152 ms, usually 67.1 MB in 2 ms, the longest at 700 ms " in run_words.of_event(larger, run())
    for same in (4_200_000_000, 0):
        assert run_words.of_event(replace(event, usual_bytes=same), run()) == run_words.of_event(event, run())
    unknown = replace(larger, bytes=None)
    assert " take up to 152 ms, usually 2 ms, the longest at 700 ms " in run_words.of_event(unknown, run())


def test_an_only_kernel_is_named_once():
    render = work.WorkFact(name="render", total_ns=150 * MS, launches=750)
    other = work.WorkFact(name=OTHER, total_ns=150 * MS, launches=750)
    assert work_words.of_work([other], [render]) == "150 ms of kernels: render 100 % in 750 launches."
    some = replace(render, filled=0.5)
    assert work_words.of_work([other], [some]).endswith("in 750 launches (its blocks fill 50 % of a device).")
    products = replace(render, name="matrix products")
    said = work_words.of_work([products], [render])
    assert said == "150 ms of kernels: matrix products 100 %. Most in one kernel, render: 100 % in 750 launches."


@pytest.mark.parametrize(
    ("demangled", "short", "work"),
    [
        ("void deep_gemm::sm90_bmk_bnk_mn_impl<128u>(CUtensorMap)", "sm90_bmk_bnk_mn_impl", "matrix products"),
        ("deep_gemm::sm90_fp8_paged_mqa_logits", "sm90_fp8_paged_mqa_logits", "matrix products"),
        ("void acme::run<deep_gemm::Tile>(int)", "run", "routing of experts"),
    ],
)
def test_kernels_of_deep_gemm_are_matrix_products_whatever_their_operator(demangled, short, work):
    """In both ways of counting: by rows of operators, and without them."""
    one = made.kernel(short) | {"name": demangled}
    row = {"level": "operator_kernel", "kernel": one["kernel"], "name": "vllm::moe_forward"}
    given = tables(targets={"kernel_variability": [one]}, operators=[row | {"gpu_ns": 800 * MS, "launches": 1000}])
    assert [(fact.name, fact.total_ns) for fact in class_facts(given)] == [(work, 800 * MS)]
    known = class_facts(replace(given, operators=()))
    assert known[0].name == (work if work == "matrix products" else "other kernels")


def test_idle_time_is_not_said_where_the_recording_lost_it():
    issue = {"kind": "missing_dispatches", "count": 4590, "export": "e0", "detail": ""}
    given = tables(quality=made.quality(issues=[issue]), waiting=[made.wait(800)])
    assert answers(given, "Recording") == [
        "4,590 launches are missing beside 4,000 recorded ones: idle time is not known."
    ]
    assert not [one for one in answers(given, "Where") if one.startswith("Idle")]
    assert answers(given, "What to do")[0].startswith("Record without filters")


def test_few_faults_of_a_recording_are_not_said():
    issue = {"kind": "late_stamps", "count": 39, "export": "e0", "detail": ""}
    assert recording_facts(tables(quality=made.quality(issues=[issue]))) == []


def test_every_statement_is_short_and_holds_what_it_must():
    """Of all lines: at most 40 words, 17 a sentence on average, no share above 100 %, no removal that wins more than the
    run, no word that the readers stumbled over.
    """
    given = tables(
        waiting=[made.wait(500, detail="data loader: x"), made.wait(300, "unknown", "other")],
        replay=[made.replay("host_free", 350), made.replay("collectives_free", 40), made.replay("copies_free", 20)],
    )
    for line in plan(DatasetFacts(given)):
        hold(line.answer)


def test_the_terminal_says_what_the_page_says(tmp_path):
    lines = [
        line.as_json("demo")
        for line in plan(DatasetFacts(tables(waiting=[made.wait(800)], replay=[made.replay("host_free", 350)])))
    ]
    write_json(summarise([], {}, "0" * 12, lines), tmp_path / "findings.json", "findings")
    shown = first_screen_lines(tmp_path, {"demo"}, columns=80)
    assert max(map(len, shown)) <= 80
    assert shown[1] == "demo"
    text = " ".join(" ".join(shown).split())
    assert all(line["answer"] in text for line in lines)
    assert first_screen_lines(tmp_path, {"other"}) == []
    of_question = " ".join(first_screen_lines(tmp_path, {"demo"}, question=lines[0]["question"]))
    assert len([line for line in lines if line["answer"] in " ".join(of_question.split())]) < len(lines)


def test_losses_are_never_larger_than_what_they_are_made_of():
    given = tables(waiting=[made.wait(500), made.wait(300, "unknown", "other")])
    for fact in loss_facts(given, run()):
        assert fact.lost_ns == given.efficiency["waterfall_ns"][fact.part]
        assert sum(ns for _, _, ns in fact.reasons) + fact.unknown_ns <= fact.lost_ns
        assert fact.waited_ns <= fact.lost_ns
    assert isinstance(loss_facts(given, run())[0], LossFact)
    assert gain(3).saved_ns == 3 * MS
    assert gap_facts(given, run()) == []


def test_a_slow_step_is_found_again_by_its_finding(tmp_path):
    """The explorer opens the step by the id of the finding, and its number is that of the query."""
    steps = [
        {
            "rank": 1,
            "step": 7,
            "cause": "idle_inside",
            "cause_ns": 90 * MS,
            "duration_ns": 130 * MS,
            "usual_ns": 30 * MS,
        }
    ]
    fact = SlowStepsFact(
        pairs=[(1, 7)], excess_ns=100 * MS, cause_ns=90 * MS, usual_ns=30 * MS, cause="idle_inside", name=None
    )
    finding = _of_slow_steps(tables(), run(steps=STEPS), fact)
    assert finding.id == "demo/step_time/dataset/step/rank1/idle_inside"
    assert finding.recoverable_ns == 90 * MS * run(steps=STEPS).devices  # all wait for it, and no longer than it takes
    assert finding.headline == "Step 7 of rank 1: 100 ms longer than usual (30 ms), as the device is idle longer."
    half = run_words.of_slow_steps(replace(fact, cause_ns=50 * MS), run(steps=STEPS))
    assert half.endswith("100 ms longer than usual (30 ms), 50 ms of it as the device is idle longer")
    rows = {"rank": [1], "step": [7], "start_ns": [5 * MS], "duration_ns": [130 * MS]}
    schema = SCHEMAS["steps"]
    table = pa.table(
        {name: pa.array(rows.get(name, [0])).cast(schema.field(name).type) for name in schema.names}, schema
    )
    write_json({"slow": steps, "ranks": []}, tmp_path / "steps.json")
    write_table(table, tmp_path / "steps.parquet", "steps")
    assert _slowest_step(finding.as_json(), tmp_path) == (5 * MS, 135 * MS)


def test_the_step_of_a_single_gap_is_named():
    """The time of the gap is that of the slow step: said once, with its number."""
    common = {"after": "gemm", "before": "softmax", "per_step": False, "longest_ns": 60 * MS, "start_ns": 205 * MS}
    gap = GapFact(count=1, devices=1, total_ns=60 * MS, median_ns=60 * MS, **common)
    small = GapFact(count=9, devices=1, total_ns=20 * MS, median_ns=2 * MS, **common | {"longest_ns": 3 * MS})
    slow = {"cause_ns": 59 * MS, "usual_ns": 30 * MS, "cause": "idle_before_first_launch", "name": None}
    facts = SimpleNamespace(
        tables=tables(), run=run(steps=STEPS), gaps=[gap, small], events=(), first_steps=(), faults=()
    )
    facts.slow_steps = [SlowStepsFact(pairs=((1, 63),), excess_ns=59 * MS, **slow)]
    said = [line.answer for line in _outliers(facts)]
    assert said[0] == "A gap of 60 ms at 205 ms, after gemm, before softmax (3 %), in step 63 of rank 1."
    assert said[1].startswith("9 gaps of 2 ms")
    assert len(said) == 2
    facts.slow_steps = [SlowStepsFact(pairs=tuple((1, at) for at in range(9)), excess_ns=59 * MS, **slow)]
    assert _outliers(facts)[0].answer.endswith("before softmax (3 %).")
    wait = {"longest_ns": 60 * MS, "total_ns": 120 * MS, "usual_ns": MS, "start_ns": 205 * MS}
    event = EventFact(what="ncclKernel", is_copy=False, is_collective=True, count=2, devices=2, **wait)
    assert behind_steps(SlowStepsFact(pairs=((1, 63),), excess_ns=59 * MS, **slow), [event]) is None
    assert behind_steps(SlowStepsFact(pairs=((0, 63),), excess_ns=59 * MS, **slow | {"cause": WAITS}), [event]) == event


def test_records_of_the_host_are_not_asked_for_to_see_three_launches_launched():
    """Three dispatches of a counter run: nothing else is in their 24 µs of the host."""
    fact = idle([("launch_starved", "no launcher", 1), ("start_up", "", 1)], won_ms=100)
    assert advice(run(launches=10), [], [fact], [], []) == []
    assert len(advice(run(launches=10), [], [replace(fact, lost_ns=5000 * MS)], [], [])) == 1


def test_nothing_is_advised_of_kernels_that_are_not_recorded():
    """A trace of copies alone: "compute is too short to hide the copies" was said."""
    rates = {"bytes": 10, "gb_per_s": None, "memory": None}
    copies = (CopiesFact(kind=1, direction="host to device", total_ns=90 * MS, copies=2, **rates),)
    fact = LossFact(part="transfers", lost_ns=90 * MS, reasons=(), unknown_ns=0, gain=None, copies=copies)
    assert len(advice(run(), [], [fact], [], [])) == 1
    assert advice(run(launches=0), [], [fact], [], []) == []


def test_a_slow_step_behind_the_percentile_is_said():
    steps = replace(STEPS, count=100, mean_ns=3.85e6, median_ns=3.25e6, p99_ns=3.86e6, longest_ns=63 * MS)
    assert "100 steps of 3.85 ms (p50 3.25 ms, p99 3.86 ms, longest 63 ms)" in run_words.of_run(run(steps=steps))
    even = replace(steps, longest_ns=4 * MS)
    assert "(p50 3.25 ms, p99 3.86 ms)" in run_words.of_run(run(steps=even))


STEPS = StepsFact(
    count=9, mean_ns=30e6, median_ns=30e6, p99_ns=None, longest_ns=130 * MS, parts={}, share=1.0, annotated=True
)


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (lambda at: 1000 + 250 * (at >= 160), "in the last: a jump that stays, at 160 µs, not noise. Meanwhile gpc clock frequency changes from 1.41 to 1.13 GHz."),
        (lambda at: 1000 - 2 * at, "in the last: a trend over the run, not noise."),
        (lambda at: 1000 + 300 * (at % 2), None),
        (lambda at: 1000 + 100 * (at >= 160), "in the last: a jump that stays, at 160 µs, not noise. Meanwhile gpc clock frequency changes from 1.41 to 1.13 GHz."),
        (lambda at: 1000 + 100 * (at // 50 % 2), None),
        (lambda at: 1000 + 250 * (at // 50 % 2), None),
    ],
)  # fmt: skip
def test_a_jump_of_a_kernel_is_told_with_the_clock_that_was_sampled(length, said, tmp_path):
    """300 launches end to end; the clock falls by a fifth from launch 160 on."""
    lengths = [length(at) for at in range(300)]
    starts = [sum(lengths[:at]) for at in range(300)]
    one = {"rank": [0] * 300, "device": [0] * 300}
    moments = [starts[0] + 500 * at for at in range(sum(lengths) // 500)]
    clock = [1_410_000_000.0 if moment < starts[160] else 1_128_000_000.0 for moment in moments]
    tables_of = {
        "launches": one | {"configuration": [0] * 300, "start_ns": starts, "duration_ns": lengths},
        "configurations": {"configuration": [0], "kernel": [0]},
        "kernels": {"kernel": [0], "short_name": ["gemm"]},
        "samples": {"rank": [0] * len(moments), "device": [0] * len(moments), "time_ns": moments, "value": clock}
        | {"metric": ["gpc_clock_frequency_hz"] * len(moments)},
    }
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    trend = work._trend([tmp_path], "gemm")
    if said is None:
        assert trend is None
        return
    (fact,) = variation_facts(tables(targets={"kernel_variability": [made.kernel("fan", cost_ms=300)]}), run())
    assert work_words.of_variation(replace(fact, trend=trend), run()).endswith(said)


def test_folders_may_have_apostrophes(tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    columns = {"rank": [0] * 4, "device": [0] * 4, "start_ns": [0, 10, 20, 30], "duration_ns": [1, 5, 1, 5]}
    copies = {**columns, "copy_kind": [1] * 4}
    launches = {**columns, "stream": [7] * 4, "configuration": [0, 1, 0, 1], "shape": ["x"] * 4}
    configurations = {"configuration": [0, 1], "kernel": [0, 0]}
    kernels = {"kernel": [0], "short_name": ["gemm"]}
    tables_of = {"transfers": copies, "launches": launches, "configurations": configurations, "kernels": kernels}
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), folder / f"{name}.parquet")
    assert outliers._other_work(folder) == [((0, 0), 0, 35)]
    assert 0 <= work._explained_by_neighbours([folder], "gemm") <= 1
