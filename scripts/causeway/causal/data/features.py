"""Features of the kept launches: launch configuration, context at the start, counters.

A context feature describes what was so when the launch began, never anything that depends on how long it then took: a
longer launch meets more copies merely by being longer.

MPI ranks share the work (`assemble`): each computes the context of some ranks of the dataset, and encodes their row
groups; rank 0 then concatenates these, as they are.
"""

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.causal.data.feature_names import (
    LAUNCHED_AFTER,
    LAUNCHED_SECOND_AFTER,
    TIME_BETWEEN_LAUNCHES,
    UNSEARCHED,
    grids_and_blocks,
    kernels_and_grids,
)
from causeway.causal.data.launch_context import (
    COMPUTED_FROM,
    ChosenLaunches,
    add_launches_in_flight,
    add_telemetry,
    sampled_metrics,
    without_linked_transfer,
)
from causeway.causal.data.operator_context import COMPUTED_FROM as COMPUTED_FROM_OPERATORS
from causeway.causal.data.operator_context import StepWindows, add_steps
from causeway.core.clock import Clock
from causeway.core.codes import COPY_KINDS
from causeway.core.feature_registry import (
    COUNTERS,
    DEVICE_METRICS,
    FEATURE_BY_NAME,
    FEATURES,
    FeatureRecord,
    counter,
    record_of,
)
from causeway.core.logs import LOG
from causeway.core.reduced import CONTEXT_FEATURES, rules_out_time_line, why_not
from causeway.core.schemas import LAUNCH_FACTS
from causeway.core.schemas.launch_threads import AS_LAUNCHED, BLOCKS, GRID
from causeway.core.tables import (
    LAUNCH_SHAPE,
    SCHEMAS,
    TableWriter,
    copy_row_groups,
    extremes,
    folder_bytes,
    open_table,
    read_json,
    read_table,
    table_metadata,
)
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL, TRACE_TARGETS
from causeway.numeric.intervals import stretches
from causeway.numeric.mpi import Ranks

TIMES = "duration_ns"
"""Column of kept rows that are launches of a trace."""
STREAM_ASSUMED = "stream_assumed"
"""Kind of the issue of an export without streams, of which nothing is known about the order on them."""


@dataclass(frozen=True)
class Export:
    """An export of the dataset: its folder of tables, its clock, its ranks, its node, the repeat of the job that it was
    recorded in, the features that cannot be known of it whatever its tables hold, and what its grids count, a word of
    `launch_threads`.
    """

    folder: Path
    clock: Clock
    ranks: tuple[int, ...]
    node: str | None
    run: str | None = None
    unknown: tuple[str, ...] = ()
    grid: str = BLOCKS


@dataclass(frozen=True)
class ExportFacts:
    """What all kept launches must know of each export: its first launch and the last one's start, 1 ns more (aligned),
    None without launches; its tables; the metrics that it samples; the counters that it has of launches with times.
    """

    ends: tuple[int, int] | None
    tables: frozenset[str]
    sampled: frozenset[str]
    counters: frozenset[str] = frozenset()

    @classmethod
    def of(cls, export: Export) -> "ExportFacts":
        """Read them from an export's tables."""
        tables = frozenset(path.stem for path in export.folder.glob("*.parquet"))
        sampled = frozenset(sampled_metrics(export.folder / "samples.parquet"))
        counters: frozenset[str] = frozenset()
        if {"launches", "counters"} <= tables:
            names = pq.read_schema(export.folder / "counters.parquet").names
            counters = frozenset(names) - set(SCHEMAS["counters"].names)
        return cls(_ends(export) if "launches" in tables else None, tables, sampled, counters)


