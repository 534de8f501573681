"""Rows of an export's tables as events ordered by start, read in pieces: memory does not grow with the tables."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.errors import TableError
from causeway.core.tables import SCHEMAS, open_table, read_table
from causeway.core.vocabulary import HOST_KINDS

Block = dict[str, np.ndarray]
CHUNK_ROWS = 1 << 16
GPU_TABLES = ("launches", "transfers", "graphs")
"""Tables of what devices did."""
HOST_TABLES = ("calls", "mpi")
"""Tables of what the host did, which a profiler records from the begin of a recording to its end."""
SHORT = 0.01
"""Share of the run's GPU time from which on it is said what recordings lack of it."""


def chunks(folder: Path, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Give some columns of a table piece by piece; nothing if the export has no such table."""
    path = folder / f"{table}.parquet"
    if not path.is_file():
        return
    with open_table(path, table) as file:
        for batch in file.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False):
            if batch.num_rows:
                yield batch


def host_ranges(folder: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Give some columns of the host's ranges, of all threads, piece by piece, as `chunks`."""
    for batch in chunks(folder, "ranges", list(dict.fromkeys([*columns, "kind"]))):
        kinds = batch.column("kind").dictionary_encode()
        is_host = np.isin(np.array(kinds.dictionary.to_pylist(), object), HOST_KINDS)[kinds.indices.to_numpy()]
        if is_host.any():
            yield batch if is_host.all() else batch.filter(pa.array(is_host))


def kernel_columns(folder: Path, names: list[str]) -> pa.Table:
    """Return columns of the kernel of each configuration of an export, a row for each; none without such a table."""
    if not (folder / "configurations.parquet").is_file():
        return SCHEMAS["kernels"].empty_table().select(names)
    kernels = read_table(folder / "kernels.parquet", "kernels", ["kernel", *names])
    of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column(0)
    return kernels.take(pc.index_in(of, kernels.column("kernel").combine_chunks())).select(names)


def same_gpus(devices: Iterable[tuple[str, int, int, str | None]]) -> list[list[tuple[str, int, int]]]:
    """Return the devices that are one GPU, for each GPU that more than one rank drives, in their order.

    Parameters
    ----------
    devices : iterable of (export, rank, device, gpu)
        `gpu` as the table `devices` has it: digits number the GPUs of one export, other texts are the same everywhere;
        None or empty: not known.
    """
    by_gpu: dict[tuple[str | None, str], list[tuple[str, int, int]]] = {}
    for export, rank, device, gpu in devices:
        if gpu:
            by_gpu.setdefault((export if gpu.isdigit() else None, gpu), []).append((export, rank, device))
    return [members for members in by_gpu.values() if len({rank for _, rank, _ in members}) > 1]


def spans(folder: Path, tables: Iterable[str]) -> dict[int, tuple[int, int]]:
    """Return start of the first and end of the last event of each rank in some tables of an export, ns, own clock; a
    rank without events has none.
    """
    by_rank: dict[int, tuple[int, int]] = {}
    for table in tables:
        for batch in chunks(folder, table, ["start_ns", "duration_ns", "rank"]):
            widen(by_rank, batch.column("rank").to_numpy(), times(batch))
    return by_rank


def widen(spans_of: dict[int, tuple[int, int]], ranks: np.ndarray, events: Block) -> None:
    """Let the spans of ranks hold more events: `ranks`, shape (n,), whose `start` and `end` stand in `events`."""
    for rank in np.unique(ranks).tolist():
        of_rank = ranks == rank
        first = int(events["start"][of_rank].min())
        last = int(events["end"][of_rank].max())
        before = spans_of.get(rank, (first, last))
        spans_of[rank] = min(first, before[0]), max(last, before[1])


def recorded_spans(folder: Path) -> dict[int, tuple[int, int]]:
    """Return what the host's part of a recording covers: from the first to the last call, MPI call or range of each
    rank, ns, own clock. Only ranks with calls or MPI: a range alone does not tell how long was recorded.
    """
    host_spans = spans(folder, HOST_TABLES)
    return widened(host_spans, spans(folder, ["ranges"]) if host_spans else {})


def first_recorded(folder: Path, ranks: Collection[int]) -> dict[int, int]:
    """Return when the host's part of each rank's recording begins: its first call, MPI call or range, ns, own clock;
    nothing of a rank without calls and MPI. Tables are read up to the last of these alone.
    """
    begins: dict[int, int] = {}
    for table in (*HOST_TABLES, "ranges"):
        pending = set(ranks) if table in HOST_TABLES else set(begins)
        for batch in chunks(folder, table, ["start_ns", "rank"]) if pending else ():
            in_batch, first = np.unique(batch.column("rank").to_numpy(), return_index=True)
            starts = batch.column("start_ns").to_numpy()[first].tolist()  # rows are ordered by start
            for rank, start in zip(in_batch.tolist(), starts, strict=True):
                if rank in pending:
                    begins[rank] = min(start, begins.get(rank, start))
            pending -= set(in_batch.tolist())
            if not pending:
                break
    return begins


def widened(
    spans_of: Mapping[int, tuple[int, int]], others: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """Return the spans of ranks, each begun as early and ended as late as the rank's among `others`, if it has one."""
    return {
        rank: (min(first, others.get(rank, (first, last))[0]), max(last, others.get(rank, (first, last))[1]))
        for rank, (first, last) in spans_of.items()
    }


def numbers(column: pa.Array, absent: int) -> np.ndarray:
    """Return a column as int64, shape (rows,), `absent` where null."""
    if column.null_count == 0:
        return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if column.null_count == len(column):
        return np.full(len(column), absent, np.int64)
    return (
        pc.fill_null(column, pa.scalar(absent, column.type)).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    )


def repeated(value: object, n: int, kind: type = np.int64) -> np.ndarray:
    """Return a column of one value, shape (n,), that takes no memory for each row; `merged` leaves it so where it is
    the same in all sources. Compiled functions need `numpy.ascontiguousarray` of it.
    """
    return np.broadcast_to(np.array(value, kind), (n,))


def is_repeated(values: np.ndarray) -> bool:
    """Return whether a column (`values`, shape (n,)) was made by `repeated`."""
    return values.size > 0 and values.strides == (0,)


def shortened(values: np.ndarray) -> np.ndarray:
    """Return a column (`values`, shape (n,)), shape (n,), as `repeated` makes it where all its values are equal."""
    return np.broadcast_to(values[0], values.shape) if values.size and (values == values[0]).all() else values


def only(blocks: Iterator[Block], names: Iterable[str]) -> Iterator[Block]:
    """Give blocks with some of their columns: what is not asked for is not merged."""
    for block in blocks:
        yield {name: block[name] for name in names}


def times(batch: pa.RecordBatch) -> Block:
    """Return start and end of the rows of a batch with the columns start_ns and duration_ns."""
    start = batch.column("start_ns").to_numpy()
    return {"start": start, "end": start + batch.column("duration_ns").to_numpy()}


def merged(sources: list[Iterator[Block]]) -> Iterator[Block]:
    """Give the rows of several ordered sources ordered by start; of equal starts those of earlier sources first.

    Every piece ends where the first of the loaded pieces ends: all rows up to there are known.

    Raises
    ------
    TableError
        If a source is not ordered.
    """
    loaded = [next(source, None) for source in sources]
    while any(block is not None for block in loaded):
        bound = min(int(block["start"][-1]) for block in loaded if block is not None)
        parts = []
        for index, block in enumerate(loaded):
            if block is None:
                continue
            cut = int(np.searchsorted(block["start"], bound, "right"))
            if cut:
                parts.append({name: values[:cut] for name, values in block.items()})
            loaded[index] = (
                {name: values[cut:] for name, values in block.items()}
                if cut < block["start"].size
                else next(sources[index], None)
            )
        yield _joined(parts)


def _joined(parts: list[Block]) -> Block:
    if len(parts) == 1:
        rows = parts[0]
    else:
        rows = {name: _together([part[name] for part in parts]) for name in parts[0]}
        order = np.argsort(rows["start"], kind="stable")
        rows = {name: values if is_repeated(values) else values[order] for name, values in rows.items()}
    if (rows["start"][1:] < rows["start"][:-1]).any():
        raise TableError("a table's rows are not ordered by start_ns; delete it and run again")
    return rows


def _together(columns: list[np.ndarray]) -> np.ndarray:
    if all(is_repeated(values) and values[0] == columns[0][0] for values in columns):
        return np.broadcast_to(columns[0][0], (sum(values.size for values in columns),))
    return np.concatenate(columns)
