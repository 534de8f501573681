"""Build the tower of a dataset: one pass for the means of configurations, one for the sums, and each coarser level from the finer one."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.errors import CausewayError
from causeway.levels import cells
from causeway.levels.beside import Link, Transfers
from causeway.levels.custom import Metric, expressions, measure
from causeway.levels.sketch import Buckets
from causeway.levels.stream import Lanes, Means, chunks, launches_in, span_of, stretches
from causeway.levels.tower import FINEST_NS, NO_LAUNCHES, NO_TRANSFERS, STEP, TOWER, Launches, Level, Sums, give_back, merged, stacked
from causeway.logs import LOG, Progress
from causeway.tables import TableWriter, write_json

SAMPLE_SCALE = 1024
"""Sampled metrics are summed as whole multiples of 1/1024: exact for whole numbers and percent in steps of 1/8, at most 1/2048 off else."""
LEAST_BYTES = 16 << 20
"""A tower may always take this much: for small datasets the finest level is the finest there is."""
CELL_COST = 500
"""Bytes that a launch takes at most in the finest tower there may be; only for choosing where to begin."""
SPARE = 3
"""How many times too large a tower may seem at first: how large it gets shows only when all rows are seen."""
GROUP_ROWS = 1 << 14
"""Rows per row group of a level, so that a window reads few of them."""
COLUMNS = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"]


def build(
    folders: Mapping[str, Path],
    clocks: Mapping,
    out: Path,
    *,
    nodes: Mapping[str, str],
    error: float,
    share: float,
    link_window_ns: int,
    link: Link | None = None,
    metrics: Sequence[dict] = (),
) -> dict:
    """Write the levels of a dataset.

    Parameters
    ----------
    folders : mapping of str to Path
        Folder of tables of each export.
    clocks : mapping
        `clocks.json`.
    out : Path
        Folder of the levels; it is replaced.
    nodes : mapping of str to str
        Machine of each export, '' if unknown.
    error : float
        Relative error of quantiles.
    share : float
        Most bytes that the tower may take, as a share of those of the launches, transfers and samples.
    link_window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    link : callable, optional
        Finds the transfer of each launch; without it there are no memory stalls.
    metrics : sequence of dict
        Metrics of the analyst's own: `name`, `table`, `value`, `where` and `inside` (`causeway.levels.custom`).

    Returns
    -------
    dict
        As `config/schemas/levels.schema.json` describes it; also in `index.json`.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    traced = {export: folder for export, folder in folders.items() if launches_in(folder) and export in clocks["exports"]}
    buckets, own = Buckets(error), expressions(metrics)
    if not traced:
        document = _index(0, 0, [], [], [], buckets, 0, 0)
        write_json(document, out / "index.json", schema="levels")
        return document
    shifts = {export: clocks["exports"][export]["shift_ns"] for export in traced}
    first = {export: _first(folder) + shifts[export] for export, folder in traced.items()}
    origin = min(first.values())
    means = Means(traced)
    facts = {export: _bytes(folder) for export, folder in traced.items()}
    budget = max(share * sum(facts.values()), LEAST_BYTES)
    sampled = _sampled(traced)
    for metric in own:
        if metric.name in (*cells.VALUE_NAMES, *sampled):
            raise CausewayError(f"levels: metrics: {metric.name}: there is a metric of that name; give yours another")
    lanes: list[dict] = []
    parts = []
    for export, folder in traced.items():
        part = budget * facts[export] / sum(facts.values())
        level, found = _sums(export, folder, origin - shifts[export], means, buckets, part, sampled, link, link_window_ns, own)
        parts.append((level, found, len(lanes)))
        lanes += [{"export": export, "node": nodes.get(export) or None, **lane} for lane in found]
    order = sorted(range(len(lanes)), key=lambda k: (lanes[k]["rank"], lanes[k]["device"], -1 if (s := lanes[k]["stream"]) is None else s))
    number = np.empty(len(lanes), np.int64)
    number[order] = np.arange(len(lanes))
    lanes = [{"lane": place, **lanes[k]} for place, k in enumerate(order)]
    names = [*cells.VALUE_NAMES, *sampled, *(metric.name for metric in own)]
    level = _joined(parts, number, len(names))
    span = _span(level)
    levels = _write(level, out, origin, len(names), budget, span)
    document = _index(origin, span, lanes, levels, names, buckets, sum(facts.values()), sum(entry["bytes"] for entry in levels))
    write_json(document, out / "index.json", schema="levels")
    return document


