"""Busy time of a cell that holds every kind of work, none of which ends in it."""

import numpy as np

from causeway.levels.pyramid.busy_time import BUSY, BUSY_NAMES
from causeway.levels.pyramid.cells import CHUNK_ROWS
from causeway.levels.pyramid.pyramid import Sums
from causeway.levels.pyramid.sketch import Buckets

WIDTH = 10_000
EVENTS = [  # kind of active time, begin, end
    ("host_to_device_ns", 7_000, 10_004),
    ("device_to_host_ns", 7_001, 10_004),
    ("on_device_ns", 7_002, 10_003),
    ("memset_ns", 7_003, 10_003),
    ("active_communication_ns", 8_000, 10_002),
    ("active_compute_ns", 9_000, 10_001),
]
STREAMS = 60


def _by_the_nanosecond():
    """Return ns by kind of busy time and cell, in plain Python."""
    found = {}
    for moment in range(min(event[1] for event in EVENTS), max(event[2] for event in EVENTS)):
        active = [kind for kind, begin, end in EVENTS if begin <= moment < end]
        compute = "active_compute_ns" in active
        communication = "active_communication_ns" in active
        copy = any(kind not in ("active_compute_ns", "active_communication_ns") for kind in active)
        kinds = [*active, *["compute_ns"] * compute, *["communication_ns"] * communication]
        kinds += ["exposed_communication_ns"] * (communication and not compute)
        kinds += ["exposed_copy_ns"] * (copy and not compute and not communication)
        for kind in kinds:
            key = (BUSY_NAMES.index(kind), moment // WIDTH)
            found[key] = found.get(key, 0) + 1
    return found


def test_all_that_is_open_at_the_end_has_room():
    """Ten pieces of the cell in which all begins, four of the one in which all ends; many streams, so that room is
    made anew for what is left at the end.
    """
    starts = np.array([event[1] for event in EVENTS])
    durations = np.array([event[2] - event[1] for event in EVENTS])
    none = np.full(2, -1)
    launches = CHUNK_ROWS.of(
        start=starts[4:],
        duration=durations[4:],
        stream=np.array([4, 5]),
        configuration=np.array([0, 1], np.uint32),
        kind=np.array([1, 0]),
        mean=durations[4:],
        linked=none,
        lasted=np.empty(0, np.int64),
    )
    transfers = (starts[:4], durations[:4], np.arange(4), np.arange(4), np.full(4, -1))
    sums = Sums(Buckets(0.05), 0, 1e9, WIDTH)
    sums.grow(STREAMS * 9, 1)
    sums.sweep(launches, transfers, np.zeros(STREAMS, np.int64))
    level = sums.finish()
    assert level.width == WIDTH
    found = {(int(series) % BUSY, int(cell)): int(ns) for series, cell, ns in level.busy}
    assert found == _by_the_nanosecond()
    assert len(found) == 20  # what was active alone reaches the second cell as well
