"""A tower of levels: sums over cells of one width, and every coarser level as the sum of the finer one.

How fine the finest level can be shows only when all rows are seen. So sums begin with narrow cells, and whenever they would take more bytes
than the tower may have, four neighbouring cells become one: sums of integers lose nothing by it, and memory stays bounded.
"""

from dataclasses import dataclass

import numpy as np

from causeway.levels import cells
from causeway.levels.sketch import Buckets
from causeway.logs import LOG

FINEST_NS = 10_000
"""Width of the cells of the finest level that there may be."""
STEP = 4
"""Each level's cells are this many times as wide as those of the level below."""
MOST_PIECES = 1 << 22
"""Pieces of busy time that one chunk of rows may be cut into."""
CELL_BYTES, BUCKET_BYTES, BUSY_BYTES = 20, 2.5, 28
"""Bytes on disk of a cell, of a bucket of a sketch and of a device's busy times, as measured; only for choosing the finest level."""
TOWER = 1.5
"""What the tower takes beside its finest level, which has at least as many cells as three quarters of all; sketches shrink more slowly."""


@dataclass
class Level:
    """The sums of one level, in the order of cells and series.

    Attributes
    ----------
    width : int
        Of a cell, in ns.
    values : ndarray of int64, shape (n, 9)
        Series, cell, count, sum, three limbs of the sum of squares, least, largest.
    sketch : ndarray of int64, shape (m, 3)
        Place in `values`, bucket, count.
    busy : ndarray of int64, shape (k, 3)
        Series of busy time, cell, ns.
    """

    width: int
    values: np.ndarray
    sketch: np.ndarray
    busy: np.ndarray

    def size(self) -> float:
        """Return the bytes that it would take on disk, roughly."""
        return CELL_BYTES * len(self.values) + BUCKET_BYTES * len(self.sketch) + BUSY_BYTES / 3 * len(self.busy)

    def coarser(self) -> "Level":
        """Return the level above: the sums of each four neighbouring cells."""
        values, busy = self.values.copy(), self.busy.copy()
        values[:, 1] //= STEP
        busy[:, 1] //= STEP
        return merged(self.width * STEP, values, self.sketch, busy)


def merged(width: int, values: np.ndarray, sketch: np.ndarray, busy: np.ndarray) -> Level:
    """Return a level in which each (series, cell) stands once, as the sum of all that were given of it; see `Level` for the shapes."""
    order = np.lexsort((values[:, 1], values[:, 0]))
    ordered = values[order]
    first = _firsts(ordered[:, :2])
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(first) - 1
    begin = np.flatnonzero(first)
    summed = np.empty((begin.size, 9), np.int64)
    if begin.size:
        summed[:, :2] = ordered[begin, :2]
        summed[:, 2:7] = np.add.reduceat(ordered[:, 2:7], begin, axis=0)
        summed[:, 5] += summed[:, 4] >> 32
        summed[:, 6] += summed[:, 5] >> 32
        summed[:, 4:6] &= cells.LIMB
        summed[:, 7] = np.minimum.reduceat(ordered[:, 7], begin)
        summed[:, 8] = np.maximum.reduceat(ordered[:, 8], begin)
    sketch = np.column_stack((group[sketch[:, 0]], sketch[:, 1:]))
    return Level(width, summed, _summed(sketch), _summed(busy))


