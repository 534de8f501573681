"""Open the exports of a dataset that have a value, and put them on one time line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import clocks_of
from causeway.core.errors import CausewayError
from causeway.core.logs import LOG
from causeway.core.sheet import TRACE_FEATURES
from causeway.core.tables import read_json, unit_of
from causeway.numeric.intervals import stretches
from causeway.variability.rows.configurations import TOLD_APART_BY, Configurations, HostConfigurations
from causeway.variability.rows.sources import Source, TableRows
from causeway.variability.rows.targets import Counter, Duration, Sampler, counter_field
from causeway.variability.rows.transfers import transfers_of


@dataclass(frozen=True)
class BinningSettings:
    """What an analysis asks for; the options of `scripts/variability/bin_launches.py` explain each."""

    dataset: str
    tables: Path
    exports: tuple[str, ...]
    clocks: Path
    targets: tuple[str, ...]
    out: Path
    width_ns: int
    launches_per_bin: int
    score: str
    keep_share: float
    keep_count: int | None
    keep_max_rows: int | None
    control_ratio: float
    control_min_rows: int
    mean: str
    link_window_ns: int
    features: tuple[str, ...]
    seed: int
    more_widths_ns: tuple[int, ...] = ()
    workers: int = 1
    configuration: str = "launch_shape"


@dataclass
class PreparedDataset:
    """The exports of a dataset that have a value.

    Attributes
    ----------
    timed : bool
        Whether bins are slices of time; else they count launches.
    origin_ns : int or None
        Start of the dataset's first launch; None without start times.
    widths : list of int
        Positions per bin: first those of the bins that are ranked; then, on a time line, those of further tables.
    span : int
        Positions of the longest run; a run is made of the exports that were recorded at the same time, and mostly there
        is just one.
    features : list of str
        Columns whose statistics stand beside the target's.
    transfers : dict of str to TableRows or None
        The transfers of each export.
    rows : int
        Launches in all exports.
    """

    sources: list[Source]
    timed: bool
    origin_ns: int | None
    widths: list[int]
    span: int
    features: list[str]
    configurations: Configurations
    sampler: Sampler
    transfers: dict[str, TableRows | None]
    rows: int


def open_sources(settings: BinningSettings, value: Duration | Counter) -> list[Source]:
    """Open the exports that have rows with the value; the list may be empty."""
    folders = {export: settings.tables / export for export in settings.exports}
    present = {export: folder for export, folder in folders.items() if (folder / f"{value.table}.parquet").is_file()}
    if isinstance(value, Duration):
        sources = _on_the_clock(settings, present, value.table)
        return [source for source in sources if source.rows.rows]
    sources = [Source(export, folder, value.table, timed=False) for export, folder in present.items()]
    sources = [source for source in sources if source.rows.rows]
    fields = {source.export: counter_field(source, value.column) for source in sources}
    lacking = [export for export, field in fields.items() if field is None]
    if 0 < len(lacking) < len(fields):
        LOG.warning("exports %s have no column %s and are left out", ", ".join(lacking), value.column)
    sources = [source for source in sources if fields[source.export] is not None]
    if not sources:
        return []
    value.unit = unit_of(fields[sources[0].export])
    unordered = next((source for source in sources if not _starts_in_order(source)), None)
    if unordered is not None:
        LOG.info(
            "export %s has no start times in order: bins count launches, %d each",
            unordered.export,
            settings.launches_per_bin,
        )
        return sources
    return _on_the_clock(settings, {source.export: source.folder for source in sources}, value.table)


def prepare(settings: BinningSettings, value: Duration | Counter, sources: list[Source]) -> PreparedDataset:
    """Put opened exports on one time line and number their configurations.

    Raises
    ------
    CausewayError
        If two exports hold the same rank, or a feature is unknown.
    """
    owners: dict[int, str] = {}
    for source in sources:
        for rank in source.ranks:
            if owners.setdefault(rank, source.export) != source.export:
                raise CausewayError(
                    f"dataset {settings.dataset}: exports {owners[rank]} and {source.export} both hold rank {rank};"
                    " give each export a rank of its own in the sheet"
                )
    timed = sources[0].timed
    origin_ns = min(source.first_ns for source in sources) if timed else None
    for source in sources:
        source.count_from(origin_ns or 0)
    if origin_ns is not None:
        first = np.array([source.first_ns - origin_ns for source in sources])
        for source, begin in zip(sources, stretches(first, np.array([source.span for source in sources])), strict=True):
            source.run_begin = int(begin)
    widths = [settings.width_ns, *settings.more_widths_ns] if timed else [settings.launches_per_bin]
    folders = {source.export: source.folder for source in sources}
    configurations = (
        HostConfigurations(folders, settings.configuration, sources)
        if settings.configuration in TOLD_APART_BY and isinstance(value, Duration)
        else Configurations(folders)
    )
    return PreparedDataset(
        sources=sources,
        timed=timed,
        origin_ns=origin_ns,
        widths=widths,
        span=max(source.span - source.run_begin for source in sources),
        features=_features(settings, value, sources),
        configurations=configurations,
        sampler=Sampler(value, configurations, sorted(owners), settings.mean == "rank"),
        transfers={
            source.export: transfers_of(source.folder) if isinstance(value, Duration) else None for source in sources
        },
        rows=sum(source.rows.rows for source in sources),
    )


def _on_the_clock(settings: BinningSettings, folders: Mapping[str, Path], table: str) -> list[Source]:
    clocks = clocks_of(read_json(settings.clocks)) if folders else {}
    lacking = next((export for export in folders if export not in clocks), None)
    if lacking is not None:
        raise CausewayError(f"{settings.clocks}: no clock of export {lacking}; delete the file and run again")
    return [Source(export, folder, table, clocks[export]) for export, folder in folders.items()]


def _starts_in_order(source: Source) -> bool:
    last = None
    for chunk in source.rows.chunks(["start_ns"]):
        start = chunk.arrow("start_ns")
        if start.null_count or (np.diff(start) < 0).any() or (last is not None and start[0].as_py() < last):
            return False
        last = start[-1].as_py()
    return True


def _features(settings: BinningSettings, value: Duration | Counter, sources: list[Source]) -> list[str]:
    """Return the chosen features that this kind of export has: the list is one for traces, counters and tables."""
    if isinstance(value, Duration):
        what = "the launches of traces"
        columns = set(TRACE_FEATURES)
    else:
        what = "the counters"
        columns = {name for source in sources for name in source.rows.columns}
    left_out = [name for name in settings.features if name not in columns]
    if left_out:
        LOG.info("%s have no columns %s: no statistics of them", what, ", ".join(left_out))
    return [name for name in settings.features if name in columns]
