"""The lines of a compared pair on the first screen. Numbers are worked by hand."""

from types import SimpleNamespace

import first_screen_samples as made
from first_screen_samples import MS, tables

from causeway.findings.first_screen import compared
from causeway.findings.first_screen.compared import Amount, PairSide, compared_runs, of_comparison
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan_of_pair


def lines_of(**changes):
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


def fact_of_kernels():
    fact = SimpleNamespace(models=("2 x GPU",) * 2, changes=(), operators=(), calls=(), exposed=(), has_repeats=True)
    fact.tables, fact.amount, fact.details, fact.tails = None, Amount(), {}, ()
    return fact


def test_a_comparison_says_the_step_first_then_the_run_and_idle_time_with_its_reasons_side_by_side():
    devices, step, whole, waits, launches, rest = lines_of()
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
    document = {"why": None, "same_content": {"sides": None}, "noise": "halves", "decomposition": [], "operators": None}
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


def test_runs_that_were_not_compared_have_no_such_lines():
    assert lines_of(why="no launch in common") == []
    assert lines_of(same_content={"sides": {"is_all": True}}) == []


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
