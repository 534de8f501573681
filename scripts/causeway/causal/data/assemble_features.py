"""Write the features of kept launches, over MPI ranks: each computes the context of some ranks of the dataset, and
encodes their row groups; rank 0 then concatenates these, as they are.
"""

import functools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.causal.data.feature_names import UNSEARCHED
from causeway.causal.data.features import Export, ExportFacts, LaunchContext, exports_of, features_of, traced
from causeway.core.logs import LOG
from causeway.core.reduced import CONTEXT_FEATURES, why_not
from causeway.core.tables import SCHEMAS, TableWriter, folder_bytes, open_table, read_json, read_table
from causeway.core.vocabulary import KERNEL_VARIABILITY, TRACE_TARGETS
from causeway.numeric.mpi import Ranks
from causeway.numeric.parquet_concat import join_row_groups


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
            if with_context and traced(file.schema_arrow.names):
                context = LaunchContext(exports, facts, means, telemetry, steps)
            fields = _fields(file.schema_arrow, context, exports, target)
            part = parts / f"{ranks.rank}.parquet"
            written = _write_part(file, _mine(file, counts, exports, ranks), context, exports, target, part, fields)
        everywhere = ranks.collect(written)
        with ranks.together():
            if everywhere is not None:
                order = sorted(
                    (own, ordinal, rank) for rank, found in enumerate(everywhere) for ordinal, own in enumerate(found)
                )
                counters = sorted(set().union(*(one.counters for one in facts))) if target in TRACE_TARGETS else []
                unsearched = {UNSEARCHED: json.dumps(counters)} if counters else {}
                with TableWriter(path, "features", [*SCHEMAS["kept"], *fields], unsearched):
                    pass  # a file without rows says what the row groups hold
                join_row_groups(path, [(parts / f"{rank}.parquet", ordinal) for _, ordinal, rank in order])
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


def _fields(kept: pa.Schema, context: LaunchContext | None, exports: Sequence[Export], target: str) -> list[pa.Field]:
    """Return the columns of the features, which do not depend on rows."""
    nothing = kept.empty_table()
    unknown = context.of(-1, lambda *columns: iter([nothing.select(columns)])) if context else {}
    return features_of(nothing, unknown, exports, target)[1]


def _facts(exports: Sequence[Export], ranks: Ranks) -> list[ExportFacts]:
    """Return what all must know of each export; each is opened by one MPI rank."""
    with ranks.together():
        here = {at: ExportFacts.of(exports[at]) for at in ranks.share_of([1] * len(exports))}
    found = {at: one for part in ranks.exchange(here) for at, one in part.items()}
    return [found[at] for at in range(len(exports))]


def _mine(
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
    return [rows[at] for at in ranks.share_of(costs)]


def _write_part(
    file: pq.ParquetFile,
    mine: Sequence[tuple[int, int, int]],
    context: LaunchContext | None,
    exports: Sequence[Export],
    target: str,
    path: Path,
    fields: Sequence[pa.Field],
) -> list[int]:
    """Write the row groups of some ranks of the dataset; return the rank of each row group."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    groups = list(enumerate(pairwise(np.cumsum([0, *sizes]).tolist())))
    read = functools.lru_cache(maxsize=1)(
        lambda group, columns: file.read_row_group(group, list(columns) if columns else None)
    )
    written = []
    with TableWriter(path, "features", [*SCHEMAS["kept"], *fields]) as writer:
        for rank, low, high in mine:

            def pieces(*columns: str, low: int = low, high: int = high) -> Iterator[pa.Table]:
                for group, (begin, end) in groups:
                    if begin < high and end > low:
                        yield read(group, columns).slice(max(low - begin, 0), min(high, end) - max(low, begin))

            known = context.of(rank, pieces) if context else {}
            begin = 0
            for piece in pieces():
                end = begin + piece.num_rows
                part = {name: values[begin:end] for name, values in known.items()}
                writer.write(features_of(piece, part, exports, target)[0])
                written.append(rank)
                begin = end
    return written