def exports_of(
    folders: list[str | Path], clocks: dict, nodes: dict[str, str | None], runs: dict[str, str] | None = None
) -> list[Export]:
    """Return the readable exports of a dataset.

    Parameters
    ----------
    folders : list of path
        One per export, named after it.
    clocks : dict
        `clocks.json`.
    nodes : dict of str to str or None
        Node per export, as in the sheet.
    runs : dict of str to str or None
        Repeat of the job per export, likewise; empty where the sheet does not say.
    """
    exports = []
    for folder in map(Path, folders):
        entry = clocks["exports"].get(folder.name)
        if entry is not None and (folder / "kernels.parquet").is_file():
            facts = read_json(folder / "capabilities.json")
            node = nodes.get(folder.name) or facts.get("node")
            run = (runs or {}).get(folder.name) or None
            has_streams = all(issue["kind"] != STREAM_ASSUMED for issue in facts.get("issues", ()))
            unknown: tuple[str, ...] = () if has_streams else (LAUNCHED_AFTER, LAUNCHED_SECOND_AFTER)
            unknown += TIME_BETWEEN_LAUNCHES if rules_out_time_line(facts) else ()
            grid = table_metadata(folder / "kernels.parquet").get(GRID, BLOCKS)
            exports.append(Export(folder, Clock.of(entry), tuple(entry["ranks"]), node or None, run, unknown, grid))
    return exports


def features_of(
    kept: pa.Table, context: dict[str, np.ndarray], exports: Sequence[Export], target: str
) -> tuple[pa.Table, list[pa.Field]]:
    """Return the features of some kept launches, whose context is known, and the fields that describe them.

    Parameters
    ----------
    kept : Table
        `kept`, n rows.
    context : dict of str to ndarray of float, or of object (text) for categories, shape (n,)
    exports : list of Export
    target : str

    Returns
    -------
    table : Table
        One column per feature.
    fields : list of Field
    """
    base = kept.select(SCHEMAS["kept"].names)
    trace = TIMES in kept.column_names
    counts = next(iter(grids)) if len(grids := {export.grid for export in exports}) == 1 else AS_LAUNCHED
    columns: dict[str, pa.Array] = {}
    fields: list[pa.Field] = []

    def add(feature: FeatureRecord, values: object, raw: str = "") -> None:
        kind = pa.string() if feature.is_category else pa.float64()
        facts = {"tier": feature.tier, "group": feature.group, "unit": feature.unit, "raw": raw}
        if feature.name.startswith("grid_") and counts != BLOCKS:
            facts["counts"] = counts
        fields.append(pa.field(feature.name, kind, metadata={key: value for key, value in facts.items() if value}))
        if isinstance(values, pa.ChunkedArray):
            columns[feature.name] = values.cast(kind)
        else:
            columns[feature.name] = pa.array(values, kind, from_pandas=True)

    def add_kept(name: str) -> None:
        if name in kept.column_names:
            add(FEATURE_BY_NAME[name], kept.column(name))

    for name in LAUNCH_SHAPE:
        add_kept(name)
    if trace:
        own = without_linked_transfer(context, kept) if target == MEMORY_STALL else context
        for name, values in own.items():
            add(record_of(name, DEVICE_METRICS), values)
        for name in LAUNCH_FACTS.names:
            add_kept(name)
        if target == MEMORY_STALL:
            # of the linked transfer only what is known beforehand; the rest depends on the launch's duration
            add_kept("transfer_bytes")
            names = pa.array([COPY_KINDS.get(kind, str(kind)) for kind in range(256)])
            add(FEATURE_BY_NAME["transfer_copy_kind"], pc.take(names, kept.column("transfer_copy_kind")))
        add_kept("stream")
    add_kept("device")
    for name in ("node", "run"):
        place_of = {rank: getattr(export, name) for export in exports for rank in export.ranks}
        if any(place_of.values()):
            ranks = kept.column("rank").combine_chunks().dictionary_encode()
            places = pa.array([place_of.get(rank) for rank in ranks.dictionary.to_pylist()], pa.string())
            add(FEATURE_BY_NAME[name], pa.chunked_array([places.take(ranks.indices)]))
    if not trace:
        _add_counters(kept, columns, add)
    return pa.table([*base.columns, *columns.values()], names=[*base.column_names, *columns]), fields