def _firsts(keys: np.ndarray) -> np.ndarray:
    """Return where rows of ordered keys differ from the row before."""
    first = np.ones(len(keys), bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return first


def _summed(rows: np.ndarray) -> np.ndarray:
    """Sum the last of three columns over equal pairs of the first two; in their order."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    begin = np.flatnonzero(_firsts(rows[:, :2]))
    if not begin.size:
        return rows
    return np.column_stack((rows[begin, :2], np.add.reduceat(rows[:, 2], begin)))


class Sums:
    """The sums of one export while its rows are read.

    Parameters
    ----------
    buckets : Buckets
        Of the sketches.
    origin_ns : int
        The dataset's first launch on the export's own clock: cell 0 begins there.
    budget : float
        Bytes that the whole tower of this export may take.
    width : int
        Of the cells to begin with, `FINEST_NS` times a power of four.
    """

    def __init__(self, buckets: Buckets, origin_ns: int, budget: float, width: int = FINEST_NS) -> None:
        self.buckets, self.origin_ns, self.budget, self.width = buckets, origin_ns, budget, width
        self.state = np.zeros((0, cells.STATE), np.int64)
        self.histogram = np.zeros((0, len(buckets)), np.uint32)
        self.touched = np.zeros((0, len(buckets)), np.uint16)
        self.opened = np.zeros((0, 3), np.int64)
        self.until = np.zeros((0, 4), np.int64)
        self.level = Level(width, np.empty((0, 9), np.int64), np.empty((0, 3), np.int64), np.empty((0, 3), np.int64))
        self._closed: list[tuple[np.ndarray, np.ndarray]] = []
        self._pieces: list[np.ndarray] = []
        self._fresh = 0.0
        self._out: tuple[np.ndarray, ...] | None = None
        self._filled = np.zeros(3, np.int64)

    def grow(self, series: int, devices: int) -> None:
        """Make room for series of values and for devices."""
        more = max(0, series - len(self.state))
        state = np.zeros((more, cells.STATE), np.int64)
        state[:, cells.END], state[:, cells.LOW], state[:, cells.HIGH] = cells.LONG_AGO, cells.EMPTY_LOW, -cells.EMPTY_LOW
        self.state = np.vstack((self.state, state))
        self.histogram = np.vstack((self.histogram, np.zeros((more, len(self.buckets)), np.uint32)))
        self.touched = np.vstack((self.touched, np.zeros((more, len(self.buckets)), np.uint16)))
        more = max(0, devices - len(self.until))
        opened = np.full((more * cells.BUSY, 3), cells.LONG_AGO, np.int64)
        opened[:, 2] = 0
        self.opened = np.vstack((self.opened, opened))
        self.until = np.vstack((self.until, np.full((more, 4), cells.LONG_AGO, np.int64)))

    def sweep(self, launches: tuple[np.ndarray, ...], transfers: tuple[np.ndarray, ...], device_of: np.ndarray) -> None:
        """Add launches and transfers, all of which begin after those of earlier calls; see `cells.sweep`."""
        rows = launches[0].size + transfers[0].size
        if rows == 0:
            return
        ends = [int((part[0] + part[1]).max()) for part in (launches, transfers) if part[0].size]
        span = max(ends) - min(int(part[0][0]) for part in (launches, transfers) if part[0].size)
        lasting = int(launches[1].sum()) + int(transfers[1].sum())
        known = self.until[:, 0][self.until[:, 0] > cells.LONG_AGO]
        span += max(0, max(ends) - self.origin_ns - int(known.min())) if known.size else 0
        while (pieces := 10 * rows + 2 * (lasting + 4 * len(self.until) * span) // self.width) > 10 * rows + MOST_PIECES:
            self.widen()
        self._room(3 * rows, int(pieces))
        cells.sweep(*launches, *transfers, device_of, self.origin_ns, self.width, self.state, self.histogram, self.touched, self.until,
                    self.opened, *self._out, self._filled, self.buckets.upper, self.buckets.first)  # fmt: skip
        self._take()

    def gather(self, time: np.ndarray, series: np.ndarray, value: np.ndarray) -> None:
        """Add values of series, ascending in time."""
        self._room(time.size, 0)
        closed, buckets, counts, _ = self._out
        cells.gather(time, series, value, self.origin_ns, self.width, self.state, self.histogram, self.touched, closed, buckets, counts,
                     self._filled, self.buckets.upper, self.buckets.first)  # fmt: skip
        self._take()

    def _room(self, values: int, pieces: int) -> None:
        """Make output arrays that `values` more values and `pieces` pieces surely fit into."""
        need = (values, values + int(self.state[:, cells.TOUCHED].sum()), pieces)
        if self._out is None or self._out[0].shape[0] < need[0] or self._out[1].size < need[1] or self._out[3].shape[0] < need[2]:
            self._out = (
                np.empty((need[0], cells.CLOSED), np.int64),
                np.empty(need[1], np.uint16),
                np.empty(need[1], np.uint32),
                np.empty((need[2], 3), np.int64),
            )
        self._filled[:] = 0

    def _take(self) -> None:
        """Keep what was closed; widen the cells if it becomes too much."""
        n, m, k = self._filled.tolist()
        closed, buckets, counts, pieces = self._out
        if n:
            self._closed.append((closed[:n].copy(), np.column_stack((buckets[:m].astype(np.int64), counts[:m].astype(np.int64)))))
        if k:
            self._pieces.append(pieces[:k].copy())
        self._fresh += CELL_BYTES * n + BUCKET_BYTES * m + BUSY_BYTES / 3 * k
        # what is fresh may still merge with what is there, so it is joined before it counts
        if self._fresh * TOWER > self.budget / 4:
            self._join()
            while self.level.size() * TOWER > self.budget:
                self.widen()

    def widen(self) -> None:
        """Make the cells four times as wide."""
        self._join()
        self.level = self.level.coarser()
        self.width *= STEP
        for held, number, end in ((self.state, cells.CELL, cells.END), (self.opened, 0, 1)):
            known = held[:, end] > cells.LONG_AGO
            held[known, number] //= STEP
            held[known, end] = (held[known, number] + 1) * self.width

    def _join(self) -> None:
        """Merge what was closed into the level."""
        values, sketch, offset = [self.level.values], [self.level.sketch], len(self.level.values)
        for closed, buckets in self._closed:
            values.append(closed[:, :9])
            places = np.repeat(np.arange(len(closed)), closed[:, 9]) + offset
            sketch.append(np.column_stack((places, buckets)))
            offset += len(closed)
        if self._closed or self._pieces:
            self.level = merged(self.width, np.vstack(values), np.vstack(sketch), np.vstack([self.level.busy, *self._pieces]))
        self._closed, self._pieces, self._fresh = [], [], 0.0

    def finish(self) -> Level:
        """Close every open cell; return the finest level."""
        last = int(self.until.max(initial=0)) + 1
        span = last - int(self.until[:, 0].min(initial=last))
        while 4 * len(self.until) * span // self.width > MOST_PIECES:
            self.widen()
        self._room(len(self.state), int(4 * len(self.until) * (span // self.width + 3) + len(self.opened)))
        closed, buckets, counts, pieces = self._out
        for device in range(len(self.until)):
            cells.advance(device, last, self.width, self.until, self.opened, pieces, self._filled)
        for series in np.flatnonzero(self.opened[:, 2]).tolist():
            pieces[self._filled[2]] = (series, self.opened[series, 0], self.opened[series, 2])
            self._filled[2] += 1
        for series in np.flatnonzero(self.state[:, cells.COUNT]).tolist():
            cells.close(series, self.state, self.histogram, self.touched, closed, buckets, counts, self._filled)
        self._take()
        self._join()
        while self.level.size() * TOWER > self.budget and len(self.level.values) > len(self.state):
            self.widen()
        LOG.info(
            "finest level: cells of %.0f us, %d of them, %d of busy time", self.width / 1e3, len(self.level.values), len(self.level.busy)
        )
        return self.level
