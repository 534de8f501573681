"""Sizes of the messages of collectives: an AllReduce of 100 MB is other work than one of 25 MB with the same grid."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import read_table

KEY = ("start_ns", "rank", "device", "stream")
"""Columns that identify the launch of a collective."""
UNKNOWN = -1
"""Size of a launch that is no collective, or whose message was not recorded."""


def has_messages(folders: Sequence[str | Path]) -> bool:
    """Return whether an export of a dataset records the size of any collective's message."""
    return any(messages_of(Path(folder)).num_rows for folder in folders)


def messages_of(folder: Path) -> pa.Table:
    """Return start, rank, device, stream and size (bytes) of an export's collectives whose message is known."""
    path = folder / "collectives.parquet"
    if not path.is_file():
        return pa.table({name: pa.array([], pa.int64()) for name in (*KEY, "bytes")})
    return read_table(path, "collectives", [*KEY, "bytes"]).drop_null()


def sizes_of(batch: pa.RecordBatch, messages: pa.Table) -> np.ndarray:
    """Return the size of each launch's message, bytes; `UNKNOWN` of others. int64, shape (n,)."""
    start, *beside = (batch[name].to_numpy(zero_copy_only=False).astype(np.int64) for name in KEY)
    sizes = np.full(start.size, UNKNOWN, np.int64)
    order = np.argsort(messages["start_ns"].to_numpy(), kind="stable")
    known, *others, size = (messages[name].to_numpy().astype(np.int64)[order] for name in (*KEY, "bytes"))
    position = np.searchsorted(known, start)
    rows = np.arange(start.size)
    while rows.size:  # collectives of several streams may start at once
        position, rows = position[position < known.size], rows[position < known.size]
        is_at_start = known[position] == start[rows]
        position, rows = position[is_at_start], rows[is_at_start]
        is_its = np.ones(rows.size, bool)
        for own, theirs in zip(beside, others, strict=True):
            is_its &= own[rows] == theirs[position]
        sizes[rows[is_its]] = size[position[is_its]]
        position, rows = position[~is_its] + 1, rows[~is_its]
    return sizes
