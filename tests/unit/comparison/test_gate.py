"""A limit is broken only if the whole interval lies beyond it."""

import re

import pytest
from gate_samples import DOCUMENT, NONE, SIDES, row

from causeway.comparison.gate import LIMITS, has_limit, judge, missing, outcome, reasons
from causeway.core.vocabulary import MISSING_DATA


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
        (60, None, None, "not judged"),
        (-60, None, None, "not judged"),
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
    (none,) = judge(DOCUMENT, [row(2, 1, 3, level="kernel")], {**NONE, "forbid_new_kernels": True})
    assert (none["state"], none["sentence"]) == ("held", "baseline -> candidate: no kernel is new.")


def test_new_kernels_with_little_time_break_no_gate():
    """The runs take 1,000 ns; a kernel is judged from 10 ns on."""
    new = {"level": "kernel", "verdict": "new", "candidate": "surprise"}
    rows = [row(None, None, None, total=total, **new) for total in (9, 10)]
    limits = {**NONE, "forbid_new_kernels": True, "min_share": 0.01}
    assert [state["state"] for state in judge(DOCUMENT, rows, limits)] == ["broken"]
    (none,) = judge(DOCUMENT, rows[:1], limits)
    assert none["state"] == "held"
    assert none["sentence"] == "baseline -> candidate: no kernel with 1 % of the GPU time or more is new."


def test_what_is_not_decided_stops_only_a_strict_gate():
    states = judge(DOCUMENT, [row(6, 4, 8)], {**NONE, "max_slowdown_percent": 5})
    assert reasons(states, strict=False) == []
    assert len(reasons(states, strict=True)) == 1


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, False),
        ({"min_share": 0.5, "strict": True}, False),
        ({"max_span_increase_percent": 0}, True),
        ({"min_efficiency": 0.0}, True),
        ({"forbid_new_kernels": True}, True),
    ],
)
def test_what_sets_a_limit(limits, said):
    assert has_limit({**NONE, **limits}) is said


@pytest.mark.parametrize("limit", [limit for limit, (level, *_) in LIMITS.items() if level == "run"])
def test_a_metric_of_the_run_that_was_not_compared_closes_the_gate(limit):
    states = judge(DOCUMENT, [], {**NONE, limit: 5})
    assert [state["state"] for state in states] == ["not judged"]
    (reason,) = reasons(states, strict=False)
    assert re.search(f"was not compared, as .* so {limit} cannot be judged and the gate stays closed; compare", reason)


def kernels(*parts):
    """Return a document with kernels of both runs as (name, match, ns before, ns after)."""
    keys = ("kernel", "match", "baseline_ns", "candidate_ns")
    return {**DOCUMENT, "decomposition": [dict(zip(keys, part, strict=True)) for part in parts]}


def kernel(name, low, total, change=0.0):
    ends = (None, None) if low is None else (low, low + 1)
    return row(change, *ends, level="kernel", total=total, candidate=name)


@pytest.mark.parametrize(
    ("parts", "rows", "closed"),
    [
        # all kernels have intervals
        ([("a", "exact", 900, 900)], [kernel("a", 0, 900)], False),
        # the one that takes the time was launched too seldom, on either side or under another name
        ([("a", "exact", 900, 900)], [kernel("a", None, 900)], True),
        ([("a", "exact", 50, 400)], [kernel("a", None, 400)], True),
        ([("a", "normalised", 400, 50)], [kernel("a", None, 400)], True),
        # all of its durations are 0 on a side, or no configuration is in common: there is no row of it
        ([("a", "exact", 0, 900), ("b", "exact", 100, 100)], [kernel("b", 0, 100)], True),
        # a tenth of the time may be undecided, by one kernel or several
        ([("a", "exact", 900, 900), ("b", "exact", 100, 99)], [kernel("a", 0, 900), kernel("b", None, 100)], False),
        ([("a", "exact", 900, 900), ("b", "exact", 101, 99)], [kernel("a", 0, 900), kernel("b", None, 101)], True),
        ([("b", "exact", 60, 60), ("c", "exact", 60, 60)], [kernel("b", None, 60), kernel("c", None, 60)], True),
        # kernels below min_share are not judged, however many there are; nor are those of one run alone
        ([(str(k), "exact", 9, 9) for k in range(99)], [], False),
        ([("a", "new", 0, 600), ("b", "gone", 600, 0), ("c", "exact", 300, 300)], [kernel("c", 0, 300)], False),
    ],
)
def test_kernels_that_could_not_be_judged_close_the_gate_where_they_take_more_than_a_tenth(parts, rows, closed):
    states = judge(kernels(*parts), rows, {**NONE, "max_kernel_slowdown_percent": 5})
    stops = reasons(states, strict=False)
    assert len(stops) == closed
    if closed:
        assert re.search(
            r"kernels with \d+ % of the GPU time have no interval, .* max_kernel_slowdown_percent", stops[0]
        )
        assert "capture more launches, name repeats of both runs, raise min_share, or leave this limit" in stops[0]
        assert outcome(states, stops) == "could not tell"


OTHER = "only 40 % of the time is in configurations that both sides have: other work, which is no change of speed"


