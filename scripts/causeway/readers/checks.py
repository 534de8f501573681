"""What the sink looks at on the way: the order of launches within their streams, and how long the profiler itself was at work."""

import numpy as np

from causeway.readers.distinct import distinct_rows
from causeway.readers.events import NULL

MOST_LANES = 1 << 16
"""Streams that are told apart; beyond them, ids are damage or handles that are never used twice."""

WRAPPED = 1 << 31
"""A correlation that falls by more than this has come to the end of its 32 bits and starts again."""

HELD = 1 << 20
HEAVY = 0.1
"""Share of the time from which on the profiler's own work is worth a caution."""


class Lanes:
    """Launches by (process, device, stream), in the order of their starts.

    A stream runs its launches in the order in which they were made, which is that of their correlations. A launch that starts after one
    made later on the same stream means that the clock was set back in between, or that several threads launch on that stream.
    """

    def __init__(self) -> None:
        self.resets = 0
        self.first_reset: int | None = None
        self._latest: dict[tuple[int, int, int], int] = {}

    def take(self, rows: np.ndarray) -> None:
        """Take records with start_ns, process, device, stream and correlation, ordered by start over all calls."""
        if len(self._latest) >= MOST_LANES:
            return
        columns = [rows[name] for name in ("process", "device", "stream")]
        first, inverse = distinct_rows(columns)
        # numbers of 16 bits, where they suffice, are ordered by counting
        order = np.argsort(inverse.astype(np.uint16 if len(first) <= 1 << 16 else np.int64), kind="stable")
        inverse, correlation = inverse[order], rows["correlation"][order]
        lanes = zip(*[column[first].tolist() for column in columns], strict=True)
        firsts = np.flatnonzero(np.append(True, inverse[1:] != inverse[:-1]))
        for key, begin, end in zip(lanes, firsts, np.append(firsts[1:], len(order)), strict=True):
            known = correlation[begin:end]
            at = np.flatnonzero(known != NULL)
            before = self._latest.setdefault(key, NULL)
            if not len(at):
                continue
            series = np.append(known[at[0]] if before == NULL else before, known[at])
            back = np.flatnonzero((series[1:] < series[:-1]) & (series[1:] > series[:-1] - WRAPPED))
            if len(back):
                self.resets += len(back)
                start = int(rows["start_ns"][order[begin + at[back[0]]]])
                self.first_reset = start if self.first_reset is None else min(start, self.first_reset)
            self._latest[key] = int(known[at[-1]])

    def count(self) -> dict[int, int]:
        """Return the number of streams with launches of each process."""
        counts: dict[int, int] = {}
        for process, _, _ in self._latest:
            counts[process] = counts.get(process, 0) + 1
        return counts


class Overhead:
    """Intervals in which the profiler itself was at work."""

    def __init__(self) -> None:
        self.rows = self.kept = 0
        self._parts: list[np.ndarray] = []

    def take(self, start_ns: np.ndarray, end_ns: np.ndarray) -> None:
        """Take intervals in any order; those without a start or end, or that end before they start, are none."""
        good = (start_ns != NULL) & (end_ns != NULL) & (end_ns >= start_ns)
        self.rows += int(good.sum())
        self._parts.append(np.stack([start_ns[good], end_ns[good]]))
        self.kept += self._parts[-1].shape[1]
        if self.kept > HELD:
            self._parts = [_merged(np.concatenate(self._parts, axis=1))]
            self.kept = self._parts[0].shape[1]

    def within(self, first_ns: int, last_ns: int) -> int:
        """Return the nanoseconds between two times that the intervals cover."""
        if not self._parts:
            return 0
        start, end = np.clip(_merged(np.concatenate(self._parts, axis=1)), first_ns, last_ns)
        return int((end - start).sum())


def _merged(intervals: np.ndarray) -> np.ndarray:
    """Return the same points as ascending, disjoint intervals, shape (2, n)."""
    if not intervals.shape[1]:
        return intervals
    start, end = intervals[:, np.argsort(intervals[0], kind="stable")]
    end = np.maximum.accumulate(end)
    opens = np.append(True, start[1:] > end[:-1])
    return np.stack([start[opens], end[np.append(np.flatnonzero(opens)[1:] - 1, len(end) - 1)]])
