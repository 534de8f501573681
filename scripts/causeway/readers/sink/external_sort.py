"""Any order in, start order out, in bounded memory: a natural merge sort on disk.

Exports are nearly sorted: rows are late by less than a window, so one run suffices and a row is sorted once, in memory.
Anything else makes more runs, which are merged. Runs lie in one file beside the output, block by block and column by
column; what is repeated in all of a block's rows stays in memory.
"""

import errno
import heapq
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.readers.common.background import BackgroundThread
from causeway.readers.sink.batches import EventBatch, is_repeated

WINDOW_ROWS = 1 << 18
"""Rows held in memory per kind of event; half of them are kept at each spill, since later rows may come before them."""

BLOCK_ROWS = 1 << 16
"""Rows per block that `blocks` gives."""

LEAST_ROWS = 1 << 14
"""Smaller blocks are put together: each costs every later step some calls."""

MERGE_ROWS = 1 << 18
"""Rows that a merge holds over all its runs."""


def in_order(rows: EventBatch) -> EventBatch:
    """Return rows by their start, those of equal start in the order in which they stand."""
    return rows[np.argsort(rows["start_ns"], kind="stable")]


@dataclass(frozen=True, kw_only=True)
class SpilledBlock:
    """A block in the file: its offset in bytes, its rows, and of each column the repeated value or the type of the
    values that lie there.
    """

    begin: int
    count: int
    columns: dict[str, np.ndarray | np.dtype]


class ExternalSort:
    """Rows ordered by `start_ns`, then by the order in which they were added.

    Parameters
    ----------
    spill : Path
        The file for rows beyond the window; created when needed, removed by `close`.
    """

    def __init__(self, spill: Path, window: int = WINDOW_ROWS) -> None:
        self.spill = spill
        self.window = window
        self.rows = 0
        self.runs: list[list[SpilledBlock]] = []
        self._pending: list[EventBatch] = []
        self._chained = True  # whether all that is pending is in order as it stands
        self._waiting = 0
        self._file: io.BufferedRandom | None = None
        self._end = 0
        self._last = None

    def add(self, rows: EventBatch) -> None:
        """Take a batch of rows, in any order; they must not be changed any more."""
        for begin in range(0, len(rows), self.window):
            part = rows[begin : begin + self.window]
            start = part["start_ns"]
            before = self._pending[-1]["start_ns"][-1] if self._pending else start[0]
            self._chained &= bool(start[0] >= before and (start[1:] >= start[:-1]).all())
            self._pending.append(part)
            self._waiting += len(part)
            self.rows += len(part)
            if self._waiting >= 2 * self.window:
                self._spill_early()

    def _sort(self) -> None:
        """Make one block in order of all that is pending, unless its blocks are, and not too small."""
        if not self._chained or self._waiting < len(self._pending) * LEAST_ROWS:
            rows = EventBatch.concatenated(self._pending)
            self._pending = [rows if self._chained else in_order(rows)]
            self._chained = True

    def _spill_early(self) -> None:
        """Write all that is pending but the last window of rows."""
        self._sort()
        while self._waiting > self.window:
            rows = self._pending.pop(0)
            late = max(0, self.window - (self._waiting - len(rows)))
            if late:
                self._pending.insert(0, rows[len(rows) - late :].copy())
            self._write(rows[: len(rows) - late])
            self._waiting -= len(rows) - late

    def _open(self) -> io.BufferedRandom:
        if self._file is None:
            self._file = open(self.spill, "w+b")  # noqa: SIM115 - closed by close(), lives as long as the rows
            self._background = BackgroundThread()
        return self._file

    def _write(self, rows: EventBatch) -> None:
        if not len(rows):
            return
        file = self._open()
        if self._last is None or rows["start_ns"][0] < self._last:
            self.runs.append([])
        columns = {
            name: values[:1].copy() if is_repeated(values) else values.dtype for name, values in rows.columns.items()
        }
        written = [np.ascontiguousarray(values) for values in rows.columns.values() if not is_repeated(values)]
        self.runs[-1].append(SpilledBlock(begin=self._end, count=len(rows), columns=columns))
        self._end += sum(values.nbytes for values in written)
        self._last = rows["start_ns"][-1]
        self._background.start(lambda: file.writelines(values.data for values in written))

    def blocks(self) -> Iterator[EventBatch]:
        """Give all rows in order, in blocks; call once, after the last `add`."""
        self._sort()
        rest = self._pending
        self._pending = []
        if not self.runs:
            yield from (rows[first : first + BLOCK_ROWS] for rows in rest for first in range(0, len(rows), BLOCK_ROWS))
            return
        for rows in rest:
            self._write(rows)
        del rest
        self._background.wait()
        self._open().flush()
        yield from self._merged()

    def _read(self, block: SpilledBlock, first: int, count: int) -> EventBatch:
        file = self._open()
        columns = {}
        begin = block.begin
        for name, stored in block.columns.items():
            if isinstance(stored, np.ndarray):
                columns[name] = np.broadcast_to(stored, (count,))
                continue
            columns[name] = np.empty(count, stored)
            file.seek(begin + first * stored.itemsize)
            if file.readinto(columns[name].data) != columns[name].nbytes:
                raise OSError(errno.EIO, "spilled rows are lost")
            begin += block.count * stored.itemsize
        return EventBatch(columns)

    def _run_blocks(self, run: list[SpilledBlock], size: int) -> Iterator[EventBatch]:
        for block in run:
            for first in range(0, block.count, size):
                yield self._read(block, first, min(size, block.count - first))

    def _merged(self) -> Iterator[EventBatch]:
        """Merge the runs: everything before the earliest end of a loaded block is complete and can go.

        A run's rows were all added before those of equal start in a later run, so concatenating in run order and
        sorting stably keeps the order of addition.
        """
        if len(self.runs) == 1:
            yield from self._run_blocks(self.runs[0], BLOCK_ROWS)
            return
        size = max(64, MERGE_ROWS // len(self.runs))
        sources = [self._run_blocks(run, size) for run in self.runs]
        loaded = [next(source, None) for source in sources]
        while any(block is not None for block in loaded):
            ends = [(block["start_ns"][-1], index) for index, block in enumerate(loaded) if block is not None]
            bound, _ = heapq.nsmallest(1, ends)[0]
            # runs whose loaded rows end at the bound may go on with it: load on until they pass it
            for index, block in enumerate(loaded):
                while block is not None and block["start_ns"][-1] == bound:
                    more = next(sources[index], None)
                    if more is None:
                        break
                    block = EventBatch.concatenated([block, more])
                loaded[index] = block
            parts = []
            for index, block in enumerate(loaded):
                if block is None:
                    continue
                cut = int(np.searchsorted(block["start_ns"], bound, "right"))
                parts.append(block[:cut])
                loaded[index] = block[cut:] if cut < len(block) else next(sources[index], None)
            rows = in_order(EventBatch.concatenated(parts))
            yield from (rows[first : first + BLOCK_ROWS] for first in range(0, len(rows), BLOCK_ROWS))

    def close(self) -> None:
        """Drop the rows and remove the spill file."""
        self._pending = []
        if self._file is not None:
            self._background.close()
            self._file.raw.close()  # drops what was not yet written
            self._file = None
            self.spill.unlink(missing_ok=True)
