"""Causes of a whole dataset that its kernels bear out or do not, on outcomes written by hand."""

from dataclasses import replace

import pytest
from causal_documents import arrow, estimate, outcome, what_if

from causeway.causal.data.outcome import Examination, GroupSlope, Node, TimeEffect
from causeway.causal.report.across_kernels import borne_out
from causeway.causal.report.sentences import sentences_of


def costing(name, cost, mean=(8, 7, 9), **facts):
    """Return a cause that costs so much GPU time."""
    change = estimate(*mean)
    effect = TimeEffect(
        mean=change,
        p50=change,
        p99=change,
        spread=change,
        cost=None if cost is None else estimate(cost),
        launches=500,
        monotone=True,
    )
    return arrow(name, in_time=effect, **facts)


def whole_with(cause):
    what_ifs = (what_if(cause.name, "as it was", "none", (-5, -6, -4)),)
    return outcome("dataset", 1e-6, [cause], examination=Examination(what_ifs=what_ifs))


def of_kernels(**causes):
    return [outcome(kernel, None if own is None else 1e-6, own or []) for kernel, own in causes.items()]


def whole_with_slopes(cause, pooled, slopes, slope_of="target"):
    """Return the outcome of a dataset whose kernels have these slopes, each a value and its standard error; the 90 %
    interval is 1.645 standard errors to each side.
    """
    found = whole_with(cause)
    rows = [
        GroupSlope(
            feature=cause.name,
            by="kernel",
            group=group,
            n_rows=100,
            slope=estimate(value, value - 1.645 * error, value + 1.645 * error),
            slope_of=slope_of,
        )
        for group, (value, error) in {None: (pooled, 0.01), **slopes}.items()
    ]
    return replace(found, examination=replace(found.examination, slopes=tuple(rows)))


SLOPES = {"softmax": (0.01, 0.05), "copy": (-0.02, 0.05)}
"""Of kernels that do not move."""
TIME = {"gemm": 50, "softmax": 25, "copy": 20, "small": 5}
"""Of the kernels that are no collectives."""


def weakness_of(cause, slopes, kernels=(), time=TIME, names=None, slope_of="target"):
    """Return why a cause of the dataset is not supported, whose what-if rests on it."""
    found = borne_out(whole_with_slopes(cause, 0.3, slopes, slope_of), kernels, time, names)
    weak = found.arrows[0].weakness
    verdict = "inconclusive" if weak else "supported"
    assert (found.arrows[0].verdict, found.examination.what_ifs[0].verdict) == (verdict, verdict)
    return weak


@pytest.mark.parametrize(
    ("slopes", "said"),
    [
        ({"gemm": (0.4, 0.05)} | SLOPES, "gemm alone has it"),
        ({"nccl": (0.3, 0.02), "gemm": (0.4, 0.05)} | SLOPES, "gemm alone has it"),
        ({"nccl": (0.3, 0.02)} | SLOPES, "none has it"),
        ({"gemm": (0.4, 0.05), "softmax": (0.12, 0.05)}, ""),
        ({"gemm": (0.4, 0.05), "softmax": (-0.4, 0.05)}, "gemm alone has it"),
        ({"gemm": (0.4, 0.05), "small": (0.4, 0.05)} | SLOPES, "gemm alone has it"),
    ],
    ids=["one", "one beside a collective", "a collective", "two", "opposite", "one with little time"],
)
@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_cause_of_all_kernels_moves_two_with_a_tenth_of_the_time_the_same_way(slopes, said, sign):
    turned = 1 if sign == "+" else -1
    slopes = {group: (turned * value, error) for group, (value, error) in slopes.items()}
    weak = weakness_of(costing("idle", 100, sign=sign), slopes)
    assert weak == (f"of the kernels with a tenth of the time or more {said}" if said else "")


def test_of_kernels_none_or_one_of_which_has_a_tenth_all_have_a_say():
    time = {"gemm": 91, "softmax": 5, "copy": 4}
    assert weakness_of(costing("idle", 100), {"gemm": (0.4, 0.05), "copy": (0.4, 0.05)}, time=time) == ""
    said = "of the kernels that are no collectives gemm alone has it"
    assert weakness_of(costing("idle", 100), {"gemm": (0.4, 0.05)} | SLOPES, time=time) == said


def test_the_one_kernel_is_named_in_the_sentence():
    whole = whole_with_slopes(costing("idle", 100), 0.3, {"gemm": (0.4, 0.05)} | SLOPES)
    found = borne_out(whole, [], TIME, {"gemm": "ampere_sgemm"})
    said = "inconclusive, of the kernels with a tenth of the time or more ampere_sgemm alone has it: robustness"
    assert said in sentences_of(found)["idle"]


@pytest.mark.parametrize(
    ("whole", "kernel", "is_same"),
    [
        ("idle", "idle", True),
        ("launches_in_flight", "kernel_in_flight", True),
        ("transfers_in_flight", "kernel_in_flight", False),
        ("shape_elements", "input_2_elements", True),
        ("input_1_elements", "shape_bytes", True),
        ("matmul_m", "shape_elements", True),
        ("input_1_elements", "input_2_elements", False),
        ("shape_elements", "last_h2d_bytes", False),
    ],
)
def test_a_kernel_whose_own_search_supports_the_cause_has_it(whole, kernel, is_same):
    """In a kernel with one input both sizes are one; the sizes of two inputs are not, nor is that of a copy."""
    slopes = {"gemm": (0.4, 0.05)} | SLOPES
    for facts, supports in (({}, True), ({"sign": "-"}, False), ({"verdict": "inconclusive"}, False)):
        kernels = of_kernels(softmax=[costing(kernel, 90, **facts)])
        assert (weakness_of(costing(whole, 100), slopes, kernels) == "") == (is_same and supports)


def test_a_cause_is_the_same_if_the_data_cannot_tell_them_apart():
    node = Node(name="queue", tier="context", group="g", members=("queue", "idle"))
    kernels = of_kernels(softmax=[replace(costing("queue", 90), node=node)])
    assert weakness_of(costing("idle", 100), {"gemm": (0.4, 0.05)} | SLOPES, kernels) == ""


def test_refuted_ones_stay_refuted():
    whole = whole_with_slopes(costing("idle", 100, verdict="refuted"), 0.3, SLOPES)
    assert borne_out(whole, [], TIME).arrows[0].verdict == "refuted"


@pytest.mark.parametrize("facts", [{"sign": "?"}, {"sign_of": "value"}], ids=str)
def test_slopes_of_something_else_than_the_sign_judge_nothing(facts):
    assert weakness_of(costing("idle", 100, **facts), SLOPES) == ""
