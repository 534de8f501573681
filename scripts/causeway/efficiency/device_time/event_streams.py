"""The rows of an export's tables as events ordered by start, read in pieces: memory does not grow with the tables.

How often each rank of an export launched each configuration, and for how long.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import MIGRATIONS
from causeway.efficiency.device_time import states
from causeway.events.device_events import device_events
from causeway.events.event_blocks import (
    Block,
    chunks,
    kernel_columns,
    merged,
    numbers,
    repeated,
    shortened,
    times,
)
from causeway.events.few_values import RowNumbers
from causeway.numeric.compiled import I4, I8, U4, compiled, int64, void


class LaunchSums:
    """Launches and their summed durations.

    Parameters
    ----------
    configurations : int

    Attributes
    ----------
    sums : ndarray of int64, shape (ranks, configurations, 2)
        Launches, and ns.
    """

    def __init__(self, configurations: int) -> None:
        self._rows = RowNumbers()
        self.sums = np.zeros((0, configurations, 2), np.int64)

    @property
    def ranks(self) -> list[int]:
        """The ranks, in the order in which they were seen."""
        return [rank for (rank,) in self._rows.rows]

    def take(self, rank: np.ndarray, configuration: np.ndarray, duration: np.ndarray) -> None:
        """Take launches.

        Parameters
        ----------
        rank, configuration : ndarray of uint32, shape (n,)
        duration : ndarray of int64, shape (n,), ns
        """
        row = self._rows.of(rank)
        fresh = len(self._rows) - len(self.sums)
        if fresh:
            self.sums = np.concatenate([self.sums, np.zeros((fresh, *self.sums.shape[1:]), np.int64)])
        _add_launches(row, configuration, duration, self.sums)


@compiled(void(I4, U4, I8, int64[:, :, ::1]))
def _add_launches(rows, configurations, durations, sums):
    for i in range(rows.size):
        cell = sums[rows[i], configurations[i]]
        cell[0] += 1
        cell[1] += durations[i]


def class_bits(folder: Path) -> np.ndarray:
    """Return for each configuration the number of its kernel's kind of work (0 compute, 1 communication, 2 memory);
    uint8, shape (configurations,).
    """
    number_of = {name: bit.bit_length() - 1 for name, bit in states.KINDS.items()}
    classes = kernel_columns(folder, ["class"]).column("class").to_pylist()
    return np.array([number_of[name] for name in classes], np.uint8)


def launch_sums(folder: Path) -> LaunchSums:
    """Return sums of launches by rank and configuration of an export, still empty."""
    return LaunchSums(class_bits(folder).size)


def launches(folder: Path, sums: LaunchSums | None = None) -> Iterator[Block]:
    """Give launches as events (`device_events`), with kind, launch, copy and bytes; `sums` takes them as well."""
    kinds = class_bits(folder)
    for block, batch in device_events(folder, "launches", ["configuration"]):
        configuration = batch.column("configuration").to_numpy()
        kind = kinds.take(configuration)  # before the sums, which do not look whether there is such a configuration
        if sums is not None:
            sums.take(batch.column("rank").to_numpy(), configuration, batch.column("duration_ns").to_numpy())
        yield block | _facts(batch.num_rows, kind=kind, launch=1)


def transfers(folder: Path) -> Iterator[Block]:
    """Give transfers as events, with the columns of `launches`; a migration is of a kind of its own."""
    kinds = np.full(256, states.MEMORY.bit_length() - 1, np.uint8)
    kinds[list(MIGRATIONS)] = states.MIGRATION.bit_length() - 1
    for block, batch in device_events(folder, "transfers", ["bytes"]):
        copy = batch.column("copy_kind").to_numpy()
        facts = {"copy": copy, "bytes": numbers(batch.column("bytes"), -1)}
        yield block | _facts(batch.num_rows, kind=shortened(kinds[copy]), launch=0) | facts


def graphs(folder: Path) -> Iterator[Block]:
    """Give executions of whole graphs as events, with the columns of `launches`; the stream is 0 where it is not
    recorded.
    """
    for block, batch in device_events(folder, "graphs"):
        kind = repeated(states.GRAPH.bit_length() - 1, batch.num_rows, np.uint8)
        yield block | _facts(batch.num_rows, kind=kind, launch=0)


def device_work(folder: Path) -> Iterator[Block]:
    """Give all work of an export's devices as events, in the order of time."""
    return merged([launches(folder), transfers(folder), graphs(folder)])


def _facts(n: int, kind: np.ndarray, launch: int) -> Block:
    facts = {"kind": kind, "launch": repeated(launch, n, np.uint8)}
    return facts | {"copy": repeated(0, n, np.uint8), "bytes": repeated(-1, n)}


def calls(folder: Path) -> Iterator[Block]:
    """Give runtime calls as events of host threads: start, end, rank, thread, kind."""
    return _of_host(folder, "calls", states.CALL)


def mpi_calls(folder: Path) -> Iterator[Block]:
    """Give MPI calls as events of host threads, with the columns of `calls`."""
    return _of_host(folder, "mpi", states.MPI)


def _of_host(folder: Path, table: str, state: int) -> Iterator[Block]:
    for batch in chunks(folder, table, ["start_ns", "duration_ns", "rank", "thread"]):
        kind = np.full(batch.num_rows, state.bit_length() - 1, np.uint8)
        where = {"rank": batch.column("rank").to_numpy(), "thread": numbers(batch.column("thread"), 0)}
        yield times(batch) | where | {"kind": kind}
