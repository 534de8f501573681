"""Tables read in step with the launches: transfers, and intervals such as collectives that a row may lie in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock
from causeway.core.codes import MEMSET_KIND
from causeway.levels.pyramid import cells
from causeway.levels.pyramid.ordered_rows import StreamNumbers, chunks

DIRECTIONS = {1: 0, 3: 0, 6: 0, 11: 0, 2: 1, 4: 1, 7: 1, 12: 1, MEMSET_KIND: 3}
"""Copy kinds by direction: 0 host to device, 1 device to host, 3 memory set; all others (2) stay on the device or
run between devices.
"""
LinkFunction = Callable[..., tuple[np.ndarray, np.ndarray]]
"""`link(start, end, device, t_start, t_end, t_device, window)` gives for each launch the index of its transfer, or -1,
and their overlap.
"""
NEVER = -1
"""A window of `link` that no transfer which ended before meets: what is left is the longest overlap."""
COLUMNS = ("start_ns", "duration_ns", "bytes", "copy_kind", "rank", "device", "stream")


class HeldRows:
    """Rows of a table in the order of time, held until no later row can need them.

    Parameters
    ----------
    rows : iterator of tuples of ndarray
        Pieces of the table: start, further columns, end.
    nothing : tuple of ndarray
        The same without rows.
    """

    def __init__(self, rows: Iterator[tuple[np.ndarray, ...]], nothing: tuple[np.ndarray, ...]) -> None:
        self._coming = rows
        self._next = next(rows, None)
        self.columns = nothing
        self.reach = nothing[-1]
        """The latest end so far, row by row: it ascends, as ends need not."""

    def load(self, last: int | None, past: int) -> int:
        """Hold every row that begins by `last`; all for None. Let go of the first `past` rows. Return how many were
        let go.
        """
        if self._next is None or (last is not None and self._next[0][0] > last):
            return 0
        parts = [[column[past:]] for column in self.columns]
        while self._next is not None and (last is None or self._next[0][0] <= last):
            for part, column in zip(parts, self._next, strict=True):
                part.append(column)
            self._next = next(self._coming, None)
        self.columns = tuple(np.concatenate(part) for part in parts)
        self.reach = np.maximum.accumulate(self.columns[-1])
        return past

    def past(self, since: int) -> int:
        """Return how many of the first rows ended before a time."""
        return int(np.searchsorted(self.reach, since))

    def begun(self, last: int) -> int:
        """Return how many rows begin by a time."""
        return int(np.searchsorted(self.columns[0], last, side="right"))


class TransferRows:
    """An export's transfers in step with its launches: those that are next to be counted, and those that a launch may
    still be linked to.

    Parameters
    ----------
    path : Path
        The table; it need not exist.
    clock : Clock
        The export's.
    numbers : StreamNumbers
    window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    """

    def __init__(self, path: Path, clock: Clock, numbers: StreamNumbers, window_ns: int) -> None:
        self.numbers = numbers
        self.window_ns = window_ns
        coming = chunks(path, "transfers", list(COLUMNS), clock=clock) if path.is_file() else iter(())
        self._held = HeldRows(map(self._facts, coming), (np.empty(0, np.int64),) * 6)
        self._counted = 0
        self._since = cells.EMPTY_LOW

    def _facts(self, batch: pa.RecordBatch) -> tuple[np.ndarray, ...]:
        """Return start, duration, stream, direction, bytes (-1 if unknown) and end of each row."""
        kinds = batch.column("copy_kind").to_numpy()
        direction = np.full(256, 2, np.int64)
        direction[list(DIRECTIONS)] = list(DIRECTIONS.values())
        size = pc.fill_null(batch.column("bytes"), -1).to_numpy()
        start = batch.column("start_ns").to_numpy()
        duration = batch.column("duration_ns").to_numpy()
        return start, duration, self.numbers.of(batch), direction[kinds], size, start + duration

    def _load(self, last: int | None) -> None:
        self._counted -= self._held.load(last, min(self._counted, self._held.past(self._since)))

    def due(self, last: int | None) -> tuple[np.ndarray, ...]:
        """Return the columns of the transfers that begin by `last` (all for None) and were not returned before."""
        self._load(last)
        stop = self._held.reach.size if last is None else self._held.begun(last)
        rows = slice(self._counted, stop)
        self._counted = stop
        return tuple(column[rows] for column in self._held.columns[:5])

    def linked(
        self, start: np.ndarray, duration: np.ndarray, stream: np.ndarray, link: LinkFunction | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of each launch's transfer, -1 where there is none, in the durations that follow; launches
        in order of time.
        """
        if link is None:
            return np.full(start.size, -1, np.int64), self._held.reach
        end = start + duration
        last = int(end.max())
        self._since = int(start[0]) - self.window_ns
        self._load(last)
        near = slice(self._held.past(self._since), self._held.begun(last))
        begun, lasted, theirs, ended = (self._held.columns[column][near] for column in (0, 1, 2, 5))
        if not begun.size:
            return np.full(start.size, -1, np.int64), lasted
        device_of = self.numbers.device_of
        index, _ = link(start, end, device_of[stream], begun, ended, device_of[theirs], self.window_ns)
        return index, lasted


class EnclosingIntervals:
    """Intervals of a table in step with rows of another: for each row the one that it shares most time with.

    Parameters
    ----------
    rows : iterator of tuples of ndarray
        Pieces of the table: start, key (rank or device, as a number), further columns, end.
    nothing : tuple of ndarray
        The same without rows.
    link : callable
    """

    def __init__(
        self, rows: Iterator[tuple[np.ndarray, ...]], nothing: tuple[np.ndarray, ...], link: LinkFunction
    ) -> None:
        self._held = HeldRows(rows, nothing)
        self._link = link

    def of(
        self, start: np.ndarray, duration: np.ndarray, key: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return the index of each row's interval, -1 without one, the ns shared with it, and the columns that indices
        refer to.

        Of several intervals that share as much the earlier counts, then the one of the smaller row. Rows come in the
        order of time.
        """
        end = start + duration
        last = int(end.max())
        since = int(start[0])
        self._held.load(last, self._held.past(since))
        near = slice(self._held.past(since), self._held.begun(last))
        columns = tuple(column[near] for column in self._held.columns)
        if not columns[0].size:
            return np.full(start.size, -1, np.int64), np.zeros(start.size, np.int64), columns
        return *self._link(start, end, key, columns[0], columns[-1], columns[1], NEVER), columns
