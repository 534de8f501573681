"""Scopes: which kernels matter, and the observations and features of a scope out of `features.parquet`."""

import hashlib
import json
import math
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.causal.data.feature_names import UNSEARCHED, leaked_by_name
from causeway.causal.data.observations import FEWEST_LAUNCHES, Drop, Dropped, Feature, Observations
from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.feature_registry import FEATURE_BY_NAME, MISSING_SUFFIX, MISSING_VALUES
from causeway.core.names.prior_knowledge import Knowledge
from causeway.core.tables import SCHEMAS, open_table, read_table, stretches_of, table_metadata
from causeway.events.distinct_texts import distinct_texts

IDENTITY = tuple(SCHEMAS["kept"].names)
DATASET_SCOPE = "dataset"
BLOCK = ("kernel", "rank", "bin")
"""A block is what a cap takes as a whole: the rows of a kernel in a bin. Rows are chosen by blocks before any
feature is read.
"""
BESIDE_TIMES = "counters of launches with times are not searched"
"""Why these are no candidates."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a dataset: id, full name, its share of the sum of the target, and whether it is a collective."""

    id: str
    name: str
    share: float
    is_collective: bool = False


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What the kept rows of a dataset stand for: all launches of the run.

    Attributes
    ----------
    time : mapping of str to float
        By kernel id, the sum of the measured values.
    launches : mapping of str to int
        By kernel id.
    is_time : bool
        The measured values are times, ns; else no sum of them is GPU time.
    collectives : collection of str
        Ids of the kernels whose time includes waiting for the last rank.
    """

    time: Mapping[str, float]
    launches: Mapping[str, int]
    is_time: bool = True
    collectives: Collection[str] = ()


def totals_of(path: str | Path) -> Totals:
    """Return the totals of the kernels in `kernels.parquet`."""
    rows = read_table(path, "kernel_summary", ["kernel", "class", "value_sum", "launches"]).to_pylist()
    return Totals(
        time={row["kernel"]: row["value_sum"] for row in rows},
        launches={row["kernel"]: row["launches"] for row in rows},
        is_time=table_metadata(path).get("value_unit", "") == "ns",
        collectives=frozenset(row["kernel"] for row in rows if row["class"] == COMMUNICATION_KERNEL),
    )


def variance_shares(path: str | Path) -> dict[str, float]:
    """Return by kernel id the share of the dataset's variance within configurations, 0 to 1, in the measured value's
    own unit squared, from all launches in `configurations.parquet`; nothing where none varies.
    """
    rows = read_table(path, "configuration_summary", ["kernel", "launches", "std"]).to_pylist()
    squares: dict[str, list[float]] = {}
    for row in rows:
        squares.setdefault(row["kernel"], []).append((row["launches"] - 1) * (row["std"] or 0.0) ** 2)
    sums = {kernel: math.fsum(parts) for kernel, parts in squares.items()}
    total = math.fsum(sums.values())
    return {kernel: own / total for kernel, own in sums.items()} if total > 0 else {}


def kernels_that_matter(path: str | Path, share: float, count: int) -> list[Kernel]:
    """Return the kernels that carry the target, largest share first: until they sum to `share`, at most `count`."""
    table = read_table(path, "kernel_summary", ["kernel", "name", "class", "target_share"])
    rows = sorted(table.to_pylist(), key=lambda row: (-row["target_share"], row["kernel"]))
    chosen: list[Kernel] = []
    total = 0.0
    for row in rows:
        if len(chosen) >= count or total >= share or not row["target_share"] > 0:
            break
        chosen.append(Kernel(row["kernel"], row["name"], row["target_share"], row["class"] == COMMUNICATION_KERNEL))
        total += row["target_share"]
    return chosen


def only_kernel(path: str | Path, share: float, count: int) -> Kernel | None:
    """Return the kernel that matters of a dataset that has no other: what holds for the whole dataset holds for it."""
    kernels = kernels_that_matter(path, share, count)
    return kernels[0] if kernels and read_table(path, "kernel_summary", ["kernel"]).num_rows == 1 else None


def kernel_names(path: str | Path) -> dict[str, str]:
    """Return the full names of a dataset's kernels by their ids."""
    table = read_table(path, "kernel_summary", ["kernel", "name"])
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def unsearched_counters(path: str | Path) -> list[Dropped]:
    """Return the counters of the launches in `features.parquet` that are no features of it, by name; none whose name
    gives it away as the time.
    """
    names = json.loads(table_metadata(path).get(UNSEARCHED, "[]"))
    return [Dropped(name, BESIDE_TIMES, Drop.NOT_SEARCHED) for name in names if not leaked_by_name(name, "gpu_time")]


