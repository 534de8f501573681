"""Which times can be those of an event: one rule for what is left out, counted and joined."""

import numpy as np
import pytest
from reading import Read, kernel, write_trace

from causeway.readers.common.constants import EPOCH_2100_NS, LONGEST_NS, NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink.event_times import COARSE_NS, ClockTick, possible_events, usable

EDGES = (
    NULL,
    0,
    1,
    -5,
    LONGEST_NS,
    LONGEST_NS + 1,
    EPOCH_2100_NS,
    EPOCH_2100_NS + 1,
    -EPOCH_2100_NS,
    -EPOCH_2100_NS - 1,
    np.iinfo(np.int64).max,
)


def test_every_pair_of_edges_is_left_out_for_one_reason_or_kept():
    start, end = (side.ravel() for side in np.meshgrid(EDGES, EDGES))
    issues = Issues()
    rows, columns = possible_events(start, end, {"at": np.arange(len(start)), "one": 7}, issues)
    good = usable(start, end)
    assert columns["at"].tolist() == np.flatnonzero(good).tolist()
    assert rows == good.sum()
    expected = []
    for one, other in zip(start.tolist(), end.tolist(), strict=True):
        known = NULL not in (one, other) and max(abs(one), abs(other)) <= EPOCH_2100_NS
        expected.append(known and 0 <= other - one <= LONGEST_NS)
    assert good.tolist() == expected
    assert (columns["duration_ns"] == end[good] - start[good]).all()
    assert set(columns["one"].tolist()) == {7}
    assert issues.count("no_time") == sum(NULL in pair for pair in zip(start.tolist(), end.tolist(), strict=True))
    left_out = sum(issues.count(kind) for kind in ("no_time", "implausible_time", "end_before_start"))
    assert left_out == len(start) - rows


def test_rows_that_can_all_be_events_are_passed_on_and_none_is_none():
    rows, columns = possible_events([3, 1], [5, 1], {"process": 0}, Issues())
    assert (rows, columns["start_ns"].tolist(), columns["duration_ns"].tolist()) == (2, [3, 1], [2, 0])
    assert possible_events([], [], {}, Issues())[0] == 0


@pytest.mark.parametrize("tick", [1, 7, 100, 32_000])
def test_the_tick_of_a_clock_is_that_of_all_its_times(tick):
    rng = np.random.default_rng(tick)
    clock = ClockTick()
    first = 10**15
    for _ in range(3):
        start = first + tick * rng.integers(-1000, 1000, 50)
        clock.take(start, tick * rng.integers(0, 9, 50))
        first = min(first, int(start.min()))
    assert clock.tick_ns == tick if tick >= COARSE_NS else clock.tick_ns < COARSE_NS
    assert clock.first_ns <= first


def test_the_tick_of_starts_is_told_apart_from_that_of_all_times():
    clock = ClockTick()
    clock.take(np.array([7000]), np.array([0]))
    assert (clock.start_tick_ns, clock.tick_ns) == (0, 0)  # one launch of no duration shows no tick
    clock.take(np.array([9000, 12_000]), np.array([300, 900]))
    assert (clock.start_tick_ns, clock.tick_ns) == (1000, 100)
    clock.take(np.array([5000]), np.array([1234]))
    assert clock.start_tick_ns == 1000
    assert 0 < clock.tick_ns < COARSE_NS


@pytest.mark.parametrize(
    ("rows", "duration", "issue"),
    [(12, "{at}.257", "coarse_starts"), (12, "{at}", "coarse_clock"), (9, "{at}.257", None)],
    ids=["starts", "all times", "too few to tell"],
)
def test_starts_that_were_printed_with_too_few_digits_are_noted(rows, duration, issue, tmp_path):
    lines = ['"Start","Duration","Grid X","Grid Y","Grid Z","Device","Stream","Name"', "s,us,,,,,,"]
    for at in range(rows):
        lines.append(f'0.{31000 + 17 * at:06},{duration.format(at=at + 3)},4,1,1,"A GPU (0)","7","k(int)"')
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert read.launches.num_rows == rows
    for kind in ("coarse_starts", "coarse_clock"):
        assert read.count(kind) == (rows if kind == issue else 0)


def test_work_of_a_device_whose_times_are_both_zero_has_none():
    start = np.array([0, 0, 5, 0, 7])
    end = np.array([0, 4, 5, 0, 9])
    issues = Issues()
    rows, columns = possible_events(start, end, {"at": np.arange(5)}, issues, of_device=True)
    assert (rows, columns["at"].tolist(), issues.count("no_time")) == (3, [1, 2, 4], 2)
    assert possible_events(start, end, {}, Issues())[0] == 5  # a range may begin and end with the session


EPOCH = 1_700_000_000 * 10**6
"""A time of 2023 in microseconds."""


def test_a_launch_far_from_all_others_is_left_out(tmp_path):
    """ROCm and CUPTI give no time for some work, and one start of 0 among times of 2023 makes a recording of decades."""
    events = [kernel(EPOCH + 100 * at, 50 + at) for at in range(30)]
    once = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    for name, odd in (("first", 0), ("last", 2 * EPOCH)):
        path = write_trace(tmp_path / f"{name}.json", [*events[:7], kernel(odd, 5), *events[7:]])
        export = Read(path, tmp_path / name)
        assert (export.status, export.capabilities["left_out"]) == ("partial", {"rows": 1, "of": 31})
        assert export.count("implausible_time") == 1
        assert export.launches.equals(once.launches)
        assert export.capabilities["time"] == once.capabilities["time"]


def test_months_between_launches_are_no_fault(tmp_path):
    """Only what no recording lasts is another clock's."""
    days = 99 * 86_400 * 10**6
    export = Read(write_trace(tmp_path / "x.json", [kernel(5, 9), kernel(days, 9)]), tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("read", 2)
