"""Ranks as threads of one process: as many as no machine of ours has memory for as processes. What travels is copied,
so that ranks share nothing; what MPI itself does is tried by the other tests.
"""

# ruff: noqa: N802, S301 - names are those of mpi4py; what is unpickled is another thread's

import pickle
import queue
import threading
from collections.abc import Callable

import numpy as np

from causeway.numeric.mpi import Ranks

TIMEOUT_S = 600
REDUCTIONS = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}


class _Meeting:
    """What the threads share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=TIMEOUT_S)
        self.slots: list = [None] * size
        self.mail = [queue.Queue() for _ in range(size)]


class _Done:
    """A request that is complete."""

    def Test(self) -> bool:
        return True


class ThreadCommunicator:
    """The methods of an mpi4py communicator that `Ranks` calls, for one of many threads."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting = meeting
        self._rank = rank

    def Get_rank(self) -> int:
        return self._rank

    def Get_size(self) -> int:
        return self._meeting.size

    def Ibarrier(self) -> _Done:
        self._meeting.barrier.wait()
        return _Done()

    def Split_type(self, kind):
        """All threads are of one node."""
        return self

    def Free(self) -> None:
        """Nothing is held."""

    def allgather(self, value):
        return [pickle.loads(part) for part in self._everywhere(pickle.dumps(value))]

    def gather(self, value, root):
        parts = self._everywhere(pickle.dumps(value))
        return [pickle.loads(part) for part in parts] if self._rank == root else None

    def bcast(self, value, root):
        return pickle.loads(self._everywhere(pickle.dumps(value) if self._rank == root else None)[root])

    def Allreduce(self, values, result, op):
        from mpi4py import MPI

        name = next(name for name in REDUCTIONS if op == getattr(MPI, name))
        result[...] = REDUCTIONS[name].reduce(self._everywhere(values.copy()))

    def Send(self, values, dest):
        self._meeting.mail[self._rank].put(values.copy())

    def Recv(self, into, source):
        into[...] = self._meeting.mail[source].get(timeout=TIMEOUT_S)

    def _everywhere(self, value) -> list:
        self._meeting.slots[self._rank] = value
        self._meeting.barrier.wait()
        found = list(self._meeting.slots)
        self._meeting.barrier.wait()
        return found


def on_threads(size: int, work: Callable[[Ranks], object]) -> None:
    """Do some work on `size` ranks; raise the first error of a rank."""
    meeting = _Meeting(size)
    errors = []

    def one(rank: int) -> None:
        try:
            work(Ranks(ThreadCommunicator(meeting, rank)))
        except BaseException as error:
            errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
