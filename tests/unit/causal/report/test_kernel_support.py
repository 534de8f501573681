"""Causes of a whole dataset that its kernels bear out or do not, on outcomes written by hand."""

from dataclasses import replace

import pytest
from causal_documents import arrow, outcome, what_if

from causeway.causal.data.outcome import Examination, Node
from causeway.causal.report.kernel_support import borne_out
from causeway.causal.report.sentences import sentences_of


def whole_with(*causes):
    what_ifs = tuple(what_if(one.name, "as it was", "none", (-5, -6, -4)) for one in causes)
    return outcome("dataset", 1e-6, causes, examination=Examination(what_ifs=what_ifs))


def of_kernels(**causes):
    return [outcome(kernel, 1e-6, own) for kernel, own in causes.items()]


def judged(whole, kernels, **shares):
    found = borne_out(whole, kernels, shares)
    return {one.name: one.verdict for one in found.arrows}, [row.verdict for row in found.examination.what_ifs]


def test_a_cause_that_the_kernel_with_most_of_the_variability_does_not_have_is_inconclusive():
    kernels = of_kernels(big=[arrow("after")], small=[arrow("idle")])
    verdicts, what_ifs = judged(whole_with(arrow("idle")), kernels, big=0.9, small=0.1)
    assert verdicts == {"idle": "inconclusive"}
    assert what_ifs == ["inconclusive"]


def test_the_sentence_says_what_the_kernels_have_instead():
    kernels = of_kernels(big=[arrow("after")], small=[arrow("idle")])
    found = borne_out(whole_with(arrow("idle")), kernels, {"big": 0.9, "small": 0.1})
    assert (
        "inconclusive, kernels with 90 % of the variability have other causes when searched alone (after):"
        in sentences_of(found)["idle"]
    )


@pytest.mark.parametrize(
    ("kernels", "shares"),
    [
        (of_kernels(big=[arrow("idle")], small=[arrow("after")]), {"big": 0.9, "small": 0.1}),
        (of_kernels(big=[arrow("idle")], small=[arrow("after")]), {"big": 0.5, "small": 0.5}),
        (of_kernels(big=[], small=[arrow("idle")]), {"big": 0.9, "small": 0.1}),
        (of_kernels(big=[replace(arrow("after"), verdict="inconclusive")], small=[]), {"big": 0.9, "small": 0.1}),
        ([], {}),
    ],
    ids=["most", "half", "no answer of the big one", "no sure answer", "no kernel"],
)
def test_it_stands_where_they_have_it_too_or_have_no_answer(kernels, shares):
    verdicts, what_ifs = judged(whole_with(arrow("idle")), kernels, **shares)
    assert verdicts == {"idle": "supported"}
    assert what_ifs == ["supported"]


def test_a_cause_is_the_same_if_the_data_cannot_tell_them_apart():
    named_otherwise = replace(
        arrow("queue"), node=Node(name="queue", tier="context", group="g", members=("queue", "idle"))
    )
    verdicts, _ = judged(whole_with(arrow("idle")), of_kernels(big=[named_otherwise]), big=1.0)
    assert verdicts == {"idle": "supported"}


def test_refuted_ones_stay_refuted():
    whole = whole_with(replace(arrow("idle"), verdict="refuted"))
    verdicts, _ = judged(whole, of_kernels(big=[arrow("after")]), big=1.0)
    assert verdicts == {"idle": "refuted"}