def _add_counters(kept: pa.Table, columns: dict[str, pa.Array], add: Callable[..., None]) -> None:
    """Pass the metrics of a counter export or table on."""
    not_counters = {*SCHEMAS["kept"].names, *LAUNCH_SHAPE, "device", *columns}
    for field in kept.schema:
        if field.name in not_counters:
            continue
        facts = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        text = pa.types.is_string(field.type) or pa.types.is_dictionary(field.type) or pa.types.is_boolean(field.type)
        feature = counter(field.name, facts.get("group", COUNTERS), facts.get("unit", ""), is_category=text)
        add(feature, kept.column(field.name), facts.get("raw", ""))


Pieces = Callable[..., Iterator[pa.Table]]
"""Yields rows, or some columns of them, one row group after the other."""


class LaunchContext:
    """The context of a trace's launches, rank by rank.

    Parameters
    ----------
    exports : list of Export
    facts : list of ExportFacts
        Of each of them.
    configurations : Table or None
        Exact means for previous_deviation, columns of `configurations.parquet`; without them there is none.
    telemetry : Path or None
        Metrics that the site sampled, on the dataset's time line; those that an export samples too are left out.
    steps : Path or None
        Steps of the ranks, on the dataset's time line.

    Attributes
    ----------
    names : list of str
        Features that the exports' tables can tell, in the order of the registry, sampled metrics last.
    """

    def __init__(
        self,
        exports: Sequence[Export],
        facts: list[ExportFacts],
        configurations: pa.Table | None,
        telemetry: Path | None = None,
        steps: Path | None = None,
    ) -> None:
        self.export_of = {rank: export for export in exports for rank in export.ranks}
        self.configurations = configurations
        self.begun = _run_starts(exports, facts)
        available = {"launches"}.union(*(fact.tables for fact in facts))
        available |= set() if configurations is None else {"configuration_summary"}
        self.telemetry = telemetry
        self.steps = steps if steps and pq.read_metadata(steps).num_rows else None
        available |= {"steps"} if self.steps else set()
        sampled = set().union(*(fact.sampled for fact in facts))
        sampled |= sampled_metrics(telemetry) if telemetry else set()
        self.names = [*(feature.name for feature in FEATURES if feature.table in available), *sorted(sampled)]

    def of(self, rank: int, pieces: Pieces) -> dict[str, np.ndarray]:
        """Return the context features of a rank's n kept launches, in their order: float or int64, shape (n,),
        NaN where unknown; categories: text, None where unknown.
        """
        launch = _column(pieces, "launch").to_numpy()
        export = self.export_of.get(rank)
        if export is None or launch.size == 0:
            return {name: _unknown(name, launch.size) for name in self.names}
        # None: as they are, without copies
        rows = None if (launch[1:] >= launch[:-1]).all() else np.argsort(launch, kind="stable")

        def in_order(values: np.ndarray) -> np.ndarray:
            return values if rows is None else values[rows]

        ranges = np.broadcast_to(np.int64(-1), launch.size)
        if (export.folder / "ranges.parquet").is_file():
            ranges = in_order(_column(pieces, "range").cast(pa.int64()).fill_null(-1).to_numpy())
        chosen = ChosenLaunches(rank, in_order(launch), ranges)
        LOG.info("%s, rank %d: context of %d launches", export.folder.name, rank, launch.size)
        kernels = {row["kernel"]: row["id"] for row in _rows(export, "kernels")}
        own = _rows(export, "configurations")
        means, kernel_of = _means(own, kernels, self.configurations, rank)
        words = kernels_and_grids(own, kernels)
        add_launches_in_flight(export.folder / "launches.parquet", chosen, means, kernel_of, words)
        for table, compute in (*COMPUTED_FROM, *COMPUTED_FROM_OPERATORS):
            if (path := export.folder / f"{table}.parquet").is_file():
                compute(path, chosen)
        if self.telemetry:
            add_telemetry(self.telemetry, chosen, export.clock)
        if self.steps:
            configuration = in_order(_column(pieces, "configuration").cast(pa.int64()).to_numpy())
            windows = StepWindows.of(self.steps, rank)
            add_steps(export.folder, windows, chosen, export.clock, configuration, grids_and_blocks(own))
        features = {}
        for name in self.names:
            values = None if name in export.unknown else chosen.features.pop(name, None)
            features[name] = _unknown(name, launch.size) if values is None or rows is not None else values
            if values is not None and rows is not None:
                features[name][rows] = values
        features["since_start_ns"] = _column(pieces, "start_ns").to_numpy() - float(self.begun[export.folder])
        return features


