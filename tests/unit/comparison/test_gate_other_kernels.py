"""The limit of the whole GPU time with the kernels and configurations that only one run has; launches that a reader left
out, that the profiler lost, or that a run did not come to, which are missing data to the gate.
"""

import json

import pytest
from gate_samples import DOCUMENT, NONE, row
from reading import Read, kernel

from causeway.comparison.gate import MISSING_DATA, judge, missing, outcome, reasons


def part(name, match, before, after, launches=0, configurations=0):
    """Return a kernel's part of the difference: `launches` ns for more launches, `configurations` ns of one run alone."""
    return {
        "kernel": name,
        "match": match,
        "baseline_ns": before,
        "candidate_ns": after,
        "launches_ns": launches,
        "configurations_ns": configurations,
    }


@pytest.mark.parametrize(
    ("parts", "change", "state", "said"),
    [
        # 1000 ns, and a new kernel of 39, 40, 41 or 60 beside them: an interval of 1 % on either side of 0
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 39)], 0, "held", None),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 40)], 0, "held", None),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 41)], 0, "inconclusive", "+4.10 % [+3.10, +5.10]"),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 60)], 0, "inconclusive", "+6.00 % [+5.00, +7.00]"),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 61)], 0, "not judged", "+6.10 % [+5.10, +7.10]"),
        # what the same launches gain pays for the new kernel: 1000 -> 700 + 330 or 380
        ([part("a", "exact", 1000, 700), part("b", "new", 0, 330)], -30, "held", None),
        ([part("a", "exact", 1000, 700), part("b", "new", 0, 380)], -30, "not judged", "+8.00 % [+7.00, +9.00]"),
        # so does a kernel that is gone: 500 + 500 -> 500 + 530 or 580; half of the time is in the same launches
        ([part("a", "exact", 500, 500), part("b", "gone", 500, 0), part("c", "new", 0, 530)], 0, "held", None),
        (
            [part("a", "exact", 500, 500), part("b", "gone", 500, 0), part("c", "new", 0, 580)],
            0,
            "not judged",
            "+8.00 % [+7.50, +8.50]",
        ),
        # half as many iterations, so that of the gone kernel only half is expected: 250 + 250 -> 250 + 290
        (
            [part("a", "exact", 500, 250, -250), part("b", "gone", 500, 0), part("c", "new", 0, 290)],
            0,
            "not judged",
            "+8.00 % [+7.50, +8.50]",
        ),
        # twice as many iterations of a larger problem are no slowdown
        ([part("a", "exact", 500, 1000, 500), part("b", "gone", 500, 0), part("c", "new", 0, 1000)], 0, "held", None),
        ([part("a", "exact", 1000, 2000, 1000)], 0, "held", None),
        # other shapes of the same kernel hide work as new kernels do
        ([part("a", "exact", 1000, 1080, 0, 80)], 0, "not judged", "+8.00 % [+7.00, +9.00]"),
        # the same launches alone decide where nothing is added to them
        ([part("a", "exact", 1000, 1000), part("b", "gone", 300, 0)], 4.5, "inconclusive", None),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 1)], 4.5, "inconclusive", None),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 900)], 4.5, "not judged", "+94.50 % [+93.50, +95.50]"),
        ([part("a", "exact", 1000, 1000), part("b", "new", 0, 900)], 7, "broken", None),
    ],
)
def test_the_limit_of_the_whole_gpu_time_counts_kernels_that_only_one_run_has(parts, change, state, said):
    limits = {**NONE, "max_slowdown_percent": 5}
    (found,) = judge({**DOCUMENT, "decomposition": parts}, [row(change, change - 1, change + 1)], limits)
    assert found["state"] == state
    assert ("one run alone" in found["sentence"]) == (said is not None)
    if said is None:
        return
    assert f"; with kernels and configurations of one run alone, GPU time changed by {said}, " in found["sentence"]
    closed = (
        "so max_slowdown_percent cannot be judged and the gate stays closed: whether these do the same work is not"
        " known; compare with a baseline that has them, raise this limit, or leave it away."
    )
    assert found["sentence"].endswith(closed if state == "not judged" else "which does not decide it.")
    assert bool(reasons([found], strict=False)) == (state == "not judged")
    assert ("as recorded, with fewer of them, by" in found["sentence"]) == any(one["launches_ns"] < 0 for one in parts)
    assert outcome([found], reasons([found], strict=False)) == "could not tell"


def test_work_that_moves_in_part_to_a_cheaper_kernel_stays_in_sight():
    """Of 1000 ns in 100 launches, 60 launches move to a kernel that takes half as long: 400 ns and 300 ns are left."""
    parts = [part("a", "exact", 1000, 400, -600), part("b", "new", 0, 300)]
    limits = {**NONE, "max_slowdown_percent": 5}
    (found,) = judge({**DOCUMENT, "decomposition": parts}, [row(0, -1, 1)], limits)
    assert found["state"] == "not judged", "that the runs did the same work is not known"
    assert (
        "GPU time changed by +75.00 % [+74.00, +76.00], for as many launches of the kernels of both runs; as recorded,"
        " with fewer of them, by -30.00 %, which counts if both runs did the same work, so max_slowdown_percent cannot"
    ) in found["sentence"]
    parts[1]["candidate_ns"] = 700
    (found,) = judge({**DOCUMENT, "decomposition": parts}, [row(0, -1, 1)], limits)
    assert "as recorded" not in found["sentence"], "it took 10 % longer, however many launches are counted"


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


def of_steps(baseline, candidate):
    return row(0.1, -1, 1, metric="step", baseline_launches=baseline, candidate_launches=candidate)


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
        # of a longer recording with as many launches in a step nothing is missing
        ([of_kernel(90, 252), of_steps(10, 28)], None),
        # a candidate that ended early has as many launches in a step, too
        ([of_kernel(900, 27), of_steps(99, 3)], "27 times by the candidate, in 99 and 3 steps"),
        ([of_kernel(900, 90), of_steps(100, 90)], "90 times by the candidate, in 100 and 90 steps"),
        ([of_kernel(900, 90)], "and no steps are known"),
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
