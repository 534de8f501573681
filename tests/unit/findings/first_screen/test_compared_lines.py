"""The lines of a compared pair on the first screen. Numbers are worked by hand."""

from dataclasses import replace
from types import SimpleNamespace

import first_screen_samples as made
import pytest
from first_screen_samples import MS, tables

from causeway.core.codes import NO_CALLS
from causeway.findings.first_screen import compared
from causeway.findings.first_screen.compared import Amount, PairSide, compared_runs, of_comparison
from causeway.findings.first_screen.compared_kernels import compared_tables, kernels_by_name, launch_ratio
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan_of_pair
from causeway.findings.first_screen.run_facts import COPIES
from causeway.findings.first_screen.words import pair_words


def lines_of(sides=None, **changes):
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": []}
    document |= {"operators": None, "matches": []}
    side = {"devices": [{"name": "NVIDIA H100", "number": 2}], "span_ns": 928 * 10**6}
    document |= {
        "baseline": {"dataset": "a", "launches": 100} | side,
        "candidate": {"dataset": "b", "launches": 90} | side,
    }
    row = {
        "level": "run",
        "low_percent": None,
        "high_percent": None,
        "verdict": "inconclusive",
        "reason": "",
        "reason_code": "",
    }
    values = {"time_per_launch": (10.0, 10.2, 2.3), "idle": (274e6, 77e6, -72.0), "span": (928e6, 747e6, -19.5)}
    values |= {"step": (16.7e6, 19.3e6, 15.5)}
    rows = [
        row | {"metric": name, "baseline_value": one, "candidate_value": other, "change_percent": change}
        for name, (one, other, change) in values.items()
    ]
    sides = sides or {
        "a": tables(dataset="a", waiting=[made.wait(184, detail="data loader: next"), made.wait(90)]),
        "b": tables(dataset="b", waiting=[made.wait(77)]),
    }
    return [
        line["answer"]
        for line in plan_of_pair(document | changes, rows, {name: DatasetFacts(one) for name, one in sides.items()})
    ]


def fact_of_kernels():
    fact = {"models": ("2 x GPU",) * 2, "changes": (), "operators": (), "calls": (), "exposed": (), "has_repeats": True}
    return SimpleNamespace(
        **fact, tables=None, amount=Amount(), details={}, tails=(), former={}, lone_times=None, bare=""
    )


def test_a_comparison_says_the_step_first_then_the_run_and_idle_time_with_its_reasons_side_by_side():
    devices, step, whole, waits, launches, rest = lines_of()
    assert devices == "2 x NVIDIA H100 on both sides."
    assert step == "Median step 16.7 ms to 19.3 ms (+15.5 %)."
    assert whole == "Run 928 ms to 747 ms (−19.5 %)."
    assert waits == "Idle, all GPUs 274 ms to 77 ms (−72.0 %): data loader 184 ms to 0."
    assert launches == "The same launches take +2.3 %, 100 to 90 launches in all."
    assert rest.startswith("One run each")


def test_a_matrix_product_of_cutlass_is_called_by_its_template():
    """PyTorch's are all Kernel2."""
    gemm = "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8"
    names = (f"void cutlass::Kernel2<{gemm}>({gemm}::Params)", "void at::native::vectorized_elementwise_kernel<4>(int)")
    fact = fact_of_kernels()
    fact.kernels = [(name, 187 * MS, 198 * MS) for name in names]
    (said,) = (text for text, _ in of_comparison(fact))
    assert "CUTLASS GEMM bf16 TN, tile 16x16 187 ms to 198 ms" in said
    assert "vectorized_elementwise_kernel 187 ms" in said


def test_a_kernel_of_a_namespace_without_name_is_called_by_its_own():
    fact = fact_of_kernels()
    fact.kernels = [("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*, int)", 0, 166 * MS)]
    (said,) = (text for text, _ in of_comparison(fact))
    assert said == "Kernels that changed beyond their number: cunn_SoftMaxForward 0 to 166 ms."


