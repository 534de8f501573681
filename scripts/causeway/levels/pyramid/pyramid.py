"""A tower of levels: sums over cells of one width, and every coarser level as the sum of the finer one.

How fine the finest level can be shows only when all rows are seen. So sums begin with narrow cells, and whenever they would take more bytes
than the tower may have, four neighbouring cells become one: sums of integers lose nothing by it, and memory stays bounded.
"""

import ctypes
import sys
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.levels import cells
from causeway.levels.sketch import Buckets

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


TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Launches:
    """Launches of a chunk, and what is known of their configurations and transfers.

    Attributes
    ----------
    start, duration, lane : ndarray of int64
    configuration : ndarray of uint32
    kind, mean : ndarray of int64
        Class of each configuration (0 compute, 1 communication, 2 memory), and its mean in whole ns.
    linked, lasted : ndarray of int64
        Place of each launch's transfer, -1 without one, in the durations of transfers.
    """

    start: np.ndarray
    duration: np.ndarray
    lane: np.ndarray
    configuration: np.ndarray
    kind: np.ndarray
    mean: np.ndarray
    linked: np.ndarray
    lasted: np.ndarray


_NONE, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0, np.uint32)
NO_LAUNCHES = Launches(_NONE, _NONE, _NONE, _NO_NUMBERS, _NONE, _NONE, _NONE, _NONE)
NO_ROWS = (_NONE, _NONE, _NONE, _NO_NUMBERS, _NONE, _NONE, _NONE, _NONE, _NONE)
"""No launches and no transfers, as `cells.sweep` takes them."""
NO_TRANSFERS = (_NONE,) * 5


@dataclass
class Level:
    """The sums of one level, in the order of series and cells.

    Attributes
    ----------
    width : int
        Of a cell, in ns.
    values : ndarray of int64, shape (n, 9)
        Series, cell, count, sum, three limbs of the sum of squares, least, largest.
    offset : ndarray of int64, shape (n + 1,)
        Row k of `values` has the entries `offset[k]` up to `offset[k + 1]` of `buckets` and `counts`, its sketch.
    buckets, counts : ndarray of uint16 and uint32
        Ascending buckets of each row, and how many values each holds.
    busy : ndarray of int64, shape (k, 3)
        Series of busy time, cell, ns.
    """

    width: int
    values: np.ndarray
    offset: np.ndarray
    buckets: np.ndarray
    counts: np.ndarray
    busy: np.ndarray

    @classmethod
    def empty(cls, width: int) -> "Level":
        """Return a level without cells."""
        nothing = (np.empty(0, np.uint16), np.empty(0, np.uint32))
        return cls(width, np.empty((0, 9), np.int64), np.zeros(1, np.int64), *nothing, np.empty((0, 3), np.int64))

    def size(self) -> float:
        """Return the bytes that it would take on disk, roughly."""
        return _size(len(self.values), len(self.buckets), len(self.busy))

    def coarser(self) -> "Level":
        """Return the level above: the sums of each four neighbouring cells."""
        values, busy = self.values.copy(), self.busy.copy()
        values[:, 1] //= STEP
        busy[:, 1] //= STEP
        return merged(Level(self.width * STEP, values, self.offset, self.buckets, self.counts, busy))


def give_back() -> None:
    """Give free memory back to the system: Arrow and glibc keep what small arrays took, too scattered for the large ones that follow."""
    pa.default_memory_pool().release_unused()
    if TRIM:
        TRIM(0)


def _size(values: int, entries: int, busy: int) -> float:
    return CELL_BYTES * values + BUCKET_BYTES * entries + BUSY_BYTES / 3 * busy


def least_size(rows: Level) -> float:
    """Return the bytes that rows would take once merged, at least: what the sketches of equal cells share is not known before."""
    order, busy = _order(rows.values), _order(rows.busy)
    first = _firsts(rows.values, order)
    return _size(int(first.sum()), int(np.diff(rows.offset)[order][first].sum()), int(_firsts(rows.busy, busy).sum()))


