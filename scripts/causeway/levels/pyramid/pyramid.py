"""A pyramid of levels: sums over cells of one width, and every coarser level as the sum of the finer one.

How fine the finest level can be is known only when all rows are read. So sums begin with narrow cells, and whenever
they would take more bytes than the pyramid may have, four neighbouring cells become one: sums of integers lose nothing
by it, and memory stays bounded.
"""

from typing import Any

import numpy as np

from causeway.levels.pyramid import busy_time, cells, merging
from causeway.levels.pyramid.level import STEP, Level, least_size, merged
from causeway.levels.pyramid.sketch import Buckets
from causeway.numeric.process import give_back

FINEST_NS = 10_000
"""Width of the cells of the finest level that there may be."""
MOST_PIECES = 1 << 22
"""Pieces of busy time that one chunk of rows may be divided into."""
COVERING = busy_time.ACTIVE_COMPUTE
"""Kinds of busy time that cover time; the others count each event for itself."""
WHOLE_OVER_FINEST = 1.5
"""Bytes of a pyramid over those of its finest level, which has three quarters of all cells or more; sketches shrink
more slowly.
"""


LARGE_LEVEL = 1 << 20
"""Bytes of a level from which what its merging took is given back."""
_NONE = np.empty(0, np.int64)
_NO_NUMBERS = np.empty(0, np.uint32)
NO_LAUNCHES = cells.CHUNK_ROWS.of(**dict.fromkeys(cells.CHUNK_ROWS.fields, _NONE) | {"configuration": _NO_NUMBERS})
BusyEvents = tuple[np.ndarray, tuple, np.ndarray, tuple]
"""Rows of a device and launches, rows of a device and transfers, as `busy_time.sweep` takes them."""
NO_ROWS: BusyEvents = _NONE, NO_LAUNCHES, _NONE, busy_time.BUSY_TRANSFERS.of(start=_NONE, duration=_NONE, kind=_NONE)
NO_TRANSFERS = (_NONE,) * 5