def row_blocks(path: str | Path) -> pa.Table:
    """Return the blocks of `features.parquet`, counted stretch by stretch.

    Returns
    -------
    Table
        A row per block, ascending; columns kernel, rank, bin and rows (int64), how many rows the block has.
    """
    with open_table(path, "features") as file:
        parts = [
            _counted(file.read_row_groups(groups, list(BLOCK)), [([], "count_all")]) for groups in stretches_of(file)
        ]
        empty = pa.schema(
            [*(file.schema_arrow.field(name) for name in BLOCK), pa.field("rows", pa.int64())]
        ).empty_table()
    whole = _counted(pa.concat_tables([empty, *parts]), [("rows", "sum")])
    return whole.sort_by([(name, "ascending") for name in BLOCK])


def _counted(table: pa.Table, counts: list) -> pa.Table:
    return table.group_by(list(BLOCK), use_threads=False).aggregate(counts).rename_columns([*BLOCK, "rows"])


def read_features(path: str | Path, blocks: pa.Table) -> pa.Table:
    """Return the rows of `features.parquet` that lie in some blocks; beside these, one stretch is in memory.

    Parameters
    ----------
    path : path
    blocks : Table
        Some rows of `row_blocks`: columns kernel, rank and bin.

    Returns
    -------
    Table
        All columns of the file, rows in its order.
    """
    with open_table(path, "features") as file:
        return pa.concat_tables([file.schema_arrow.empty_table(), *chosen_rows(file, blocks)])


