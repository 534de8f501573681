"""How often each rank of an export launched each configuration, and for how long."""

import numpy as np

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
        found = sums[rows[i], configurations[i]]
        found[0] += 1
        found[1] += durations[i]
