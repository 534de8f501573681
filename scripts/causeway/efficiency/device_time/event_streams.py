"""The rows of an export's tables as events ordered by start, read in pieces: memory does not grow with the tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import MIGRATED_BY_HOST, MIGRATIONS
from causeway.core.tables import read_table
from causeway.efficiency.device_time import states
from causeway.efficiency.device_time.launch_sums import LaunchSums
from causeway.efficiency.device_time.sweep import UNKNOWN, recall, remember
from causeway.events.event_blocks import Block, chunks, is_repeated, merged, numbers, only, repeated, shortened, times

__all__ = [
    "Block",
    "Calls",
    "calls",
    "chunks",
    "graphs",
    "launches",
    "merged",
    "mpi_calls",
    "only",
    "times",
    "transfers",
]

CALL_SLOTS = 1 << 20
"""Calls that are kept at once; a device is at most some thousand launches behind its host."""
AHEAD_NS = 10_000_000
"""How much later than its launch a call may seem to begin: the clocks of host and device are converted, not shared."""


def class_bits(folder: Path) -> np.ndarray:
    """Return for each configuration the number of its kernel's kind of work (0 compute, 1 communication, 2 memory);
    uint8, shape (configurations,).
    """
    if not (folder / "configurations.parquet").is_file():
        return np.zeros(0, np.uint8)
    kernels = read_table(folder / "kernels.parquet", "kernels", ["kernel", "class"]).to_pydict()
    number_of = {name: bit.bit_length() - 1 for name, bit in states.KINDS.items()}
    kinds = dict(zip(kernels["kernel"], (number_of[name] for name in kernels["class"]), strict=True))
    of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_pylist()
    return np.array([kinds[kernel] for kernel in of], np.uint8)


def launch_sums(folder: Path) -> LaunchSums:
    """Return sums of launches by rank and configuration of an export, still empty."""
    return LaunchSums(class_bits(folder).size)


def launches(folder: Path, sums: LaunchSums | None = None) -> Iterator[Block]:
    """Give launches as events: start, end, rank, device, stream, kind, correlation, returned, launch, copy, bytes;
    `sums` takes them as they are read. Without calls there is nothing to correlate them with.
    """
    kinds = class_bits(folder)
    wanted = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream", "queue_ns", *_key(folder)]
    for batch in chunks(folder, "launches", wanted):
        configuration = batch.column("configuration").to_numpy()
        kind = kinds.take(configuration)  # before the sums, which do not look whether there is such a configuration
        if sums is not None:
            sums.take(batch.column("rank").to_numpy(), configuration, batch.column("duration_ns").to_numpy())
        block = times(batch) | _identity(batch)
        n = batch.num_rows
        yield block | {
            "kind": kind,
            "returned": returned(block["start"], batch.column("queue_ns")),
            "launch": repeated(1, n, np.uint8),
            "copy": repeated(0, n, np.uint8),
            "bytes": repeated(-1, n),
        }


def returned(start: np.ndarray, queue: pa.Array) -> np.ndarray:
    """Return when the call of each launch returned, as far as its queue time says, else `UNKNOWN`; int64, shape
    (launches,), ns.

    Parameters
    ----------
    start : ndarray of int64, shape (launches,), ns
    queue : Array of int64, shape (launches,), ns
        Null where unknown.
    """
    if queue.null_count == len(queue):
        return repeated(UNKNOWN, len(queue))
    known = numbers(queue, -1)
    return np.where(known < 0, UNKNOWN, start - known)


def transfers(folder: Path) -> Iterator[Block]:
    """Give transfers as events, with the columns of `launches`; a migration is of a kind of its own, and the host that
    touches a page while nothing runs asks for it at that moment.
    """
    kinds = np.full(256, states.MEMORY.bit_length() - 1, np.uint8)
    kinds[list(MIGRATIONS)] = states.MIGRATION.bit_length() - 1
    by_host = np.isin(np.arange(256), MIGRATED_BY_HOST)
    wanted = ["start_ns", "duration_ns", "rank", "device", "stream", "bytes", "copy_kind", *_key(folder)]
    for batch in chunks(folder, "transfers", wanted):
        n = batch.num_rows
        copy = batch.column("copy_kind").to_numpy()
        block = times(batch) | _identity(batch)
        asked = by_host[copy]
        yield block | {
            "kind": shortened(kinds[copy]),
            "returned": np.where(asked, block["start"], UNKNOWN) if asked.any() else repeated(UNKNOWN, n),
            "launch": repeated(0, n, np.uint8),
            "copy": copy,
            "bytes": numbers(batch.column("bytes"), -1),
        }


def _key(folder: Path) -> list[str]:
    """Return the column that leads from an event to its call, where the export has calls."""
    return ["correlation"] if (folder / "calls.parquet").is_file() else []


def _identity(batch: pa.RecordBatch) -> Block:
    """Return where events ran: rank, device, stream, and the correlation with their call, -1 if unknown."""
    columns = {name: shortened(batch.column(name).to_numpy()) for name in ("rank", "device")}
    stream = batch.column("stream")
    columns["stream"] = shortened((stream.fill_null(0) if stream.null_count else stream).to_numpy())
    correlated = "correlation" in batch.schema.names
    return columns | {
        "correlation": numbers(batch.column("correlation"), -1) if correlated else repeated(-1, batch.num_rows)
    }


def graphs(folder: Path) -> Iterator[Block]:
    """Give executions of whole graphs as events, with the columns of `launches`; the stream is 0 where it is not
    recorded.
    """
    kind = states.GRAPH.bit_length() - 1
    for batch in chunks(folder, "graphs", ["start_ns", "duration_ns", "rank", "device", "stream", *_key(folder)]):
        n = batch.num_rows
        yield (
            times(batch)
            | _identity(batch)
            | {
                "kind": repeated(kind, n, np.uint8),
                "returned": repeated(UNKNOWN, n),
                "launch": repeated(0, n, np.uint8),
                "copy": repeated(0, n, np.uint8),
                "bytes": repeated(-1, n),
            }
        )


def calls(folder: Path) -> Iterator[Block]:
    """Give runtime calls as events of host threads: start, end, rank, thread, kind, key (rank and correlation, or
    -1).
    """
    for batch in chunks(folder, "calls", ["start_ns", "duration_ns", "rank", "thread", "correlation"]):
        rank = batch.column("rank").to_numpy()
        correlation = numbers(batch.column("correlation"), -1)
        kind = np.full(batch.num_rows, states.CALL.bit_length() - 1, np.uint8)
        yield times(batch) | {"rank": rank, "thread": _threads(batch), "kind": kind, "key": keys(rank, correlation)}


def mpi_calls(folder: Path) -> Iterator[Block]:
    """Give MPI calls as events of host threads, with the columns of `calls`."""
    kind = states.MPI.bit_length() - 1
    for batch in chunks(folder, "mpi", ["start_ns", "duration_ns", "rank", "thread"]):
        n = batch.num_rows
        rank = batch.column("rank").to_numpy()
        yield times(batch) | {
            "rank": rank,
            "thread": _threads(batch),
            "kind": np.full(n, kind, np.uint8),
            "key": np.full(n, -1),
        }


def _threads(batch: pa.RecordBatch) -> np.ndarray:
    return numbers(batch.column("thread"), 0)


def keys(rank: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return rank and correlation, both of shape (n,), as one int64 each, -1 where there is no correlation."""
    usable = (correlation >= 0) & (correlation < 1 << 40)
    return np.where(usable, rank.astype(np.int64) << 40 | np.where(usable, correlation, 0), -1)


