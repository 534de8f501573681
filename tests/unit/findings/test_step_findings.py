"""Slow steps as findings: numbers that their queries give, words, what is shared among steps, names from outside."""

import duckdb
import pyarrow as pa
import pytest

from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.findings.device_time.step_waits import idle_ranks, step_waits
from causeway.findings.device_time.steps import step_findings
from causeway.findings.document import DatasetTime, summarise, with_steps
from causeway.findings.headlines import MOST_WORDS, SLOW, word_count
from causeway.findings.suggestions import BLOCKING_STEPS, DATA_LOADER, LATE_UNSEEN, SLOW_STEPS, WAITING

HOSTILE = "<script>alert(1)</script>' OR 1=1 --" + "x" * 100_000
OWN = "slower_kernels"
WAITS = "exposed_communication"
RANK = {
    "steps": 40,
    "warm_up": 0,
    "devices": 1,
    "time_ns": 40_000_000,
    "median_ns": 1_000_000,
    "on_device": False,
    "reason": None,
}
RANK |= dict.fromkeys(("period", "confidence", "coverage"))


def slow(rank, step, cause, excess=400_000, **more):
    known = {"rank": rank, "step": step, "usual_ns": 1_000_000, "duration_ns": 1_000_000 + excess, "excess_ns": excess}
    known |= dict.fromkeys(("name", "launches", "ratio", "waits_for"))
    return known | {"cause": cause, "cause_ns": excess - 1} | more


def row(step, verdict="supported"):
    known = {"rank": step["rank"], "step": step["step"], "cause": step["cause"], "name": step["name"]}
    known |= {"excess_ns": step["cause_ns"], "low_ns": 1, "high_ns": 10**9, "share": 0.9, "q_value": 0.001}
    return known | {"launches": None, "ratio": None, "verdict": verdict}


def made(steps):
    document = {
        "dataset": "d",
        "source": "annotations",
        "ranges": "step *",
        "reason": None,
        "by_calls": [],
        "slow": steps,
    }
    document["ranks"] = [{"rank": rank, **RANK} for rank in (0, 1)]
    return document, [row(step) for step in steps if step["cause"]]


def test_steps_of_one_rank_and_cause_are_one_finding(tmp_path, monkeypatch):
    steps = [
        slow(0, 4, "idle_before_first_launch"),
        slow(0, 9, "idle_before_first_launch", 600_000),
        slow(0, 11, "added_launches", name=HOSTILE, launches=4),
        slow(1, 4, "exposed_communication", waits_for=0),
        slow(1, 5, None, cause_ns=None),
    ]
    document, rows = made(steps)
    rows.append(row(steps[0], "inconclusive"))
    write_json(document, tmp_path / "d" / "steps.json", "steps")
    schema = SCHEMAS["step_causes"]
    write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "d" / "step_causes.parquet", "step_causes")
    findings = step_findings(document, rows)
    assert [(one.subject, one.n, one.worth.ns) for one in findings] == [
        ("rank 0", 1, 399_999),
        ("rank 0", 2, 999_998),
        ("rank 1", 1, 399_999),
    ]
    monkeypatch.chdir(tmp_path)
    for finding in findings:
        assert duckdb.connect().execute(finding.evidence.query).fetchall() == [(finding.evidence.value,)]
        assert word_count(finding.headline, finding.subject) <= MOST_WORDS
        assert len(finding.headline) < 200
        assert "alert" not in finding.evidence.query
    assert findings[1].headline == "Steps 4, 9 of rank 0 took 50 % longer (1 ms): the first launch comes late."
    assert findings[2].headline.endswith("rank 0 is late.")
    result = summarise(findings, {"d": DatasetTime(gpu_ns=10**8, steps=80)}, "0" * 16)
    write_json(result, tmp_path / "findings.json", "findings")
    assert [one["worth_per_step_ns"] for one in result["findings"]] == [12_500, 5_000, 5_000]
    assert result["dropped"] == []


