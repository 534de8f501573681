"""Build the pyramid of a dataset: one pass for the means of configurations, one for the sums, and each coarser level
from the finer one; over MPI ranks, each of which reads some exports.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock, clocks_of
from causeway.core.errors import CausewayError
from causeway.core.logs import LOG, Progress
from causeway.core.tables import write_json
from causeway.levels.pyramid import busy_time, cells
from causeway.levels.pyramid.custom_metrics import Metric, expressions, measure, notes_on_empty
from causeway.levels.pyramid.level import (
    STEP,
    Level,
    lanes_of,
    merged,
    merged_if_needed,
    rows_of_all,
    same_width,
    stacked,
    write_levels,
)
from causeway.levels.pyramid.ordered_rows import (
    OWN_CLOCK,
    Means,
    StreamNumbers,
    chunks,
    configurations_of,
    durations_of,
    extent_of,
    launches_in,
    sampled_rows,
)
from causeway.levels.pyramid.pyramid import (
    FINEST_NS,
    NO_LAUNCHES,
    NO_TRANSFERS,
    WHOLE_OVER_FINEST,
    Sums,
)
from causeway.levels.pyramid.sampled_metrics import OF_EXPORT, SAMPLE_SCALE, metric_names, sums_of_samples
from causeway.levels.pyramid.side_tables import LinkFunction, TransferRows
from causeway.levels.pyramid.sketch import Buckets
from causeway.numeric.mpi import Ranks
from causeway.numeric.process import give_back

LEAST_BYTES = 16 << 20
"""A pyramid may always take this much: for small datasets the finest level is the finest there is."""
CELL_COST = 500
"""Bytes that a launch takes at most in the finest pyramid there may be; only for choosing where to begin."""
SPARE = 3
"""How many times too large a pyramid may seem at first: how large it gets shows only when all rows are seen."""
MANY_LAUNCHES = 1 << 20
"""Launches of an export from which memory is given back before their sums: giving back takes as long as a thousand
launches do, and the next one takes the memory again.
"""
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
    link: LinkFunction | None = None,
    metrics: Sequence[dict] = (),
    telemetry: Path | None = None,
    ranks: Ranks | None = None,
) -> dict | None:
    """Write the levels of a dataset.

    Every export is read by one rank, and only its sums travel: integers of cells, whose merger is the same in any
    order. So the results are the same, to the byte, on any number of ranks.

    The column `lane` of the levels numbers streams and devices; of a device, `stream` is null.

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
        Most bytes that the pyramid may take, as a share of those of the launches, transfers and samples.
    link_window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    link : callable, optional
        Finds the transfer of each launch; without it there are no memory stalls.
    metrics : sequence of dict
        Metrics of the analyst's own: `name`, `table`, `value`, `where` and `inside`
        (`causeway.levels.pyramid.custom_metrics`).
    telemetry : Path, optional
        `telemetry.parquet` of the dataset: metrics that the site sampled, on its time line.
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Returns
    -------
    dict or None
        As `config/schemas/levels.schema.json` describes it; also in `index.json`. None on other ranks than 0.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    buckets = Buckets(error)
    of_export = clocks_of(clocks)
    names = [export for export in folders if export in clocks["exports"]]
    with ranks.together():
        own = expressions(metrics)
        assigned = [names[index] for index in ranks.share_of([_bytes(folders[export]) for export in names])]
        launches = {export: launches_in(folders[export]) for export in assigned}
        here = {export: folders[export] for export in assigned if launches[export]}
        keys = {export: configurations_of(folder) for export, folder in here.items()}
        collected = (
            {export: _Facts(_first(folder, of_export[export]), _bytes(folder)) for export, folder in here.items()},
            metric_names([folder / OF_EXPORT for folder in here.values()]),
            durations_of(here, keys),
        )
    parts = ranks.exchange(collected)
    held = {export: facts for part, _, _ in parts for export, facts in part.items()}
    facts = {export: held[export] for export in names if export in held}
    with ranks.together():
        of_site = metric_names([telemetry]) if telemetry and facts else []  # none without launches
        sampled = sorted({name for _, part, _ in parts for name in part} | set(of_site))
        _check_names(own, sampled)
        size = sum(export_facts.bytes for export_facts in facts.values())
        budget = max(share * size, LEAST_BYTES)
        origin = min((export_facts.first for export_facts in facts.values()), default=0)
        means = Means(here, [part for _, _, part in parts], keys)
        beside = [(telemetry, OWN_CLOCK)] if telemetry else []
        levels_here: dict[str, Level] = {}
        lanes_here: dict[str, list[dict]] = {}
        counts_here = np.zeros(len(own), np.int64)
        for export, folder in here.items():
            clock = of_export[export]
            tables = [(folder / OF_EXPORT, clock), *beside]
            part = budget * facts[export].bytes / size
            levels_here[export], lanes_here[export], counts = _sums(
                *(export, folder, launches[export], clock, origin, means, buckets, part, sampled),
                *(link, link_window_ns, own, tables),
            )
            counts_here += counts
    lanes_and_counts = ranks.exchange((lanes_here, counts_here))
    series = {export: lanes for part, _ in lanes_and_counts for export, lanes in part.items()}
    notes = notes_on_empty(own, np.sum([counts for _, counts in lanes_and_counts], axis=0), sampled)
    lanes, number = lanes_of({export: series[export] for export in facts}, nodes)
    names = [*cells.VALUE_NAMES, *sampled, *(metric.name for metric in own)]
    give_back()
    rows = rows_of_all(levels_here, number, len(names), ranks)
    document = None
    with ranks.together():
        if ranks.first:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            span = 0
            levels = []
            if rows is not None:
                level = merged_if_needed(rows)
                del rows
                give_back()
                span = _span(level)
                levels = write_levels(level, out, origin, len(names), budget, span)
            written = sum(entry["bytes"] for entry in levels)
            for note in notes:
                LOG.warning("levels: metrics: %s", note)
            document = _index(origin, span, lanes, levels, names if levels else [], buckets, size, written)
            document["notes"] = notes
            write_json(document, out / "index.json", schema="levels")
    return document


