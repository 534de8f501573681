"""Launches that a reader left out, that the profiler lost, or that a run did not come to are missing data to the gate."""

import json

import pytest
from gate_samples import DOCUMENT, NONE, row
from reading import Read, kernel

from causeway.comparison.gate import MISSING_DATA, judge, missing, outcome, reasons

LAUNCHES = 2000


def export(left_out=0, issues=(), launches=LAUNCHES, status="read"):
    return {
        "export": "0",
        "ranks": [0],
        "status": status,
        "error": None,
        "left_out": {"rows": left_out, "of": launches},
        "issues": [{"kind": kind, "detail": detail} for kind, detail in issues],
    }


def stops_of(baseline, candidate, rows=()):
    states = missing(DOCUMENT, {"baseline": [baseline], "candidate": [candidate]}, rows)
    held = judge(DOCUMENT, [row(2, 1, 3)], {**NONE, "max_slowdown_percent": 5})
    found = reasons([*held, *states], strict=False)
    assert outcome([*held, *states], found) == ("could not tell" if states else "passes")
    assert all(state["limit"] == MISSING_DATA for state in states)
    return found


@pytest.mark.parametrize(("left_out", "is_closed"), [(0, False), (2, False), (3, True), (19, True)])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_launches_left_out_close_the_gate_beyond_a_thousandth(left_out, is_closed, side):
    sides = {"baseline": export(), "candidate": export()} | {side: export(left_out)}
    found = stops_of(**sides)
    assert bool(found) is is_closed
    if is_closed:
        percent = {3: "0.15", 19: "0.95"}[left_out]
        assert found == [
            f"baseline -> candidate: export 0 of the {side} lacks {left_out} of 2,000 launches ({percent} %) that cannot be"
            " used; the gate stays closed."
        ]


def test_events_that_the_profiler_lost_close_the_gate_and_its_words_are_given():
    (sentence,) = stops_of(export(), export(issues=[("no_transfers", "x"), ("dropped_events", "it says\nlost")]))
    assert sentence == (
        "baseline -> candidate: export 0 of the candidate may lack launches: it says lost; the gate stays closed."
    )


def test_an_export_without_launches_and_one_of_an_older_version_lack_nothing():
    older = {key: value for key, value in export().items() if key not in ("left_out", "issues")}
    assert stops_of(older, export(0, launches=0)) == []
    assert stops_of(older, {**export(), "left_out": None}) == []


def of_kernel(baseline, candidate, **more):
    counts = {"baseline_launches": baseline, "candidate_launches": candidate}
    return row(-0.2, -3.8, 2.98, level="kernel", **counts, **more)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([of_kernel(900, 90)], "900 times by the baseline and 90 times by the candidate"),
        ([of_kernel(90, 900)], "90 times by the baseline and 900 times by the candidate"),
        ([of_kernel(600, 60), of_kernel(300, 30)], "900 times by the baseline and 90 times"),
        ([of_kernel(900, 450)], None),
        ([of_kernel(900, 899)], None),
        # a kernel that only one run has, and other metrics and levels, count in none
        ([of_kernel(900, 900), of_kernel(None, 9000) | {"change_percent": None}], None),
        ([of_kernel(900, 900), of_kernel(900, 1, metric="variability")], None),
        ([], None),
    ],
)
def test_a_run_that_launched_far_less_of_the_same_kernels_closes_the_gate(rows, said):
    found = stops_of(export(), export(), rows)
    assert bool(found) is (said is not None)
    assert said is None or (said in found[0] and "may have ended early" in found[0])


def trace(path, launches, broken):
    """Write a trace of so many launches, the first of which are broken: without a number, or begun and not ended."""
    events = [kernel(100 * n, 10 + n % 7, correlation=n) for n in range(launches)]
    for event in events[: broken.get("nan", 0)]:
        event["dur"] = float("nan")
    for event in events[: broken.get("begun", 0)]:
        event["ph"] = "B"
        del event["dur"]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.mark.parametrize("broken", [{"nan": 4}, {"begun": 4}, {"nan": 200}, {"begun": 200}, {}], ids=str)
def test_what_the_reader_counts_is_what_the_gate_looks_at(broken, tmp_path):
    document = Read(trace(tmp_path / "a.json", 900, broken), tmp_path / "t").capabilities
    left_out = sum(broken.values())
    assert document["left_out"] == {"rows": left_out, "of": 900}
    assert document["status"] == ("partial" if left_out > 9 else "read")
    found = stops_of(export(), document)
    assert bool(found) is bool(broken)
    if broken:
        assert f"{left_out} of 900 launches" in found[0]
