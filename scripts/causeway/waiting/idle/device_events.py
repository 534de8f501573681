"""What devices ran: launches, transfers and executions of whole graphs as one stream of events ordered by start."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import COPY_KINDS
from causeway.core.event_blocks import Block, chunks, merged, numbers, times
from causeway.core.tables import read_table
from causeway.waiting.idle.gaps import ABSENT, GRAPH_KIND

GRAPH_RANGES = "cuda_graph"
"""Kind of the ranges that are executions of whole graphs."""
COPY = 2
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
        self.names = ["a kernel", "a graph", *(f"a copy ({COPY_KINDS.get(kind, 'unknown')})" for kind in range(256))]
        self._kinds = np.zeros(0, np.uint8)
        self._names = np.zeros(0, np.int64)
        if (folder / "configurations.parquet").is_file():
            self._read_kernels()

    def _read_kernels(self) -> None:
        kernels = read_table(self.folder / "kernels.parquet", "kernels").to_pylist()
        of = read_table(self.folder / "configurations.parquet", "configurations", ["kernel"]).column(0).to_numpy()
        kinds = {"compute": 0, "communication": 1, "memory": COPY}
        self._kinds = np.array([kinds[row["class"]] for row in kernels], np.uint8)[of]
        number = np.zeros(len(kernels), np.int64)
        for row in kernels:
            if row["class"] == "communication":
                number[row["kernel"]] = len(self.names)
                self.names.append(f"collective {row['short_name'][:80]}")
        self._names = number[of]

    def blocks(self) -> Iterator[Block]:
        """Give the events ordered by start: start, end, rank, device, stream, kind, name, key, returned (when the call
        returned, as far as the queue time says).

        Raises
        ------
        TableError
            If a table is not ordered by start.
        """
        return merged([self._launches(), self._transfers(), self._graphs()])

    def _launches(self) -> Iterator[Block]:
        wanted = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream", "queue_ns", "correlation"]
        for batch in chunks(self.folder, "launches", wanted):
            block = times(batch) | _identity(batch)
            queue = numbers(batch.column("queue_ns"), -1)
            configuration = batch.column("configuration").to_numpy()
            yield block | {
                "kind": self._kinds[configuration],
                "name": self._names[configuration],
                "returned": np.where(queue < 0, ABSENT, block["start"] - queue),
            }

    def _transfers(self) -> Iterator[Block]:
        wanted = ["start_ns", "duration_ns", "copy_kind", "rank", "device", "stream", "correlation"]
        for batch in chunks(self.folder, "transfers", wanted):
            n = batch.num_rows
            yield (
                times(batch)
                | _identity(batch)
                | {
                    "kind": np.full(n, COPY, np.uint8),
                    "name": FIRST_COPY + batch.column("copy_kind").to_numpy().astype(np.int64),
                    "returned": np.full(n, ABSENT),
                }
            )

    def _graphs(self) -> Iterator[Block]:
        path = self.folder / "devices.parquet"
        rows = read_table(path, "devices", ["rank", "device"]).to_pylist() if path.is_file() else []
        lowest: dict[int, int] = {}
        for row in rows:
            lowest[row["rank"]] = min(row["device"], lowest.get(row["rank"], row["device"]))
        for batch in chunks(self.folder, "ranges", ["start_ns", "duration_ns", "kind", "rank"]):
            kinds = batch.column("kind").dictionary_encode()
            wanted = np.array([text == GRAPH_RANGES for text in kinds.dictionary.to_pylist()], bool)
            chosen = wanted[kinds.indices.to_numpy()] if wanted.any() else np.zeros(0, bool)
            n = int(chosen.sum())
            if not n:
                continue
            rank = batch.column("rank").to_numpy()[chosen]
            block = {name: values[chosen] for name, values in times(batch).items()}
            yield block | {
                "rank": rank,
                "device": np.array([lowest.get(one, 0) for one in rank.tolist()], np.uint16),
                "stream": np.zeros(n, np.uint32),
                "key": np.full(n, -1),
                "kind": np.full(n, GRAPH_KIND, np.uint8),
                "name": np.ones(n, np.int64),
                "returned": np.full(n, ABSENT),
            }


def _identity(batch: pa.RecordBatch) -> Block:
    """Return where events ran: rank, device, stream, and the key of their call."""
    columns = {name: batch.column(name).to_numpy() for name in ("rank", "device", "stream")}
    return columns | {"key": call_keys(columns["rank"], numbers(batch.column("correlation"), -1))}


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
        if keys.size and (keys == keys[0]).all():
            return np.full(keys.size, self._row(int(keys[0])), np.int32)
        used, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rows = np.empty(used.size, np.int32)
        for at in np.argsort(first):
            rows[at] = self._row(int(used[at]))
        return rows[inverse]

    def _row(self, key: int) -> int:
        if key not in self._of:
            self._of[key] = len(self.keys)
            self.keys.append(key)
        return self._of[key]
