"""Levels on disk: one folder per level, with the tables of its statistics, sketches and busy times."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.logs import LOG
from causeway.core.tables import TableWriter
from causeway.levels.pyramid import busy_time
from causeway.levels.pyramid.level import Level

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
    found = {"start_ns": origin + keys // devices * level.width, "lane": keys % devices}
    return found | {name: amounts[:, k] for k, name in enumerate(busy_time.BUSY_NAMES)}


def _table(groups: Iterable[Mapping[str, np.ndarray]], folder: Path, name: str) -> None:
    with TableWriter(folder / f"{name.removeprefix('level_')}.parquet", name) as writer:
        for columns in groups:
            writer.write(pa.table(dict(columns)))
