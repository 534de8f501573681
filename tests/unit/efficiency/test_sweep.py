"""The sweep against brute force, cell by cell, and against set arithmetic."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.efficiency.device_time.states import MIGRATION_SETS, SETS, time_in
from causeway.efficiency.device_time.sweep import Sweep
from causeway.numeric import intervals

EVENTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 60), st.integers(0, 20)),
    max_size=20,
)
PAIRS = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 30)), max_size=4)


def columns(events):
    """Return lane, kind, start and end of events, ordered by start."""
    rows = sorted(events, key=lambda event: event[2])
    lane, kind, start, length = (
        np.array(values, np.int64) for values in (zip(*rows, strict=True) if rows else [[]] * 4)
    )
    return lane.astype(np.int32), kind.astype(np.uint8), start, start + length


def states_of(events, cells):
    """Return by brute force the state of each lane in each unit cell."""
    state = np.zeros((2, cells), int)
    for lane, kind, start, length in events:
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


@settings(deadline=None)
@given(EVENTS)
def test_sets_of_states_are_set_arithmetic(events):
    swept = Sweep([0, 0], [100, 100])
    lane, kind, start, end = columns(events)
    swept.take(lane, kind, start, end)
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