def _firsts(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return for each place of an order whether series and cell differ from those before; bool."""
    first = np.ones(order.size, bool)
    first[1:] = np.diff(rows[order, :2], axis=0).any(axis=1)
    return first


def stacked(levels: list[Level]) -> Level:
    """Return the rows of levels of one width behind one another; `merged` makes a level of them."""
    ends = np.cumsum([0, *(level.offset[-1] for level in levels)])
    offsets = [level.offset[:-1] + end for level, end in zip(levels, ends, strict=False)]
    joined = {name: np.concatenate([getattr(level, name) for level in levels]) for name in ("values", "buckets", "counts", "busy")}
    return Level(levels[0].width, joined["values"], np.append(np.concatenate(offsets), ends[-1]), joined["buckets"], joined["counts"],
                 joined["busy"])  # fmt: skip


def merged(rows: Level) -> Level:
    """Return a level in which each (series, cell) stands once, as the sum of all that was given of it, in any order."""
    order = _order(rows.values)
    values, group = np.empty_like(rows.values), np.empty(len(order), np.int64)
    n = cells.merge_values(rows.values, order, values, group)
    offset = np.zeros(n + 1, np.int64)
    buckets, counts = np.empty_like(rows.buckets), np.empty_like(rows.counts)
    histogram = np.zeros(int(rows.buckets.max(initial=0)) + 1, np.uint32)
    m = cells.merge_sketches(order, group, rows.offset, rows.buckets, rows.counts, offset, buckets, counts, histogram)
    busy = np.empty_like(rows.busy)
    k = cells.merge_busy(rows.busy, _order(rows.busy), busy)
    for array, size in ((values, n), (buckets, m), (counts, m), (busy, k)):
        array.resize((size, *array.shape[1:]), refcheck=False)  # gives back what was not needed; a copy would hold both for a while
    return Level(rows.width, values, offset, buckets, counts, busy)


def _order(rows: np.ndarray) -> np.ndarray:
    """Return the order of rows by series and cell, the first two columns."""
    series = np.ascontiguousarray(rows[:, 0])
    order = np.empty(series.size, np.int64)
    begin = np.zeros(int(series.max(initial=-1)) + 2, np.int64)
    cells.order_by_series(series, begin, order)
    cell = rows[order, 1]
    falls = (np.diff(cell) < 0) & (np.diff(series[order]) == 0)
    if falls.any():  # pieces of busy time may lie ahead of those that come later
        order = order[np.lexsort((cell, series[order]))]
    return order


class _Pile:
    """Rows of a level as they come, in arrays that grow in place: many small ones would leave memory that nothing else fits into."""

    def __init__(self) -> None:
        empty = Level.empty(0)
        self._held = [empty.values, empty.offset, empty.buckets, empty.counts, empty.busy]
        self.sizes = [0, 1, 0, 0, 0]

    def add(self, values: np.ndarray, entries: np.ndarray, buckets: np.ndarray, counts: np.ndarray, busy: np.ndarray) -> None:
        """Add rows: `entries` says how many buckets each row of `values` has; the others are as in `Level`."""
        offset = np.cumsum(entries) + self.sizes[2]
        for place, more in enumerate((values, offset, buckets, counts, busy)):
            array, size = self._held[place], self.sizes[place] + len(more)
            if size > len(array):
                array.resize((size + size // 16, *array.shape[1:]), refcheck=False)
            array[self.sizes[place] : size] = more
            self.sizes[place] = size

    def level(self, width: int) -> Level:
        """Return the rows, in the order in which they came."""
        return Level(width, *(array[:size] for array, size in zip(self._held, self.sizes, strict=True)))


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
        self.opened = np.zeros((0, 2 + cells.BUSY), np.int64)
        self.until = np.zeros((0, 4), np.int64)
        self.level = Level.empty(width)
        self._fresh = _Pile()
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
        opened = np.full((more, 2 + cells.BUSY), cells.LONG_AGO, np.int64)
        opened[:, 2:] = 0
        self.opened = np.vstack((self.opened, opened))
        self.until = np.vstack((self.until, np.full((more, 4), cells.LONG_AGO, np.int64)))

    def sweep(self, launches: Launches, transfers: tuple[np.ndarray, ...], device_of: np.ndarray) -> None:
        """Add launches and transfers, all of which begin after those of earlier calls.

        Parameters
        ----------
        launches : Launches
        transfers : tuple of ndarray of int64
            Start, duration, lane, direction (see `cells.sweep`), bytes or -1.
        device_of : ndarray of int64
            Device of each lane.
        """
        start, duration = launches.start, launches.duration
        t_start, t_duration, t_lane, t_kind, size = transfers
        if start.size + t_start.size == 0:
            return
        self._room(3 * start.size + t_start.size, self._pieces_of((start, duration), (t_start, t_duration)))
        of_launches = (launches.configuration, launches.kind, launches.mean, launches.linked, launches.lasted)
        values = [np.empty(3 * start.size, np.int64) for _ in range(3)]
        n = cells.launch_values(start, duration, launches.lane, *of_launches, *values)
        cells.add(*(part[:n] for part in values), *self._open())
        known = np.flatnonzero(size >= 0)
        cells.add(t_start[known], (t_lane * cells.VALUES + cells.BYTES_IN + t_kind)[known], size[known], *self._open())
        last = max(int(part[-1]) for part in (start, t_start) if part.size) - self.origin_ns
        mine, theirs = self._by_device(device_of, launches.lane), self._by_device(device_of, t_lane)
        for device, (places, t_places) in enumerate(zip(mine, theirs, strict=True)):
            if places.size + t_places.size:
                busy = (places, start, duration, launches.configuration, launches.kind, t_places, t_start, t_duration, t_kind)
                self._cover(device, last, busy)
        self._take()

    def _open(self) -> tuple:
        """Return what the sums of values work on: see `cells.add`."""
        closed, buckets, counts, _ = self._out
        held = (self.state, self.histogram, self.touched, closed, buckets, counts, self._filled)
        return (self.origin_ns, self.width, *held, self.buckets.upper, self.buckets.first)

    def _cover(self, device: int, now: int, busy: tuple[np.ndarray, ...]) -> None:
        cells.sweep(device, now, *busy, self.origin_ns, self.width, self.until, self.opened, self._out[3], self._filled)

    def _by_device(self, device_of: np.ndarray, lane: np.ndarray) -> list[np.ndarray]:
        """Return the places of each device's rows, in their order."""
        if len(self.until) == 1:
            return [np.arange(lane.size)]
        order, begin = np.empty(lane.size, np.int64), np.zeros(len(self.until) + 1, np.int64)
        cells.order_by_series(device_of[lane], begin, order)
        return np.split(order, begin[:-2])

    def _pieces_of(self, *parts: tuple[np.ndarray, np.ndarray]) -> int:
        """Return how many pieces of busy time some (start, duration) may be cut into; widen the cells until they are not too many.

        Each kind of busy time covers at most what lasts, with what was still running; and each row may end a cell.
        """
        rows, lasting = sum(start.size for start, _ in parts), sum(int(duration.sum()) for _, duration in parts)
        return self._pieces(rows, lasting)

    def _pieces(self, rows: int, lasting: int) -> int:
        running = int(np.maximum(self.until[:, 1:].max(axis=1) - self.until[:, 0], 0)[self.until[:, 0] > cells.LONG_AGO].sum())
        while (pieces := (5 * lasting + 4 * running) // self.width) > MOST_PIECES:
            self.widen()
        return 12 * (rows + len(self.until)) + pieces

    def gather(self, time: np.ndarray, series: np.ndarray, value: np.ndarray) -> None:
        """Add values of series, ascending in time; int64."""
        self._room(time.size, 0)
        cells.add(time, series, value, *self._open())
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
        self._fresh.add(closed[:n, :9], closed[:n, 9], buckets[:m], counts[:m], pieces[:k])
        # what is fresh may still merge with what is there, so it is joined before it counts; but not for every little of it
        if self._fresh.level(self.width).size() * TOWER > max(self.budget - self.level.size() * TOWER, self.budget / 8):
            self._join()
            while self.level.size() * TOWER > self.budget:
                self.widen()

    def widen(self) -> None:
        """Make the cells four times as wide."""
        self.level = self._all().coarser()
        self._widened()

    def _widened(self) -> None:
        self.width *= STEP
        for held, number, end in ((self.state, cells.CELL, cells.END), (self.opened, 0, 1)):
            known = held[:, end] > cells.LONG_AGO
            held[known, number] //= STEP
            held[known, end] = (held[known, number] + 1) * self.width

    def _all(self) -> Level:
        """Return what was closed behind the level, and hold neither of them any more."""
        fresh, held, self._fresh, self.level = self._fresh, self.level, _Pile(), Level.empty(self.width)
        if not any(fresh.sizes[k] for k in (0, 4)):
            return held
        fresh.add(held.values, np.diff(held.offset), held.buckets, held.counts, held.busy)
        return fresh.level(self.width)

    def _join(self) -> None:
        """Merge what was closed into the level; if that is surely too much, with wider cells at once, which takes less memory."""
        rows = self._all()
        if least_size(rows) * TOWER > self.budget:
            self.level = rows.coarser()
            self._widened()
        else:
            self.level = merged(rows)
        del rows
        give_back()

    def finish(self) -> Level:
        """Close every open cell; return the finest level."""
        last = int(self.until.max(initial=0)) + 1
        self._room(len(self.state), self._pieces(0, 0))
        closed, buckets, counts, pieces = self._out
        for device in range(len(self.until)):
            if self.until[device, 0] > cells.LONG_AGO:
                self._cover(device, last, NO_ROWS)
                cells.close_busy(device, self.opened, pieces, self._filled)
        for series in np.flatnonzero(self.state[:, cells.COUNT]).tolist():
            cells.close(series, self.state, self.histogram, self.touched, closed, buckets, counts, self._filled)
        self._take()
        self._join()
        while self.level.size() * TOWER > self.budget and len(self.level.values) > len(self.state):
            self.widen()
        return self.level