def _column(pieces: Pieces, name: str) -> pa.ChunkedArray:
    """Return one column of all rows."""
    return pa.concat_tables(pieces(name)).column(0)


def _unknown(name: str, rows: int) -> np.ndarray:
    """Return values of a feature that is not known: NaN, None for a category."""
    is_category = name in FEATURE_BY_NAME and FEATURE_BY_NAME[name].is_category
    return np.full(rows, None if is_category else np.nan, dtype=object if is_category else float)


def _ends(export: Export) -> tuple[int, int] | None:
    """Return the aligned start of an export's first launch, and 1 ns more than that of its last; None without any."""
    with open_table(export.folder / "launches.parquet", "launches") as file:
        groups = [index for index in range(file.num_row_groups) if file.metadata.row_group(index).num_rows]
        if not groups:
            return None
        ends = extremes(file, groups[0], "start_ns")[0], extremes(file, groups[-1], "start_ns")[1]
    begin, end = export.clock.aligned(np.array(ends)).tolist()
    return begin, end + 1


def _run_starts(exports: Sequence[Export], facts: list[ExportFacts]) -> dict[Path, int]:
    """Return for each export with launches the aligned start of the first launch of its run: of the exports recorded
    at the same time.
    """
    spans = {export.folder: fact.ends for export, fact in zip(exports, facts, strict=True) if fact.ends}
    first, last = (np.array([ends[place] for ends in spans.values()], np.int64) for place in (0, 1))
    return dict(zip(spans, stretches(first, last).tolist(), strict=True))


def _rows(export: Export, name: str) -> list[dict]:
    """Return the rows of one of an export's small tables."""
    return read_table(export.folder / f"{name}.parquet", name).to_pylist()


