"""What host threads did: calls, ranges, MPI, system calls, operators and sampled code as segments of their time, kept
as long as a gap can ask for them.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.events.event_blocks import Block, chunks, host_ranges, merged, numbers, times
from causeway.events.few_values import RowNumbers
from causeway.events.outer_ranges import outer_ranges
from causeway.waiting.idle.activities import Activities
from causeway.waiting.idle.python_functions import PythonFunctions
from causeway.waiting.idle.stack_sweep import (
    DEPTH,
    OPEN,
    OPEN_ACTIVITIES,
    SEGMENT,
    SLOT,
    close_segments,
    remember_calls,
    take_activities,
)

CALL_SLOTS = 1 << 20
"""Calls that are kept at once; a device is at most some thousand launches behind its host."""
MOST_SEGMENTS = 1 << 19
"""Segments kept at once; of a longer gap the earlier host time counts as not recorded."""
NAMED_TABLES = ("calls", "mpi", "system_calls", "host_operators", "cpu_samples", "python_functions")
"""Tables of what host threads do, beside ranges."""
NO_THREAD = (1 << 32) - 1


class HostTimeline:
    """Host threads of an export up to a moment that moves on.

    Attributes
    ----------
    threads : RowNumbers
        By rank and thread.
    slots : ndarray of int64, shape (CALL_SLOTS, 4)
        `stack_sweep.SLOT`.
    segments, offsets : ndarray of int64, shapes (segments, 4) and (threads + 1,)
        `stack_sweep.SEGMENT`, ordered by thread and time; where each thread's begin.
    """

    def __init__(self, folder: Path, activities: Activities) -> None:
        self.activities = activities
        activities.outer = outer_ranges(folder)
        self.threads = RowNumbers()
        self._functions = PythonFunctions(activities)
        self.slots = np.zeros((CALL_SLOTS, len(SLOT)), np.int64)
        self.segments = np.zeros((0, len(SEGMENT)), np.int64)
        self.offsets = np.zeros(1, np.int64)
        self._new: list[np.ndarray] = []
        self._now = np.zeros(0, np.int64)
        self._depth = np.zeros(0, np.int64)
        self._open = np.zeros((0, DEPTH, len(OPEN)), np.int64)
        self._latest: int | None = None
        self._blocks = merged([self._activities_in(folder, table) for table in ("ranges", *NAMED_TABLES)])

    def _activities_in(self, folder: Path, table: str) -> Iterator[Block]:
        columns = ["start_ns", "duration_ns", "rank", "thread", "name"]
        if table == "ranges":
            of_threads = (batch.filter(batch.column("thread").is_valid()) for batch in host_ranges(folder, columns))
            batches: Iterator[pa.RecordBatch] = (batch for batch in of_threads if batch.num_rows)
        else:
            batches = chunks(folder, table, columns + ["call"] * (table == "calls"))
        for batch in batches:
            names = batch.column("name").dictionary_encode()
            n = batch.num_rows
            call = batch.column("call").to_numpy().astype(np.int64) if table == "calls" else np.full(n, -1)
            thread = numbers(batch.column("thread"), NO_THREAD)
            block = times(batch) | {"rank": batch.column("rank").to_numpy(), "thread": thread, "call": call}
            if table == "python_functions":
                block["code"] = self._functions.codes(block, names)
                if (explains := block["code"] >= 0).any():
                    yield {name: values[explains] for name, values in block.items()}
                continue
            codes = np.array([self.activities.of(table, text) for text in names.dictionary.to_pylist()], np.int64)
            yield block | {"code": codes[names.indices.to_numpy()]}

    def read_until(self, moment: int, called: int) -> None:
        """Take what began up to a moment, and up to when a call began; segments are final up to the moment."""
        while self._latest is None or self._latest <= max(moment, called):
            block = next(self._blocks, None)
            if block is None:
                self._latest = np.iinfo(np.int64).max
                break
            self._latest = int(block["start"][-1])
            self._take(block)
        room = np.zeros((2 * int(self._depth.sum()) + self._now.size + 1, len(SEGMENT)), np.int64)
        n = close_segments(moment, self._open_activities(), room)
        self._new.append(room[:n])
        self._order()

    def _take(self, block: Block) -> None:
        rows = self.threads.of(block["rank"], block["thread"])
        fresh = len(self.threads) - self._now.size
        if fresh:
            self._now = np.append(self._now, np.full(fresh, np.iinfo(np.int64).min))
            self._depth = np.append(self._depth, np.zeros(fresh, np.int64))
            self._open = np.concatenate([self._open, np.zeros((fresh, DEPTH, len(OPEN)), np.int64)])
        events = block["start"], block["end"], block["code"]
        remember_calls(block["call"], block["code"], rows, self.slots)
        room = np.empty((2 * (block["start"].size + int(self._depth.sum())) + 1, len(SEGMENT)), np.int64)
        n = take_activities(rows, *events, self._open_activities(), self.activity_table(), room)
        self._new.append(room[:n].copy())

    def _open_activities(self) -> tuple:
        return OPEN_ACTIVITIES.of(now=self._now, depth=self._depth, opened=self._open)

    def activity_table(self) -> np.ndarray:
        """Return priority, and whether it launches graphs, of each activity; int64, shape (codes, 2)."""
        return np.ascontiguousarray(np.stack([self.activities.priorities(), self.activities.graphs()], axis=1))

    def _order(self) -> None:
        rows = np.concatenate([self.segments, *self._new])
        self._new = []
        if len(rows) > MOST_SEGMENTS:
            latest = np.sort(np.argsort(rows[:, 1], kind="stable")[-MOST_SEGMENTS:])
            rows = rows[latest]
        thread = rows[:, 0].astype(np.int16 if len(self.threads) < 1 << 15 else np.int64)
        if (np.diff(thread) < 0).any():
            rows = rows[np.argsort(thread, kind="stable")]
        self.segments = rows
        self.offsets = np.searchsorted(rows[:, 0], np.arange(len(self.threads) + 1))

    def forget(self, needed_from: dict[int, int]) -> None:
        """Drop segments that end before the moment, by rank, from which on gaps can still be asked for."""
        limit = np.array([needed_from.get(rank, np.iinfo(np.int64).max) for rank, _ in self.threads.rows], np.int64)
        if len(self.segments):
            self.segments = self.segments[self.segments[:, 2] > limit[self.segments[:, 0]]]
