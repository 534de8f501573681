"""Bounded-memory pieces against brute force: ordering, coding, the joins of ranges and launch calls, numbers of any
origin.
"""

import numpy as np
import pytest

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integer, integers
from causeway.readers.sink import external_sort, joins
from causeway.readers.sink.batches import EventBatch, is_repeated, repeated
from causeway.readers.sink.external_sort import ExternalSort
from causeway.readers.sink.joins import OpenRanges, WorkCalls, innermost
from causeway.readers.sink.records import RowCodes
from causeway.readers.sink.table_columns import FinalNumbers

ROW = np.dtype([("start_ns", "<i8"), ("added", "<i8"), ("batch", "<u2")])


def starts(kind, n, rng):
    if kind == "random":
        return rng.integers(0, max(1, n // 3), n)
    if kind == "nearly sorted":
        return np.arange(n) + rng.integers(0, 20, n)
    if kind == "reversed":
        return np.arange(n)[::-1]
    return np.arange(n) // 7  # ties


@pytest.mark.parametrize("kind", ["random", "nearly sorted", "reversed", "ties"])
def test_rows_come_out_by_start_then_by_addition(tmp_path, monkeypatch, kind):
    rng = np.random.default_rng(3)
    for _ in range(12):
        monkeypatch.setattr(external_sort, "BLOCK_ROWS", int(rng.integers(1, 50)))
        monkeypatch.setattr(external_sort, "MERGE_ROWS", int(rng.integers(1, 200)))
        n = int(rng.integers(0, 2000))
        rows = np.empty(n, ROW)
        rows["start_ns"] = starts(kind, n, rng)
        rows["added"] = np.arange(n)
        events = ExternalSort(tmp_path / "spill", window=int(rng.integers(1, 150)))
        at = 0
        while at < n:
            step = int(rng.integers(1, 100))
            rows["batch"][at : at + step] = at  # the same in all rows of a batch, which is stored in another way
            part = rows[at : at + step]
            events.add(EventBatch.from_columns(ROW, len(part), {name: part[name] for name in ROW.names}))
            at += step
        blocks = list(events.blocks())
        found = np.empty(sum(map(len, blocks)), ROW)
        for name in ROW.names:
            found[name] = np.concatenate([found[name][:0], *(block[name] for block in blocks)])
        events.close()
        assert np.array_equal(found, rows[np.argsort(rows["start_ns"], kind="stable")])
        assert not (tmp_path / "spill").exists()


def test_rows_with_repeated_columns_are_those_without():
    dtype = np.dtype([("start_ns", "<i8"), ("process", "<i4"), ("value", "<f8")])
    rng = np.random.default_rng(8)
    whole = {
        "start_ns": rng.integers(0, 9, 30),
        "process": np.repeat([7, 7, 5], 10),
        "value": np.repeat([0.0, -0.0, 1.0], 10),
    }
    parts = [
        EventBatch.from_columns(dtype, 10, {name: column[at : at + 10] for name, column in whole.items()})
        for at in (0, 10, 20)
    ]
    assert is_repeated(parts[0]["process"])
    assert is_repeated(EventBatch.concatenated(parts[:2])["process"])
    assert not is_repeated(EventBatch.concatenated(parts)["process"])
    for what in (slice(3, 17), rng.random(30) < 0.5, rng.permutation(30)[:12]):
        for rows in (EventBatch.concatenated(parts)[what], EventBatch.concatenated(parts).copy()[what]):
            assert len(rows) == len(whole["process"][what])
            for name, column in whole.items():
                assert rows[name].dtype == dtype[name]
                assert rows[name].tobytes() == column[what].astype(dtype[name]).tobytes()
    constant = EventBatch.from_columns(dtype, 4, {"start_ns": repeated(NULL, 4), "process": 3, "value": 0.5})
    assert all(is_repeated(column) for column in constant.columns.values())
    assert constant[np.array([True, False, True, False])]["process"].tolist() == [3, 3]


def test_nearly_sorted_rows_need_one_run_only(tmp_path):
    events = ExternalSort(tmp_path / "spill", window=100)
    events.add(EventBatch({"start_ns": np.arange(5000) + np.tile([0, 7, 3], 1667)[:5000]}))
    assert sum(map(len, events.blocks())) == 5000
    assert len(events.runs) == 1
    events.close()


def test_codes_are_dense_and_follow_first_use():
    coder = RowCodes()
    first = coder.codes([np.array([3, 1, 3, 1, 2]), np.array([NULL, 1, NULL, 1, 2])])
    second = coder.codes([np.array([2, 9]), np.array([2, 9])])
    assert first.tolist() == [0, 1, 0, 1, 2]
    assert second.tolist() == [2, 3]
    assert coder.rows[0] == (3, NULL)


def test_final_numbers_follow_first_appearance():
    numbers = FinalNumbers(2)
    assert numbers.of(np.array([5, 1, 5])).tolist() == [0, 1, 0]
    assert numbers.of(np.array([7, 1])).tolist() == [2, 1]
    assert numbers.codes == [5, 1, 7]


def brute_innermost(start, end, time):
    holding = [at for at in range(len(start)) if start[at] <= time < end[at]]
    return holding[-1] if holding else -1


def test_the_innermost_range_is_the_latest_started_that_holds_the_time():
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(0, 30))
        start = np.sort(rng.integers(0, 40, n))
        end = start + rng.integers(0, 25, n)  # not always nested, sometimes empty
        times = rng.integers(-2, 70, 25)
        expected = [brute_innermost(start, end, time) for time in times]
        assert innermost(start, end, times).tolist() == expected


def test_ranges_nested_twenty_thousand_deep_are_found():
    """Each call comes when two ranges more have ended: walking outwards would take half of all pairs."""
    n = 20_000
    start = np.arange(n)
    times = np.arange(9 * n + 1, 10 * n, 2)
    assert innermost(start, 10 * n - start, times).tolist() == (10 * n - times - 1).tolist()


def blocks_of(rows, rng):
    at = 0
    while at < len(rows):
        step = int(rng.integers(1, 6))
        yield rows[at : at + step]
        at += step


def test_streamed_ranges_and_calls_equal_brute_force(monkeypatch):
    monkeypatch.setattr(joins, "AHEAD_NS", 10)
    rng = np.random.default_rng(7)
    for _ in range(60):
        n_ranges, n_calls, n_launches = rng.integers(0, 40, 3)
        ranges = np.zeros(
            n_ranges, [("start_ns", "<i8"), ("duration_ns", "<i8"), ("process", "<i4"), ("thread", "<i8")]
        )
        ranges["start_ns"] = np.sort(rng.integers(0, 100, n_ranges))
        ranges["duration_ns"] = rng.integers(0, 60, n_ranges)
        ranges["process"] = rng.integers(0, 2, n_ranges)
        ranges["thread"] = rng.choice([1, 2, NULL], n_ranges)
        calls = np.zeros(n_calls, [*ranges.dtype.descr, ("correlation", "<i8")])
        calls["start_ns"] = np.sort(rng.integers(0, 100, n_calls))
        calls["duration_ns"] = rng.integers(0, 9, n_calls)
        calls["process"] = rng.integers(0, 2, n_calls)
        calls["thread"] = rng.choice([1, 2, NULL], n_calls)
        calls["correlation"] = rng.choice([*range(15), NULL, -3, 1 << 50], n_calls)
        launches = np.zeros(n_launches, [("start_ns", "<i8"), ("process", "<i4"), ("correlation", "<i8")])
        launches["start_ns"] = np.sort(rng.integers(120, 200, n_launches))
        launches["process"] = rng.integers(0, 2, n_launches)
        launches["correlation"] = rng.choice([*range(15), NULL], n_launches)

        def holder(call, ranges=ranges):
            mine = [
                at
                for at, row in enumerate(ranges)
                if row["process"] == call["process"] and row["thread"] == call["thread"] != NULL
                and row["start_ns"] <= call["start_ns"] < row["start_ns"] + row["duration_ns"]
            ]  # fmt: skip
            return mine[-1] if mine else NULL

        open_ranges = OpenRanges(blocks_of(ranges, rng))
        numbers = iter(np.split(np.arange(n_calls), np.arange(1, n_calls)))
        made = WorkCalls(
            (
                block,
                np.concatenate([next(numbers) for _ in block]),
                open_ranges.find(block),
                *np.full((2, len(block)), NULL),
            )
            for block in blocks_of(calls, rng)
        )
        found = [made.find(block) for block in blocks_of(launches, rng)]
        made.drain()
        open_ranges.drain()
        facts = ("begin", "end", "range", "call", "thread")
        of = [np.concatenate([part[name] for part in found] or [np.empty(0)]) for name in facts]
        for launch, begin, end, range_number, number, thread in zip(launches, *of, strict=True):
            mine = [
                c
                for c in calls
                if c["process"] == launch["process"]
                and c["correlation"] == launch["correlation"]
                and c["correlation"] >= 0
            ]
            last = max((c["start_ns"] + c["duration_ns"] for c in mine), default=NULL)
            assert end == last
            assert number == NULL if not mine else calls[int(number)] in mine
            if mine:
                made_by = calls[int(number)]
                assert made_by["start_ns"] + made_by["duration_ns"] == last
                assert (begin, thread) == (made_by["start_ns"], made_by["thread"])
                assert range_number == holder(made_by)


@pytest.mark.parametrize(
    ("values", "expected", "misfits"),
    [
        ([1, None, ""], [1, NULL, NULL], {}),
        (["1", 2.0, "0x10", True, "7.0"], [1, 2, 16, 1, 7], {}),
        (
            ["x", 1.5, 10**30, [1], float("nan"), "7.25", "1e30"],
            [NULL] * 7,
            {"not_a_number": 3, "not_whole": 2, "out_of_range": 2},
        ),
        (np.array([1, 2**63], np.uint64), [1, NULL], {"out_of_range": 1}),
        ([], [], {}),
    ],
)
def test_integers_of_any_origin(values, expected, misfits):
    found, counts = integers(values)
    assert found.tolist() == expected
    assert counts == misfits


def test_times_with_a_fraction_are_rounded_once():
    values = ["41551790005678.37", 2.75, "0.5", "1.5", 7, None, "9" * 19 + ".5", "soon", "-3.7"]
    found, counts = integers(values, of_times=True)
    assert found.tolist() == [41551790005678, 3, 0, 2, 7, NULL, NULL, NULL, -4]
    assert counts == {"out_of_range": 1, "not_a_number": 1}


def test_integer_limits():
    assert integer(2**63 - 1) == 2**63 - 1
    assert integer(2**63) is None
    assert integer(NULL) is None  # the mark of absence itself