class _GrowingRows:
    """Rows of a level as they come, in arrays that grow in place: many small ones would leave memory that nothing
    else fits into.
    """

    def __init__(self) -> None:
        empty = Level.empty(0)
        self._held = [empty.values, empty.offset, empty.buckets, empty.counts, empty.busy]
        self.sizes = [0, 1, 0, 0, 0]

    def add(
        self, values: np.ndarray, entries: np.ndarray, buckets: np.ndarray, counts: np.ndarray, busy: np.ndarray
    ) -> None:
        """Add rows: `entries` says how many buckets each row of `values` has; the others are as in `Level`."""
        offset = np.cumsum(entries) + self.sizes[2]
        for column, more in enumerate((values, offset, buckets, counts, busy)):
            array = self._held[column]
            size = self.sizes[column] + len(more)
            if size > len(array):
                array.resize((size + size // 16, *array.shape[1:]), refcheck=False)
            array[self.sizes[column] : size] = more
            self.sizes[column] = size

    def level(self, width: int) -> Level:
        """Return the rows, in the order in which they came."""
        return Level(width, *(array[:size] for array, size in zip(self._held, self.sizes, strict=True)))


def _output(values: int, entries: int, pieces: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return output arrays: cells, the buckets of their sketches and the counts of these, and pieces of busy time."""
    cell = np.empty((values, cells.CLOSED), np.int64)
    return cell, np.empty(entries, np.uint16), np.empty(entries, np.uint32), np.empty((pieces, 3), np.int64)


class Sums:
    """The sums of one export while its rows are read.

    Parameters
    ----------
    buckets : Buckets
        Of the sketches.
    origin_ns : int
        The dataset's first launch on the export's own clock: cell 0 begins there.
    budget : float
        Bytes that the whole pyramid of this export may take.
    width : int
        Of the cells to begin with, `FINEST_NS` times a power of four.
    """

    def __init__(self, buckets: Buckets, origin_ns: int, budget: float, width: int = FINEST_NS) -> None:
        self.buckets = buckets
        self.origin_ns = origin_ns
        self.budget = budget
        self.width = width
        self.state = np.zeros((0, cells.STATE), np.int64)
        self.histogram = np.zeros((0, len(buckets)), np.uint32)
        self.touched = np.zeros((0, len(buckets)), np.uint16)
        self.opened = np.zeros((0, 2 + busy_time.BUSY), np.int64)
        self.until = np.zeros((0, 4), np.int64)
        self.level = Level.empty(width)
        self._fresh = _GrowingRows()
        self._out = _output(0, 0, 0)
        self._filled = np.zeros(3, np.int64)

    def grow(self, series: int, devices: int) -> None:
        """Make room for series of values and for devices."""
        more = max(0, series - len(self.state))
        state = np.zeros((more, cells.STATE), np.int64)
        state[:, cells.END] = cells.LONG_AGO
        state[:, cells.LOW] = cells.EMPTY_LOW
        state[:, cells.HIGH] = -cells.EMPTY_LOW
        self.state = np.vstack((self.state, state))
        self.histogram = np.vstack((self.histogram, np.zeros((more, len(self.buckets)), np.uint32)))
        self.touched = np.vstack((self.touched, np.zeros((more, len(self.buckets)), np.uint16)))
        more = max(0, devices - len(self.until))
        opened = np.full((more, 2 + busy_time.BUSY), cells.LONG_AGO, np.int64)
        opened[:, 2:] = 0
        self.opened = np.vstack((self.opened, opened))
        self.until = np.vstack((self.until, np.full((more, 4), cells.LONG_AGO, np.int64)))

    def sweep(self, launches: Any, transfers: tuple[np.ndarray, ...], device_of: np.ndarray) -> None:
        """Add launches and transfers, all of which begin after those of earlier calls.

        Parameters
        ----------
        launches : cells.CHUNK_ROWS
        transfers : tuple of ndarray of int64
            Start, duration, stream, direction (see `busy_time.sweep`), bytes or -1.
        device_of : ndarray of int64
            Device of each stream.
        """
        start = launches.start
        t_start, t_duration, t_stream, t_kind, size = transfers
        rows = start.size + t_start.size
        if rows == 0:
            return
        pieces = self._pieces(rows, int(launches.duration.sum()) + int(t_duration.sum()))
        self._room(3 * start.size + t_start.size, pieces)
        values = [np.empty(3 * start.size, np.int64) for _ in range(3)]
        n = cells.launch_values(launches, *values)
        self._add(*(part[:n] for part in values))
        sized = np.flatnonzero(size >= 0)
        self._add(t_start[sized], (t_stream * cells.VALUES + cells.BYTES_IN + t_kind)[sized], size[sized])
        last = max(int(part[-1]) for part in (start, t_start) if part.size) - self.origin_ns
        of_launches = self._by_device(device_of, launches.stream)
        theirs = self._by_device(device_of, t_stream)
        of_transfers = busy_time.BUSY_TRANSFERS.of(start=t_start, duration=t_duration, kind=t_kind)
        for device, (own, t_rows) in enumerate(zip(of_launches, theirs, strict=True)):
            if own.size + t_rows.size:
                self._cover(device, last, (own, launches, t_rows, of_transfers))
        self._take()

    def _add(self, time: np.ndarray, series: np.ndarray, value: np.ndarray) -> None:
        """Add values of series, ascending in time; int64, shape (n,) each."""
        closed, buckets, counts, _ = self._out
        values = cells.SERIES_VALUES.of(time=time, series=series, value=value)
        grid = cells.CELL_GRID.of(
            origin=self.origin_ns, width=self.width, upper=self.buckets.upper, first=self.buckets.first
        )
        opened = cells.OPEN_CELLS.of(
            state=self.state, histogram=self.histogram, touched=self.touched, closed=closed, buckets=buckets,
            counts=counts, filled=self._filled,
        )  # fmt: skip
        cells.add(values, grid, opened)

    def _cover(self, device: int, now: int, events: BusyEvents) -> None:
        busy = busy_time.BUSY_CELLS.of(
            origin=self.origin_ns, width=self.width, until=self.until, opened=self.opened, pieces=self._out[3],
            filled=self._filled,
        )  # fmt: skip
        busy_time.sweep(device, now, *events, busy)

    def _by_device(self, device_of: np.ndarray, stream: np.ndarray) -> list[np.ndarray]:
        """Return the indices of each device's rows, in their order."""
        if len(self.until) == 1:
            return [np.arange(stream.size)]
        order = np.empty(stream.size, np.int64)
        begin = np.zeros(len(self.until) + 1, np.int64)
        merging.order_by_series(device_of[stream], begin, order)
        return np.split(order, begin[:-2])

    def _pieces(self, rows: int, lasting: int) -> int:
        """Return how many pieces of busy time some rows, which last so long in all (ns), may be cut into; widen the
        cells until they are not too many.

        Each of the four kinds that cover time covers at most what lasts, with what was still running, and cuts it at
        each full cell. Beyond that a row ends two cells at most, four pieces each, and leaves a piece of its own in the
        open cell and one in its last; a device has six such pieces from before, and ends three cells: two when it is
        brought to the last moment, one when it is closed.
        """
        running = int(
            np.maximum(self.until[:, 1:].max(axis=1) - self.until[:, 0], 0)[self.until[:, 0] > cells.LONG_AGO].sum()
        )
        while (pieces := ((COVERING + 1) * lasting + COVERING * running) // self.width) > MOST_PIECES:
            self.widen()
        return (2 * COVERING + 2) * rows + (busy_time.BUSY - COVERING + 3 * COVERING) * len(self.until) + pieces

    def gather(self, time: np.ndarray, series: np.ndarray, value: np.ndarray) -> None:
        """Add values of series, ascending in time; int64."""
        self._room(time.size, 0)
        self._add(time, series, value)
        self._take()

    def _room(self, values: int, pieces: int) -> None:
        """Make output arrays that `values` more values and `pieces` pieces surely fit into."""
        need = (values, values + int(self.state[:, cells.TOUCHED].sum()), pieces)
        if self._out[0].shape[0] < need[0] or self._out[1].size < need[1] or self._out[3].shape[0] < need[2]:
            self._out = _output(*need)
        self._filled[:] = 0

    def _take(self) -> None:
        """Keep what was closed; widen the cells if it becomes too much."""
        n, m, k = self._filled.tolist()
        closed, buckets, counts, pieces = self._out
        self._fresh.add(closed[:n, :9], closed[:n, 9], buckets[:m], counts[:m], pieces[:k])
        # what is fresh may still merge with what is there, so it is joined before it counts; but not for every little
        # of it
        if self._fresh.level(self.width).size() * WHOLE_OVER_FINEST > max(
            self.budget - self.level.size() * WHOLE_OVER_FINEST, self.budget / 8
        ):
            self._join()
            while self.level.size() * WHOLE_OVER_FINEST > self.budget:
                self.widen()

    def widen(self) -> None:
        """Make the cells four times as wide."""
        self.level = self._all().coarser()
        self._widened()

    def _widened(self) -> None:
        self.width *= STEP
        for held, number, end in ((self.state, cells.CELL, cells.END), (self.opened, 0, 1)):
            is_open = held[:, end] > cells.LONG_AGO
            held[is_open, number] //= STEP
            held[is_open, end] = (held[is_open, number] + 1) * self.width

    def _all(self) -> Level:
        """Return what was closed behind the level, and hold neither of them any more."""
        fresh = self._fresh
        held = self.level
        self._fresh = _GrowingRows()
        self.level = Level.empty(self.width)
        if not any(fresh.sizes[k] for k in (0, 4)):
            return held
        fresh.add(held.values, np.diff(held.offset), held.buckets, held.counts, held.busy)
        return fresh.level(self.width)

    def _join(self) -> None:
        """Merge what was closed into the level; if that is surely too much, with wider cells at once, which takes
        less memory.
        """
        rows = self._all()
        if least_size(rows) * WHOLE_OVER_FINEST > self.budget:
            self.level = rows.coarser()
            self._widened()
        else:
            self.level = merged(rows)
        large = rows.size() >= LARGE_LEVEL
        del rows
        if large:
            give_back()

    def finish(self) -> Level:
        """Close every open cell; return the finest level."""
        last = int(self.until.max(initial=0)) + 1
        self._room(len(self.state), self._pieces(0, 0))
        closed, buckets, counts, pieces = self._out
        for device in range(len(self.until)):
            if self.until[device, 0] > cells.LONG_AGO:
                self._cover(device, last, NO_ROWS)
                busy_time.close_busy(device, self.opened, pieces, self._filled)
        for series in np.flatnonzero(self.state[:, cells.COUNT]).tolist():
            cells.close(series, self.state, self.histogram, self.touched, closed, buckets, counts, self._filled)
        self._take()
        self._join()
        while self.level.size() * WHOLE_OVER_FINEST > self.budget and len(self.level.values) > len(self.state):
            self.widen()
        return self.level