@pytest.mark.parametrize(
    ("limit", "parts", "rows", "why"),
    [
        ("max_slowdown_percent", [], [row(3, None, None, reason=OTHER, reason_code="other_work")], f"{OTHER}; "),
        (
            "max_kernel_slowdown_percent",
            [("a", "exact", 600, 600), ("b", "exact", 300, 300)],
            [{**kernel("a", None, 600), "reason_code": "other_work"}, kernel("b", None, 300)],
            "most of it for work that one run alone has, ",
        ),
    ],
)
def test_more_launches_are_not_advised_where_the_runs_did_other_work(limit, parts, rows, why):
    state = judge(kernels(*parts), rows, {**NONE, limit: 5})[0]
    assert state["state"] == "not judged"
    assert why in state["sentence"]
    assert "; compare runs of the same problem sizes, " in state["sentence"]
    assert "capture more launches" not in state["sentence"]
    few = judge(kernels(*parts), [{**one, "reason_code": "too_few"} for one in rows], {**NONE, limit: 5})
    assert "; capture more launches, name repeats of both runs, " in few[0]["sentence"]


@pytest.mark.parametrize(("change", "state"), [(4534.0, "not judged"), (5.01, "not judged"), (5.0, "inconclusive")])
def test_a_kernel_without_interval_closes_the_gate_if_its_change_is_beyond_the_limit(change, state):
    states = judge(DOCUMENT, [kernel("a", None, 20, change)], {**NONE, "max_kernel_slowdown_percent": 5})
    assert [one["state"] for one in states] == [state]
    assert bool(reasons(states, strict=False)) == (state == "not judged")
    assert judge(DOCUMENT, [kernel("a", None, 9, change)], {**NONE, "max_kernel_slowdown_percent": 5}) == []


def test_a_span_of_one_run_on_each_side_says_what_decides_it():
    rows = [row(21, None, None, metric="span", reason="one run on each side")]
    (reason,) = reasons(judge(DOCUMENT, rows, {**NONE, "max_span_increase_percent": 5}), strict=False)
    assert reason == (
        "baseline -> candidate: span changed by +21.00 %, without interval, so max_span_increase_percent = 5 cannot be"
        " judged and the gate stays closed: one run on each side; name repeats of both runs, or leave this limit away."
    )


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
    idle = {**DOCUMENT, **{side: {"dataset": side, "gpu_time_ns": 0} for side in SIDES}, "decomposition": []}
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
        (6.0, 4.5, 7.25, "inconclusive", "changed by +6.00 % [+4.50, +7.25], which does not decide"),
        (6.0, None, None, "not judged", "changed by +6.00 %, without interval, so"),
    ],
)
def test_a_sentence_gives_the_change_the_interval_and_the_limit(change, low, high, state, words):
    (found,) = judge(DOCUMENT, [row(change, low, high)], {**NONE, "max_slowdown_percent": 5})
    assert found["state"] == state
    judged = " cannot be judged and the gate stays closed: too few launches; " if state == "not judged" else "."
    assert f"{words} max_slowdown_percent = 5{judged}" in found["sentence"]


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
    ],
)
def test_the_interval_of_the_candidates_efficiency_is_that_of_the_change(low, high, least, state):
    rows = [row(3.0, 2.0, 4.0), row(1.0, low, high, metric="efficiency", candidate_value=0.9)]
    (found,) = judge(DOCUMENT, rows, {**NONE, "min_efficiency": least})
    verb = {"held": "keeps", "broken": "breaks", "inconclusive": "does not decide"}[state]
    assert (found["state"], found["group"]) == (state, None)
    assert f"efficiency is 0.900, which with its interval {verb} min_efficiency = {least:g}" in found["sentence"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(3, 2, 4)], "efficiency was not compared, as one of the runs has no efficiency tree, so min_efficiency"),
        (
            [row(1.0, None, None, metric="efficiency")],
            "efficiency is 0.900, without interval, so min_efficiency = 0.5 cannot be judged and the gate stays closed:"
            " too few launches; capture more launches, name repeats",
        ),
    ],
)
def test_efficiency_without_a_value_or_an_interval_closes_the_gate(rows, said):
    states = judge(DOCUMENT, rows, {**NONE, "min_efficiency": 0.5})
    assert [one["state"] for one in states] == ["not judged"]
    (reason,) = reasons(states, strict=False)
    assert said in reason


def test_what_is_missing_names_each_export_and_each_repeat():
    document = {
        "why": None,
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
        ([state("held"), state("not judged", "max_kernel_slowdown_percent")], "could not tell"),
        ([state("held"), state("not judged", "max_span_increase_percent")], "could not tell"),
        ([state("broken"), state("not judged", "max_span_increase_percent")], "regressed"),
    ],
)
def test_a_gate_passes_only_where_every_limit_of_a_whole_run_is_held(states, said):
    assert outcome(states, reasons(states, strict=False)) == said


def test_a_strict_gate_that_stops_on_a_kernel_does_not_pass():
    states = [state("held"), state("inconclusive", "max_kernel_slowdown_percent")]
    assert outcome(states, reasons(states, strict=True)) == "could not tell"
