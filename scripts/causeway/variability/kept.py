"""Write the launches of kept and control bins, with what is known about each.

Every rank reads again only the row groups that hold chosen bins and writes what it finds into a part of its own; rank 0 strings the parts
together, in the order of the traced program's ranks and of time, in row groups whose size does not depend on the parts.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from numba import njit

from causeway.errors import CausewayError
from causeway.tables import LAUNCH_SHAPE, SCHEMAS, TableWriter, extended
from causeway.variability.links import by_value
from causeway.variability.sources import Share, Source
from causeway.variability.targets import Deviation, Sample, Sampler, Stall
from causeway.variability.transfers import UNKNOWN, Exposure, Linked, TransferWindow

PIECE_ROWS, GROUP_ROWS = 1 << 16, 1 << 17
"""Rows that are put together, and written, at once: kept rows have some forty columns, or thousands."""
TRACE_FACTS = ("duration_ns", "device", "stream", "queue_ns", "range")
TRANSFER_FACTS = {
    "transfer_bytes": pa.field("transfer_bytes", pa.int64(), metadata={"unit": "bytes"}),
    "transfer_copy_kind": pa.field("transfer_copy_kind", pa.uint8()),
    **{
        name: pa.field(name, pa.int64(), metadata={"unit": "ns"})
        for name in ("transfer_start_ns", "transfer_duration_ns", "transfer_overlap_ns", "exposed_transfer_ns")
    },
}


class Chosen:
    """The chosen bins of every rank of one source, for a quick look-up by row.

    Parameters
    ----------
    ranking : Table
        `ranking.parquet`.
    source : Source
    width : int
        Positions per bin.
    """

    def __init__(self, ranking: pa.Table, source: Source, width: int) -> None:
        rank, number, kept, control = (ranking.column(name).to_numpy() for name in ("rank", "bin", "kept", "control"))
        chance = ranking.column("inclusion_probability").to_numpy()
        self.width = width
        parts = [np.flatnonzero((rank == own) & (kept | control)) for own in source.ranks]
        rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
        self.bin, self.kept, self.probability = number[rows].astype(np.int64), kept[rows], chance[rows]
        self.first = np.cumsum([0] + [part.size for part in parts])
        self._sorted = np.unique(self.bin)

    def any_between(self, first: int, last: int) -> bool:
        """Return whether a chosen bin may hold positions from `first` to `last`."""
        place = np.searchsorted(self._sorted, first // self.width)
        return place < self._sorted.size and self._sorted[place] <= last // self.width

    def rows(self, number: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows lie in chosen bins (ascending indices), and the place of each one's bin."""
        row, place = np.empty(position.size, np.int64), np.empty(position.size, np.int64)
        n = _choose(number, position, self.width, self.bin, self.first, row, place)
        return row[:n].copy(), place[:n].copy()


@njit(cache=True)
def _choose(number, position, width, bins, first, row, place):
    n = 0
    last_number, begin, end, found = -1, 0, 0, -1
    for i in range(position.size):
        if number[i] != last_number or position[i] < begin or position[i] >= end:
            last_number = number[i]
            bin_ = position[i] // width
            begin, end = bin_ * width, (bin_ + 1) * width
            low, high = first[last_number], first[last_number + 1]
            k = low + np.searchsorted(bins[low:high], bin_)
            found = k if k < high and bins[k] == bin_ else -1
        if found >= 0:
            row[n], place[n] = i, found
            n += 1
    return n


def trace_fields() -> list[pa.Field]:
    """Return the columns of a trace's `kept.parquet` behind those of the schema."""
    launches, shapes = SCHEMAS["launches"], SCHEMAS["configurations"]
    fields = [launches.field(name).with_nullable(True) for name in TRACE_FACTS]
    return [*fields, *(shapes.field(name) for name in LAUNCH_SHAPE), *TRANSFER_FACTS.values()]


def counter_fields(sources: list[Source], target: str) -> list[pa.Field]:
    """Return the same for counters: device, launch shape and every other metric, in the order in which exports name them.

    A metric that has different types in two exports becomes text. A metric named like a part of the launch shape replaces it.

    Raises
    ------
    CausewayError
        If a metric has the name of a column of `kept` itself.
    """
    base, own = SCHEMAS["counters"], set(SCHEMAS["kept"].names)
    metrics: dict[str, pa.Field] = {}
    for source in sources:
        for field in source.rows.file.schema_arrow:
            if field.name in base.names or field.name == target:
                continue
            if field.name in own:
                raise CausewayError(f"{source.rows.path}: column {field.name} has a name with a meaning of its own; rename it")
            known = metrics.get(field.name)
            kind = field.type if known is None or known.type == field.type else pa.string()
            metrics[field.name] = pa.field(field.name, kind, metadata=(known or field).metadata)
    shape = [SCHEMAS["configurations"].field(name) for name in LAUNCH_SHAPE if name not in metrics]
    return [base.field("device"), *shape, *metrics.values()]


