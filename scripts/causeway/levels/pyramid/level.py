"""One level: sums over cells of one width; coarser levels, and levels of several exports put together.

Levels on disk: one folder per level, with the tables of its statistics, sketches and busy times.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.logs import LOG
from causeway.core.tables import TableWriter
from causeway.levels.pyramid import busy_time, merging
from causeway.numeric.mpi import Ranks

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
    """Return the rows of levels of one width behind one another; `merged` makes a level of them.

    The levels are emptied, column by column: they and the result would take twice the memory.
    """
    stack = Level.empty(levels[0].width)
    ends = np.cumsum([0, *(level.offset[-1] for level in levels)])
    offsets = [level.offset[:-1] + end for level, end in zip(levels, ends, strict=False)]
    stack.offset = np.append(np.concatenate(offsets), ends[-1])
    for name in ("values", "buckets", "counts", "busy"):
        setattr(stack, name, np.concatenate([getattr(level, name) for level in levels]))
        for level in levels:
            setattr(level, name, getattr(level, name)[:0].copy())
    return stack


def merged_if_needed(rows: Level) -> Level:
    """Return rows as they are if each (series, cell) occurs once, else `merged`, which takes as much memory again."""
    once = all(_firsts(part, _order(part)).all() for part in (rows.values, rows.busy))
    return rows if once else merged(rows)


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
    sketches = merging.SKETCHES.of(offset=rows.offset, buckets=rows.buckets, counts=rows.counts)
    m = merging.merge_sketches(order, group, sketches, offset, buckets, counts, histogram)
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
    widened = []
    for level in levels:
        while level.width < width:
            level = level.coarser()
        widened.append(level)
    return widened


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


def lanes_of(series: Mapping[str, list[dict]], nodes: Mapping[str, str]) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Return the streams and devices of all exports by rank, device and stream, and for each export the numbers
    (int64) of its own among them.
    """
    lanes = [
        {"export": export, "node": nodes.get(export) or None, **lane} for export, own in series.items() for lane in own
    ]
    order = sorted(
        range(len(lanes)),
        key=lambda k: (lanes[k]["rank"], lanes[k]["device"], -1 if (s := lanes[k]["stream"]) is None else s),
    )
    number = np.empty(len(lanes), np.int64)
    number[order] = np.arange(len(lanes))
    ends = np.cumsum([len(own) for own in series.values()])[:-1]
    of_export = dict(zip(series, np.split(number, ends), strict=True)) if series else {}
    return [{"lane": index, **lanes[k]} for index, k in enumerate(order)], of_export


def rows_of_all(parts: dict[str, Level], number: Mapping[str, np.ndarray], metrics: int, ranks: Ranks) -> Level | None:
    """Bring the sums of all exports to rank 0, their streams and devices renumbered.

    Parameters
    ----------
    parts : dict of str to Level
        Sums of the exports of this rank; emptied, as they and the result would take twice the memory.
    number : mapping of str to ndarray of int64
        For each export, the numbers of its streams and devices among all (`lanes_of`).
    metrics : int
        How many metrics there are.
    ranks : Ranks

    Returns
    -------
    Level or None
        On rank 0, cells as wide as the widest, rows in no certain order (`merged` makes a level of them); None
        elsewhere, and where there is no export.
    """
    width = int(ranks.highest(np.array([max((level.width for level in parts.values()), default=0)]))[0])
    if not width:
        return None
    with ranks.together():
        exports = list(parts)
        levels = same_width([parts.pop(export) for export in exports], width)
        for k, export in enumerate(exports):
            _renumber(levels[k], number[export], metrics)
        rows = stacked(levels) if levels else Level.empty(width)
        del levels
    return _of_all_ranks(rows, ranks)


def _renumber(level: Level, number: np.ndarray, metrics: int) -> None:
    """Give the streams and devices of an export's sums their numbers among those of all exports."""
    lane, metric = np.divmod(level.values[:, 0], metrics)
    level.values[:, 0] = number[lane] * metrics + metric
    device, what = np.divmod(level.busy[:, 0], busy_time.BUSY)
    level.busy[:, 0] = number[device] * busy_time.BUSY + what


def _of_all_ranks(rows: Level, ranks: Ranks) -> Level | None:
    """Return the rows of all ranks behind one another on rank 0; None elsewhere."""
    if ranks.size == 1:
        return rows
    gathered = Level.empty(rows.width)
    entries = ranks.stack(np.diff(rows.offset))
    for name in ("values", "buckets", "counts", "busy"):
        setattr(gathered, name, ranks.stack(getattr(rows, name)))
        setattr(rows, name, None)  # is no longer needed, and may be large
    if entries is None:
        return None
    gathered.offset = np.concatenate(([0], np.cumsum(entries)))
    return gathered


