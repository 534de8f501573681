"""What launches were given: an AllReduce of 100 MB is other work than one of 25 MB with the same grid, and so is a
product of larger matrices.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import open_table, read_table
from causeway.events.few_values import few_rows

KEY = ("start_ns", "rank", "device", "stream")
"""Columns that identify the launch of a collective."""
UNKNOWN = -1
"""Size of a launch that is no collective, or whose message was not recorded."""


def has_messages(folders: Sequence[str | Path]) -> bool:
    """Return whether the exports of a dataset record collectives, and the size of each one's message."""
    tables = [path for folder in folders if (path := Path(folder) / "collectives.parquet").is_file()]
    sizes = [read_table(path, "collectives", ["bytes"])["bytes"] for path in tables]
    return any(len(size) for size in sizes) and not any(size.null_count for size in sizes)


def messages_of(folder: Path) -> list[np.ndarray]:
    """Return the columns of `KEY` and the bytes of an export's collectives, by start: five of int64, shape (k,)."""
    path = folder / "collectives.parquet"
    if not path.is_file():
        return [np.zeros(0, np.int64) for _ in (*KEY, "bytes")]
    table = read_table(path, "collectives", [*KEY, "bytes"]).sort_by("start_ns")
    return [table[name].to_numpy().astype(np.int64) for name in (*KEY, "bytes")]


def sizes_of(batch: pa.RecordBatch, messages: Sequence[np.ndarray]) -> np.ndarray:
    """Return the size of each launch's message.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Of `launches`, with the columns of `KEY`.
    messages : sequence of ndarray of int64, shape (k,)
        From `messages_of`.

    Returns
    -------
    ndarray of int64, shape (n,), bytes
        `UNKNOWN` of launches that are no collective.
    """
    start, *beside = (batch[name].to_numpy(zero_copy_only=False).astype(np.int64) for name in KEY)
    sizes = np.full(start.size, UNKNOWN, np.int64)
    starts, *others, size = messages
    position = np.searchsorted(starts, start)
    rows = np.arange(start.size)
    while rows.size:  # collectives of several streams may start at once
        is_at_start = np.append(starts, np.iinfo(np.int64).min)[position] == start[rows]
        position = position[is_at_start]
        rows = rows[is_at_start]
        is_its = np.ones(rows.size, bool)
        for own, theirs in zip(beside, others, strict=True):
            is_its &= own[rows] == theirs[position]
        sizes[rows[is_its]] = size[position[is_its]]
        position = position[~is_its] + 1
        rows = rows[~is_its]
    return sizes


def inputs_by_kernel(folders: Sequence[str | Path]) -> dict[str, set[str]]:
    """Return the sizes of the inputs of the operators that launched each kernel, by the kernel's full name; only of
    kernels of which they are known for all launches.
    """
    inputs: dict[str, set[str]] = {}
    unknown: set[str] = set()
    for folder in map(Path, folders):
        if not (folder / "launches.parquet").is_file():
            continue
        names = by_key(folder, "kernels", "kernel", "name")
        if not (folder / "shapes.parquet").is_file():
            unknown.update(names.values())
            continue
        kernels = by_key(folder, "configurations", "configuration", "kernel")
        sizes = by_key(folder, "shapes", "shape", "dims")
        pairs: set[tuple[int, int]] = set()
        with open_table(folder / "launches.parquet", "launches") as file:
            for batch in file.iter_batches(columns=["configuration", "shape"]):
                columns = (batch["configuration"], batch["shape"].cast(pa.int64()).fill_null(UNKNOWN))
                pairs.update(few_rows(*(column.to_numpy(zero_copy_only=False) for column in columns))[0])
        for configuration, shape in pairs:
            name = names[kernels[configuration]]
            if shape == UNKNOWN:
                unknown.add(name)
            else:
                inputs.setdefault(name, set()).add(sizes[shape])
    return {name: own for name, own in inputs.items() if name not in unknown}


def by_key(folder: Path, table: str, key: str, value: str) -> dict:
    """Return one column of a small table by another."""
    rows = read_table(folder / f"{table}.parquet", table, [key, value])
    return dict(zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True))
