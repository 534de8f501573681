"""The order of launches within their streams, in which a clock that was set back shows."""

import numpy as np

from causeway.readers.common.constants import NULL, WRAPPED
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import distinct_rows, worth_compiling

MOST_STREAMS = 1 << 16
"""Streams that are distinguished; beyond them, ids are damage or handles that are never used twice."""


class StreamOrder:
    """Launches by stream, that is by (process, device, stream), in the order of their starts.

    A stream runs its launches in the order in which they were made, which is that of their correlations. A launch that
    starts after one made later on the same stream means that the clock was set back in between, or that several threads
    launch on that stream.

    Attributes
    ----------
    resets : int
        Launches that start after one made later on the same stream.
    first_reset : int or None
        Start of the first of them, in nanoseconds on the export's clock.
    """

    def __init__(self) -> None:
        self.resets = 0
        self.first_reset: int | None = None
        self._streams: dict[tuple[int, int, int], int] = {}
        self._latest = np.empty(0, np.int64)

    def take(self, rows: EventBatch) -> None:
        """Take rows with start_ns, process, device, stream and correlation, ordered by start over all calls."""
        if len(self._streams) >= MOST_STREAMS:
            return
        columns = [rows[name] for name in ("process", "device", "stream")]
        first, inverse = distinct_rows(columns)
        keys = zip(*[column[first].tolist() for column in columns], strict=True)
        numbers = np.array([self._streams.setdefault(key, len(self._streams)) for key in keys], np.int64)
        self._latest = np.append(self._latest, np.full(len(self._streams) - len(self._latest), NULL))
        stream = numbers[inverse]
        correlation = np.ascontiguousarray(rows["correlation"], np.int64)
        falls = _falls
        if worth_compiling(len(stream)):
            from causeway.readers.sink.compiled_loops import falls
        count, first_fall = falls(stream, correlation, self._latest)
        self.resets += count
        if count and self.first_reset is None:
            self.first_reset = int(rows["start_ns"][first_fall])

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
