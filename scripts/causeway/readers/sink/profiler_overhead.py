"""What the sink looks at on the way: the order of launches within their streams, and how long the profiler itself was at work."""

import numpy as np

from causeway.readers.distinct import distinct_rows, worth_compiling
from causeway.readers.events import NULL
from causeway.readers.rows import Rows

WRAPPED = 1 << 31
"""A correlation that falls by as much has come to the end of its 32 bits and starts again."""

MOST_LANES = 1 << 16
"""Streams that are told apart; beyond them, ids are damage or handles that are never used twice."""

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
        self._lanes: dict[tuple[int, int, int], int] = {}
        self._latest = np.empty(0, np.int64)

    def take(self, rows: Rows) -> None:
        """Take rows with start_ns, process, device, stream and correlation, ordered by start over all calls."""
        if len(self._lanes) >= MOST_LANES:
            return
        columns = [rows[name] for name in ("process", "device", "stream")]
        first, inverse = distinct_rows(columns)
        lanes = zip(*[column[first].tolist() for column in columns], strict=True)
        numbers = np.array([self._lanes.setdefault(lane, len(self._lanes)) for lane in lanes], np.int64)
        self._latest = np.append(self._latest, np.full(len(self._lanes) - len(self._latest), NULL))
        lane, correlation = numbers[inverse], np.ascontiguousarray(rows["correlation"], np.int64)
        falls = _falls
        if worth_compiling(len(lane)):
            from causeway.readers.hashed import falls
        count, at = falls(lane, correlation, self._latest)
        self.resets += count
        if count and self.first_reset is None:
            self.first_reset = int(rows["start_ns"][at])

    def count(self) -> dict[int, int]:
        """Return the number of streams with launches of each process."""
        counts: dict[int, int] = {}
        for process, _, _ in self._lanes:
            counts[process] = counts.get(process, 0) + 1
        return counts


def _falls(lane: np.ndarray, series: np.ndarray, latest: np.ndarray) -> tuple[int, int]:
    """Do what `hashed.falls` does, for few rows, without compiled code."""
    places, last = [], latest.tolist()
    for at, (number, value) in enumerate(zip(lane.tolist(), series.tolist(), strict=True)):
        if value != NULL:
            if last[number] != NULL and last[number] - WRAPPED < value < last[number]:
                places.append(at)
            last[number] = value
    latest[:] = last
    return len(places), places[0] if places else -1


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
