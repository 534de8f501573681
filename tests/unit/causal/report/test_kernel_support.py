"""Causes of a whole dataset that its kernels bear out or do not, on outcomes written by hand."""

from dataclasses import replace

import pytest
from causal_documents import arrow, estimate, outcome, what_if

from causeway.causal.data.outcome import Examination, Node, TimeEffect
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


def verdicts(cause, kernels, **shares):
    found = borne_out(whole_with(cause), kernels, shares, {})
    return found.arrows[0].verdict, found.examination.what_ifs[0].verdict


def test_a_cause_is_inconclusive_where_the_kernels_that_have_it_lose_little_to_it():
    kernels = of_kernels(big=[costing("after", 90)], small=[costing("idle", 3)])
    assert verdicts(costing("idle", 100), kernels, big=0.9, small=0.1) == ("inconclusive", "inconclusive")


def test_the_sentence_says_how_much_they_lose():
    kernels = of_kernels(big=[costing("after", 90)], small=[costing("idle", 3)])
    found = borne_out(whole_with(costing("idle", 100)), kernels, {"big": 0.9, "small": 0.1}, {})
    said = "Inconclusive, the kernels that have it when searched alone lose 3 % of what it is said to cost:"
    assert said in sentences_of(found)["idle"]


@pytest.mark.parametrize(
    ("kernels", "shares"),
    [
        (of_kernels(big=[costing("after", 90)], a=[costing("idle", 30)], b=[costing("idle", 20)]), (0.7, 0.2, 0.1)),
        (of_kernels(big=None, small=[costing("idle", 3)]), (0.6, 0.4)),
        ([], ()),
    ],
    ids=["half of the cost", "most of the variability not searched", "no kernel"],
)
def test_it_stands_where_they_lose_half_of_it_or_cannot_say(kernels, shares):
    named = dict(zip((one.scope.scope for one in kernels), shares, strict=True))
    assert verdicts(costing("idle", 100), kernels, **named) == ("supported", "supported")


@pytest.mark.parametrize(
    "cause", [costing("idle", None), costing("idle", 100, mean=(1, -1, 3)), arrow("idle")], ids=str
)
def test_what_costs_no_time_for_sure_is_not_judged_by_it(cause):
    kernels = of_kernels(big=[costing("after", 90), arrow("idle")])
    assert verdicts(cause, kernels, big=1.0) == ("supported", "supported")


def test_a_cause_is_the_same_if_the_data_cannot_tell_them_apart():
    node = Node(name="queue", tier="context", group="g", members=("queue", "idle"))
    named_otherwise = replace(costing("queue", 90), node=node)
    assert verdicts(costing("idle", 100), of_kernels(big=[named_otherwise]), big=1.0)[0] == "supported"


def test_which_kernel_is_in_flight_is_the_number_in_flight_of_all_kernels():
    found = of_kernels(big=[costing("kernel_in_flight", 90)])
    assert verdicts(costing("launches_in_flight", 100), found, big=1.0)[0] == "supported"
    assert verdicts(costing("transfers_in_flight", 100), found, big=1.0)[0] == "inconclusive"


@pytest.mark.parametrize(
    ("whole", "kernel", "verdict"),
    [
        ("shape_elements", "input_2_elements", "supported"),
        ("input_1_elements", "shape_bytes", "supported"),
        ("matmul_m", "shape_elements", "supported"),
        ("input_1_elements", "input_2_elements", "inconclusive"),
        ("shape_elements", "last_h2d_bytes", "inconclusive"),
    ],
)
def test_the_size_of_one_input_of_a_kernel_is_part_of_the_size_of_all(whole, kernel, verdict):
    """In a kernel with one input both are one; the sizes of two inputs are not, nor is that of a copy."""
    assert verdicts(costing(whole, 100), of_kernels(big=[costing(kernel, 90)]), big=1.0)[0] == verdict


def test_of_the_kernels_only_supported_causes_count():
    unsure = costing("idle", 90, verdict="inconclusive")
    assert verdicts(costing("idle", 100), of_kernels(big=[unsure]), big=1.0)[0] == "inconclusive"


def test_refuted_ones_stay_refuted():
    cause = costing("idle", 100, verdict="refuted")
    assert verdicts(cause, of_kernels(big=[costing("after", 90)]), big=1.0)[0] == "refuted"


def of_detecting(detectable_share, *causes):
    return replace(outcome("big", 1e-6, causes), detectable_share=detectable_share)