def _means(
    own: list[dict], kernels: Mapping[int, str], configurations: pa.Table | None, rank: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the exact mean of each of the export's own configurations on a rank, and their kernels.

    A configuration is the same in an export and in the dataset if kernel, launch shape and label agree. A configuration
    without launches on the rank has no mean and NaN.
    """
    size = max((row["configuration"] for row in own), default=-1) + 1
    kernel_of = np.zeros(size, dtype=np.int64)
    for row in own:
        kernel_of[row["configuration"]] = row["kernel"]
    if configurations is None:
        return None, kernel_of

    def key(row: dict, kernel: str) -> tuple:
        return (kernel, *(row[name] for name in LAUNCH_SHAPE), row["label"])

    exact = {(key(row, row["kernel"]), row["rank"]): row["mean"] for row in configurations.to_pylist()}
    means = np.full(size, np.nan)
    for row in own:
        identity = key(row, kernels[row["kernel"]])
        means[row["configuration"]] = exact.get((identity, rank), exact.get((identity, None), np.nan))
    return means, kernel_of


def assemble_target(
    folder: Path,
    tables: Sequence[Path],
    clocks_file: Path,
    *,
    nodes: Mapping[str, str],
    runs: Mapping[str, str],
    telemetry: Sequence[Path] = (),
    steps: Sequence[Path] = (),
    ranks: Ranks | None = None,
) -> None:
    """Write `features.parquet` into the folder of a target, from its `kept.parquet` and `configurations.parquet`.

    Parameters
    ----------
    folder : Path
        Named after the target.
    tables : sequence of Path
        Folders of tables of the dataset's exports, in the sheet's order.
    clocks_file : Path
    nodes, runs : mapping of str to str
        Node of each export, and the repeat of the job that it was recorded in; empty or absent where unknown.
    telemetry, steps : sequence of Path
        `telemetry.parquet` and `steps.parquet` of the dataset, or nothing.
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    filtered = ranks.of_first(lambda: why_not(tables, CONTEXT_FEATURES))
    if filtered:
        LOG.info("context features: %s", filtered)
    exports = ranks.of_first(lambda: exports_of(list(tables), read_json(clocks_file), dict(nodes), dict(runs)))
    with ranks.together():
        means = read_table(folder / "configurations.parquet", "configuration_summary")
    assemble(
        folder / "kept.parquet",
        exports,
        means,
        folder.name,
        folder / "features.parquet",
        with_context=not filtered,
        telemetry=telemetry[0] if telemetry else None,
        steps=steps[0] if steps else None,
        ranks=ranks,
    )


def assemble(
    kept: Path,
    exports: Sequence[Export],
    configurations: pa.Table | None,
    target: str,
    path: Path,
    *,
    with_context: bool = True,
    telemetry: Path | None = None,
    steps: Path | None = None,
    ranks: Ranks | None = None,
) -> None:
    """Write the features of kept launches, in their order: the columns of `kept` that identify and weigh a row, then
    one per feature.

    The context features of one rank of the dataset are in memory at once; everything else goes row group by row group.
    An MPI rank reads only the exports of the ranks whose context it computes. The results are the same, to the byte, on
    any number of MPI ranks.

    Parameters
    ----------
    kept : Path
        `kept.parquet`.
    exports : sequence of Export
    configurations : Table or None
        Columns of `configurations.parquet` of the target: the exact means that previous_deviation needs.
    target : str
    path : Path
        Gets `features.parquet`; unit, tier and group of a feature stand in its field's metadata, in the file's own the
        counters of launches with times (`UNSEARCHED`), which are no features.
    with_context : bool
        False: what else was so when a launch began is left out, because the tables lack events.
    telemetry, steps : Path or None
        `telemetry.parquet` and `steps.parquet` of the dataset.
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes the result.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    parts = path.with_name(f"{path.name}.parts")
    with ranks.together():
        counts = _counts(kept) if ranks.first else {}
        if ranks.first:
            shutil.rmtree(parts, ignore_errors=True)  # what a killed run left behind
            parts.mkdir(parents=True)
    counts = ranks.share(counts)
    try:
        facts = _facts(exports, ranks)
        with ranks.together(), open_table(kept, "kept") as file:
            means = configurations if target == KERNEL_VARIABILITY else None
            context = None
            if with_context and TIMES in file.schema_arrow.names:
                context = LaunchContext(exports, facts, means, telemetry, steps)
            fields = _feature_fields(file.schema_arrow, context, exports, target)
            part = parts / f"{ranks.rank}.parquet"
            written = _write_part(file, _spans(file, counts, exports, ranks), context, exports, target, part, fields)
        everywhere = ranks.collect(written)
        with ranks.together():
            if everywhere is not None:
                order = sorted(
                    (own, ordinal, rank) for rank, groups in enumerate(everywhere) for ordinal, own in enumerate(groups)
                )
                counters = sorted(set().union(*(fact.counters for fact in facts))) if target in TRACE_TARGETS else []
                unsearched = {UNSEARCHED: json.dumps(counters)} if counters else {}
                with TableWriter(path, "features", [*SCHEMAS["kept"], *fields], unsearched) as writer:
                    copy_row_groups(((parts / f"{rank}.parquet", ordinal) for _, ordinal, rank in order), writer)
    finally:
        if ranks.first:
            shutil.rmtree(parts, ignore_errors=True)


def _counts(kept: Path) -> dict[int, int]:
    """Return the number of kept rows of each rank of the dataset, ascending by rank, as their rows are."""
    counts: dict[int, int] = {}
    with open_table(kept, "kept") as file:
        for group in range(file.num_row_groups):
            for row in pc.value_counts(file.read_row_group(group, ["rank"]).column("rank")).to_pylist():
                counts[row["values"]] = counts.get(row["values"], 0) + row["counts"]
    return dict(sorted(counts.items()))


def _feature_fields(
    kept: pa.Schema, context: LaunchContext | None, exports: Sequence[Export], target: str
) -> list[pa.Field]:
    """Return the columns of the features, which do not depend on rows."""
    nothing = kept.empty_table()
    unknown = context.of(-1, lambda *columns: iter([nothing.select(columns)])) if context else {}
    return features_of(nothing, unknown, exports, target)[1]


def _facts(exports: Sequence[Export], ranks: Ranks) -> list[ExportFacts]:
    """Return what all must know of each export; each is opened by one MPI rank."""
    with ranks.together():
        here = {index: ExportFacts.of(exports[index]) for index in ranks.share_of([1] * len(exports))}
    facts = {index: fact for part in ranks.exchange(here) for index, fact in part.items()}
    return [facts[index] for index in range(len(exports))]


def _spans(
    file: pq.ParquetFile, counts: Mapping[int, int], exports: Sequence[Export], ranks: Ranks
) -> list[tuple[int, int, int]]:
    """Return the ranks of the dataset whose rows this MPI rank writes, each with its first row and the one behind its
    last.

    What they cost is taken to be in proportion to the bytes that are read and written for them.
    """
    size_of = {rank: folder_bytes(export.folder) for export in exports for rank in export.ranks}
    row_bytes = 8 * len(file.schema_arrow)
    ends = np.cumsum([0, *counts.values()]).tolist()
    rows = [(rank, low, high) for rank, (low, high) in zip(counts, pairwise(ends), strict=True)]
    costs = [size_of.get(rank, 0) + row_bytes * (high - low) for rank, low, high in rows]
    return [rows[index] for index in ranks.share_of(costs)]


def _write_part(
    file: pq.ParquetFile,
    spans: Sequence[tuple[int, int, int]],
    context: LaunchContext | None,
    exports: Sequence[Export],
    target: str,
    path: Path,
    fields: Sequence[pa.Field],
) -> list[int]:
    """Write the row groups of some ranks of the dataset; return the rank of each row group."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    groups = list(enumerate(pairwise(np.cumsum([0, *sizes]).tolist())))
    # neighbouring ranks share a row group: it is decoded once for all of them
    whole = functools.lru_cache(maxsize=1)(file.read_row_group)
    some = functools.lru_cache(maxsize=4)(lambda group, columns: file.read_row_group(group, list(columns)))
    written = []
    with TableWriter(path, "features", [*SCHEMAS["kept"], *fields]) as writer:
        for rank, low, high in spans:

            def pieces(*columns: str, low: int = low, high: int = high) -> Iterator[pa.Table]:
                for group, (begin, end) in groups:
                    if begin < high and end > low:
                        table = some(group, columns) if columns else whole(group)
                        yield table.slice(max(low - begin, 0), min(high, end) - max(low, begin))

            features = context.of(rank, pieces) if context else {}
            begin = 0
            for piece in pieces():
                end = begin + piece.num_rows
                part = {name: values[begin:end] for name, values in features.items()}
                writer.write(features_of(piece, part, exports, target)[0])
                written.append(rank)
                begin = end
    return written