class KeptRows:
    """Writes this rank's share of `kept.parquet` as a part; to be used in a `with` block.

    Parameters
    ----------
    path : Path
        The part's file, on a file system that all ranks see.
    sampler : Sampler
    target : Deviation or Stall
    extra : list of Field
        From `trace_fields` or `counter_fields`.

    Attributes
    ----------
    entries : list of (int, int)
        Rank of the traced program and rows, of each batch in the file.
    """

    def __init__(self, path: Path, sampler: Sampler, target: Deviation | Stall, extra: list[pa.Field]) -> None:
        self.sampler, self.target = sampler, target
        self.schema = extended("kept", extra)
        self.extra = [field.name for field in extra]
        self.shapes = sampler.configurations.shapes()
        self.entries: list[tuple[int, int]] = []
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self.schema)

    def __enter__(self) -> "KeptRows":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._sink.close()

    def write(self, share: Share, chosen: Chosen, window: TransferWindow | None, exposure: Exposure | None) -> None:
        """Write the rows of chosen bins in a share; traces have a window over their transfers and a measure of exposure."""
        offset, groups = share.source.offset, share.groups()
        if share.source.splittable:
            groups = [group for group in groups if chosen.any_between(group.first + offset, group.last + offset)]
        for chunk, position in share.chunks([*self.sampler.columns(), *self.extra], groups):
            sample = self.sampler.sample(share.source, chunk, position)
            row, place = chosen.rows(sample.number, sample.position)
            linked = None if window is None else window.link(chunk, row)
            if isinstance(self.target, Stall):
                has = np.flatnonzero(linked.found)
                row, place, linked = row[has], place[has], linked.take(has)
            for begin in range(0, row.size, PIECE_ROWS):
                piece = slice(begin, begin + PIECE_ROWS)
                near = None if linked is None else linked.take(piece)
                facts = {} if near is None else transfer_columns(share.source, near, exposure)
                self._write(share.source, pick(sample, row[piece]), chosen, place[piece], near, facts)

    def _write(
        self, source: Source, sample: Sample, chosen: Chosen, place: np.ndarray, linked: Linked | None, facts: dict[str, pa.Array]
    ) -> None:
        signed, std = self.target.signed(sample, linked), self.target.std[sample.group]
        target = self.target.stall(sample.value, linked).astype(float) if isinstance(self.target, Stall) else np.abs(signed)
        shapes = self.shapes.take(pa.array(sample.configuration))
        taken = sample.chunk.table.take(pa.array(sample.rows))
        columns = {
            "rank": np.array(source.ranks, np.int64)[sample.number],
            "bin": chosen.bin[place],
            "launch": sample.chunk.row + sample.rows,
            "start_ns": sample.position + source.origin_ns if source.timed else pa.nulls(place.size, pa.int64()),
            "kernel": shapes.column("kernel"),
            "configuration": sample.configuration,
            "target": target,
            "signed_deviation": signed,
            "configuration_mean": self.target.mean[sample.group],
            "configuration_std": pa.array(std, mask=np.isnan(std)),
            "kept": chosen.kept[place],
            "inclusion_probability": chosen.probability[place],
        }
        for name in self.extra:
            own = facts.get(name)
            if own is None:
                holder = taken if name in taken.column_names else shapes if name in LAUNCH_SHAPE else None
                own = pa.nulls(place.size, self.schema.field(name).type) if holder is None else holder.column(name)
            columns[name] = own
        table = pa.table(columns).cast(self.schema)
        for number, rows in by_value(sample.number):
            part = table if rows is None else table.take(pa.array(rows))
            self._writer.write_batch(part.combine_chunks().to_batches()[0])
            self.entries.append((source.ranks[number], part.num_rows))


def pick(sample: Sample, row: np.ndarray) -> Sample:
    """Return the sample's rows at ascending indices `row`; `rows` becomes their indices in the chunk."""
    rows = row if sample.rows is None else sample.rows[row]
    names = ("position", "number", "configuration", "kernel", "group", "value")
    return Sample(sample.chunk, rows, *(getattr(sample, name)[row] for name in names))


def transfer_columns(source: Source, linked: Linked, exposure: Exposure) -> dict[str, pa.Array]:
    """Return the facts of each launch's transfer; null where it has none. Times are on the dataset's time line."""
    none = ~linked.found
    values = {
        "transfer_bytes": linked.bytes,
        "transfer_copy_kind": linked.copy_kind.astype(np.uint8),
        "transfer_start_ns": linked.start + source.shift_ns,
        "transfer_duration_ns": linked.end - linked.start,
        "transfer_overlap_ns": linked.overlap,
        "exposed_transfer_ns": exposure.of(linked),
    }
    return {name: pa.array(column, mask=none | (column == UNKNOWN)) for name, column in values.items()}


def fresh_folder(folder: Path) -> None:
    """Make an empty folder for parts; what a killed run left behind is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def join_parts(folder: Path, entries: list[list[tuple[int, int]]], path: Path, extra: list[pa.Field], metadata: dict[str, str]) -> None:
    """String the parts of all ranks together into `kept.parquet` and remove them.

    Parameters
    ----------
    folder : Path
        Holds `<rank>.arrow`.
    entries : list over ranks of list of (rank of the traced program, rows)
        From `KeptRows.write`.
    path : Path
        The file to write.
    extra, metadata
        As in `TableWriter`.
    """
    order = sorted((traced, part, batch) for part, batches in enumerate(entries) for batch, (traced, _) in enumerate(batches))
    readers = {part: pa.ipc.open_file(pa.OSFile(str(folder / f"{part}.arrow"))) for part in {part for _, part, _ in order}}
    with TableWriter(path, "kept", extra, metadata) as writer:
        waiting, rows = [], 0
        for _, part, batch in order:
            waiting.append(readers[part].get_batch(batch))
            rows += waiting[-1].num_rows
            while rows >= GROUP_ROWS:
                table = pa.Table.from_batches(waiting)
                writer.write(table.slice(0, GROUP_ROWS).combine_chunks())
                waiting, rows = table.slice(GROUP_ROWS).to_batches(), rows - GROUP_ROWS
        if waiting:
            writer.write(pa.Table.from_batches(waiting).combine_chunks())
    shutil.rmtree(folder)
