"""How long the profiler itself was at work."""

import numpy as np

from causeway.readers.common.constants import NULL

MOST_INTERVALS = 1 << 20
"""Intervals held before they are merged into disjoint ones."""

HEAVY_SHARE = 0.1
"""Share of the time from which on the profiler's own work is worth a caution; a choice without a source."""


class ProfilerOverhead:
    """Intervals in which the profiler itself was at work.

    Attributes
    ----------
    rows : int
        Intervals taken so far.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._held = 0
        self._parts: list[np.ndarray] = []

    def take(self, start_ns: np.ndarray, end_ns: np.ndarray) -> None:
        """Take intervals, int64 of shape (n,), in any order; those without a start or end, or that end before they
        start, are none.
        """
        good = (start_ns != NULL) & (end_ns != NULL) & (end_ns >= start_ns)
        self.rows += int(good.sum())
        self._parts.append(np.stack([start_ns[good], end_ns[good]]))
        self._held += self._parts[-1].shape[1]
        if self._held > MOST_INTERVALS:
            self._parts = [_merged(np.concatenate(self._parts, axis=1))]
            self._held = self._parts[0].shape[1]

    def within(self, first_ns: int, last_ns: int) -> int:
        """Return the nanoseconds between two times that the intervals cover."""
        if not self._parts:
            return 0
        start, end = np.clip(_merged(np.concatenate(self._parts, axis=1)), first_ns, last_ns)
        return int((end - start).sum())


def _merged(intervals: np.ndarray) -> np.ndarray:
    """Return the same points as ascending, disjoint intervals; int64, shape (2, n).

    Not `numeric.intervals.union`: small exports do not load its compiled code.
    """
    if not intervals.shape[1]:
        return intervals
    start, end = intervals[:, np.argsort(intervals[0], kind="stable")]
    end = np.maximum.accumulate(end)
    opens = np.append(True, start[1:] > end[:-1])
    return np.stack([start[opens], end[np.append(np.flatnonzero(opens)[1:] - 1, len(end) - 1)]])
