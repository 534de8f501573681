"""The sweep against brute force, cell by cell, and against set arithmetic."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.efficiency.device_time import sweep
from causeway.efficiency.device_time.states import MIGRATION_SETS, SETS, time_in
from causeway.efficiency.device_time.sweep import CAUSES, QUEUE, STREAM_FIELDS, UNKNOWN, Sweep, take_streams
from causeway.numeric import intervals

EVENTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 60), st.integers(0, 20), st.integers(-5, 60)),
    max_size=20,
)
PAIRS = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 30)), max_size=4)


def columns(events):
    """Return lane, kind, start, end and call of events, ordered by start."""
    rows = sorted(events, key=lambda event: event[2])
    lane, kind, start, length, call = (
        np.array(values, np.int64) for values in (zip(*rows, strict=True) if rows else [[]] * 5)
    )
    return lane.astype(np.int32), kind.astype(np.uint8), start, start + length, call


def states_of(events, cells):
    """Return by brute force the state of each lane in each unit cell."""
    state = np.zeros((2, cells), int)
    for lane, kind, start, length, _ in events:
        state[lane, start : start + length] |= 1 << kind
    return state


@settings(deadline=None, max_examples=150)
@given(EVENTS, PAIRS, st.integers(0, 30), st.integers(0, 60), st.integers(1, 6))
def test_states_bins_and_regions_agree_with_cells(events, region, begin, length, parts):
    stop = begin + length
    region = intervals.union(*(np.array([(s, s + n) for s, n in region], np.int64).reshape(-1, 2).T))
    edges = np.unique(np.linspace(begin, max(stop, begin + 1), parts + 1).astype(int))
    swept = Sweep([begin] * 2, [stop] * 2, edges, [[region]] * 2)
    taken = columns(events)
    for first in range(0, len(events), 3):  # in pieces: the answer does not depend on them
        swept.take(*(column[first : first + 3] for column in taken))
    swept.finish()
    inside = np.zeros(200, bool)
    for low, high in zip(*region, strict=True):
        inside[low:high] = True
    for lane, state in enumerate(states_of(events, 200)):
        cells = np.arange(200)
        window = (cells >= begin) & (cells < stop)
        assert swept.total[lane].tolist() == np.bincount(state[window], minlength=32).tolist()
        found = np.bincount(state[window & inside & (state > 0)], minlength=32)
        assert swept.within[lane, 0].tolist() == found.tolist()
        for place, (low, high) in enumerate(itertools.pairwise(edges)):
            chosen = window & (cells >= low) & (cells < high) & (state > 0)
            assert swept.binned[lane, place].tolist() == np.bincount(state[chosen], minlength=32).tolist()
        assert swept.idle[lane].sum() == swept.total[lane, 0]


@settings(deadline=None)
@given(EVENTS)
def test_sets_of_states_are_set_arithmetic(events):
    swept = Sweep([0, 0], [100, 100])
    lane, kind, start, end, call = columns(events)
    swept.take(lane, kind, start, end, call)
    swept.finish()
    for number in range(2):
        compute, communication, copies, graph, migrations = (
            intervals.union(start[chosen], end[chosen])
            for one in range(5)
            for chosen in [(lane == number) & (kind == one)]
        )
        memory = intervals.union(*np.concatenate([copies, migrations], axis=1))
        useful = intervals.union(*np.concatenate([compute, graph], axis=1))
        kernel = intervals.union(*np.concatenate([useful, communication], axis=1))
        expected = {
            "busy": intervals.length(np.concatenate([kernel, memory], axis=1)),
            "kernel": intervals.length(kernel),
            "compute": intervals.length(useful),
            "communication": intervals.length(communication),
            "memory": intervals.length(memory),
            "graph": intervals.length(graph),
            "exposed_communication": (
                intervals.length(communication) - intervals.length(intervals.intersection(communication, useful))
            ),
            "exposed_memory": (intervals.length(memory) - intervals.length(intervals.intersection(memory, kernel))),
            "overlap": intervals.length(intervals.intersection(communication, useful)),
        }
        assert {name: int(time_in(swept.total[number], name)) for name in SETS} == expected
        others = np.concatenate([kernel, copies], axis=1)
        expected = {
            "exposed_migrations": (
                intervals.length(migrations) - intervals.length(intervals.intersection(migrations, others))
            ),
            "under_migrations": intervals.length(intervals.intersection(kernel, migrations)),
        }
        assert {name: int(time_in(swept.total[number], name)) for name in MIGRATION_SETS} == expected


def test_idle_time_by_cause():
    """Idle before 10 (called at 2, after the window began), 20-23 (called at 5, short), 30-50 (called at 29), 60-100
    (nothing follows).
    """
    swept = Sweep([0], [100], kernel_wait_ns=5)
    start, end, call = (np.array(values) for values in ([10, 23, 50], [20, 30, 60], [2, 5, 29]))
    swept.take(np.zeros(3), np.zeros(3), start, end, call)
    swept.finish()
    assert dict(zip(CAUSES, swept.idle[0].tolist(), strict=True)) == {"host": 10, "kernel_wait": 3, "other": 60}


def streams_of(start, end, call, returned, small=10, wait=30):
    n = len(start)
    zeros = np.zeros(n, np.int32)
    gaps = np.zeros((1, len(STREAM_FIELDS)), np.int64)
    path = np.zeros((1, len(sweep.PATH_FIELDS)), np.int64)
    times = {"start": start, "end": end, "called": call, "returned": returned}
    events = sweep.STREAM_EVENTS.of(
        devices=zeros,
        streams=zeros,
        launch=np.ones(n, np.uint8),
        **{name: np.array(values, np.int64) for name, values in times.items()},
    )
    ring = np.zeros((1, QUEUE), np.int64)
    queues = sweep.STREAM_QUEUES.of(before=np.full(1, UNKNOWN), filled=np.zeros(1, np.int64), gaps=gaps, ring=ring)
    take_streams(events, small, wait, queues, path)
    return dict(zip(STREAM_FIELDS, gaps[0].tolist(), strict=True)), dict(
        zip(sweep.PATH_FIELDS, path[0].tolist(), strict=True)
    )


def test_path_of_launches():
    """Call [0, 4], kernel [10, 30]; call [5, 40], kernel [32, 37], which returns after the kernel ended: Q is not
    negative, T is 35.
    """
    gaps, path = streams_of([10, 32], [30, 37], [0, 5], [4, 40])
    assert path == {
        "launches": 2,
        "kernel_ns": 25,
        "small": 1,
        "small_ns": 5,
        "called": 2,
        "call_ns": 39,
        "queued": 1,
        "queue_ns": 6,
        "total_ns": 65,
    }
    assert gaps["kernel_wait_ns"] == 2
    assert gaps["queue_max"] == 2


def test_a_kernel_is_small_below_the_limit_and_not_at_it():
    _, path = streams_of([0, 10, 20, 30], [9, 20, 31, 39], [0] * 4, [0] * 4, small=10)
    assert (path["small"], path["small_ns"]) == (2, 18)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=12))
def test_longest_queue(rows):
    call = np.cumsum([step for step, _ in rows]).tolist()
    start = np.maximum.accumulate(np.array(call, int) + [wait for _, wait in rows]).tolist()
    gaps, _ = streams_of(start, [one + 1 for one in start], call, call)
    waiting = [sum(other > moment for other in start[:number]) + 1 for number, moment in enumerate(call)]
    assert gaps["queue_max"] == max(waiting, default=0)