class Calls:
    """The calls near a moment by rank and correlation, fed from an ordered stream as far as needed.

    Parameters
    ----------
    blocks : iterator of blocks
        Calls, ordered by start, with `key`.
    """

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._latest = None
        self._keys = np.full(CALL_SLOTS, -1)
        self._start = np.full(CALL_SLOTS, UNKNOWN)
        self._end = np.full(CALL_SLOTS, UNKNOWN)

    def find(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return start and end of the calls that made events, ns, shape (events,), `UNKNOWN` where not known.

        An event without a row among the calls, but with a known queue time, was called at the latest when that begins.
        """
        until = int(block["start"][-1]) + AHEAD_NS
        while self._latest is None or self._latest <= until:
            rows = next(self._blocks, None)
            if rows is None:
                self._latest = np.iinfo(np.int64).max
                break
            self._latest = int(rows["start"][-1])
            remember(rows["key"], rows["start"], rows["end"], self._keys, self._start, self._end)
        if is_repeated(block["correlation"]) and block["correlation"][0] < 0:
            return block["returned"], block["returned"]
        start = block["returned"].copy()
        end = block["returned"].copy()
        recall(keys(block["rank"], block["correlation"]), self._keys, self._start, self._end, start, end)
        return start, end

    def drain(self) -> None:
        """Read the stream to its end."""
        for _ in self._blocks:
            pass
