"""The lines of a compared pair on the first screen. Numbers are worked by hand."""

from types import SimpleNamespace

import first_screen_samples as made
from first_screen_samples import MS, tables

from causeway.findings.first_screen.compared import PairSide, compared_runs, of_comparison
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan_of_pair


def compared(**changes):
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": [], "operators": None}
    side = {"devices": [{"name": "NVIDIA H100", "number": 2}], "span_ns": 928 * 10**6}
    document |= {
        "baseline": {"dataset": "a", "launches": 100} | side,
        "candidate": {"dataset": "b", "launches": 90} | side,
    }
    row = {"level": "run", "low_percent": None, "high_percent": None, "verdict": "inconclusive"}
    values = {"time_per_launch": (10.0, 10.2, 2.3), "idle": (274e6, 77e6, -72.0), "span": (928e6, 747e6, -19.5)}
    values |= {"step": (16.7e6, 19.3e6, 15.5)}
    rows = [
        row | {"metric": name, "baseline_value": one, "candidate_value": other, "change_percent": change}
        for name, (one, other, change) in values.items()
    ]
    sides = {
        "a": tables(dataset="a", waiting=[made.wait(184, detail="data loader: next"), made.wait(90)]),
        "b": tables(dataset="b", waiting=[made.wait(77)]),
    }
    return [
        line["answer"]
        for line in plan_of_pair(document | changes, rows, {name: DatasetFacts(one) for name, one in sides.items()})
    ]


def test_a_comparison_says_the_step_first_then_the_run_and_idle_time_with_its_reasons_side_by_side():
    devices, step, whole, waits, launches, rest = compared()
    assert devices == "2 x NVIDIA H100 on both sides."
    assert step == "Median step 16.7 ms to 19.3 ms (+16 %)."
    assert whole == "Run 928 ms to 747 ms (−20 %)."
    assert waits == "Idle, all GPUs 274 ms to 77 ms (−72 %): data loader 184 ms to 0."
    assert launches == "The same launches take +2.3 %, 100 to 90 of them."
    assert rest.startswith("One run each")


def test_a_matrix_product_of_cutlass_is_called_by_its_template():
    """PyTorch's are all Kernel2."""
    gemm = "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8"
    names = (f"void cutlass::Kernel2<{gemm}>({gemm}::Params)", "void at::native::vectorized_elementwise_kernel<4>(int)")
    fact = SimpleNamespace(models=("2 x GPU",) * 2, changes=(), operators=(), calls=(), has_repeats=True)
    fact.kernels = [(name, 187 * MS, 198 * MS) for name in names]
    (said,) = (text for text, _ in of_comparison(fact))
    assert "CUTLASS GEMM bf16 TN, tile 16x16 187 ms to 198 ms" in said
    assert "vectorized_elementwise_kernel 187 ms" in said


def test_runs_that_were_not_compared_have_no_such_lines():
    assert compared(why="no launch in common") == []
    assert compared(same_content={"sides": {"is_all": True}}) == []


def test_devices_of_two_makers_are_compared_by_operator():
    """Their kernels bear no common name, so that no launch is the same."""
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": [], "operators": None}
    for side, name in (("baseline", "NVIDIA H100"), ("candidate", "AMD Instinct MI300X")):
        document[side] = {"dataset": name, "launches": 9, "span_ns": 10**9, "devices": [{"name": name, "number": 1}]}
    operator = {"level": "operator", "name": "aten::mm"}
    sides = [PairSide(operators=[operator | {"gpu_ns": ns}], steps=[1e6] * 100) for ns in (4 * 10**8, 3 * 10**8)]
    said = [text for text, _ in of_comparison(compared_runs(document, [], sides))]
    assert said[:2] == [
        "1 x NVIDIA H100 before, 1 x AMD Instinct MI300X after.",
        "Kernels by operator: aten::mm 400 ms to 300 ms.",
    ]
