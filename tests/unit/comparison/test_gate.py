"""A limit is broken only if the whole interval lies beyond it."""

import re

import pytest

from causeway.comparison.gate import LIMITS, judge, missing, outcome, reasons
from causeway.core.vocabulary import MISSING_DATA

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
        (6, 5, 7, "inconclusive"),
        (4, 3, 5, "held"),
        (5, 5, 5, "held"),
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


def test_a_kernel_counts_by_the_side_in_which_it_takes_more_of_the_time():
    limits = {**NONE, "max_kernel_slowdown_percent": 5, "min_share": 0.02}

    def judged(**totals):
        return len(judge(DOCUMENT, [row(50, 40, 60, level="kernel", **totals)], limits))

    assert judged(baseline_total_ns=20, candidate_total_ns=0) == 1
    assert judged(baseline_total_ns=None, candidate_total_ns=20) == 1
    assert judged(baseline_total_ns=19, candidate_total_ns=19) == 0  # 20 is a fiftieth of 1000, and counts
    assert judged(baseline_total_ns=None, candidate_total_ns=19) == 0
    idle = {side: {"dataset": side, "gpu_time_ns": 0} for side in ("baseline", "candidate")}
    assert judge(idle, [row(50, 40, 60, level="kernel", total=0)], limits) == []


def test_a_kernel_that_was_not_compared_is_not_judged_and_other_rows_are_not_the_runs():
    limits = {**NONE, "max_kernel_slowdown_percent": 5, "max_slowdown_percent": 5}
    rows = [
        row(None, None, None, level="kernel"),
        row(50, 40, 60, level="rank"),
        row(50, 40, 60, metric="variability"),
        row(1, 0, 2),
    ]
    (found,) = judge(DOCUMENT, rows, limits)
    assert (found["limit"], found["state"]) == ("max_slowdown_percent", "held")


@pytest.mark.parametrize(
    ("change", "low", "high", "state", "words"),
    [
        (6.0, 5.5, 7.25, "broken", "time for the same launches changed by +6.00 % [+5.50, +7.25], which breaks"),
        (-6.0, -7.0, -5.0, "held", "time for the same launches changed by -6.00 % [-7.00, -5.00], which keeps"),
        (6.0, None, None, "inconclusive", "changed by +6.00 %, without interval, which does not decide"),
    ],
)
def test_a_sentence_gives_the_change_the_interval_and_the_limit(change, low, high, state, words):
    (found,) = judge(DOCUMENT, [row(change, low, high)], {**NONE, "max_slowdown_percent": 5})
    assert found["state"] == state
    assert f"{words} max_slowdown_percent = 5." in found["sentence"]


def test_a_sentence_names_the_kernel_and_efficiency_is_in_points():
    rows = [row(6, 5.5, 7, level="kernel"), row(-1.0, -2.0, 0.5, metric="efficiency")]
    limits = {**NONE, "max_kernel_slowdown_percent": 5, "max_efficiency_loss_points": 5}
    kernel, efficiency = judge(DOCUMENT, rows, limits)
    assert "time for the same launches of kernel 'k' changed by +6.00 %" in kernel["sentence"]
    assert kernel["group"] == "k"
    assert "efficiency of the devices changed by -1.00 points [-2.00, +0.50]" in efficiency["sentence"]


@pytest.mark.parametrize(
    ("low", "high", "least", "state"),
    [
        # a change of +1 points with [-1, 4]: the candidate's 0.900 lies within [0.88, 0.93]
        (-1.0, 4.0, 0.8799, "held"),
        (-1.0, 4.0, 0.8801, "inconclusive"),
        (-1.0, 4.0, 0.9299, "inconclusive"),
        (-1.0, 4.0, 0.9301, "broken"),
        (1.0, 1.0, 0.9, "held"),
        (None, None, 0.5, "inconclusive"),
    ],
)
def test_the_interval_of_the_candidates_efficiency_is_that_of_the_change(low, high, least, state):
    rows = [row(3.0, 2.0, 4.0), row(1.0, low, high, metric="efficiency", candidate_value=0.9)]
    (found,) = judge(DOCUMENT, rows, {**NONE, "min_efficiency": least})
    verb = {"held": "keeps", "broken": "breaks", "inconclusive": "does not decide"}[state]
    assert (found["state"], found["group"]) == (state, None)
    assert f"efficiency is 0.900, which with its interval {verb} min_efficiency = {least:g}" in found["sentence"]


def test_efficiency_that_was_not_compared_decides_no_limit():
    (found,) = judge(DOCUMENT, [row(3, 2, 4)], {**NONE, "min_efficiency": 0.5})
    assert found["state"] == "inconclusive"
    assert "efficiency was not compared" in found["sentence"]


def test_what_is_missing_names_each_export_and_each_repeat():
    document = {
        "baseline": {"dataset": "a", "gpu_time_ns": 1, "repeats": ["a2"]},
        "candidate": {"dataset": "b", "gpu_time_ns": 1},
    }
    exports = {
        "a": [export("0", [0])],
        "a2": [export("7", [0, 5], "refused")],
        "b": [export("0", [0]), export("1", None, "partial", "x" * 500)],
    }
    states = missing(document, exports)
    assert [(one["limit"], one["state"], one["group"]) for one in states] == [(MISSING_DATA, "inconclusive", None)] * 2
    assert states[0]["sentence"] == (
        "a -> b: export 7 of the baseline could not be read: see its capabilities.json; the gate stays closed."
    )
    assert "export 1 of the candidate could be read in part only: xxx" in states[1]["sentence"]
    assert len(states[1]["sentence"]) < 320
    assert missing(document, {"a": [export("0", [1, 0])], "b": [export("0", [0]), export("1", [1, 0])]}) == []


def state(word, limit="max_slowdown_percent"):
    return {"state": word, "limit": limit, "sentence": word}


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([], "could not tell"),
        ([state("held")], "passes"),
        ([state("held"), state("broken")], "regressed"),
        ([state("inconclusive"), state("broken", "max_kernel_slowdown_percent")], "regressed"),
        ([state("held"), state("inconclusive", "max_span_increase_percent")], "could not tell"),
        ([state("held"), state("inconclusive", "max_kernel_slowdown_percent")], "passes"),
        ([state("inconclusive", "max_kernel_slowdown_percent")], "could not tell"),
        ([state("held"), state("inconclusive", "min_efficiency")], "could not tell"),
        ([state("held"), state("inconclusive", MISSING_DATA)], "could not tell"),
    ],
)
def test_a_gate_passes_only_where_every_limit_of_a_whole_run_is_held(states, said):
    assert outcome(states, reasons(states, strict=False)) == said


def test_a_strict_gate_that_stops_on_a_kernel_does_not_pass():
    states = [state("held"), state("inconclusive", "max_kernel_slowdown_percent")]
    assert outcome(states, reasons(states, strict=True)) == "could not tell"
