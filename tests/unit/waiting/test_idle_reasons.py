"""Every idle nanosecond has one reason: against a search nanosecond by nanosecond, and against the efficiency's idle
time on real exports.
"""

from collections import Counter

import numpy as np
import pytest
from waiting_samples import CALLS, explained, random_export, write_export

from causeway.waiting.idle import export_pass
from causeway.waiting.idle.reason_words import AFTER_LAST, BEFORE_FIRST, NAMES

RANKS = 100


def by_rank(found):
    """Return ns by reason and detail of each rank with one device."""
    each = {}
    for (device, reason, detail), ns in found.totals.whole.items():
        assert ns > 0
        if reason not in (BEFORE_FIRST, AFTER_LAST):
            each.setdefault(found.devices[device][0], Counter())[NAMES[reason], found.texts[detail]] += ns
    return each


@pytest.mark.parametrize("seed", range(21))
def test_random_ranks_agree_with_the_definition_in_each_nanosecond(tmp_path, monkeypatch, seed):
    bound = seed % 7
    each = random_export(tmp_path / "e0", seed, RANKS)
    monkeypatch.setattr(export_pass, "start_up_bound", lambda folder: bound)
    if seed % 3 == 0:  # pieces come in several parts
        monkeypatch.setattr(export_pass, "FIRST_PIECES", 20)
    found = by_rank(export_pass.explain_export(tmp_path / "e0", {}))
    for rank, tables in enumerate(each):
        assert found.get(rank, Counter()) == explained(tables, bound, has_calls=True), rank


def test_the_sums_of_steps_are_the_idle_time_within_them(tmp_path, monkeypatch):
    each = random_export(tmp_path / "e0", 77, 40)
    monkeypatch.setattr(export_pass, "start_up_bound", lambda folder: 3)
    low = np.array([0, 25, 40])
    high = np.array([20, 40, 10_000])
    number = np.array([5, 6, 9])
    found = export_pass.explain_export(tmp_path / "e0", dict.fromkeys(range(0, 40, 2), (low, high, number)))
    assert {found.devices[device][0] % 2 for device, *_ in found.totals.steps} == {0}
    for device, (rank, _) in enumerate(found.devices):
        busy = np.zeros(2_000, bool)
        for name in ("launches", "transfers"):
            for row in each[rank][name]:
                busy[row["start_ns"] : row["start_ns"] + row["duration_ns"]] = True
        graphs = [row for row in each[rank]["ranges"] if row["kind"] == "cuda_graph"]
        spans = [(r["start_ns"], r["start_ns"] + r["duration_ns"]) for r in graphs]
        ends = [*np.flatnonzero(busy)[[0, -1]], *(s for s, _ in spans), *(e - 1 for _, e in spans)]
        for begin, end, step in zip(low, high, number, strict=True) if rank % 2 == 0 else ():
            inside = slice(max(min(ends), begin), min(max(ends) + 1, end))
            expected = int((~busy[inside]).sum()) if inside.start < inside.stop else 0
            assert sum(ns for key, ns in found.totals.steps.items() if key[:2] == (device, step)) == expected


def test_the_start_up_latency_is_the_median_of_launches_on_an_idle_device(tmp_path):
    calls = []
    launches = []
    latencies = [*range(100, 125), 60_000, 70_000]  # a few work items that waited for something else
    for number, latency in enumerate(latencies):
        at = 1_000_000 * number
        calls.append(
            {"start_ns": at, "duration_ns": 50, "rank": 0, "thread": 1, "name": CALLS[0], "correlation": number}
        )
        event = {"start_ns": at + 50 + latency, "duration_ns": 10, "rank": 0, "stream": 0, "configuration": 0}
        launches.append(event | {"correlation": number})
    write_export(tmp_path / "e0", {"calls": calls, "launches": launches})
    assert export_pass.start_up_bound(tmp_path / "e0") == int(np.median(latencies[1:])) == 113  # the first ends no gap
    few = tmp_path / "few"
    write_export(few, {"calls": calls[:9], "launches": launches[:9]})
    assert export_pass.start_up_bound(few) == export_pass.DEFAULT_START_UP_NS


def test_work_without_calls_is_unknown_and_says_so(tmp_path):
    launches = [{"start_ns": at, "duration_ns": 10, "rank": 0, "configuration": 0} for at in (0, 30)]
    write_export(tmp_path / "e0", {"launches": launches})
    assert by_rank(export_pass.explain_export(tmp_path / "e0", {})) == {
        0: Counter({("unknown", "the export has no runtime calls"): 20})
    }
