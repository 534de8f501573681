"""The workers of a rank: threads that share its memory.

A rank with n workers does what n ranks would: each worker has a share of the bins and its own sums, and these are added
as exact integers. Compiled code and Arrow's readers run without Python's global lock, so threads work side by side.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from causeway.numeric.mpi import Ranks

TaskPlan = TypeVar("TaskPlan")
Part = TypeVar("Part")


class Team:
    """The workers of one rank; to be used in a `with` block.

    Parameters
    ----------
    ranks : Ranks
    count : int
        Workers per rank, on all ranks alike. A single one is the rank itself.

    Attributes
    ----------
    workers : range
        Numbers of this rank's workers among all.
    size : int
        Number of workers on all ranks.
    """

    def __init__(self, ranks: Ranks, count: int = 1) -> None:
        self.workers = range(ranks.rank * count, (ranks.rank + 1) * count)
        self.size = ranks.size * count
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[TaskPlan, int, int], Part], plan: TaskPlan) -> list[Part]:
        """Return what `task(plan, worker, size)` gives for each of this rank's workers, in their order."""
        run = map if self._pool is None else self._pool.map
        return list(run(lambda worker: task(plan, worker, self.size), self.workers))