def test_copies_that_are_hidden_since_are_said():
    """The run was 35 % shorter, and nothing said why."""
    parts = {"useful": 189 * MS, "transfers": 103 * MS}
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": []}
    document |= {"operators": None, "matches": []}
    for side in ("baseline", "candidate"):
        document[side] = {"dataset": side, "launches": 9, "span_ns": 292 * MS, "devices": [{"name": None, "number": 1}]}
    sides = [PairSide(parts=parts), PairSide(parts=parts | {"transfers": MS // 10})]
    said = [text for text, _ in of_comparison(compared_runs(document, [], sides))]
    assert said[0] == "Exposed copies, all GPUs 103 ms to 100 µs."
    assert not [text for text, _ in of_comparison(compared_runs(document, [], sides[:1] * 2)) if "Exposed" in text]


def test_calls_of_which_a_step_holds_more_are_worth_what_all_of_them_take():
    """Attention took 8 % less in a call, but a step held three times as many: "−1.69 ms a step" of 12.7 ms more."""
    shape = {"name": "sdpa [4]", "operator": "sdpa", "dims": "[4]", "time_ns": -71 * 432, "step_ns": -71 * 24}
    operators = {"shapes": [shape], "decomposition": [], "without_shapes": []}
    row = {"level": "operator_shape", "candidate": "sdpa [4]", "baseline": "sdpa [4]", "change_percent": -7.9}
    row |= {"baseline_value": 901.0, "candidate_value": 830.0, "baseline_launches": 144, "candidate_launches": 432}
    row |= {"low_percent": None, "high_percent": None, "verdict": "better"}
    sides = [PairSide(steps=[1e6] * 18)] * 2
    (call,) = compared._calls(operators, [row], "t", sides)
    assert (call.step_ns, call.whole_ns) == (24 * 830 - 8 * 901, 432 * 830 - 144 * 901)
    (call,) = compared._calls(operators, [row], "t", [PairSide(steps=[1e6] * 6), sides[1]])  # as many in a step
    assert call.step_ns == -71 * 24


def test_of_runs_that_were_not_compared_it_is_told_why():
    assert lines_of(why="no launch in common.") == ["Not compared: no launch in common."]
    assert lines_of(same_content={"sides": {"is_all": True}}) == []


def test_devices_of_two_makers_are_compared_by_operator():
    """Their kernels bear no common name, so that no launch is the same."""
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": []}
    operators = {"without_shapes": [], "decomposition": [], "shapes": []}
    operators |= {"baseline": {"calls": 9, "gpu_time_ns": 9}, "candidate": {"calls": 9, "gpu_time_ns": 9}}
    document |= {"operators": operators, "matches": []}
    for side, name in (("baseline", "NVIDIA H100"), ("candidate", "AMD Instinct MI300X")):
        document[side] = {
            "dataset": name,
            "launches": 9,
            "ranks": [0],
            "span_ns": 10**9,
            "devices": [{"name": name, "number": 1}],
        }
    operator = {"level": "operator", "name": "aten::mm"}
    sides = [PairSide(operators=[operator | {"gpu_ns": ns}], steps=[1e6] * 100) for ns in (4 * 10**8, 3 * 10**8)]
    said = [text for text, _ in of_comparison(compared_runs(document, [], sides))]
    assert said[:2] == [
        "1 x NVIDIA H100 before, 1 x AMD Instinct MI300X after.",
        "Kernels by operator: aten::mm 400 ms to 300 ms.",
    ]


def kernel_row(name="k", before=10.0, after=10.0, launches=(100, 100), **more):
    """A row of a kernel of both runs: mean times in ns."""
    row = {"level": "kernel", "metric": "time_per_launch", "baseline": name, "candidate": name, "verdict": "same"}
    row |= {"baseline_value": before, "candidate_value": after, "change_percent": 100 * (after / before - 1)}
    row |= {"low_percent": None, "high_percent": None, "floor_percent": 2.0, "reason": "", "reason_code": ""}
    row |= {"baseline_launches": launches[0], "candidate_launches": launches[1]}
    return row | {"baseline_total_ns": before * launches[0], "candidate_total_ns": after * launches[1]} | more


def document_of(devices=(1, 1), span=(100 * MS, 100 * MS), **more):
    document = {
        "why": None,
        "same_content": {"sides": None},
        "noise": "repeats",
        "decomposition": [],
        "matches": [],
        "operators": None,
    }
    for side, number, ns in zip(("baseline", "candidate"), devices, span, strict=True):
        own = {"dataset": side, "launches": 100, "span_ns": ns, "gpu_time_ns": ns, "ranks": list(range(number))}
        document[side] = own | {"devices": [{"name": None, "number": number}]}
    return document | more


def run_row(metric, before, after):
    row = {"level": "run", "metric": metric, "candidate": "run", "baseline_value": before, "candidate_value": after}
    row |= {"low_percent": None, "high_percent": None, "verdict": "inconclusive", "reason": "", "reason_code": ""}
    return row | {"change_percent": 100 * (after / before - 1)}


def said_of(document, rows, sides=None):
    return [text for text, _ in of_comparison(compared_runs(document, rows, sides or [PairSide()] * 2))]


def test_a_run_of_twice_as_many_steps_has_no_more_idle_time():
    """It was told as "Idle +100 %"."""
    rows = [run_row("span", 100 * MS, 200 * MS), run_row("idle", 10 * MS, 20 * MS)]
    sides = PairSide(steps=[MS] * 40), PairSide(steps=[MS] * 80)
    assert said_of(document_of(span=(100 * MS, 200 * MS)), rows, sides) == [
        "Run 100 ms to 200 ms (+100 %), 40 to 80 steps."
    ]
    rows[1] = run_row("idle", 10 * MS, 40 * MS)
    assert "Idle a step, all GPUs 250 µs to 500 µs (+100 %)." in said_of(document_of(), rows, sides)


def test_without_steps_a_shorter_recording_is_told_by_its_launches():
    rows = [run_row("span", 100 * MS, 40 * MS), run_row("idle", 10 * MS, 4 * MS), kernel_row(launches=(100, 40))]
    document = document_of(span=(100 * MS, 40 * MS))
    document["candidate"]["launches"] = 40
    assert said_of(document, rows) == ["Run 100 ms to 40 ms (−60.0 %), 100 to 40 launches."]


def test_times_are_told_for_as_many_launches_only_of_the_same_mix():
    """Of a longer recording with another phase idle time was told to be a third."""
    rows = [run_row("span", 100 * MS, 280 * MS), run_row("idle", 50 * MS, 100 * MS)]
    rows += [kernel_row("a", MS, MS, (100, 500)), kernel_row("b", 10.0, 10.0, (900, 900))]
    document = document_of(span=(100 * MS, 280 * MS))
    document["candidate"]["launches"] = 1400
    assert said_of(document, rows) == [
        "Run 100 ms to 280 ms (+180 %), 100 to 1,400 launches.",
        "Idle, all GPUs 50 ms to 100 ms (+100 %).",
    ]


def test_runs_without_a_common_kernel_are_told_by_their_gpu_time_and_alike_instances_together():
    """Of a template with three and five instances 22 µs were told to be new."""
    name = "void at::native::<unnamed>::distribution_kernel<float, {}>(long)"
    part = {"launches_ns": 0, "baseline_ns": 0, "candidate_ns": 0}
    parts = [part | {"kernel": name.format(4), "match": "gone", "baseline_ns": 12 * MS}]
    parts += [part | {"kernel": name.format(8), "match": "new", "candidate_ns": 22 * MS}]
    document = document_of(decomposition=parts, matched={"exact": 0, "new": 1, "gone": 1})
    document["candidate"] |= {"launches": 50, "gpu_time_ns": 58 * MS}
    assert said_of(document, []) == [
        "No kernel is on both sides: GPU time 100 ms to 58 ms, 100 to 50 launches.",
        "Kernels that changed beyond their number: distribution_kernel 12 ms to 22 ms.",
    ]


def test_instances_with_other_functors_are_other_kernels():
    """A fill that was gone and a GELU that was new were told as one change."""
    name = "void at::native::vectorized_elementwise_kernel<{}, at::native::{}<float>>(int)"
    parts = [
        {"kernel": name.format(4, "FillFunctor"), "match": "gone", "baseline_ns": 12, "candidate_ns": 0},
        {"kernel": name.format(4, "GeluFunctor"), "match": "new", "baseline_ns": 0, "candidate_ns": 22},
        {"kernel": name.format(8, "GeluFunctor"), "match": "new", "baseline_ns": 0, "candidate_ns": 5},
    ]
    told = kernels_by_name(parts)
    assert [(row["baseline_ns"], row["candidate_ns"]) for row in told] == [(12, 0), (0, 27)]


def test_kernels_of_a_run_that_is_mostly_idle_are_told_where_the_change_of_all_is_no_chance():
    whole = kernel_row("all", MS, 1.019 * MS, level="run", verdict="inconclusive", low_percent=1.4, high_percent=2.7)
    part = {"kernel": "k", "baseline_ns": 0.09 * MS, "candidate_ns": 0.125 * MS, "launches_ns": 0}
    document = document_of(decomposition=[part])
    for side in ("baseline", "candidate"):
        document[side]["gpu_time_ns"] = 2 * MS
    assert len(said_of(document, [whole])) == 2
    assert len(said_of(document, [whole | {"low_percent": -0.4}])) == 1


def test_other_numbers_of_gpus_are_told_per_gpu():
    sides = PairSide(parts={"communication": 20 * MS}), PairSide(parts={"communication": 100 * MS})
    said = said_of(document_of(devices=(2, 4)), [], sides)
    assert "Exposed communication a GPU 10 ms to 25 ms." in said


def test_idle_time_that_stays_while_all_else_is_shorter_is_told_by_its_share():
    """An H100 for an A100: the host's part was not told."""
    rows = [run_row("span", 100 * MS, 50 * MS), run_row("idle", 10 * MS, 10 * MS)]
    waits = [made.wait(10, detail="augment")]
    said = said_of(document_of(span=(100 * MS, 50 * MS)), rows, [PairSide(waiting=waits)] * 2)
    assert said[-1] == "Idle, all GPUs 10 ms to 10 ms (0.0 %), 10 % to 20 % of the time, most of it augment."


def test_the_grid_or_rank_with_which_a_kernel_changed_is_told():
    effects = [
        {
            "kernel": "k",
            "column": "grid",
            "value": "8",
            "change_percent": 20.0,
            "low_percent": 19.0,
            "high_percent": 21.0,
        },
        {"kernel": "k", "column": "grid", "value": "4", "change_percent": 0.5, "low_percent": 0.1, "high_percent": 0.9},
        {
            "kernel": "k",
            "column": "rank",
            "value": "0",
            "change_percent": 9.0,
            "low_percent": None,
            "high_percent": None,
        },
        {
            "kernel": "k",
            "column": "rank",
            "value": "1",
            "change_percent": 9.2,
            "low_percent": None,
            "high_percent": None,
        },
    ]
    part = {"kernel": "k", "baseline_ns": 50 * MS, "candidate_ns": 55 * MS, "launches_ns": 0}
    (said,) = said_of(document_of(decomposition=[part], effects=effects), [kernel_row()])
    assert said == (
        "Kernels that changed beyond their number: k 50 ms to 55 ms (by grid: 8 +20.0 % [+19.0, +21.0], 4 +0.50 % [+0.10, +0.90])."
    )


def quantiles(median, p99, name="k", differs=(False, False)):
    row = {"kernel": name, "median_differs": differs[0], "p99_differs": differs[1]}
    for word, ends in (("median", median), ("p99", p99)):
        row |= {f"{side}_{word}_ns": ns for side, ns in zip(("baseline", "candidate"), ends, strict=True)}
    return row


def test_slowest_launches_that_alone_changed_are_told():
    document = document_of(quantiles=[quantiles((1e5, 1e5), (1.1e5, 4e5), differs=(False, True))])
    (said,) = said_of(document, [kernel_row(before=MS, after=MS)])
    assert said == "Slowest launches alone changed: k p99 110 µs to 400 µs, median 100 µs to 100 µs."


def test_kernels_of_other_work_are_not_the_same_launches():
    """A batch of twice the size was told as "The same launches take +81 %, beyond noise"."""
    reason = "none of the time is in configurations that both sides have: other work, which is no change of speed"
    row = kernel_row(
        before=MS, after=2 * MS, level="run", reason=reason, reason_code="other_work", verdict="inconclusive"
    )
    assert said_of(document_of(), [row]) == [f"As far as it is the same work, kernels take +100 %; {reason}."]


def test_operators_of_other_work_are_told_with_their_calls():
    """Of two makers' devices one kernel was common, and "the same launches take −17 %" while all else was slower."""
    reason = "only 5 % of the time is in configurations that both sides have: other work, which is no change of speed"
    row = kernel_row(
        before=MS, after=0.83 * MS, level="run", reason=reason, reason_code="other_work", verdict="inconclusive"
    )
    calls = kernel_row(before=MS, after=1.36 * MS, level="run", metric="time_per_call", verdict="slower per call")
    calls |= {"low_percent": 35.8, "high_percent": 36.2}
    operators = {
        "without_shapes": [],
        "decomposition": [],
        "shapes": [],
        "baseline": {"calls": 9, "gpu_time_ns": 9},
        "candidate": {"calls": 9, "gpu_time_ns": 9},
    }
    assert said_of(document_of(operators=operators), [row, calls]) == [
        f"As far as it is the same work, kernels take −17.0 %; {reason}.",
        "The same operator calls take +36.0 % [+35.8, +36.2], beyond noise.",
    ]
    assert len(said_of(document_of(operators=operators | {"without_shapes": ["a"]}), [row, calls])) == 1


def test_a_kernel_is_told_with_its_former_name():
    part = {"kernel": "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", "baseline_ns": 50 * MS}
    part |= {"candidate_ns": 10 * MS, "launches_ns": 0}
    match = {"baseline": "ampere_sgemm_128x128_nn", "candidate": part["kernel"]}
    (said,) = said_of(document_of(decomposition=[part], matches=[match]), [])
    assert "cuBLAS GEMM bf16 NN, tile 128x128, before cuBLAS GEMM f32 NN, tile 128x128, 50 ms to 10 ms" in said
    built = {
        "baseline": "__omp_offloading_31_18a8104__Z5relaxv_l42",
        "candidate": "__omp_offloading_2d_77ab31c__Z5relaxv_l42",
    }
    (said,) = said_of(document_of(decomposition=[part | {"kernel": built["candidate"]}], matches=[built]), [])
    assert "before" not in said  # another build has other numbers


def test_steps_that_warm_up_in_one_run_alone_are_told():
    sides = [PairSide(steps=[1e6] * 40), PairSide(steps=[1e6] * 40, warm_up=[2e7] * 6)]
    row = run_row("step", 1e6, 1e6)
    (_, said) = (text for text, _ in of_comparison(compared_runs(document_of(), [row], sides)))
    assert said == "Steps that warm up 0 to 120 ms, 0 to 6 of them."


def test_counters_of_a_kernel_that_changed_are_told():
    part = {"kernel": "k", "baseline_ns": 50 * MS, "candidate_ns": 55 * MS, "launches_ns": 0}
    values = {"hits": ("ratio", 0.5, 0.8), "same": ("", 1.0, 1.04), "read": ("bytes", 8e9, 1e9), "none": ("", 0.0, 0.0)}
    counters = [
        {"kernel": "k", "counter": name, "unit": unit, "baseline": before, "candidate": after}
        for name, (unit, before, after) in values.items()
    ]
    (said,) = said_of(document_of(decomposition=[part], counters=counters), [kernel_row(before=50 * MS, after=55 * MS)])
    assert said.endswith("k 50 ms to 55 ms (read 8 GB to 1 GB; hits 50 % to 80 %).")


def test_ranks_that_changed_alike_stand_together():
    part = {"kernel": "k", "baseline_ns": 50 * MS, "candidate_ns": 55 * MS, "launches_ns": 0}
    changes = {"0": 0.1, "1": -0.2, "2": 12.0, "3": 12.4}
    effects = [
        {
            "kernel": "k",
            "column": "rank",
            "value": rank,
            "change_percent": change,
            "low_percent": None,
            "high_percent": None,
        }
        for rank, change in changes.items()
    ]
    (said,) = said_of(document_of(decomposition=[part], effects=effects), [kernel_row(before=50 * MS, after=55 * MS)])
    assert said.endswith("(by rank: 2–3 +12.2 %, 0–1 −0.050 %).")


def test_kernels_that_all_changed_alike_are_told_so():
    rows = [kernel_row(before=MS, after=1.06 * MS, level="run", verdict="slower")]
    rows += [kernel_row(name, MS, change * MS) for name, change in (("a", 1.065), ("b", 1.058))]
    assert said_of(document_of(), rows) == ["The same launches take +6.0 %, all kernels alike, beyond noise."]


def test_calls_of_a_step_are_counted_per_rank():
    """Of twice as many GPUs each operator was told to be called twice as often."""
    shape = {"name": "mm [4]", "operator": "mm", "dims": "[4]", "time_ns": 100, "step_ns": 10}
    operators = {"shapes": [shape], "decomposition": [], "without_shapes": []}
    row = {"level": "operator_shape", "candidate": "mm [4]", "baseline": "mm [4]", "change_percent": 1.0}
    row |= {"baseline_value": 800.0, "candidate_value": 801.0, "baseline_launches": 576, "candidate_launches": 1152}
    row |= {"low_percent": None, "high_percent": None, "verdict": "same"}
    (call,) = compared._calls(operators, [row], "t", [PairSide(steps=[1e6] * 36)] * 2, [2, 4])
    assert call.step_ns == 10


def test_rates_of_copies_are_told():
    sides = [
        PairSide(copies=[{"direction": "host to device", "bytes": size, "sized_ns": 10**9}])
        for size in (6 * 10**9, 24 * 10**9)
    ]
    said = said_of(document_of(), [run_row("span", 1e8, 1e8), run_row("copies", 5e7, 1e7)], sides)
    assert said[-1] == "Copies, all GPUs 50 ms to 10 ms (−80.0 %): host to device at 6 GB/s to 24 GB/s."


def test_a_direction_of_little_time_has_no_rate():
    """Copies of 65 × 8 bytes back were told at 0.0009 GB/s."""
    back = {"direction": "device to host", "bytes": 520, "sized_ns": 10**6}
    sides = [
        PairSide(copies=[{"direction": "host to device", "bytes": size, "sized_ns": 10**9}, back | {"bytes": size}])
        for size in (6 * 10**9, 24 * 10**9)
    ]
    said = said_of(document_of(), [run_row("span", 1e8, 1e8), run_row("copies", 5e7, 1e7)], sides)
    assert said[-1] == "Copies, all GPUs 50 ms to 10 ms (−80.0 %): host to device at 6 GB/s to 24 GB/s."


def test_copies_that_are_all_outside_compute_are_told_once():
    sides = PairSide(parts={COPIES: 60 * MS}), PairSide(parts={COPIES: 20 * MS})
    rows = [run_row("span", 100 * MS, 100 * MS), run_row("copies", 60 * MS, 20 * MS)]
    assert [line for line in said_of(document_of(), rows, sides) if "opies" in line] == [
        "Copies, all GPUs 60 ms to 20 ms (−66.7 %)."
    ]
    rows[1] = run_row("copies", 70 * MS, 30 * MS)
    assert "Exposed copies, all GPUs 60 ms to 20 ms." in said_of(document_of(), rows, sides)


def test_idle_time_without_calls_is_not_explained():
    """ "Idle 20 ms to 10 ms: the export has no runtime calls 20 ms to 10 ms" was told."""
    sides = [PairSide(waiting=[made.wait(ms, reason="unknown", detail=NO_CALLS)]) for ms in (20, 10)]
    rows = [run_row("span", 100 * MS, 90 * MS), run_row("idle", 20 * MS, 10 * MS)]
    assert said_of(document_of(), rows, sides)[-1] == (
        "Idle, all GPUs 20 ms to 10 ms (−50.0 %): not explained 20 ms to 10 ms."
    )


def test_other_work_of_half_as_many_launches_is_told_as_it_was_recorded():
    """Of the first half of a recording 81 ms of idle time became 176 ms, which is more than the run took."""
    rows = [run_row("span", 90 * MS, 84 * MS), run_row("idle", 81 * MS, 77 * MS), kernel_row(launches=(56, 28))]
    whole = kernel_row("all", launches=(56, 28), level="run", reason="other work", reason_code="other_work")
    document = document_of(span=(90 * MS, 84 * MS))
    assert "Idle, all GPUs 81 ms to 77 ms (−4.9 %)." in said_of(document, [*rows, whole])
    same = said_of(document, [*rows, whole | {"reason": "", "reason_code": ""}])
    assert "Idle, all GPUs for as many launches 81 ms to 154 ms (+90.1 %)." in same


def test_kernels_that_are_told_together_are_not_told_by_the_name_of_one():
    """`producer1` and `producer2` took 886 µs each: "producer1 1.77 ms to 0" was told."""
    part = {"match": "gone", "baseline_ns": 8, "candidate_ns": 0}
    parts = [part | {"kernel": f"producer{number}Kernel(float const*, int)"} for number in (1, 2)]
    assert [(row["kernel"], row["baseline_ns"]) for row in kernels_by_name(parts)] == [
        ("producer*Kernel(float const*, int)", 16)
    ]
    lone = kernels_by_name(parts[:1])
    assert [(row["kernel"], row["baseline_ns"]) for row in lone] == [("producer1Kernel(float const*, int)", 8)]


def test_operators_that_one_run_did_not_record_are_not_told():
    """Of a run without the ranges of Kokkos: "KokkosBlas::gemm 0 to 180 ms" was told."""
    sides = PairSide(operators=[made_operator("sort", 1)]), PairSide(operators=[made_operator("gemm", 80)])
    operators = {"without_shapes": ["a", "b"], "decomposition": [], "shapes": []}
    for known, is_told in ((80, True), (70, True), (1, False)):
        operators |= {"baseline": {"calls": 1, "gpu_time_ns": known * MS}}
        operators |= {"candidate": {"calls": 1, "gpu_time_ns": 80 * MS}}
        said = said_of(document_of(operators=operators), [run_row("span", 1e8, 1e8)], sides)
        assert any("gemm 0 to 80 ms" in line for line in said) == is_told


def made_operator(name, ms):
    return {"level": "operator", "name": name, "gpu_ns": ms * MS}


def settings_of(*values):
    rows = [dict(zip(("column", "value", "baseline", "candidate"), value, strict=True)) for value in values]
    return {"columns": ["rows"], "values": rows}


def test_tables_are_told_at_equal_settings_with_their_mix_and_what_it_came_with():
    """A mean that rises as there are more large rows: the kernel itself is faster."""
    row = kernel_row(
        "norm", 80_000.0, 141_000.0, change_percent=-6.1, low_percent=-6.2, high_percent=-6.0, verdict="faster"
    )
    part = {"feature": "rows", "kind": "input", "before": 20000.0, "after": 44000.0, "is_clear": True}
    parts = [part | {"mean_ns": 70_000, "mean_low_ns": 63_000, "mean_high_ns": 76_000}]
    parts.append({**parts[0], "feature": "mechanism", "kind": "mechanism", "mean_ns": -7_000, "is_clear": True})
    document = document_of(
        settings=settings_of(("rows", "64", 500, 200), ("rows", "4096", 500, 800), ("dtype", "bf16", 1000, 1000)),
        quantiles=[quantiles((68_000, 197_000), (216_000, 205_000), "norm", (True, True))],
        attributions={"kernels": [{"kernel": "norm", "mean_ns": 61_000, "parts": parts}]},
    )
    said = said_of(document, [row])
    assert said == [
        "norm −6.1 % [−6.2, −6.0] with equal rows, beyond noise: mean 80 µs to 141 µs, median 68 µs to 197 µs, p99 216 µs"
        " to 205 µs. Of +61 µs a launch, +70 µs [+63 µs, +76 µs] came with rows (mean 20,000 to 44,000), −7 µs"
        " [+63 µs, +76 µs] is the kernel itself, −2 µs is unexplained.",
        "Mix in column rows: 64 50 % to 20 %, 4096 50 % to 80 %.",
    ]


def test_of_equal_tables_that_nothing_changed_is_told():
    document = document_of(
        settings=settings_of(("rows", "64", 500, 510), ("rows", "4096", 500, 490)),
        quantiles=[quantiles((100, 100), (110, 111), "fft"), quantiles((100, 100), (110, 111), "copy")],
    )
    more = {"baseline_total_ns": 100.0, "candidate_total_ns": 900.0}  # by its launches alone
    rows = [kernel_row("fft", 100.0, 100.2, low_percent=-0.3, high_percent=0.7), kernel_row("copy", 50.0, 50.0) | more]
    assert said_of(document, rows) == [
        "No change beyond noise, of 2 kernels, fft most: +0.20 % [−0.30, +0.70] with equal rows; median 100 ns to 100 ns, p99"
        " 110 ns to 111 ns."
    ]


def test_idle_time_and_copies_of_kernels_alone_are_not_compared():
    """The same kernels, exported without copies and calls, were told to copy less and to be idle for longer."""
    copy = {"direction": "host to device", "bytes": 10, "sized_ns": 5}
    with_copies = tables(
        dataset="a", waiting=[made.wait(90)], efficiency={"why": None, "copies": [copy], "waterfall_ns": {}}
    )
    alone = made.wait(140, "unknown", "the export has no runtime calls")
    for copies, is_told in (([], True), ([copy], False)):
        bare = tables(dataset="b", waiting=[alone], efficiency={"why": None, "copies": copies, "waterfall_ns": {}})
        said = lines_of(sides={"a": with_copies, "b": bare})
        assert ("Idle time and copies are not compared: b has neither copies nor calls." in said) == is_told
        assert any(line.startswith("Idle, all") for line in said) != is_told
    # where neither side has calls, copies that are gone were removed
    with_copies = replace(with_copies, waiting=[alone])
    bare = replace(bare, efficiency={"why": None, "copies": [], "waterfall_ns": {}})
    said = lines_of(sides={"a": with_copies, "b": bare})
    assert any(line.startswith("Idle, all") for line in said)
    assert not any("not compared" in line for line in said)


@pytest.mark.parametrize(("times", "ratio"), [((9, 1, 1), 2.0), ((1, 9, 1), 3.0), ((0, 0, 0), 3.0), ((), 1.0)])
def test_the_ratio_of_launches_is_that_of_most_of_the_time(times, ratio):
    alike = {"level": "kernel", "metric": "time_per_launch", "change_percent": 0.0, "baseline_launches": 10}
    rows = [
        alike | {"candidate_launches": launches, "baseline_total_ns": ns}
        for launches, ns in zip((20, 30, 40), times, strict=False)
    ]
    assert launch_ratio(rows) == ratio


def test_kernels_of_one_table_alone_are_told_with_their_time():
    ends = {
        "gemm": ("exact", 2000 * MS, 2000 * MS),
        "copy": ("gone", 120 * MS, 0),
        "norm": ("new", 0, 50 * MS),
        "tiny": ("new", 0, MS),
    }
    rows = [
        {"kernel": name, "match": match, "baseline_ns": before, "candidate_ns": after}
        for name, (match, before, after) in ends.items()
    ]
    document = {"settings": {"columns": [], "values": []}, "quantiles": [], "decomposition": rows}
    fact = compared_tables(document, [], "comparison.parquet")
    assert [line for line, _ in pair_words.of_tables(fact)] == [
        "copy: 120 ms before, no rows after.",
        "norm: no rows before, 50 ms after.",
    ]