def test_where_steps_are_little_of_the_run_nothing_is_worth_per_step():
    """As of a solver of 12 steps of 7 ms after 8.4 s of set-up, where 8.5 s of waiting were 0.7 s of each step."""
    findings = step_findings(*made([slow(0, 4, "lower_clock", name="gemm", ratio=0.8)]))
    worth = findings[0].worth.ns
    for share, expected in ((0.79, None), (0.81, round(worth / 80))):
        time = DatasetTime(gpu_ns=10**8, steps=80, steps_ns=round(share * 10**8))
        (finding,) = summarise(findings, {"d": time}, "0" * 16)["findings"]
        assert finding["worth_per_step_ns"] == expected


def test_steps_take_the_sum_of_their_durations_on_the_devices_of_each_rank():
    ranks = [{"steps": 10, "time_ns": 64, "devices": 2}, {"steps": 4, "time_ns": 30, "devices": 1}]
    ranks += [{"steps": 0, "time_ns": 0, "devices": 0}, {"steps": 2, "time_ns": 7, "devices": 1}]
    time = with_steps(DatasetTime(gpu_ns=1), {"ranks": ranks})
    assert (time.gpu_ns, time.steps, time.steps_ns) == (1, 16, 64 * 2 + 30 + 7)


def test_without_steps_nothing_is_worth_per_step():
    document, rows = made([slow(0, 4, "lower_clock", name="gemm", ratio=0.8)])
    (finding,) = summarise(step_findings(document, rows), {}, "0" * 16)["findings"]
    assert finding["worth_per_step_ns"] is None
    assert "by a factor of 0.80" in finding["sentence"]


def waiting(rank, step, detail, wait_ns, reason="launch_starved"):
    return {"rank": rank, "step": step, "reason": reason, "detail": detail, "wait_ns": wait_ns}


def late(details, slow_steps=(4, 9)):
    """Return the finding of steps of rank 0 that wait before their first launch, 400 us each, with what is behind it:
    all 40 steps wait 10 us for each of `details`, the slow ones so many us more.
    """
    document, rows = made([slow(0, step, "idle_before_first_launch") for step in slow_steps])
    waits = [
        waiting(0, step, detail, 1000 * (10 + (more if step in slow_steps else 0)), reason)
        for step in range(40)
        for (reason, detail), more in details.items()
    ]
    assert idle_ranks(document) == [0]
    (finding,) = step_findings(document, rows, {0: step_waits(document, 0, waits)})
    return finding


def test_what_the_host_does_in_slow_steps_beyond_the_usual_is_named():
    loader = "data loader: enumerate(DataLoader)#*"
    finding = late({("launch_starved", loader): 300, ("blocked_host", "cudaFree"): 100})
    assert finding.sentence.endswith(f"comes late; the largest part of that, 600 µs: {loader}.")
    assert finding.headline.endswith("the first launch comes late, most of all data loader: enumerate(DataLoader)#*.")
    assert word_count(finding.headline, finding.subject) <= MOST_WORDS
    assert finding.suggestion == DATA_LOADER


def test_a_blocking_call_in_slow_steps_has_its_own_advice():
    for call in ("cudaFree", "cudaMalloc", "hipHostMalloc", "cuMemAlloc_v2"):
        assert late({("blocked_host", call): 390}).suggestion == BLOCKING_STEPS[True]
    assert late({("blocked_host", "cudaStreamSynchronize"): 390}).suggestion == BLOCKING_STEPS[False]


def test_time_in_the_range_of_the_step_alone_is_host_code_that_nothing_tells():
    finding = late({("launch_starved", "range: step *"): 395, ("launch_starved", "range: forward"): 3})
    assert finding.sentence.endswith("the largest part of that, 790 µs: host code not recorded.")
    assert finding.suggestion == LATE_UNSEEN


