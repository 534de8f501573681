"""Host time that stays where the host is free: calls of MPI wait for other ranks, some calls for an engine of the
device, accesses to managed memory for its pages, and what the profiler itself did is no time of the program.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.codes import MIGRATIONS, waits_for_engine
from causeway.events.event_blocks import chunks, numbers, times
from causeway.numeric import intervals
from causeway.waiting.graph.host_calls import NO_THREAD

EVERY_THREAD = -1


class StayingTime:
    """That time of the exports of a dataset, by rank and thread, on the dataset's time line; it lies in memory, up
    to 48 bytes for each call of MPI, each that waits for an engine, and each migration.

    Parameters
    ----------
    folders : mapping of Path to Clock
        Folders of the exports' tables, and their clocks.

    Raises
    ------
    TableError
        If a table is damaged.
    """

    def __init__(self, folders: Mapping[Path, Clock]) -> None:
        self._parts: dict[tuple[int, int], list[np.ndarray]] = {}
        for folder, clock in folders.items():
            for batch in chunks(folder, "mpi", ["start_ns", "duration_ns", "rank", "thread"]):
                self._take(clock, times(batch), batch.column("rank"), numbers(batch.column("thread"), NO_THREAD))
            for batch in chunks(folder, "calls", ["start_ns", "duration_ns", "rank", "thread", "name"]):
                names = batch.column("name")
                waits = np.array([waits_for_engine(text) for text in names.dictionary.to_pylist()], bool)
                if waits.any():
                    chosen = batch.filter(pa.array(waits[names.indices.to_numpy()]))
                    self._take(clock, times(chosen), chosen.column("rank"), numbers(chosen.column("thread"), NO_THREAD))
            for batch in chunks(folder, "transfers", ["start_ns", "duration_ns", "rank", "copy_kind"]):
                moved = np.isin(batch.column("copy_kind").to_numpy(), MIGRATIONS)
                if moved.any():
                    chosen = batch.filter(pa.array(moved))
                    self._take(clock, times(chosen), chosen.column("rank"), np.full(chosen.num_rows, EVERY_THREAD))
            for batch in chunks(folder, "profiler_overhead", ["start_ns", "duration_ns", "rank"]):
                self._take(clock, times(batch), batch.column("rank"), np.full(batch.num_rows, EVERY_THREAD))

    def _take(self, clock: Clock, rows: Mapping[str, np.ndarray], rank, thread: np.ndarray) -> None:
        columns = np.stack([clock.aligned(rows["start"]), clock.aligned(rows["end"])])
        keys = np.stack([rank.to_numpy().astype(np.int64), thread])
        for key in np.unique(keys, axis=1).T.tolist():
            of_key = (keys == np.array(key)[:, None]).all(axis=0)
            self._parts.setdefault(tuple(key), []).append(columns[:, of_key])

    def of(self, rank: int, thread: int) -> intervals.Set:
        """Return the intervals of a rank's thread."""
        return self._union([part for number in (thread, EVERY_THREAD) for part in self._parts.get((rank, number), ())])

    def mpi_of(self, rank: int, thread: int) -> intervals.Set:
        """Return when a rank's thread is in MPI."""
        return self._union(self._parts.get((rank, thread), ()))

    @staticmethod
    def _union(parts: Iterable[np.ndarray]) -> intervals.Set:
        return intervals.union(*np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1))
