"""Transfers streamed beside launches in small pieces must give what all rows at once give."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway.core.errors import TableError
from causeway.numeric.mpi import Ranks
from causeway.variability.rows import sources, transfers
from causeway.variability.rows.sources import Source
from causeway.variability.rows.transfer_links import link
from causeway.variability.rows.transfers import Exposure, TransferWindow, facts_of, latest_ends, transfers_of
from variability_tables import write_export

COLUMNS = ["start_ns", "duration_ns", "rank", "device"]
ROWS = st.lists(
    st.tuples(st.integers(0, 300), st.sampled_from([0, 1, 4, 9, 30, 200]), st.integers(0, 1)), min_size=1, max_size=40
)


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Row groups of the test's size are not joined to larger ones."""
    monkeypatch.setattr(sources, "STRETCH_ROWS", 1)
    monkeypatch.setattr(sources, "LEAST_ROWS", 1)
    monkeypatch.setattr(sources, "CHUNK_ROWS", 3)
    monkeypatch.setattr(transfers, "HELD_GROUPS", 2)


def facts(rows, **more):
    return {
        "start_ns": [row[0] for row in rows],
        "duration_ns": [row[1] for row in rows],
        "device": [row[2] for row in rows],
        "rank": [0] * len(rows),
        **more,
    }


def opened(folder, launches, copies, row_group):
    more = {"bytes": [None if row % 3 == 0 else row for row in range(len(copies))], "copy_kind": [1] * len(copies)}
    write_export(folder, facts(launches, configuration=[0] * len(launches)), facts(copies, **more), row_group=row_group)
    return Source("0", folder, "launches"), transfers_of(folder)


def columns(rows):
    start = np.array([row[0] for row in rows], np.int64)
    return start, start + np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows], np.int64)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, ROWS, st.integers(0, 20), st.integers(1, 7))
def test_a_moving_window_links_like_all_transfers_at_once(tmp_path, launches, copies, window_ns, row_group):
    launches = sorted(launches, key=lambda row: row[0])
    copies = sorted(copies, key=lambda row: row[0])
    source, rows = opened(tmp_path, launches, copies, row_group)
    expected, shared = link(*columns(launches), *columns(copies), window_ns)
    latest = latest_ends([rows, source.rows], Ranks())
    whole = TransferWindow(rows, latest[0], window_ns)
    exposure = Exposure(source, latest[1])
    begin = 0
    for chunk in source.rows.chunks(COLUMNS):
        linked = whole.link(chunk)
        here = slice(begin, begin + chunk.size)
        begin += chunk.size
        rows = row_of(linked)
        np.testing.assert_array_equal(rows, expected[here])
        np.testing.assert_array_equal(linked.overlap, shared[here])
        for row, start, end, size in zip(rows, linked.of("start"), linked.of("end"), linked.of("bytes"), strict=True):
            if row >= 0:
                assert (start, end) == (copies[row][0], copies[row][0] + copies[row][1])
                assert size == (transfers.UNKNOWN if row % 3 == 0 else row)
        np.testing.assert_array_equal(exposure.of(linked), [bare(launches, copies, row) for row in rows])


def row_of(linked):
    return np.where(linked.is_linked, linked.of("row"), -1)


def bare(launches, copies, row):
    """Return how many of a transfer's nanoseconds no launch on its device covers, counted one by one."""
    if row < 0:
        return 0
    start, duration, device = copies[row]
    busy = {t for s, d, lane in launches if lane == device for t in range(s, s + d)}
    return sum(t not in busy for t in range(start, start + duration))


def test_a_share_that_begins_late_sees_a_transfer_that_began_long_before(tmp_path):
    launches = [(time, 5, 0) for time in range(0, 1000, 10)]
    copies = [(0, 900, 0), *((time, 2, 1) for time in range(1, 900, 10))]
    source, rows = opened(tmp_path, launches, copies, 10)
    latest = latest_ends([rows], Ranks())[0]
    group = source.rows.groups[7]
    linked = TransferWindow(rows, latest, 0).link(next(source.rows.chunks(COLUMNS, [group])))
    assert set(row_of(linked).tolist()) == {0}
    assert set(linked.overlap.tolist()) == {5}


def test_chosen_launches_are_linked_like_all_of_them(tmp_path):
    rng = np.random.default_rng(5)
    launches = sorted(zip(rng.integers(0, 900, 60), rng.integers(0, 20, 60), rng.integers(0, 2, 60), strict=True))
    copies = sorted(zip(rng.integers(0, 900, 40), rng.integers(0, 60, 40), rng.integers(0, 2, 40), strict=True))
    source, rows = opened(tmp_path, launches, copies, 100)
    latest = latest_ends([rows], Ranks())[0]
    for number, chunk in enumerate(source.rows.chunks(COLUMNS)):
        every = TransferWindow(rows, latest, 10).link(chunk)
        chosen = np.arange(number % 2, chunk.size, 2)
        some = TransferWindow(rows, latest, 10).link(chunk.take(chosen))
        np.testing.assert_array_equal(row_of(some), row_of(every)[chosen])
        np.testing.assert_array_equal(some.overlap, every.overlap[chosen])


def test_no_transfers_link_nothing(tmp_path):
    write_export(tmp_path, facts([(0, 5, 0)], configuration=[0]))
    source = Source("0", tmp_path, "launches")
    chunk = next(source.rows.chunks(COLUMNS))
    assert TransferWindow(transfers_of(tmp_path), np.empty(0, np.int64), 5).link(chunk).is_linked.tolist() == [False]


def test_a_transfer_that_ends_before_it_starts_is_refused_by_row(tmp_path):
    _, rows = opened(tmp_path, [(0, 1, 0)], [(0, 5, 0), (1, 4, 0), (2, -1, 0)], 10)
    with pytest.raises(TableError, match=r"row 2 has duration -1 ns"):
        facts_of(next(rows.chunks(list(TransferWindow.COLUMNS))))


def test_rows_out_of_order_are_refused_by_row(tmp_path):
    write_export(tmp_path / "a", facts([(5, 1, 0), (9, 1, 0), (7, 1, 0)], configuration=[0] * 3))
    source = Source("0", tmp_path / "a", "launches")
    with pytest.raises(TableError, match="row 2 starts at 7 ns, before the row above it"):
        list(source.rows.chunks(["start_ns"]))
    write_export(
        tmp_path / "b", facts([(5, 1, 0), (9, 1, 0), (7, 1, 0), (8, 1, 0)], configuration=[0] * 4), row_group=2
    )
    with pytest.raises(TableError, match="row 2 starts at 7 ns, before the row above it"):
        Source("0", tmp_path / "b", "launches")