def _first(folder: Path) -> int:
    return next(chunks(folder / "launches.parquet", "launches", ["start_ns"])).column("start_ns")[0].as_py()


def _bytes(folder: Path) -> int:
    files = [folder / f"{name}.parquet" for name in ("launches", "transfers", "samples")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _sampled(folders: Mapping[str, Path]) -> list[str]:
    """Return the names of the sampled metrics of all exports, in order."""
    names: set[str] = set()
    for folder in folders.values():
        path = folder / "samples.parquet"
        if path.is_file():
            for batch in chunks(path, "samples", ["metric"]):
                names |= set(batch.column("metric").unique().to_pylist())
    return sorted(names)


def _sums(
    export: str,
    folder: Path,
    origin: int,
    means: Means,
    buckets: Buckets,
    budget: float,
    metrics: list[str],
    link: Link | None,
    window: int,
    own: list[Metric],
) -> tuple[Level, list[dict]]:
    """Return the finest level of one export, its series numbered lane by lane, and its lanes: streams first, then devices."""
    width = _initial_width(folder, origin, means, export, buckets, budget)
    give_back()
    lanes, sums = Lanes(), Sums(buckets, origin, budget, width)
    transfers = Transfers(folder / "transfers.parquet", lanes, window)
    mean, kind = means.mean[export], means.kind[export]
    progress, done = Progress(f"{export}: levels", launches_in(folder), "launches"), 0
    for batch in chunks(folder / "launches.parquet", "launches", COLUMNS):
        start, duration = batch.column("start_ns").to_numpy(), batch.column("duration_ns").to_numpy()
        if duration.min() < 0:
            raise CausewayError(f"{folder}/launches.parquet: row {done + int(duration.argmin())} has a negative duration")
        lane, configuration = lanes.of(batch), batch.column("configuration").to_numpy()
        linked, lasted = transfers.linked(start, duration, lane, link)
        due = transfers.due(int(start[-1]))
        sums.grow(len(lanes.streams) * cells.VALUES, len(lanes.devices))
        sums.sweep(Launches(start, duration, lane, configuration, kind, mean, linked, lasted), due, lanes.device_of)
        done += batch.num_rows
        progress.at(done)
    due = transfers.due(None)
    sums.grow(len(lanes.streams) * cells.VALUES, len(lanes.devices))
    sums.sweep(NO_LAUNCHES, due, lanes.device_of)
    level = sums.finish()
    LOG.info("finest level: cells of %.0f us, %d of them, %d of busy time", level.width / 1e3, len(level.values), len(level.busy))
    sampled = _samples(folder, origin, lanes, buckets, budget, metrics, sums.width)
    mine = measure(own, folder, lanes, mean, (buckets, origin, budget, sums.width), link)
    streams = [{"rank": rank, "device": device, "stream": stream} for rank, device, stream in lanes.streams]
    devices = [{"rank": rank, "device": device, "stream": None} for rank, device in lanes.devices]
    return _combined(level, sampled, mine, len(streams), len(metrics)), [*streams, *devices]


def _initial_width(folder: Path, origin: int, means: Means, export: str, buckets: Buckets, budget: float) -> int:
    """Return a width to begin with, so that few cells have to be widened: as fine as some stretches of rows say, and finer rather than not.

    The sums of a stretch, as many times as it has fewer rows, are those of the whole but for the cells at its ends and for transfers.
    """
    rows, path = launches_in(folder), folder / "launches.parquet"
    width = FINEST_NS
    if rows * CELL_COST <= budget:
        return width
    while width * STEP < span_of(path) * CELL_COST / budget:  # no tower is finer, whatever its rows are
        width *= STEP
    lanes, sums = Lanes(), Sums(buckets, origin, np.inf, width)
    seen = 0
    for batch in stretches(path, "launches", COLUMNS):
        lane, start = lanes.of(batch), batch.column("start_ns").to_numpy()
        nothing = np.full(start.size, -1, np.int64)
        found = (start, batch.column("duration_ns").to_numpy(), lane, batch.column("configuration").to_numpy())
        sums.grow(len(lanes.streams) * cells.VALUES, len(lanes.devices))
        sums.sweep(Launches(*found, means.kind[export], means.mean[export], nothing, nothing), NO_TRANSFERS, lanes.device_of)
        seen += start.size
    level = sums.finish()
    while level.size() * TOWER * rows / seen > SPARE * budget:
        level = level.coarser()
    return level.width


def _samples(folder: Path, origin: int, lanes: Lanes, buckets: Buckets, budget: float, metrics: list[str], width: int) -> Level | None:
    """Return the sums of an export's sampled metrics, with series = device times metrics plus the metric's place."""
    path = folder / "samples.parquet"
    if not path.is_file():
        return None
    sums = Sums(buckets, origin, budget, width)
    for batch in chunks(path, "samples", ["time_ns", "rank", "device", "metric", "value"], "time_ns"):
        value = batch.column("value").to_numpy()
        if not np.isfinite(value).all() or np.abs(value).max() > 1 << 52:
            raise CausewayError(f"{path}: holds a value that is no finite number below {1 << 52}; expected measured values")
        rank, device = batch.column("rank").to_numpy(), batch.column("device").to_numpy()
        pairs, inverse = np.unique(np.column_stack((rank, device)).astype(np.int64), axis=0, return_inverse=True)
        number = np.array([lanes.device(*pair) for pair in pairs.tolist()], np.int64)[inverse.ravel()]
        names = batch.column("metric")
        place = np.array([metrics.index(name) for name in names.dictionary.to_pylist()], np.int64)[names.indices.to_numpy()]
        sums.grow(len(lanes.devices) * len(metrics), 0)
        scaled = np.rint(value * SAMPLE_SCALE).astype(np.int64)
        sums.gather(batch.column("time_ns").to_numpy(), number * len(metrics) + place, scaled)
    return sums.finish()


def _combined(level: Level, sampled: Level | None, own: list[Level], streams: int, metrics: int) -> Level:
    """Return one level of values, samples and own metrics, with series = lane * (all metrics) + metric; lanes are streams, then devices."""
    count = cells.VALUES + metrics + len(own)
    level.values[:, 0] = level.values[:, 0] // cells.VALUES * count + level.values[:, 0] % cells.VALUES
    level.busy[:, 0] += streams * cells.BUSY
    if sampled is not None:
        series = sampled.values[:, 0]
        sampled.values[:, 0] = (streams + series // metrics) * count + cells.VALUES + series % metrics
    elif not own:
        return level  # as ordered as before
    for one in own:
        series = one.values[:, 0]
        one.values[:, 0] = series // len(own) * count + cells.VALUES + metrics + series % len(own)
    return merged(stacked(_same_width([level, *([] if sampled is None else [sampled]), *own])))


def _same_width(levels: list[Level]) -> list[Level]:
    width = max(level.width for level in levels)
    found = []
    for level in levels:
        while level.width < width:
            level = level.coarser()
        found.append(level)
    return found


def _joined(parts: list[tuple[Level, list[dict], int]], number: np.ndarray, metrics: int) -> Level:
    """Return one level of all exports, its lanes renumbered. `parts` is emptied: they and the level would take twice the memory."""
    offsets = [offset for _, _, offset in parts]
    levels = _same_width([parts.pop(0)[0] for _ in offsets])
    for level, offset in zip(levels, offsets, strict=True):
        lane, metric = level.values[:, 0] // metrics, level.values[:, 0] % metrics
        level.values[:, 0] = number[lane + offset] * metrics + metric
        device, what = level.busy[:, 0] // cells.BUSY, level.busy[:, 0] % cells.BUSY
        level.busy[:, 0] = number[device + offset] * cells.BUSY + what
    rows = stacked(levels)
    del levels, level
    return merged(rows)


def _span(level: Level) -> int:
    """Return the ns from the dataset's first launch to the end of the last cell."""
    last = [part[:, 1].max() for part in (level.values, level.busy) if len(part)]
    return (int(max(last)) + 1) * level.width if last else 0


def _write(level: Level, out: Path, origin: int, metrics: int, budget: float, span: int) -> list[dict]:
    """Write all levels; drop the finest ones if the tower takes more than its budget after all. Return their entries, finest first."""
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
    series, cell = level.values[rows, 0], level.values[rows, 1]
    return {"start_ns": origin + cell * level.width, "lane": series // metrics, "metric": series % metrics}


def level_rows(level: Level, order: np.ndarray, origin: int, metrics: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the statistics of cells, in an order of theirs, group by group."""
    names = ("count", "sum", "squares_0", "squares_1", "squares_2", "min", "max")
    for begin in range(0, len(order), GROUP_ROWS):
        rows = order[begin : begin + GROUP_ROWS]
        yield _keys(level, rows, origin, metrics) | {name: level.values[rows, 2 + k] for k, name in enumerate(names)}


def level_buckets(level: Level, order: np.ndarray, origin: int, metrics: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the buckets of cells, in an order of theirs, in groups of whole cells."""
    entries = np.diff(level.offset)[order]
    ends = np.cumsum(entries)
    begin = 0
    while begin < len(order):
        stop = max(begin + 1, int(np.searchsorted(ends, ends[begin] - entries[begin] + GROUP_ROWS, side="right")))
        rows = np.repeat(order[begin:stop], entries[begin:stop])
        # the k-th entry of a cell stands k behind its first
        place = level.offset[rows] + np.arange(rows.size) - np.repeat(ends[begin:stop] - entries[begin:stop] - ends[begin] + entries[begin],
        entries[begin:stop])  # fmt: skip
        yield _keys(level, rows, origin, metrics) | {"bucket": level.buckets[place], "count": level.counts[place]}
        begin = stop


def in_groups(columns: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the rows of columns group by group."""
    for begin in range(0, len(next(iter(columns.values()))), GROUP_ROWS):
        yield {name: column[begin : begin + GROUP_ROWS] for name, column in columns.items()}


def _busy_columns(level: Level, origin: int) -> dict[str, np.ndarray]:
    """Return one row per (cell, device) with a column per kind of busy time."""
    device, what = level.busy[:, 0] // cells.BUSY, level.busy[:, 0] % cells.BUSY
    keys, row = np.unique(np.column_stack((level.busy[:, 1], device)), axis=0, return_inverse=True)
    amounts = np.zeros((len(keys), cells.BUSY), np.int64)
    amounts[row.ravel(), what] = level.busy[:, 2]
    found = {"start_ns": origin + keys[:, 0] * level.width, "lane": keys[:, 1]}
    return found | {name: amounts[:, k] for k, name in enumerate(cells.BUSY_NAMES)}


def _table(groups: Iterable[Mapping[str, np.ndarray]], folder: Path, name: str) -> None:
    with TableWriter(folder / f"{name.removeprefix('level_')}.parquet", name) as writer:
        for columns in groups:
            writer.write(pa.table(dict(columns)))


def _index(origin: int, span: int, lanes: list, levels: list, names: list, buckets: Buckets, facts: int, size: int) -> dict:
    metrics = [
        {"name": name, "unit": "bytes" if name.endswith("_bytes") else "ns" if place < cells.VALUES else "",
         "scale": 1 if place < cells.VALUES else SAMPLE_SCALE}
        for place, name in enumerate(names)
    ]  # fmt: skip
    return {
        "origin_ns": origin,
        "span_ns": span,
        "lanes": lanes,
        "levels": levels,
        "metrics": metrics,
        "sketch": {"library": "ddsketch", "relative_error": buckets.error},
        "bytes": {"facts": facts, "levels": size},
    }
