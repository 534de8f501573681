"""How often each rank of an export launched each configuration, and for how long."""

import numpy as np

from causeway.events.few_values import few_distinct
from causeway.numeric.compiled import I4, I8, U4, compiled, int64, void


class LaunchSums:
    """Launches and their summed durations.

    Parameters
    ----------
    configurations : int

    Attributes
    ----------
    ranks : list of int
        In the order in which they were seen.
    sums : ndarray of int64, shape (ranks, configurations, 2)
        Launches, and ns.
    """

    def __init__(self, configurations: int) -> None:
        self.ranks: list[int] = []
        self.sums = np.zeros((0, configurations, 2), np.int64)

    def take(self, rank: np.ndarray, configuration: np.ndarray, duration: np.ndarray) -> None:
        """Take launches.

        Parameters
        ----------
        rank, configuration : ndarray of uint32, shape (n,)
        duration : ndarray of int64, shape (n,), ns
        """
        found, code = few_distinct(rank)
        fresh = [one for one in found.tolist() if one not in self.ranks]
        if fresh:
            self.ranks += fresh
            self.sums = np.concatenate([self.sums, np.zeros((len(fresh), *self.sums.shape[1:]), np.int64)])
        row = np.array([self.ranks.index(one) for one in found.tolist()], np.int64)
        _add_launches(code, row, configuration, duration, self.sums)


@compiled(void(I4, I8, U4, I8, int64[:, :, ::1]))
def _add_launches(codes, row_of, configurations, durations, sums):
    for i in range(codes.size):
        found = sums[row_of[codes[i]], configurations[i]]
        found[0] += 1
        found[1] += durations[i]
