import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.variability.rows.transfer_links import link

# short times and few lanes, so that overlaps, gaps and ties of every kind occur often
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 1)), max_size=14)
LONG = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 2, 5, 40, 90]), st.just(0)), max_size=25)


def brute(launches, transfers, window):
    """DESIGN's definition, word for word: the longest overlap, else the last that ended before within the window;
    ties; else none.
    """
    linked = []
    shared = []
    for start, duration, lane in launches:
        end = start + duration
        best = None
        for row, (t_start, t_duration, t_lane) in enumerate(transfers):
            t_end = t_start + t_duration
            overlap = min(end, t_end) - max(start, t_start)
            if t_lane == lane and overlap > 0:
                best = min(best or (1, 0, 0), (-overlap, t_start, row))
        if best is None:
            for row, (t_start, t_duration, t_lane) in enumerate(transfers):
                t_end = t_start + t_duration
                if t_lane == lane and t_end <= start and start - t_end <= window:
                    candidate = (-t_end, t_start, row)
                    best = candidate if best is None else min(best, candidate)
            shared.append(0)
        else:
            shared.append(-best[0])
        linked.append(-1 if best is None else best[2])
    return linked, shared


def columns(rows):
    start = np.array([row[0] for row in rows], np.int64)
    return start, start + np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows], np.int64)


def compare(launches, transfers, window):
    launches = sorted(launches, key=lambda row: row[0])
    transfers = sorted(transfers, key=lambda row: row[0])
    linked, shared = link(*columns(launches), *columns(transfers), window)
    assert (linked.tolist(), shared.tolist()) == brute(launches, transfers, window)


@settings(deadline=None, max_examples=150)
@given(ROWS, ROWS, st.integers(0, 12))
def test_links_equal_brute_force(launches, transfers, window):
    compare(launches, transfers, window)


@settings(deadline=None, max_examples=200)
@given(LONG, LONG, st.sampled_from([0, 3, 1000]))
def test_links_with_long_transfers_and_long_launches_equal_brute_force(launches, transfers, window):
    compare(launches, transfers, window)


LANES = st.sampled_from([-3, 0, 1, 2, 65_000])
FAR_LANES = st.sampled_from([-(1 << 40), 0, 1, 70_000, 1 << 50])


@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from([LANES, FAR_LANES]), st.integers(0, 12))
def test_links_in_many_lanes_near_and_far_apart_equal_brute_force(data, lanes, window):
    rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), lanes), max_size=20)
    compare(data.draw(rows), data.draw(rows), window)


def one(launch, transfers, window=5):
    linked, shared = link(*columns([(*launch, 0)]), *columns([(*row, 0) for row in transfers]), window)
    return int(linked[0]), int(shared[0])


def test_ties_go_to_the_earlier_start_then_the_smaller_row():
    assert one((10, 10), [(5, 8), (12, 3), (17, 9)]) == (0, 3)
    assert one((10, 10), [(8, 20), (8, 30)]) == (0, 10)
    assert one((10, 10), [(1, 7), (2, 6), (2, 6)]) == (0, 0)


def test_a_transfer_that_ends_at_the_start_ended_before_it():
    assert one((10, 10), [(2, 8)]) == (0, 0)
    assert one((10, 10), [(0, 5)]) == (0, 0)
    assert one((10, 10), [(0, 4)]) == (-1, 0)
    assert one((10, 10), [(20, 4)]) == (-1, 0)


def test_a_launch_of_no_length_overlaps_nothing():
    assert one((10, 0), [(0, 9), (5, 20)]) == (0, 0)
    assert one((10, 0), [(5, 20)]) == (-1, 0)


def test_no_transfers_and_no_launches():
    nothing = columns([])
    assert [part.tolist() for part in link(*columns([(0, 1, 0)]), *nothing, 9)] == [[-1], [0]]
    assert [part.size for part in link(*nothing, *columns([(0, 1, 0)]), 9)] == [0, 0]


def sweep_seconds(n, long_transfers):
    start = np.arange(n) * 10
    lane = np.zeros(n, np.int64)
    t_start = start + 3
    t_end = start + 8
    t_end[:long_transfers] = 10 * n
    began = time.process_time()
    link(start, start + 5, lane, t_start, t_end, lane, 100)
    return time.process_time() - began


def test_very_long_transfers_cost_no_more_than_short_ones():
    """A sweep that looks back as far as the longest transfer would take n^2 steps: 10^10 here."""
    sweep_seconds(10, 1)
    short = min(sweep_seconds(100_000, 0) for _ in range(3))
    for long_transfers in (1, 1000):
        assert min(sweep_seconds(100_000, long_transfers) for _ in range(3)) < 10 * short + 0.05
