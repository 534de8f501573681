"""When the context of another process had a GPU, from the switches of contexts that an export records."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink.table_columns import nullable

MOST_SWITCHES = 1 << 22
"""Switches that are held in memory, 40 bytes each; of an export with more none is used. A GPU switches contexts some
hundred times a second."""
NOBODY = -1


@dataclass(frozen=True)
class Turns:
    """Who had a GPU, turn after turn; each turn lasts until the next begins.

    Attributes
    ----------
    start : ndarray of int64, shape (turns,), ns
    owner : ndarray of int64, shape (turns,)
        Index into `pids`, `NOBODY` where no context had it.
    pids : list of int
        Process of each owner, `NULL` where it is not recorded: then each context is an owner of its own.
    """

    start: np.ndarray
    owner: np.ndarray
    pids: list[int]


class OtherContexts:
    """Switches of the contexts of GPUs, and the devices of processes that are these GPUs."""

    def __init__(self) -> None:
        self._parts = [np.zeros((6, 0), np.int64)]  # GPU, time, sequence, context, process, whether it leaves
        self._rows = 0
        self._gpu_of: dict[tuple[int, int], int] = {}
        self._pid_of: dict[int, int] = {}
        self._turns: dict[int, Turns] = {}
        self._starts: dict[tuple[int, int], np.ndarray] = {}

    def take(self, gpu, time_ns, sequence, context, pid, leaves) -> None:
        """Take switches in any order; all arguments are int64 of shape (n,), `leaves` is bool: whether the context
        leaves the GPU. Each of its other events says that the context has the GPU.
        """
        self._rows += len(time_ns)
        if self._rows > MOST_SWITCHES:
            self._parts = self._parts[:1]
            return
        self._parts.append(np.stack([gpu, time_ns, sequence, context, pid, leaves]).astype(np.int64))

    def uses(self, process: int, pid: int | None, device: int, gpu: int) -> None:
        """Note that a process (its code, and its id where that is known) calls a GPU by a device's number."""
        self._gpu_of[process, device] = gpu
        if pid is not None:
            self._pid_of[process] = pid

    def _turns_of(self, gpu: int) -> Turns:
        if gpu not in self._turns:
            rows = np.concatenate(self._parts, axis=1)
            rows = rows[:, rows[0] == gpu]
            rows = rows[:, np.lexsort((rows[2], rows[1]))]
            keys = [(pid, NULL if pid != NULL else context) for context, pid in rows[3:5].T.tolist()]
            number: dict[tuple[int, int], int] = {}
            owner = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
            owner = np.where(rows[5] > 0, NOBODY, owner)
            first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: owner.size])
            self._turns[gpu] = Turns(rows[1, first], owner[first], [pid for pid, _ in number])
        return self._turns[gpu]

    def note_launches(self, process: np.ndarray, device: np.ndarray, start_ns: np.ndarray) -> None:
        """Note launches: work begins only while its own context has the GPU, which tells whose context that is.

        Parameters
        ----------
        process, device, start_ns : ndarray of int64, shape (n,)
        """
        for key, gpu in self._gpu_of.items() if self._rows else ():
            turns = self._turns_of(gpu)
            mine = start_ns[(process == key[0]) & (device == key[1])]
            at = np.searchsorted(turns.start, mine, "right") - 1
            owner = turns.owner[at[at >= 0]]
            counts = np.bincount(owner[owner >= 0], minlength=len(turns.pids))
            self._starts[key] = self._starts.get(key, 0) + counts

    def _own(self, key: tuple[int, int]) -> int | None:
        """Return the owner that a process is on a device: by its id, else, as inside of a container, that at whose
        turns most of its launches begin; None where nothing tells.
        """
        turns = self._turns_of(self._gpu_of[key])
        pid = self._pid_of.get(key[0])
        if pid is not None and pid in turns.pids:
            return turns.pids.index(pid)
        starts = self._starts.get(key, np.zeros(0, np.int64))
        return int(starts.argmax()) if starts.size and starts.max() else None

    def table(self, ranks: Mapping[int, int], issues: Issues) -> pa.Table:
        """Return the table `other_contexts`; `ranks` are by the code of their process. Processes of the export are
        none of the others: their own work tells when they use the GPU.
        """
        if self._rows > MOST_SWITCHES:
            issues.add("context_switches_left_out", self._rows)
        parts = [np.zeros((5, 0), np.int64)]
        own = {key: self._own(key) for key in self._gpu_of} if self._rows <= MOST_SWITCHES and self._rows else {}
        for key, owner in own.items():
            if owner is None or key[0] not in ranks:
                continue
            gpu = self._gpu_of[key]
            turns = self._turns_of(gpu)
            known = [other for of, other in own.items() if self._gpu_of[of] == gpu and other is not None]
            start = turns.start[:-1]
            duration = turns.start[1:] - start
            who = turns.owner[:-1]
            chosen = (who != NOBODY) & ~np.isin(who, known) & (duration > 0)
            pid = np.array([*turns.pids, NULL])[who[chosen]]
            where = np.broadcast_to(np.array([[ranks[key[0]]], [key[1]]]), (2, pid.size))
            parts.append(np.stack([start[chosen], duration[chosen], *where, pid]))
        rows = np.concatenate(parts, axis=1)
        start, duration, rank, device, pid = rows[:, np.lexsort((rows[3], rows[2], rows[0]))]
        columns = {"start_ns": start, "duration_ns": duration, "rank": rank, "device": device}
        return pa.table(columns | {"process": nullable(pid, pa.int64())})