def chosen_rows(file: pq.ParquetFile, blocks: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of `features.parquet`, all columns, that lie in some blocks, a stretch of row groups at a time; a
    stretch without any is not read.

    Parameters
    ----------
    file : ParquetFile
    blocks : Table
        Some rows of `row_blocks`: columns kernel, rank and bin.
    """
    values = [blocks.column(name).combine_chunks().unique() for name in BLOCK]

    def codes(table: pa.Table) -> np.ndarray:
        """Return a number for each row, the same within a block; -1 where no part of `blocks` has such a kernel,
        rank or bin.
        """
        number = np.zeros(table.num_rows, np.int64)
        inside = np.ones(table.num_rows, bool)
        for name, all_values in zip(BLOCK, values, strict=True):
            code = pc.index_in(table.column(name), all_values).fill_null(-1).to_numpy()
            number = number * len(all_values) + code
            inside = inside & (code >= 0)
        return np.where(inside, number, -1)

    wanted = codes(blocks)
    for groups in stretches_of(file):
        chosen = np.isin(codes(file.read_row_groups(groups, list(BLOCK))), wanted)
        if chosen.any():
            yield file.read_row_groups(groups).filter(pa.array(chosen))


class PackedFeatures:
    """Rows of `features.parquet` for several kernels, read once and held in a temporary file: one kernel at a time is
    in memory.

    Parameters
    ----------
    schema : Schema
    tables : iterable of Table
        The rows, with the columns of `schema`, kernel among them.

    Notes
    -----
    The kernels' rows lie in all row groups, so that reading kernel by kernel would decode the file once for each.
    """

    def __init__(self, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        self._schema = schema
        self._parts: dict[str, list[tuple[int, int]]] = {}  # starts and sizes in the file
        # buffered: a raw file may write or read a part of what it is asked for
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        for table in tables:
            for kernel in table.column("kernel").unique().to_pylist():
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                    writer.write_table(of_kernel(table, kernel).combine_chunks())
                self._parts.setdefault(kernel, []).append((self._file.tell(), sink.tell()))
                self._file.write(sink.getvalue())

    def taken(self, kernel: str) -> pa.Table:
        """Return the rows of a kernel, which are no longer held then.

        Returns
        -------
        Table
            All columns of the schema, rows in their order; without rows for a kernel that has none or was taken.
        """
        parts = []
        for start, size in self._parts.pop(kernel, []):
            self._file.seek(start)
            parts.append(pa.ipc.open_stream(self._file.read(size)).read_all())
        return pa.concat_tables([self._schema.empty_table(), *parts])


def in_time_order(table: pa.Table) -> pa.Table:
    """Sort rows by start over all ranks (unknown starts: by position), so that neighbours in the table are
    neighbours in time.

    Parameters
    ----------
    table : Table
        Some rows of `features.parquet`, all its columns.

    Returns
    -------
    Table
        The same rows and columns.
    """
    columns = [table.column(name).to_numpy(zero_copy_only=False) for name in ("launch", "rank")]
    start = table.column("start_ns")
    order = np.lexsort(columns[::-1] if start.null_count else [columns[0], columns[1], start.to_numpy()])
    return table.take(pa.array(order))


def capped(blocks: pa.Table, max_rows: int, seed: int) -> pa.Table:
    """Return blocks of a kernel with at most about `max_rows` rows, chosen by a hash, never by position or outcome.

    Parameters
    ----------
    blocks : Table
        Rows of `row_blocks` of one kernel: columns kernel, rank, bin, rows.
    max_rows, seed : int

    Returns
    -------
    Table
        Some rows of `blocks` with all columns, in their order; at least one.
    """
    rows = blocks.column("rows").to_numpy()
    if rows.sum() <= max_rows:
        return blocks
    names = zip(blocks.column("rank").to_pylist(), blocks.column("bin").to_pylist(), strict=True)
    hashes = [hashlib.sha256(f"{seed}/{rank}/{number}".encode()).digest() for rank, number in names]
    order = sorted(range(len(hashes)), key=lambda i: hashes[i])
    reached = np.cumsum(rows[order])
    return blocks.take(pa.array(sorted(order[: max(1, int(np.searchsorted(reached, max_rows, side="right")))])))


def observations_of(table: pa.Table, equal_kernels: bool = False) -> Observations:
    """Return the observations of a table of features.

    Parameters
    ----------
    table : Table
        Rows of `features.parquet` in time order, with the columns that identify and weigh a row.
    equal_kernels : bool
        Weigh every kernel alike, however often it was launched.
    """

    def numbers(name: str) -> np.ndarray:
        return table.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False).astype(float)

    target = numbers("target")
    signed = numbers("signed_deviation")
    mean = numbers("configuration_mean")
    names, kernel = distinct_texts(table.column("kernel").to_pylist())
    own = table.column("configuration").to_numpy().astype(np.int64)
    pair = np.unique(kernel * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    chance = numbers("inclusion_probability")
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(chance > 0, 1.0 / chance, np.nan)
    if equal_kernels and len(own):
        weight = weight / np.bincount(kernel, np.nan_to_num(weight))[kernel] * len(own)
    finite = np.isfinite(target) & np.isfinite(signed)
    absolute = bool(np.allclose(target[finite], np.abs(signed[finite]), rtol=1e-6, atol=1e-9)) if finite.any() else True
    launch = np.zeros(len(own), [("rank", np.int64), ("launch", np.int64), ("start_ns", np.int64)])
    for name in launch.dtype.names or () if "launch" in table.column_names else ():
        launch[name] = pc.fill_null(table.column(name).cast(pa.int64()), 0).to_numpy()
    return Observations(
        target,
        signed,
        mean,
        numbers("configuration_std"),
        weight,
        kernel,
        pair,
        absolute,
        tuple(names.tolist()),
        numbers=own,
        launch=launch if "launch" in table.column_names else None,
    )


def feature_columns(table: pa.Table, own: tuple[Knowledge, ...] = ()) -> list[Feature]:
    """Return the features of a table, and the rank as a category where there are several.

    With gaps, a counter or a number of a user's own table also gives a category: whether it is recorded. What a trace
    gives is missing by what happened. That category is a reading, whatever `own` says of the column.

    Parameters
    ----------
    table : Table
        Rows of `features.parquet`; unit, tier and group of each feature stand in the metadata of its columns.
    own : tuple of Knowledge
        Rows of a user's own on the columns.
    """
    features = []
    for position, field in enumerate(table.schema):
        if field.name in IDENTITY:
            continue
        facts = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        values = table.column(position)
        text = pa.types.is_string(field.type) or pa.types.is_dictionary(field.type) or pa.types.is_boolean(field.type)
        array = _texts(values) if text else values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        described = {name: facts[name] for name in ("tier", "group", "unit", "raw", "counts") if name in facts}
        features.append(Feature(field.name, array, **described, own=own))
        recorded = np.ones(1, bool) if text else np.isfinite(array)
        if features[-1].tier == "counter" and field.name not in FEATURE_BY_NAME and np.unique(recorded).size > 1:
            words = np.where(recorded, "recorded", "missing").astype(object)
            features.append(Feature(field.name + MISSING_SUFFIX, words, group=MISSING_VALUES))
    if pc.count_distinct(table.column("rank")).as_py() > 1:
        rank = FEATURE_BY_NAME["rank"]
        features.append(Feature(rank.name, _texts(table.column("rank")), rank.tier, rank.group))
    return features


def _texts(values: pa.ChunkedArray) -> np.ndarray:
    """Return a column as texts, None where missing; each is one object, however many rows have it."""
    encoded = values.cast(pa.string()).dictionary_encode().combine_chunks()
    levels = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return levels[encoded.indices.fill_null(len(levels) - 1).to_numpy()]


def pooled(blocks: pa.Table, max_rows: int, seed: int) -> pa.Table:
    """Return the blocks of all kernels with enough rows (of all if none has), each kernel's capped at an equal part of
    `max_rows`.

    Parameters
    ----------
    blocks : Table
        `row_blocks`: columns kernel, rank, bin, rows.
    max_rows, seed : int

    Returns
    -------
    Table
        Some rows of `blocks` with all columns, by kernel.
    """
    counts = blocks.group_by("kernel").aggregate([("rows", "sum")]).to_pylist()
    chosen = [row["kernel"] for row in counts if row["rows_sum"] >= FEWEST_LAUNCHES] or [
        row["kernel"] for row in counts
    ]
    parts = [
        capped(of_kernel(blocks, kernel), max(max_rows // max(len(chosen), 1), 1), seed) for kernel in sorted(chosen)
    ]
    return pa.concat_tables([blocks.slice(0, 0), *parts])


def of_kernel(table: pa.Table, kernel: str) -> pa.Table:
    """Return the rows of a table (any with a column kernel; all columns are kept) that belong to a kernel."""
    return table.filter(pc.equal(table.column("kernel"), kernel))
