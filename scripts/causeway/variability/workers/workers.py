"""The workers of a rank: threads that share its memory, or processes of their own.

A rank with n workers does what n ranks would: each worker has a share of the bins and its own sums, and these are added
as exact integers. Compiled code and Arrow's readers run without Python's global lock, so threads work side by side and
are the better choice; processes, started with `multiprocessing`, are the form of arXiv 2510.18300 (section 2.4, step
5).
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TypeVar

from causeway.numeric.mpi import Ranks

KINDS = ("threads", "processes")
TaskPlan = TypeVar("TaskPlan")
Part = TypeVar("Part")


class Team:
    """The workers of one rank; to be used in a `with` block.

    Parameters
    ----------
    ranks : Ranks
    count : int
        Workers per rank, on all ranks alike.
    kind : str
        `threads` or `processes`. A single worker is the rank itself.

    Attributes
    ----------
    workers : range
        Numbers of this rank's workers among all.
    size : int
        Number of workers on all ranks.
    """

    def __init__(self, ranks: Ranks, count: int = 1, kind: str = "threads") -> None:
        self.workers = range(ranks.rank * count, (ranks.rank + 1) * count)
        self.size = ranks.size * count
        self._pool: Executor | None = None
        if count > 1 and kind == "threads":
            self._pool = ThreadPoolExecutor(count)
        elif count > 1:
            # a copy of a process that talks MPI and has threads of Arrow's is not safe, so workers start afresh
            self._pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[TaskPlan, int, int], Part], plan: TaskPlan) -> list[Part]:
        """Return what `task(plan, worker, size)` gives for each of this rank's workers, in their order.

        The task is a function of a module, as processes find it by name; they get a copy of `plan`.
        """
        if self._pool is None:
            return [task(plan, worker, self.size) for worker in self.workers]
        return list(self._pool.map(task, *zip(*((plan, worker, self.size) for worker in self.workers), strict=True)))