def test_what_slow_steps_have_as_others_have_or_less_than_half_of_is_not_named():
    finding = late({("launch_starved", f"range: {name}"): 130 for name in "abc"} | {("start_up", "between"): 0})
    assert finding.sentence.endswith("because the first launch comes late.")
    assert finding.suggestion == SLOW_STEPS["idle_before_first_launch"]


def test_a_wait_that_most_steps_lack_counts_whole():
    """Of 38 other steps 10 wait 1 ms: the usual is none."""
    document, _ = made([slow(0, 4, "idle_inside"), slow(0, 9, "idle_inside")])
    waits = [waiting(0, step, "cudaFree", 1_000_000, "blocked_host") for step in range(20, 30)]
    waits += [waiting(0, 4, "cudaFree", 300, "blocked_host"), waiting(0, 4, "cudaFree", 50, "blocked_host")]
    (found,) = step_waits(document, 0, waits)
    assert (found.excess_ns, found.total([4, 9])) == ({4: 350, 9: 0}, 350)
    waits += [waiting(0, step, "cudaFree", 100, "blocked_host") for step in range(10, 19)]
    (found,) = step_waits(document, 0, waits)
    assert found.excess_ns == {4: 300, 9: -50}, "19 of 38 wait: the median lies between none and 100"


def test_a_hostile_name_behind_a_slow_step_is_cut():
    finding = late({("launch_starved", f"range: {HOSTILE}"): 390})
    assert len(finding.sentence) < 400
    assert len(finding.headline) < 200


def test_every_cause_has_words_and_advice():
    assert SLOW.keys() == SLOW_STEPS.keys()


def repeated(times, steps=40, confidence=0.98):
    """Return the findings of one slow repeat, which takes so many times as long as usual."""
    document, rows = made([slow(0, 4, "idle_inside", int((times - 1) * 1_000_000))])
    document |= {"source": "repeats", "ranges": None}
    document["ranks"][0] |= {"steps": steps, "confidence": confidence}
    return step_findings(document, rows)


def test_repeats_are_called_so_and_count_as_steps_only_if_they_are_alike():
    (finding,) = repeated(1.5)
    assert (finding.verdict, finding.worth.ns, finding.recoverable_ns) == ("supported", 499_999, 499_999)
    assert finding.headline.startswith("Repeat 4 of rank 0 took 50 % longer")
    assert "repeats of the launch sequence (steps or layers; no annotation names steps)" in finding.sentence


@pytest.mark.parametrize("case", [{"times": 12.4}, {"times": 1.5, "steps": 16}, {"times": 1.5, "confidence": 0.9}])
def test_what_may_be_the_rest_of_a_step_among_layers_is_no_loss(case):
    (finding,) = repeated(**case)
    assert (finding.verdict, finding.worth, finding.recoverable_ns) == ("inconclusive", None, None)
    assert finding.sentence.endswith("it may be the rest of a longer step.")
    (ranked,) = summarise([finding], {"d": DatasetTime(gpu_ns=10**8, steps=80)}, "0" * 16)["findings"]
    assert (ranked["verdict"], ranked["recoverable_share"]) == ("inconclusive", None)


