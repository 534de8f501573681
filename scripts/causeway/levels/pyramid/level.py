"""One level: sums over cells of one width; coarser levels, and levels of several exports put together."""

from dataclasses import dataclass

import numpy as np

from causeway.levels.pyramid import busy_time, merging

STEP = 4
"""Each level's cells are this many times as wide as those of the level below."""
CELL_BYTES = 20
BUCKET_BYTES = 2.5
BUSY_BYTES = 28
"""Bytes on disk of a cell, of a bucket of a sketch and of a device's busy times, as measured; only for choosing the
finest level.
"""


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
        values = self.values.copy()
        busy = self.busy.copy()
        values[:, 1] //= STEP
        busy[:, 1] //= STEP
        return merged(Level(self.width * STEP, values, self.offset, self.buckets, self.counts, busy))


def _size(values: int, entries: int, busy: int) -> float:
    return CELL_BYTES * values + BUCKET_BYTES * entries + BUSY_BYTES / 3 * busy


def least_size(rows: Level) -> float:
    """Return the bytes that rows would take once merged, at least: what the sketches of equal cells share is not
    known before.
    """
    order = _order(rows.values)
    busy = _order(rows.busy)
    first = _firsts(rows.values, order)
    return _size(int(first.sum()), int(np.diff(rows.offset)[order][first].sum()), int(_firsts(rows.busy, busy).sum()))


def _firsts(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return for each index of an order whether series and cell differ from those before; bool."""
    first = np.ones(order.size, bool)
    first[1:] = np.diff(rows[order, :2], axis=0).any(axis=1)
    return first


def stacked(levels: list[Level]) -> Level:
    """Return the rows of levels of one width behind one another; `merged` makes a level of them."""
    ends = np.cumsum([0, *(level.offset[-1] for level in levels)])
    offsets = [level.offset[:-1] + end for level, end in zip(levels, ends, strict=False)]
    joined = {
        name: np.concatenate([getattr(level, name) for level in levels])
        for name in ("values", "buckets", "counts", "busy")
    }
    return Level(
        width=levels[0].width,
        values=joined["values"],
        offset=np.append(np.concatenate(offsets), ends[-1]),
        buckets=joined["buckets"],
        counts=joined["counts"],
        busy=joined["busy"],
    )


def merged(rows: Level) -> Level:
    """Return a level in which each (series, cell) occurs once, as the sum of its rows, which come in any order."""
    order = _order(rows.values)
    values = np.empty_like(rows.values)
    group = np.empty(len(order), np.int64)
    n = merging.merge_values(rows.values, order, values, group)
    offset = np.zeros(n + 1, np.int64)
    buckets = np.empty_like(rows.buckets)
    counts = np.empty_like(rows.counts)
    histogram = np.zeros(int(rows.buckets.max(initial=0)) + 1, np.uint32)
    m = merging.merge_sketches(order, group, rows.offset, rows.buckets, rows.counts, offset, buckets, counts, histogram)
    busy = np.empty_like(rows.busy)
    k = busy_time.merge_busy(rows.busy, _order(rows.busy), busy)
    for array, size in ((values, n), (buckets, m), (counts, m), (busy, k)):
        array.resize(
            (size, *array.shape[1:]), refcheck=False
        )  # gives back what was not needed; a copy would hold both for a while
    return Level(rows.width, values, offset, buckets, counts, busy)


def same_width(levels: list[Level], width: int = 0) -> list[Level]:
    """Return levels with cells as wide as the widest of them, and as `width`."""
    width = max((width, *(level.width for level in levels)))
    found = []
    for level in levels:
        while level.width < width:
            level = level.coarser()
        found.append(level)
    return found


def _order(rows: np.ndarray) -> np.ndarray:
    """Return the order of rows by series and cell, the first two columns."""
    series = np.ascontiguousarray(rows[:, 0])
    order = np.empty(series.size, np.int64)
    begin = np.zeros(int(series.max(initial=-1)) + 2, np.int64)
    merging.order_by_series(series, begin, order)
    cell = rows[order, 1]
    falls = (np.diff(cell) < 0) & (np.diff(series[order]) == 0)
    if falls.any():  # pieces of busy time may lie ahead of those that come later
        order = order[np.lexsort((cell, series[order]))]
    return order