@dataclass(frozen=True)
class _Facts:
    """What every rank must know of each export: its first launch on the dataset's time line (ns) and the bytes of its
    tables.
    """

    first: int
    bytes: int


def _check_names(own: Sequence[Metric], sampled: Sequence[str]) -> None:
    """Raise a CausewayError if a metric of the analyst's own has the name of another one."""
    for metric in own:
        if metric.name in (*cells.VALUE_NAMES, *sampled):
            raise CausewayError(f"levels: metrics: {metric.name}: there is a metric of that name; give yours another")


def _first(folder: Path, clock: Clock) -> int:
    """Return the first launch of an export with launches, on the dataset's time line."""
    batch = next(chunks(folder / "launches.parquet", "launches", ["start_ns"], clock=clock))
    return batch.column("start_ns")[0].as_py()


def _bytes(folder: Path) -> int:
    files = [folder / f"{name}.parquet" for name in ("launches", "transfers", "samples")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _sums(
    export: str,
    folder: Path,
    launches: int,
    clock: Clock,
    origin: int,
    means: Means,
    buckets: Buckets,
    budget: float,
    metrics: list[str],
    link: LinkFunction | None,
    window: int,
    own: list[Metric],
    tables: Sequence[tuple[Path, Clock]],
) -> tuple[Level, list[dict], np.ndarray]:
    """Return the finest level of one export, what its series belong to, in order: streams, then devices, and how many
    rows of each of the analyst's own metrics count.
    """
    width = _initial_width(folder, launches, clock, origin, means, export, buckets, budget)
    if launches >= MANY_LAUNCHES:
        give_back()
    numbers = StreamNumbers()
    sums = Sums(buckets, origin, budget, width)
    transfers = TransferRows(folder / "transfers.parquet", clock, numbers, window)
    mean = means.mean[export]
    kind = means.kind[export]
    progress = Progress(f"{export}: levels", launches, "launches")
    done = 0
    for batch in chunks(folder / "launches.parquet", "launches", COLUMNS, clock=clock):
        start = batch.column("start_ns").to_numpy()
        duration = batch.column("duration_ns").to_numpy()
        if duration.min() < 0:
            raise CausewayError(
                f"{folder}/launches.parquet: row {done + int(duration.argmin())} has a negative duration"
            )
        stream = numbers.of(batch)
        configuration = batch.column("configuration").to_numpy()
        linked, lasted = transfers.linked(start, duration, stream, link)
        due = transfers.due(int(start[-1]))
        sums.grow(len(numbers.streams) * cells.VALUES, len(numbers.devices))
        launches_of_chunk = cells.CHUNK_ROWS.of(
            start=start, duration=duration, stream=stream, configuration=configuration, kind=kind, mean=mean,
            linked=linked, lasted=lasted,
        )  # fmt: skip
        sums.sweep(launches_of_chunk, due, numbers.device_of)
        done += batch.num_rows
        progress.at(done)
    due = transfers.due(None)
    sums.grow(len(numbers.streams) * cells.VALUES, len(numbers.devices))
    sums.sweep(NO_LAUNCHES, due, numbers.device_of)
    level = sums.finish()
    LOG.info(
        "finest level: cells of %.0f us, %d of them, %d of busy time",
        level.width / 1e3,
        len(level.values),
        len(level.busy),
    )
    sampled = sums_of_samples(tables, origin, numbers, buckets, budget, metrics, sums.width)
    own_levels, counts = measure(own, folder, clock, numbers, mean, (buckets, origin, budget, sums.width), link, tables)
    of_device = [metric.table == "samples" for metric in own]
    streams = [{"rank": rank, "device": device, "stream": stream} for rank, device, stream in numbers.streams.rows]
    devices = [{"rank": rank, "device": device, "stream": None} for rank, device in numbers.devices.rows]
    own_by_lane = list(zip(own_levels, of_device, strict=True))
    return _combined(level, sampled, own_by_lane, len(streams), len(metrics)), [*streams, *devices], counts


def _initial_width(
    folder: Path, rows: int, clock: Clock, origin: int, means: Means, export: str, buckets: Buckets, budget: float
) -> int:
    """Return a width to begin with, so that few cells have to be widened: as fine as some samples of rows say, and
    finer rather than not.

    The sums of a sample, as many times as it has fewer rows, are those of the whole but for the cells at its ends and
    for transfers.
    """
    path = folder / "launches.parquet"
    width = FINEST_NS
    if rows * CELL_COST <= budget:
        return width
    span, reach = extent_of(path)
    while width * STEP < span * CELL_COST / budget:  # no pyramid is finer, whatever its rows are
        width *= STEP
    numbers = StreamNumbers()
    sums = Sums(buckets, origin, np.inf, width)
    seen = 0
    for batch in sampled_rows(path, "launches", COLUMNS, clock):
        stream = numbers.of(batch)
        start = batch.column("start_ns").to_numpy()
        nothing = np.full(start.size, -1, np.int64)
        sums.grow(len(numbers.streams) * cells.VALUES, len(numbers.devices))
        launches = cells.CHUNK_ROWS.of(
            start=start, duration=batch.column("duration_ns").to_numpy(), stream=stream, kind=means.kind[export],
            configuration=batch.column("configuration").to_numpy(), mean=means.mean[export], linked=nothing,
            lasted=nothing,
        )  # fmt: skip
        sums.sweep(launches, NO_TRANSFERS, numbers.device_of)
        seen += start.size
    level = sums.finish()
    series = len(np.unique(level.values[:, 0]))
    while len(level.values) > series:  # else wider cells are no fewer
        # a stretch of less than a cell has a cell of each series, too: there are not more than lie within the reach
        larger = min(rows / seen, series * (reach // level.width + 2) / len(level.values))
        if level.size() * WHOLE_OVER_FINEST * larger <= SPARE * budget:
            break
        level = level.coarser()
    return level.width


def _combined(level: Level, sampled: Level | None, own: list[tuple[Level, bool]], streams: int, metrics: int) -> Level:
    """Return one level of values, samples and own metrics, with series = `lane` * (all metrics) + metric; `lane`
    numbers streams, then devices. Beside each of the own metrics stands whether its series are of devices.
    """
    count = cells.VALUES + metrics + len(own)
    level.values[:, 0] = level.values[:, 0] // cells.VALUES * count + level.values[:, 0] % cells.VALUES
    level.busy[:, 0] += streams * busy_time.BUSY
    if sampled is not None:
        series = sampled.values[:, 0]
        sampled.values[:, 0] = (streams + series // metrics) * count + cells.VALUES + series % metrics
    elif not own:
        return level  # as ordered as before
    for part, of_device in own:
        series = part.values[:, 0]
        part.values[:, 0] = (
            (of_device * streams + series // len(own)) * count + cells.VALUES + metrics + series % len(own)
        )
    return merged(stacked(same_width([level, *([] if sampled is None else [sampled]), *(part for part, _ in own)])))


def _span(level: Level) -> int:
    """Return the ns from the dataset's first launch to the end of the last cell."""
    last = [part[:, 1].max() for part in (level.values, level.busy) if len(part)]
    return (int(max(last)) + 1) * level.width if last else 0


def _index(
    origin: int, span: int, lanes: list, levels: list, names: list, buckets: Buckets, facts: int, size: int
) -> dict:
    metrics = [
        {
            "name": name,
            "unit": "bytes" if name.endswith("_bytes") else "ns" if index < cells.VALUES else "",
            "scale": 1 if index < cells.VALUES else SAMPLE_SCALE,
        }
        for index, name in enumerate(names)
    ]
    return {
        "origin_ns": origin,
        "span_ns": span,
        "lanes": lanes,
        "levels": levels,
        "metrics": metrics,
        "sketch": {"library": "ddsketch", "relative_error": buckets.error},
        "bytes": {"facts": facts, "levels": size},
    }
