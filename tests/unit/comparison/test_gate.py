"""A limit is broken only if the whole interval lies beyond it."""

import re

import pytest

from causeway.comparison.gate import LIMITS, judge, missing, reasons

NONE = {
    **dict.fromkeys(LIMITS),
    "min_efficiency": None,
    "min_share": 0.01,
    "forbid_new_kernels": False,
    "strict": False,
}
DOCUMENT = {side: {"dataset": side, "gpu_time_ns": 1000} for side in ("baseline", "candidate")}


def row(change, low, high, level="run", metric="time_per_launch", total=500, **more):
    totals = {
        "baseline_total_ns": total,
        "candidate_total_ns": total,
        "candidate": "k",
        "verdict": "?",
        "candidate_value": 0.9,
    }
    return {
        "level": level,
        "metric": metric,
        "change_percent": change,
        "low_percent": low,
        "high_percent": high,
        **totals,
        **more,
    }


@pytest.mark.parametrize(
    ("change", "low", "high", "state"),
    [
        (6, 5.1, 7, "broken"),
        (6, 4, 8, "inconclusive"),
        (2, 1, 3, "held"),
        (-50, -60, -40, "held"),
        (60, None, None, "inconclusive"),
    ],
)
def test_a_slowdown_is_judged_by_its_interval(change, low, high, state):
    (found,) = judge(DOCUMENT, [row(change, low, high)], {**NONE, "max_slowdown_percent": 5})
    assert found["state"] == state
    assert found["sentence"].startswith("baseline -> candidate: time for the same launches changed by")


@pytest.mark.parametrize(
    ("low", "high", "state"), [(-9, -6, "broken"), (-9, -2, "inconclusive"), (-2, 4, "held"), (3, 9, "held")]
)
def test_a_loss_of_efficiency_counts_downwards(low, high, state):
    rows = [row((low + high) / 2, low, high, metric="efficiency")]
    (found,) = judge(DOCUMENT, rows, {**NONE, "max_efficiency_loss_points": 5})
    assert found["state"] == state


@pytest.mark.parametrize(("least", "state"), [(0.95, "broken"), (0.9, "inconclusive"), (0.8, "held")])
def test_the_least_efficiency_is_the_candidates(least, state):
    rows = [row(1.0, -1.0, 3.0, metric="efficiency", candidate_value=0.9)]
    assert judge(DOCUMENT, rows, {**NONE, "min_efficiency": least})[0]["state"] == state


def test_kernels_with_little_time_are_not_judged_one_by_one():
    rows = [row(50, 40, 60, level="kernel", total=5), row(50, 40, 60, level="kernel", total=50)]
    assert len(judge(DOCUMENT, rows, {**NONE, "max_kernel_slowdown_percent": 5})) == 1


def test_new_kernels_break_the_gate_where_they_are_forbidden():
    rows = [row(None, None, None, level="kernel", verdict="new", candidate="surprise")]
    assert (
        judge(DOCUMENT, rows, {**NONE, "forbid_new_kernels": True})[0]["sentence"]
        == "baseline -> candidate: kernel 'surprise' is new."
    )
    assert judge(DOCUMENT, rows, NONE) == []


def test_what_is_not_decided_stops_only_a_strict_gate():
    states = judge(DOCUMENT, [row(6, 4, 8)], {**NONE, "max_slowdown_percent": 5})
    assert reasons(states, strict=False) == []
    assert len(reasons(states, strict=True)) == 1


def test_a_metric_that_was_not_compared_is_not_decided():
    (found,) = judge(DOCUMENT, [], {**NONE, "max_span_increase_percent": 5})
    assert found["state"] == "inconclusive"
    assert "was not compared" in found["sentence"]


def export(name, ranks, status="read", found=None):
    return {"export": name, "ranks": ranks, "status": status, "error": found and {"found": found}}


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ([export("0", [0]), export("1", [1])], None),
        (
            [export("0", [0]), export("1", None, "refused", "the file\nends")],
            "export 1 .* could not be read: the file ends",
        ),
        ([export("0", [0]), export("1", [1], "partial", "cut")], "could be read in part only: cut"),
        ([export("0", [0])], r"the baseline has ranks \[0, 1\], the candidate \[0\]"),
    ],
)
def test_missing_data_close_the_gate_whatever_else_is_held(candidate, said):
    exports = {"baseline": [export("0", [0]), export("1", [1])], "candidate": candidate}
    held = judge(DOCUMENT, [row(2, 1, 3)], {**NONE, "max_slowdown_percent": 5})
    stops = reasons(held + missing(DOCUMENT, exports), strict=False)
    assert bool(stops) == (said is not None)
    assert said is None or re.search(said, stops[0])
