"""Write the launches of kept and control bins, with what is known about each.

Each worker makes whole row groups (`selection`): it reads the launches of the bins that these cover, and encodes
what it finds into a part of its own. Rank 0 then copies the row groups into one table.

The bins say how many rows each chosen bin has, so the rows have numbers before they are read. They are written in row
groups of a size that depends on the table alone, and each worker makes consecutive whole row groups: the result is the
same however many workers there are.
"""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.errors import CausewayError
from causeway.core.schemas import LAUNCH_FACTS
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, TableWriter, copy_row_groups, extended
from causeway.events.few_values import by_value
from causeway.numeric.compiled import I4, I8, compiled, int64, void
from causeway.variability.bins.bins import BinTable
from causeway.variability.bins.passes import Plan, positioned
from causeway.variability.rows.dataset import PreparedDataset
from causeway.variability.rows.sources import Source
from causeway.variability.rows.targets import Deviation, Sample, Stall
from causeway.variability.rows.transfer_links import NONE, UNKNOWN
from causeway.variability.rows.transfers import Exposure, LinkedTransfers


class Selection:
    """The chosen bins of a target, in the order of `kept.parquet`: by rank of the traced program, then by time.

    Parameters
    ----------
    ranking : Table
        `ranking.parquet`, whose rows are in the order of `bins`.
    bins : BinTable
        Of the target.
    group_rows : int
        Rows per row group.

    Attributes
    ----------
    rank, bin : ndarray of int64, shape (bins,)
    kept : ndarray of bool
    probability : ndarray of float64
    first : ndarray of int64, shape (bins + 1,)
        Number of each bin's first row; the last is the number of all rows.
    """

    def __init__(self, ranking: pa.Table, bins: BinTable, group_rows: int) -> None:
        kept, control = (ranking.column(name).to_numpy() for name in ("kept", "control"))
        chosen = np.flatnonzero(kept | control)
        self.rank = bins.rank[chosen]
        self.bin = bins.bin[chosen]
        self.kept = kept[chosen]
        self.probability = ranking.column("inclusion_probability").to_numpy()[chosen]
        self.first = np.concatenate(([0], np.cumsum(bins.count[chosen])))
        self.group_rows = group_rows

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.first[-1])

    @property
    def groups(self) -> int:
        """Number of row groups."""
        return -(-self.rows // self.group_rows)

    def rows_of(self, group: int) -> int:
        """Return how many rows a row group has."""
        return min(self.rows - group * self.group_rows, self.group_rows)

    def part(self, source: Source, worker: int, size: int) -> "SelectedBins":
        """Return the bins of a source that a worker, of `size` in all, reads for its row groups."""
        low, high = (min(self.groups * number // size * self.group_rows, self.rows) for number in (worker, worker + 1))
        reached = (self.first[1:] > low) & (self.first[:-1] < high)
        by_rank = [np.flatnonzero(reached & (self.rank == rank)) for rank in source.ranks]
        chosen = np.concatenate(by_rank)
        return SelectedBins(
            chosen,
            self.bin[chosen],
            np.cumsum([0, *(bins.size for bins in by_rank)]),
            self.first[chosen],
            low,
            high,
        )


@dataclass
class SelectedBins:
    """Chosen bins of one source and the rows of them that one worker writes: those numbered from `low` up to `high`.

    Attributes
    ----------
    chosen : ndarray of int64, shape (bins,)
        Indices in the selection.
    bin : ndarray of int64, shape (bins,)
        The bins' numbers; those of the source's k-th rank are `bin[begin[k]:begin[k + 1]]`, ascending.
    begin : ndarray of int64, shape (ranks + 1,)
    next_row : ndarray of int64, shape (bins,)
        Number of each bin's next row.
    low, high : int
    """

    chosen: np.ndarray
    bin: np.ndarray
    begin: np.ndarray
    next_row: np.ndarray
    low: int
    high: int

    def meets(self, first: int, last: int, width: int) -> bool:
        """Return whether rows at the positions `first` to `last` may lie in these bins."""
        return bool(((self.bin >= first // width) & (self.bin <= last // width)).any())

    def rows(self, sample: Sample, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows of a sample lie in these bins (ascending indices), and each one's index in `bin`."""
        row = np.empty(sample.position.size, np.int64)
        index = np.empty(sample.position.size, np.int64)
        n = _choose(sample.rank_index, sample.position, width, self.bin, self.begin, row, index)
        return row[:n], index[:n]

    def number(self, index: np.ndarray) -> np.ndarray:
        """Return the numbers in the table of rows that come next, given the index of each one's bin; int64."""
        numbers = np.empty(index.size, np.int64)
        _number(index, self.next_row, numbers)
        return numbers


@compiled(int64(I4, I8, int64, I8, I8, int64[::1], int64[::1]))
def _choose(rank_index, position, width, bins, first, row, index):
    n = np.int64(0)
    last_rank = np.int64(-1)
    begin = np.int64(0)
    end = np.int64(0)
    match = np.int64(-1)
    for i in range(position.size):
        if rank_index[i] != last_rank or position[i] < begin or position[i] >= end:
            last_rank = np.int64(rank_index[i])
            bin_ = position[i] // width
            begin = bin_ * width
            end = (bin_ + 1) * width
            low = first[last_rank]
            high = first[last_rank + 1]
            k = low + np.searchsorted(bins[low:high], bin_)
            match = k if k < high and bins[k] == bin_ else np.int64(-1)
        if match >= 0:
            row[n] = i
            index[n] = match
            n += 1
    return n


@compiled(void(I8, int64[::1], int64[::1]))
def _number(index, next_row, numbers):
    for i in range(index.size):
        numbers[i] = next_row[index[i]]
        next_row[index[i]] += 1


GROUP_ROWS = 1 << 17
GROUP_VALUES = 1 << 22
LEAST_ROWS = 1 << 10
"""Rows of a row group, and its values: the number of columns is some forty, or thousands."""
TRACE_FACTS = ("duration_ns", "device", "stream", *LAUNCH_FACTS.names, "range")
TRANSFER_FACTS = {
    "transfer_bytes": pa.field("transfer_bytes", pa.int64(), metadata={"unit": "bytes"}),
    "transfer_copy_kind": pa.field("transfer_copy_kind", pa.uint8()),
    **{
        name: pa.field(name, pa.int64(), metadata={"unit": "ns"})
        for name in ("transfer_start_ns", "transfer_duration_ns", "transfer_overlap_ns", "exposed_transfer_ns")
    },
}


def trace_fields() -> list[pa.Field]:
    """Return the columns of a trace's `kept.parquet` behind those of the schema."""
    launches = SCHEMAS["launches"]
    shapes = SCHEMAS["configurations"]
    fields = [launches.field(name).with_nullable(True) for name in TRACE_FACTS]
    return [*fields, *(shapes.field(name) for name in LAUNCH_SHAPE), *TRANSFER_FACTS.values()]


def counter_fields(sources: list[Source], target: str) -> list[pa.Field]:
    """Return the same for counters: device, launch shape and every other metric, in the order in which exports name
    them.

    A metric that has different types in two exports becomes text. A metric named like a part of the launch shape
    replaces it.

    Raises
    ------
    CausewayError
        If a metric has the name of a column of `kept` itself.
    """
    base = SCHEMAS["counters"]
    own = set(SCHEMAS["kept"].names)
    metrics: dict[str, pa.Field] = {}
    for source in sources:
        for metric in source.rows.schema:
            if metric.name in base.names or metric.name == target:
                continue
            if metric.name in own:
                raise CausewayError(
                    f"{source.rows.path}: column {metric.name} has a name with a meaning of its own; rename it"
                )
            previous = metrics.get(metric.name)
            kind = metric.type if previous is None or previous.type == metric.type else pa.string()
            metrics[metric.name] = pa.field(metric.name, kind, metadata=(previous or metric).metadata)
    shape = [SCHEMAS["configurations"].field(name) for name in LAUNCH_SHAPE if name not in metrics]
    return [base.field("device"), *shape, *metrics.values()]


def row_group_rows(dataset: PreparedDataset, extra: list[pa.Field]) -> int:
    """Return the rows of a row group: a worker has one under way for each rank of a source, in some ten numbers per
    row.
    """
    columns = len(SCHEMAS["kept"]) + len(extra)
    ranks = max(len(source.ranks) for source in dataset.sources)
    return max(LEAST_ROWS, min(GROUP_ROWS, GROUP_VALUES // columns) // ranks)


@dataclass
class KeptPlan:
    """What every worker knows for writing kept rows: one selection, list of further columns and folder of parts per
    target.
    """

    plan: Plan
    selections: list[Selection]
    extra: list[list[pa.Field]]
    folders: list[Path]


def write_parts(kept: KeptPlan, worker: int, size: int) -> list[list[int]]:
    """Write a worker's row groups of every target; return their numbers, in their order in its parts."""
    plan = kept.plan
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(PartWriter(folder / f"{worker}.parquet", plan, target, selection, extra))
            for folder, target, selection, extra in zip(
                kept.folders, plan.targets, kept.selections, kept.extra, strict=True
            )
        ]
        for source in plan.dataset.sources:
            parts = [selection.part(source, worker, size) for selection in kept.selections]
            if any(part.bin.size for part in parts):
                _write_source(plan, source, parts, writers)
    return [writer.written for writer in writers]


def _write_source(plan: Plan, source: Source, parts: list[SelectedBins], writers: list["PartWriter"]) -> None:
    """Read a source once for all targets."""
    sampler = plan.dataset.sampler
    width = plan.dataset.widths[0]
    groups = source.rows.groups
    if source.splittable:
        groups = [group for group in groups if any(part.meets(*source.reach(group), width) for part in parts)]
    window = plan.window(source)
    exposure = Exposure(source, plan.launch_ends[source.export])
    columns = list(
        dict.fromkeys(
            [*sampler.columns(), *plan.link_columns(), *(name for writer in writers for name in writer.extra)]
        )
    )
    for chunk, position in positioned(source, columns, groups):
        sample = sampler.sample(source, chunk, position)
        rows = [part.rows(sample, width) for part in parts]
        union = np.zeros(sample.position.size, bool)
        for row, _ in rows:
            union[row] = True
        sample = sample.take(np.flatnonzero(union))
        linked = window.link(sample.chunk)
        chosen = ChosenRows(sample, linked, exposure.of(linked))
        index_of = np.cumsum(union) - 1
        for part, writer, (row, bins) in zip(parts, writers, rows, strict=True):
            writer.add(source, chosen.take(index_of[row]), part, bins)


@dataclass
class ChosenRows:
    """Rows that lie in chosen bins; of a trace with their transfers, and how many ns of these are exposed (int64)."""

    sample: Sample
    linked: LinkedTransfers
    exposed: np.ndarray

    def take(self, rows: np.ndarray) -> "ChosenRows":
        """Return the rows with ascending indices (int64)."""
        return ChosenRows(self.sample.take(rows), self.linked.take(rows), self.exposed[rows])


class PartWriter:
    """Gathers a worker's rows of one target until a row group is whole, and writes it; to be used in a `with` block.

    Parameters
    ----------
    path : Path
        The part, on a file system that all ranks see.
    plan : Plan
    target : Deviation or Stall
    selection : Selection
    extra : list of Field
        Columns behind those of the schema, from `trace_fields` or `counter_fields`.

    Attributes
    ----------
    written : list of int
        Numbers of the row groups in the part.
    """

    def __init__(
        self, path: Path, plan: Plan, target: Deviation | Stall, selection: Selection, extra: list[pa.Field]
    ) -> None:
        self.target = target
        self.selection = selection
        self.schema = extended("kept", extra)
        self.extra = [field.name for field in extra]
        self.shapes = plan.dataset.sampler.configurations.shapes()
        given = {name for source in plan.dataset.sources for name in source.rows.columns}
        self._own = [name for name in self.extra if name in given]
        self.traced = plan.traced
        self.written: list[int] = []
        self._waiting: dict[int, list[dict[str, np.ndarray | pa.Array]]] = {}
        self._rows: dict[int, int] = {}
        self._writer = TableWriter(path, "kept", extra)

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(self, failure: object, *more: object) -> None:
        self._writer.__exit__(failure, *more)
        if failure is None and self._waiting:
            raise RuntimeError(
                f"row groups {sorted(self._waiting)} of {self.target.name} lack rows that its bins counted"
            )

    def add(self, source: Source, chosen: ChosenRows, part: SelectedBins, bins: np.ndarray) -> None:
        """Add rows of a source, which lie in the part's bins with the indices `bins`."""
        if isinstance(self.target, Stall):
            has = np.flatnonzero(chosen.linked.is_linked)
            chosen = chosen.take(has)
            bins = bins[has]
        number = part.number(bins)
        wanted = (number >= part.low) & (number < part.high)
        for group, rows in by_value(np.where(wanted, number // self.selection.group_rows, NONE)):
            if group == NONE:
                continue
            here = np.arange(number.size) if rows is None else rows
            piece = self._piece(source, chosen.take(here)) | {"number": number[here], "chosen": part.chosen[bins[here]]}
            self._waiting.setdefault(group, []).append(piece)
            self._rows[group] = self._rows.get(group, 0) + here.size
            if self._rows[group] == self.selection.rows_of(group):
                self._writer.write(self._table(self._waiting.pop(group)))
                self.written.append(group)

    def _piece(self, source: Source, chosen: ChosenRows) -> dict[str, np.ndarray | pa.Array]:
        """Return what must be remembered of some rows until their row group is whole."""
        sample = chosen.sample
        linked = chosen.linked
        piece = {
            "launch": sample.chunk.numbers(),
            "start_ns": (
                sample.position + source.origin_ns if source.timed else pa.nulls(sample.position.size, pa.int64())
            ),
            "configuration": sample.configuration,
            "group": sample.group,
            "measured": self.target.measured(sample, linked),
        }
        if self.traced:
            start = linked.of("start")
            piece |= {
                "is_linked": linked.is_linked,
                "bytes": linked.of("bytes"),
                "transfer_copy_kind": linked.of("copy_kind").astype(np.uint8),
            }
            piece |= {
                "transfer_start_ns": source.clock.aligned(start),
                "transfer_duration_ns": linked.of("end") - start,
            }
            piece |= {"transfer_overlap_ns": linked.overlap, "exposed_transfer_ns": chosen.exposed}
        for name in self._own:
            if name in source.rows.columns:
                column = sample.chunk.arrow(name)
            elif name in LAUNCH_SHAPE:
                column = self.shapes.column(name).take(pa.array(sample.configuration)).combine_chunks()
            else:
                column = pa.nulls(sample.position.size)
            piece[name] = column.cast(self.schema.field(name).type)
        return piece

    def _table(self, pieces: list[dict[str, np.ndarray | pa.Array]]) -> pa.Table:
        """Return a whole row group of `kept.parquet`."""
        columns = {name: _joined([piece[name] for piece in pieces]) for name in pieces[0]}
        if (np.diff(columns["number"]) < 0).any():  # ranks of one source, read in the order of time
            order = np.argsort(columns["number"])
            columns = {
                name: column.take(pa.array(order) if isinstance(column, pa.Array) else order)
                for name, column in columns.items()
            }
        chosen = columns["chosen"]
        group = columns["group"]
        target, signed = self.target.finished(columns["measured"], group)
        std = self.target.std[group]
        shapes = self.shapes.take(pa.array(columns["configuration"]))
        columns |= {
            "rank": self.selection.rank[chosen],
            "bin": self.selection.bin[chosen],
            "kernel": shapes.column("kernel"),
            "target": target,
            "signed_deviation": signed,
            "configuration_mean": self.target.mean[group],
            "configuration_std": pa.array(std, mask=np.isnan(std)),
            "kept": self.selection.kept[chosen],
            "inclusion_probability": self.selection.probability[chosen],
        }
        if "is_linked" in columns:
            none = ~columns["is_linked"]
            columns["transfer_bytes"] = pa.array(columns["bytes"], mask=none | (columns["bytes"] == UNKNOWN))
            for name in TRANSFER_FACTS.keys() - {"transfer_bytes"}:
                columns[name] = pa.array(columns[name], mask=none)
        for name in self.extra:
            if name not in columns:
                columns[name] = (
                    shapes.column(name) if name in LAUNCH_SHAPE else pa.nulls(chosen.size, self.schema.field(name).type)
                )
        return pa.table({name: columns[name] for name in self.schema.names}).cast(self.schema).combine_chunks()


def _joined(pieces: list[np.ndarray | pa.Array]) -> np.ndarray | pa.Array:
    return pa.concat_arrays(pieces) if isinstance(pieces[0], pa.Array) else np.concatenate(pieces)


def fresh_folder(folder: Path) -> None:
    """Make an empty folder for parts; what a killed run left behind is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def join_parts(
    folder: Path, written: list[list[int]], path: Path, extra: list[pa.Field], metadata: dict[str, str]
) -> None:
    """Concatenate the row groups of all workers into `kept.parquet`, and remove the parts.

    Parameters
    ----------
    folder : Path
        Holds `<worker>.parquet` of each worker.
    written : list over workers of list of int
        The numbers of the row groups in each part.
    path : Path
        The file to write.
    extra, metadata
        As in `write_table`.
    """
    order = sorted(
        (group, worker, ordinal) for worker, groups in enumerate(written) for ordinal, group in enumerate(groups)
    )
    with TableWriter(path, "kept", extra, metadata) as writer:
        copy_row_groups(((folder / f"{worker}.parquet", ordinal) for _, worker, ordinal in order), writer)
    shutil.rmtree(folder)
