"""Tables read beside the launches, in step with them: transfers, and intervals such as collectives that a row may lie in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.levels import cells
from causeway.levels.stream import Lanes, chunks

DIRECTIONS = {1: 0, 3: 0, 6: 0, 11: 0, 2: 1, 4: 1, 7: 1, 12: 1, 255: 3}
"""Copy kinds by direction: 0 host to device, 1 device to host, 3 memory set; all others (2) stay on the device or run between devices."""
Link = Callable[..., tuple[np.ndarray, np.ndarray]]
"""`link(start, end, lane, t_start, t_end, t_lane, window)` gives for each launch the place of its transfer, or -1, and their overlap."""
NEVER = -1
"""A window of `link` that no transfer which ended before meets: what is left is the longest overlap."""
COLUMNS = ("start_ns", "duration_ns", "bytes", "copy_kind", "rank", "device", "stream")


class Held:
    """Rows of a table in the order of time, held from when they are asked for until all that they may concern is past.

    Parameters
    ----------
    rows : iterator of tuples of ndarray
        Pieces of the table: start, further columns, end.
    nothing : tuple of ndarray
        The same without rows.
    """

    def __init__(self, rows: Iterator[tuple[np.ndarray, ...]], nothing: tuple[np.ndarray, ...]) -> None:
        self._coming, self._next = rows, next(rows, None)
        self.columns = nothing
        self.reach = nothing[-1]
        """The latest end so far, row by row: it ascends, as ends need not."""

    def load(self, last: int | None, past: int) -> int:
        """Hold every row that begins by `last`; all for None. Let go of the first `past` rows. Return how many were let go."""
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


class Transfers:
    """An export's transfers beside its launches: those that are next to be counted, and those that a launch may still be linked to.

    Parameters
    ----------
    path : Path
        The table; it need not exist.
    lanes : Lanes
    window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    """

    def __init__(self, path: Path, lanes: Lanes, window_ns: int) -> None:
        self.lanes, self.window_ns = lanes, window_ns
        coming = chunks(path, "transfers", list(COLUMNS)) if path.is_file() else iter(())
        self._held = Held(map(self._facts, coming), (np.empty(0, np.int64),) * 6)
        self._counted, self._since = 0, cells.EMPTY_LOW

    def _facts(self, batch: pa.RecordBatch) -> tuple[np.ndarray, ...]:
        """Return start, duration, lane, direction, bytes (-1 if unknown) and end of each row."""
        kinds = batch.column("copy_kind").to_numpy()
        direction = np.full(256, 2, np.int64)
        direction[list(DIRECTIONS)] = list(DIRECTIONS.values())
        size = pc.fill_null(batch.column("bytes"), -1).to_numpy()
        start, duration = batch.column("start_ns").to_numpy(), batch.column("duration_ns").to_numpy()
        return start, duration, self.lanes.of(batch), direction[kinds], size, start + duration

    def _load(self, last: int | None) -> None:
        self._counted -= self._held.load(last, min(self._counted, self._held.past(self._since)))

    def due(self, last: int | None) -> tuple[np.ndarray, ...]:
        """Return the columns of the transfers that begin by `last` (all for None) and were not returned before."""
        self._load(last)
        stop = self._held.reach.size if last is None else self._held.begun(last)
        rows = slice(self._counted, stop)
        self._counted = stop
        return tuple(column[rows] for column in self._held.columns[:5])

    def linked(self, start: np.ndarray, duration: np.ndarray, lane: np.ndarray, link: Link | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of each launch's transfer, -1 where there is none, in the durations that follow; launches in order of time."""
        if link is None:
            return np.full(start.size, -1, np.int64), self._held.reach
        end = start + duration
        last = int(end.max())
        self._since = int(start[0]) - self.window_ns
        self._load(last)
        near = slice(self._held.past(self._since), self._held.begun(last))
        begun, lasted, theirs, ended = (self._held.columns[place][near] for place in (0, 1, 2, 5))
        if not begun.size:
            return np.full(start.size, -1, np.int64), lasted
        device_of = self.lanes.device_of
        place, _ = link(start, end, device_of[lane], begun, ended, device_of[theirs], self.window_ns)
        return place, lasted


class Inside:
    """Intervals of a table beside rows of another: for each row the one that it shares most time with.

    Parameters
    ----------
    rows : iterator of tuples of ndarray
        Pieces of the table: start, key (rank or device, as a number), further columns, end.
    nothing : tuple of ndarray
        The same without rows.
    link : callable
    """

    def __init__(self, rows: Iterator[tuple[np.ndarray, ...]], nothing: tuple[np.ndarray, ...], link: Link) -> None:
        self._held, self._link = Held(rows, nothing), link

    def of(self, start: np.ndarray, duration: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """Return the place of each row's interval, -1 without one, the ns shared with it, and the columns that places refer to.

        Of several intervals that share as much the earlier counts, then the one of the smaller row. Rows come in the order of time.
        """
        end = start + duration
        last, since = int(end.max()), int(start[0])
        self._held.load(last, self._held.past(since))
        near = slice(self._held.past(since), self._held.begun(last))
        columns = tuple(column[near] for column in self._held.columns)
        if not columns[0].size:
            return np.full(start.size, -1, np.int64), np.zeros(start.size, np.int64), columns
        return *self._link(start, end, key, columns[0], columns[-1], columns[1], NEVER), columns
