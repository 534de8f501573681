"""The steps of one rank: windows of its time line, in order and without overlap."""

from dataclasses import dataclass

import numpy as np

from causeway.numeric.intervals import window_of


@dataclass(frozen=True, kw_only=True)
class RankSteps:
    """Steps of one rank, in the clock of its export.

    Attributes
    ----------
    rank : int
    number : ndarray of int64, shape (steps,)
        Ascending: as the annotations count them, else from 0.
    start, end : ndarray of int64, shape (steps,), ns
        A step is [start, end); end of one is at most start of the next.
    """

    rank: int
    number: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def of(self, moments: np.ndarray) -> np.ndarray:
        """Return the position of the step in whose window each moment lies, -1 in none; int64, shape (n,).

        Parameters
        ----------
        moments : ndarray of int64, shape (n,), ns
            In any order.
        """
        return window_of(self.start, self.end, moments)

    def kept(self, chosen: np.ndarray) -> "RankSteps":
        """Return the steps that a mask chooses.

        Parameters
        ----------
        chosen : ndarray of bool, shape (steps,)
        """
        return RankSteps(rank=self.rank, number=self.number[chosen], start=self.start[chosen], end=self.end[chosen])