def test_steps_that_are_slow_for_the_profiler_are_no_loss_of_the_program(tmp_path, monkeypatch):
    """Steps 4 and 9 wait 400 us longer each: step 4 for 250 us in what the profiler did, of two kinds, step 9 for
    150 us of it and 230 us in a call.
    """
    document, rows = made([slow(0, step, "idle_inside") for step in (4, 9)])
    waits = [waiting(0, 4, detail, 125_000, "profiler") for detail in ("CUPTI Buffer flush", "dlopen")]
    waits += [waiting(0, 9, "dlopen", 150_000, "profiler"), waiting(0, 9, "cudaFree", 230_000, "blocked_host")]
    write_table(
        pa.Table.from_pylist(rows, schema=SCHEMAS["step_causes"]), tmp_path / "d" / "step_causes.parquet", "step_causes"
    )
    monkeypatch.chdir(tmp_path)
    program, profiler = step_findings(document, rows, {0: step_waits(document, 0, waits)})
    assert (program.n, program.worth.ns, program.recoverable_ns) == (1, 399_999, 399_999)
    assert program.headline.startswith("Step 9 of rank 0")
    assert "the largest part of that, 230 µs: cudaFree." in program.sentence
    assert program.suggestion == BLOCKING_STEPS[True]
    assert profiler.headline.startswith("Step 4 of rank 0")
    assert "the largest part of that, 250 µs: the profiler's own work. The program without" in profiler.sentence
    assert (profiler.verdict, profiler.worth, profiler.recoverable_ns) == ("supported", None, None)
    assert profiler.suggestion == WAITING["profiler"]
    for finding in (program, profiler):
        assert duckdb.connect().execute(finding.evidence.query).fetchall() == [(399_999,)]
    assert profiler.id != program.id
    severities = {one["id"]: one["severity"] for one in summarise([program, profiler], {}, "0" * 16)["findings"]}
    assert severities[profiler.id] == "none"


def test_less_than_half_of_the_profilers_own_work_leaves_a_slow_step_the_programs():
    document, rows = made([slow(0, 4, "idle_inside")])  # 399,999 ns of idle time
    for own, ids in ((200_000, "d/step_time/dataset/step/rank0/idle_inside/profiler"), (199_999, None)):
        waits = step_waits(document, 0, [waiting(0, 4, "flush", own, "profiler")])
        (finding,) = step_findings(document, rows, {0: waits})
        assert (finding.worth is None) == (ids is not None)
        assert finding.id == (ids or "d/step_time/dataset/step/rank0/idle_inside")


def of_rank_0(steps):
    """Return the finding on the steps in which rank 0 waits for others."""
    document, rows = made(steps)
    document["ranks"] = [{**document["ranks"][0], "rank": rank} for rank in range(8)]
    return next(one for one in step_findings(document, rows) if one.key == f"rank0/{WAITS}")


def test_steps_that_wait_for_different_ranks_name_each():
    """In step 4 rank 3 is slow, in step 9 rank 5, which costs more."""
    found = of_rank_0(
        [
            slow(0, 4, WAITS, waits_for=3),
            slow(3, 4, OWN, name="k"),
            slow(0, 9, WAITS, 600_000, waits_for=5),
            slow(5, 9, OWN, 600_000, name="k"),
        ]
    )
    assert found.headline == "Steps 4, 9 of rank 0 took 50 % longer (1 ms): ranks 3, 5 are late."
    assert found.sentence.endswith(
        "; ranks 3, 5 are slow in the same steps for reasons of their own, in step 9 rank 5 most."
    )


def test_two_ranks_that_are_slow_in_one_step_are_both_named():
    found = of_rank_0(
        [
            slow(0, 4, WAITS, waits_for=3),
            slow(3, 4, OWN, name="k"),
            slow(2, 4, OWN, 300_000, name="k"),
            slow(1, 4, WAITS, waits_for=3),  # it waits as rank 0 does
            slow(6, 4, None, cause_ns=None),  # of which no cause is known
            slow(7, 5, OWN, name="k"),  # in another step, in which rank 0 is as usual
        ]
    )
    assert found.headline.endswith(": ranks 2, 3 are late.")
    assert found.sentence.endswith("in step 4 rank 3 most.")


def test_a_single_late_rank_is_said_as_before():
    found = of_rank_0([slow(0, 4, WAITS, waits_for=3), slow(3, 4, OWN, name="k")])
    assert found.headline.endswith(": rank 3 is late.")
    assert found.sentence.endswith("; rank 3 is slow in the same step for a reason of its own.")


def test_many_late_ranks_fit_a_headline():
    steps = [slow(0, step, WAITS, waits_for=step) for step in range(1, 8)]
    found = of_rank_0([*steps, *(slow(step, step, OWN, name="k") for step in range(1, 8))])
    assert word_count(found.headline, found.subject) <= MOST_WORDS
