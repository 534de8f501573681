"""What devices did, with the call that made it: launches, transfers and executions of whole graphs of an export."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import MIGRATED_BY_HOST
from causeway.events.event_blocks import Block, chunks, numbers, repeated, shortened, times

UNKNOWN = np.iinfo(np.int64).min
"""A moment that is not known."""
NO_STREAM = (1 << 32) - 1
"""Stream of work whose stream is not recorded."""
_MORE = {"launches": ["queue_ns"], "transfers": ["copy_kind"], "graphs": []}


def device_events(
    folder: Path, table: str, more: Sequence[str] = (), no_stream: int = 0
) -> Iterator[tuple[Block, pa.RecordBatch]]:
    """Give a table's rows, piece by piece, as events and as they are.

    An event has start, end, rank, device, stream, call (its number in `calls`, -1: not known), called and returned:
    when that call began and returned, ns, `UNKNOWN` where that is not known. Where a queue time alone tells when the
    call returned, it began at the latest then. The host that touches a page while nothing runs asks for it at that
    moment.

    Parameters
    ----------
    folder : Path
        The export's tables.
    table : str
        `launches`, `transfers` or `graphs`.
    more : sequence of str
        Columns that the rows have beside these.
    no_stream : int
        Number of the stream where it is not recorded.
    """
    wanted = ["start_ns", "duration_ns", "rank", "device", "stream", "call", "call_start_ns", "call_end_ns"]
    for batch in chunks(folder, table, [*wanted, *_MORE[table], *more]):
        stream = batch.column("stream")
        where = {name: batch.column(name).to_numpy() for name in ("rank", "device")}
        where["stream"] = (stream.fill_null(no_stream) if stream.null_count else stream).to_numpy()
        block = times(batch) | {name: shortened(values) for name, values in where.items()}
        yield block | _of_calls(batch, _told(batch, table, block["start"])), batch


def _told(batch: pa.RecordBatch, table: str, start: np.ndarray) -> np.ndarray:
    """Return when work was enqueued as far as its own row tells; int64, shape (n,), ns."""
    if table == "launches" and batch.column("queue_ns").null_count < batch.num_rows:
        queue = numbers(batch.column("queue_ns"), -1)
        return np.where(queue < 0, UNKNOWN, start - queue)
    if table == "transfers":
        touched = np.isin(batch.column("copy_kind").to_numpy(), MIGRATED_BY_HOST)
        if touched.any():
            return np.where(touched, start, UNKNOWN)
    return repeated(UNKNOWN, batch.num_rows)


def _of_calls(batch: pa.RecordBatch, told: np.ndarray) -> Block:
    if "call" not in batch.schema.names or batch.column("call").null_count == batch.num_rows:
        return {"call": repeated(-1, batch.num_rows), "called": told, "returned": told}
    call = numbers(batch.column("call").cast(pa.int64()), -1)
    begin, end = (numbers(batch.column(name), UNKNOWN) for name in ("call_start_ns", "call_end_ns"))
    return {"call": call, "called": np.where(call < 0, told, begin), "returned": np.where(call < 0, told, end)}