GROUP_ROWS = 1 << 14
"""Rows per row group of a level, so that a window reads few of them."""


def write_levels(level: Level, out: Path, origin: int, metrics: int, budget: float, span: int) -> list[dict]:
    """Write all levels; leave out the finest ones if the pyramid takes more than its budget after all. Return
    their entries, finest first.
    """
    entries = []
    while True:
        entries.append(_write_level(level, out, origin, metrics))
        if level.width >= span:
            break
        level = level.coarser()
    while len(entries) > 1 and sum(entry["bytes"] for entry in entries) > budget:
        dropped = entries.pop(0)
        LOG.info("level %s takes too much and is left out", dropped["folder"])
        shutil.rmtree(out / dropped["folder"])
    return entries


def _write_level(level: Level, out: Path, origin: int, metrics: int) -> dict:
    folder = f"{level.width // 1000}us"
    order = np.lexsort((level.values[:, 0], level.values[:, 1]))
    _table(level_rows(level, order, origin, metrics), out / folder, "level_statistics")
    _table(level_buckets(level, order, origin, metrics), out / folder, "level_sketches")
    _table(in_groups(_busy_columns(level, origin)), out / folder, "level_busy")
    files = {file.name: file.stat().st_size for file in sorted((out / folder).iterdir())}
    return {"folder": folder, "width_ns": level.width, "cells": len(order), "bytes": sum(files.values())}


def _keys(level: Level, rows: np.ndarray, origin: int, metrics: int) -> dict[str, np.ndarray]:
    series = level.values[rows, 0]
    cell = level.values[rows, 1]
    return {"start_ns": origin + cell * level.width, "lane": series // metrics, "metric": series % metrics}


def level_rows(level: Level, order: np.ndarray, origin: int, metrics: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the statistics of cells, in a given order, row group by row group."""
    names = ("count", "sum", "squares_0", "squares_1", "squares_2", "min", "max")
    for begin in range(0, len(order), GROUP_ROWS):
        rows = order[begin : begin + GROUP_ROWS]
        yield _keys(level, rows, origin, metrics) | {name: level.values[rows, 2 + k] for k, name in enumerate(names)}


def level_buckets(level: Level, order: np.ndarray, origin: int, metrics: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the buckets of cells, in a given order, in row groups of whole cells."""
    entries = np.diff(level.offset)[order]
    ends = np.cumsum(entries)
    begin = 0
    while begin < len(order):
        stop = max(begin + 1, int(np.searchsorted(ends, ends[begin] - entries[begin] + GROUP_ROWS, side="right")))
        rows = np.repeat(order[begin:stop], entries[begin:stop])
        # the k-th entry of a cell is k after its first
        before = ends[begin:stop] - entries[begin:stop] - ends[begin] + entries[begin]
        index = level.offset[rows] + np.arange(rows.size) - np.repeat(before, entries[begin:stop])
        yield _keys(level, rows, origin, metrics) | {"bucket": level.buckets[index], "count": level.counts[index]}
        begin = stop


def in_groups(columns: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the rows of columns row group by row group."""
    for begin in range(0, len(next(iter(columns.values()))), GROUP_ROWS):
        yield {name: column[begin : begin + GROUP_ROWS] for name, column in columns.items()}


def _busy_columns(level: Level, origin: int) -> dict[str, np.ndarray]:
    """Return one row per (cell, device) with a column per kind of busy time."""
    device = level.busy[:, 0] // busy_time.BUSY
    what = level.busy[:, 0] % busy_time.BUSY
    devices = int(device.max(initial=0)) + 1
    keys, row = np.unique(level.busy[:, 1] * devices + device, return_inverse=True)
    amounts = np.zeros((len(keys), busy_time.BUSY), np.int64)
    amounts[row, what] = level.busy[:, 2]
    columns = {"start_ns": origin + keys // devices * level.width, "lane": keys % devices}
    return columns | {name: amounts[:, k] for k, name in enumerate(busy_time.BUSY_NAMES)}


def _table(groups: Iterable[Mapping[str, np.ndarray]], folder: Path, name: str) -> None:
    with TableWriter(folder / f"{name.removeprefix('level_')}.parquet", name) as writer:
        for columns in groups:
            writer.write(pa.table(dict(columns)))
