"""What devices ran: launches, transfers and executions of whole graphs as one stream of events ordered by start."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import COPY_KINDS, MIGRATED_BY_HOST, MIGRATIONS
from causeway.core.tables import read_table
from causeway.events.event_blocks import Block, chunks, is_repeated, merged, numbers, repeated, shortened, times
from causeway.events.few_values import few_in_order
from causeway.waiting.idle.gaps import ABSENT, NO_STREAM

FIRST_COPY = 2
"""Where the names of copies, by kind, begin."""


class DeviceEvents:
    """The events of an export's devices.

    Attributes
    ----------
    names : list of str
        By the events' field `name`: what finished, in words.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = ["a kernel", "a graph", *(_name_of_copy(kind) for kind in range(256))]
        self._names = np.zeros(0, np.int32)
        # without calls there is nothing that an event is correlated with
        self._key = ["correlation"] if (folder / "calls.parquet").is_file() else []
        if (folder / "configurations.parquet").is_file():
            self._read_kernels()

    def _read_kernels(self) -> None:
        kernels = read_table(self.folder / "kernels.parquet", "kernels").to_pylist()
        of = read_table(self.folder / "configurations.parquet", "configurations", ["kernel"]).column(0).to_numpy()
        number = np.zeros(len(kernels), np.int32)
        for row in kernels:
            if row["class"] == "communication":
                number[row["kernel"]] = len(self.names)
                self.names.append(f"collective {row['short_name'][:80]}")
        self._names = number[of]

    def blocks(self) -> Iterator[Block]:
        """Give the events ordered by start: start, end, rank, device, stream, name, key, returned (when the call
        returned, as far as the queue time says).

        Raises
        ------
        TableError
            If a table is not ordered by start.
        """
        return merged([self._launches(), self._transfers(), self._graphs()])

    def _launches(self) -> Iterator[Block]:
        wanted = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream", "queue_ns", *self._key]
        for batch in chunks(self.folder, "launches", wanted):
            block = times(batch) | _identity(batch)
            configuration = batch.column("configuration").to_numpy()
            yield block | {
                "name": self._names.take(configuration),
                "returned": _returned(block["start"], batch.column("queue_ns")),
            }

    def _transfers(self) -> Iterator[Block]:
        wanted = ["start_ns", "duration_ns", "copy_kind", "rank", "device", "stream", *self._key]
        for batch in chunks(self.folder, "transfers", wanted):
            kind = batch.column("copy_kind").to_numpy()
            block = times(batch) | _identity(batch)
            block |= {"name": FIRST_COPY + kind.astype(np.int32), "returned": repeated(ABSENT, batch.num_rows)}
            moved = np.isin(kind, MIGRATIONS)
            if moved.any():  # the host that touches a page asks for it at that moment
                block["stream"] = np.where(moved, NO_STREAM, block["stream"])
                block["returned"] = np.where(np.isin(kind, MIGRATED_BY_HOST), block["start"], ABSENT)
            yield block

    def _graphs(self) -> Iterator[Block]:
        wanted = ["start_ns", "duration_ns", "rank", "device", "stream", *self._key]
        for batch in chunks(self.folder, "graphs", wanted):
            n = batch.num_rows
            yield (
                times(batch)
                | _identity(batch)
                | {
                    "name": np.ones(n, np.int32),
                    "returned": repeated(ABSENT, n),
                }
            )


def _name_of_copy(kind: int) -> str:
    return f"{'a migration' if kind in MIGRATIONS else 'a copy'} ({COPY_KINDS.get(kind, 'unknown')})"


def _identity(batch: pa.RecordBatch) -> Block:
    """Return where events ran: rank, device, stream, and the key of their call."""
    columns = {name: shortened(batch.column(name).to_numpy()) for name in ("rank", "device")}
    stream = batch.column("stream")
    if stream.null_count:
        stream = stream.fill_null(NO_STREAM)
    columns["stream"] = shortened(stream.to_numpy())
    if "correlation" not in batch.schema.names or batch.column("correlation").null_count == batch.num_rows:
        return columns | {"key": repeated(-1, batch.num_rows)}
    return columns | {"key": call_keys(columns["rank"], numbers(batch.column("correlation"), -1))}


def _returned(start: np.ndarray, queue: pa.Array) -> np.ndarray:
    """Return when the call of each launch returned, as far as its queue time says, else `ABSENT`; int64."""
    if queue.null_count == len(queue):
        return repeated(ABSENT, len(queue))
    known = numbers(queue, -1)
    return np.where(known < 0, ABSENT, start - known)


def call_keys(rank: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return rank and correlation as one number each.

    Parameters
    ----------
    rank, correlation : ndarray of integers, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 where there is no correlation.
    """
    usable = (correlation >= 0) & (correlation < 1 << 40)
    return np.where(usable, rank.astype(np.int64) << 40 | np.where(usable, correlation, 0), -1)


class EventRows:
    """Numbers of keys in the order of their first appearance."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self._of: dict[int, int] = {}

    def of(self, keys: np.ndarray) -> np.ndarray:
        """Return the number of each key, int32 of shape (n,); `keys` are int64 of shape (n,)."""
        found, code = few_in_order(keys)
        rows = [self._row(key) for key in found.tolist()]
        return code if rows == list(range(len(rows))) else np.array(rows, np.int32)[code]

    def of_pairs(self, high: np.ndarray, low: np.ndarray, bits: int) -> np.ndarray:
        """Return the number of each key high * 2^bits + low, int32 of shape (n,).

        Parameters
        ----------
        high, low : ndarray of integers, shape (n,)
            `low` is at least 0 and below 2^bits.
        bits : int
        """
        if is_repeated(high) and is_repeated(low):
            return self.of(repeated(int(high[0]) << bits | int(low[0]), high.size))
        return self.of(high.astype(np.int64) << bits | low)

    def _row(self, key: int) -> int:
        if key not in self._of:
            self._of[key] = len(self.keys)
            self.keys.append(key)
        return self._of[key]