@pytest.mark.parametrize(
    ("big", "share", "verdict"),
    [
        (of_detecting(0.02), 0.95, "inconclusive"),
        (of_detecting(0.02), 0.85, "supported"),
        (of_detecting(0.5), 0.95, "supported"),
        (of_detecting(None), 0.95, "supported"),
        (of_detecting(0.02, arrow("idle", verdict="inconclusive")), 0.95, "supported"),
        (of_detecting(0.02, arrow("idle", verdict="refuted")), 0.95, "inconclusive"),
    ],
    ids=[
        "would have shown it",
        "others vary enough",
        "would not have",
        "no answer",
        "may have it",
        "was refuted there",
    ],
)
def test_a_share_of_the_variance_needs_kernels_that_vary(big, share, verdict):
    """A cause of 20 % of the variance, each kernel in its own standard deviations; the rest of the variability must be
    at least half of that."""
    cause = arrow("idle", variance=(20, 15, 25))
    small = outcome("small", 1e-6, [cause])
    found = borne_out(whole_with(cause), [big, small], {"big": share, "small": 1 - share}, {}).arrows[0]
    assert found.verdict == verdict
    assert ("make up 5 % of the variability" in found.weakness) == (verdict == "inconclusive")


TIME = {"gemm": 50, "softmax": 25, "copy": 20, "small": 5}
"""Of the kernels that are no collectives."""


def weakness_of(cause, having, time=TIME, unsearched=(), names=None):
    """Return why a cause of the dataset is not supported, whose what-if rests on it, given the kernels that have it
    and those that were not searched.
    """
    cause = replace(cause, kernels=tuple(time))
    everyone = {*time, *having} - {*unsearched}
    kernels = [outcome(name, 1e-6, having.get(name, [])) for name in sorted(everyone)]
    shares = {one.scope.scope: 0.01 for one in kernels}  # too little of the variability to be judged by costs
    found = borne_out(whole_with(cause), kernels, shares, time, names)
    weak = found.arrows[0].weakness
    verdict = "inconclusive" if weak else "supported"
    assert (found.arrows[0].verdict, found.examination.what_ifs[0].verdict) == (verdict, verdict)
    return weak


@pytest.mark.parametrize(
    ("having", "said"),
    [
        (["gemm"], "gemm alone has it"),
        (["nccl", "gemm"], "gemm alone has it"),
        (["nccl"], "none has it"),
        (["gemm", "softmax"], ""),
        (["gemm", "small"], "gemm alone has it"),
    ],
    ids=["one", "one beside a collective", "a collective", "two", "one with little time"],
)
@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_cause_of_all_kernels_is_one_of_two_with_a_tenth_of_the_time(having, said, sign):
    weak = weakness_of(costing("idle", 100, sign=sign), {name: [costing("idle", 90, sign=sign)] for name in having})
    assert weak == (f"of the kernels with a tenth of the time or more {said}" if said else "")


def test_a_kernel_that_was_not_searched_may_have_it():
    having = {"gemm": [costing("idle", 90)]}
    assert weakness_of(costing("idle", 100), having, unsearched=["softmax"]) == ""
    assert "none has it" in weakness_of(costing("idle", 100), {}, unsearched=["softmax"])


def test_where_no_two_have_a_tenth_nothing_is_judged():
    assert weakness_of(costing("idle", 100), {"gemm": [costing("idle", 90)]}, {"gemm": 91, "softmax": 5}) == ""


def test_the_one_kernel_is_named_in_the_sentence():
    kernels = [outcome(name, 1e-6, [costing("idle", 90)] if name == "gemm" else []) for name in TIME]
    cause = replace(costing("idle", 100), kernels=tuple(TIME))
    found = borne_out(whole_with(cause), kernels, dict.fromkeys(TIME, 0.01), TIME, {"gemm": "sgemm"})
    said = "Inconclusive, of the kernels with a tenth of the time or more sgemm alone has it: robustness"
    assert said in sentences_of(found)["idle"]


@pytest.mark.parametrize(
    ("facts", "supports"), [({}, True), ({"sign": "-"}, False), ({"verdict": "inconclusive"}, False)], ids=str
)
def test_a_kernel_has_a_cause_that_its_own_search_supports_with_the_same_sign(facts, supports):
    having = {"gemm": [costing("idle", 90)], "softmax": [costing("idle", 90, **facts)]}
    assert (weakness_of(costing("idle", 100), having) == "") == supports


def test_a_cause_that_varies_in_one_kernel_is_not_judged():
    cause = replace(costing("idle", 100), kernels=("gemm", "small"))
    kernels = [outcome(name, 1e-6, []) for name in TIME]
    assert borne_out(whole_with(cause), kernels, dict.fromkeys(TIME, 0.01), TIME).arrows[0].verdict == "supported"


def test_a_cause_without_a_sign_is_not_judged():
    assert weakness_of(costing("idle", 100, sign="?"), {}) == ""
