"""The order of launches within their streams, in which a clock that was set back shows, and ends that are wrong."""

import numpy as np

from causeway.readers.common.constants import NULL, WRAPPED
from causeway.readers.common.issues import Issues
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import distinct_rows, worth_compiling

MOST_STREAMS = 1 << 16
"""Streams that are distinguished; beyond them, ids are damage or handles that are never used twice."""


class StreamOrder:
    """Launches by stream, that is by (process, device, stream), in the order of their starts.

    A stream runs its launches in the order in which they were made, which is that of their correlations. A launch that
    starts after one made later on the same stream means that the clock was set back in between, or that several threads
    launch on that stream. One that ends after a later one has ended has a wrong end; launches that follow closely may
    overlap at their edges, and those of one call, the nodes of a graph, at will.

    Attributes
    ----------
    resets : int
        Launches that start after one made later on the same stream.
    first_reset : int or None
        Start of the first of them, in nanoseconds on the export's clock.
    outlasting : int
        Launches that end after a later one of the same stream has ended.
    longest : int
        How long after the start of such a later one they end at most, in nanoseconds.
    """

    def __init__(self) -> None:
        self.resets = 0
        self.first_reset: int | None = None
        self.outlasting = 0
        self.longest = 0
        self._streams: dict[tuple[int, int, int], int] = {}
        self._latest = np.empty(0, np.int64)
        self._ends_last = np.empty((4, 0), np.int64)

    def take(self, rows: EventBatch) -> None:
        """Take rows with start_ns, duration_ns, process, device, stream and correlation, ordered by start over all
        calls.
        """
        if len(self._streams) >= MOST_STREAMS:
            return
        columns = [rows[name] for name in ("process", "device", "stream")]
        first, inverse = distinct_rows(columns)
        keys = zip(*[column[first].tolist() for column in columns], strict=True)
        numbers = np.array([self._streams.setdefault(key, len(self._streams)) for key in keys], np.int64)
        new = len(self._streams) - len(self._latest)
        self._latest = np.append(self._latest, np.full(new, NULL))
        self._ends_last = np.append(self._ends_last, np.full((4, new), NULL), axis=1)
        stream = numbers[inverse]
        correlation = np.ascontiguousarray(rows["correlation"], np.int64)
        start = np.ascontiguousarray(rows["start_ns"], np.int64)
        end = start + rows["duration_ns"]
        falls = _falls
        outlasting = _outlasting
        if worth_compiling(len(stream)):
            from causeway.readers.sink.compiled_loops import falls, outlasting
        count, first_fall = falls(stream, correlation, self._latest)
        self.resets += count
        if count and self.first_reset is None:
            self.first_reset = int(start[first_fall])
        count, longest = outlasting(stream, correlation, start, end, self._ends_last)
        self.outlasting += count
        self.longest = max(self.longest, longest)

    def report(self, issues: Issues) -> None:
        """Add the issues found; where the export has no streams, launches have no order."""
        if issues.count("stream_assumed"):
            return
        issues.add("clock_reset", self.resets, f"the first at {self.first_reset or 0:,} ns")
        issues.add("outlasting", self.outlasting, f"by up to {self.longest / 1e6:,.3f} ms")

    def count(self) -> dict[int, int]:
        """Return the number of streams with launches of each process."""
        counts: dict[int, int] = {}
        for process, _, _ in self._streams:
            counts[process] = counts.get(process, 0) + 1
        return counts


def _falls(stream: np.ndarray, series: np.ndarray, latest: np.ndarray) -> tuple[int, int]:
    """Do what `compiled_loops.falls` does, for few rows, without compiled code."""
    found = []
    last = latest.tolist()
    for at, (number, value) in enumerate(zip(stream.tolist(), series.tolist(), strict=True)):
        if value != NULL:
            if last[number] != NULL and last[number] - WRAPPED < value < last[number]:
                found.append(at)
            last[number] = value
    latest[:] = last
    return len(found), found[0] if found else -1


def _outlasting(
    stream: np.ndarray, series: np.ndarray, start: np.ndarray, end: np.ndarray, latest: np.ndarray
) -> tuple[int, int]:
    """Do what `compiled_loops.outlasting` does, for few rows, without compiled code."""
    count = longest = 0
    last = latest.T.tolist()
    for at, call, begin, stop in zip(*(column.tolist() for column in (stream, series, start, end)), strict=True):
        before = last[at]
        if stop >= before[2]:
            last[at] = [call, begin, stop, 0]
        elif begin > before[1] and stop > begin and (call != before[0] or call == NULL):
            count += 1 - before[3]
            before[3] = 1
            longest = max(longest, before[2] - begin)
    latest[:] = np.array(last, np.int64).T
    return count, longest
