"""The order of launches within their streams, in which a clock that was set back shows, and times that are wrong; and
what is done about ends that are wrong.
"""

import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.tables import open_table
from causeway.readers.common.constants import NULL, WRAPPED
from causeway.readers.common.issues import Issues
from causeway.readers.sink.batches import EventBatch, is_repeated
from causeway.readers.sink.distinct import distinct_keys
from causeway.readers.sink.records import MOST_STREAMS

SHARED_STREAMS = ("mixed_processes", "merged_ids", "device_assumed")
"""Issues that say that several streams may have one number: their launches may run at a time."""
FEW_LATE = 0.01
"""Share of the launches' time that may be stamped late without ruling out the time line: no share of time is off by
more, and results show shares in whole percent.
"""
NEVER = np.iinfo(np.int64).max
"""The time of what does not come."""


class StreamOrder:
    """Launches by stream, that is by (process, device, stream), in the order of their starts.

    A stream runs its launches in the order in which they were made, which is that of their correlations. A launch that
    starts after one made later on the same stream means that the clock was set back in between, or that several threads
    launch on that stream; where its call had returned before the call of the later one began, that its times are not
    those of its execution. One that ends after a later one has ended has a wrong end; launches that follow closely may
    overlap at their edges, and those of one call, the nodes of a graph, at will.

    Parameters
    ----------
    queues : collection of (int, int, int)
        Streams that are hardware queues, which may run several launches at a time.
    issues : Issues
        Of the export; what is found is added by `report`.
    assumed : collection of (int, int, int)
        Streams with launches that name none: nothing is known of the order on them.

    Attributes
    ----------
    resets : int
        Launches that start after one made later on the same stream, though not late.
    first_reset : int or None
        Start of the first of them, in nanoseconds on the export's clock.
    outlasting : int
        Launches that end after a later one of the same stream has ended.
    longest : int
        How long after the start of such a later one they end at most, in nanoseconds.
    late : int
        Launches that start after one of the same stream whose call began when their own had returned.
    late_ns, launches_ns : int
        The durations of these, and of all launches.
    most_late_ns : int
        How long after its call returned such a launch starts at most.
    """

    def __init__(
        self, queues: Collection[tuple[int, ...]], issues: Issues, assumed: Collection[tuple[int, ...]] = ()
    ) -> None:
        self.resets = 0
        self.first_reset: int | None = None
        self.outlasting = 0
        self.longest = 0
        self.late = 0
        self.late_ns = 0
        self.launches_ns = 0
        self.most_late_ns = 0
        self._queues = queues
        self._issues = issues
        self._assumed = assumed
        self._streams: dict[tuple[int, ...], int] = {}
        self._latest = np.empty(0, np.int64)
        self._ends_last = np.empty((5, 0), np.int64)
        self._called = np.empty((3, 0), np.int64)
        self._in_order = np.empty(0, bool)

    def take(self, rows: EventBatch, called: np.ndarray, returned: np.ndarray) -> None:
        """Take launches, ordered by start over all calls.

        Parameters
        ----------
        rows : EventBatch
            With start_ns, duration_ns, process, device, stream and correlation.
        called, returned : ndarray of int64, shape (n,), ns
            When the call of each began and returned, `NULL` where it is not known.
        """
        if len(self._streams) >= MOST_STREAMS:
            return
        keys, inverse = distinct_keys([rows[name] for name in ("process", "device", "stream")])
        numbers = np.array([self._streams.setdefault(key, len(self._streams)) for key in keys], np.int64)
        new = len(self._streams) - self._called.shape[1]
        self._latest = np.append(self._latest, np.full(new, NULL))
        self._ends_last = np.append(self._ends_last, np.tile([[NULL]] * 3 + [[0]] * 2, new), axis=1)
        self._called = np.append(self._called, np.full((3, new), NULL), axis=1)
        fresh = [key not in self._queues for key in list(self._streams)[len(self._in_order) :]]
        self._in_order = np.append(self._in_order, np.array(fresh, bool))
        stream = numbers[inverse]
        start = rows["start_ns"]
        self.launches_ns += int(rows["duration_ns"].sum())
        has_calls = not (is_repeated(called) and called[0] == NULL)
        falls: list[int] = []
        assumed = {self._streams[key] for key in keys if key in self._assumed}
        order = np.argsort(stream.astype(np.uint16), kind="stable")  # numbers of 16 bits are sorted by their digits
        for own in np.split(order, np.flatnonzero(np.diff(stream[order])) + 1):
            number = int(stream[own[0]])
            if number in assumed:
                continue
            series = rows["correlation"][own]
            late = self._late(number, start[own], called[own], returned[own]) if has_calls else np.zeros(own.size, bool)
            if late.any():
                self.late += int(late.sum())
                self.late_ns += int(rows["duration_ns"][own[late]].sum())
                self.most_late_ns = max(self.most_late_ns, int((start[own] - returned[own])[late].max()))
            # the place of one that is late among the others says nothing of the clock
            falls += own[self._falls(number, np.where(late, NULL, series))].tolist()
            self._note_ends(number, series, start[own], start[own] + rows["duration_ns"][own])
        self.resets += len(falls)
        if falls and self.first_reset is None:
            self.first_reset = int(start[min(falls)])

    def _late(self, stream: int, start: np.ndarray, called: np.ndarray, returned: np.ndarray) -> np.ndarray:
        """Return which launches of a stream start after one whose call began when theirs had returned; bool.

        A column of `_called` holds of its stream: the latest begin of the calls of all launches that started before the
        latest one, the start of that, and the latest begin of all calls.
        """
        state = self._called[:, stream]
        starts = np.append(state[1], start)
        latest = np.maximum.accumulate(np.append(state[2], called))
        is_new = np.append(False, starts[1:] > starts[:-1])
        first = np.maximum.accumulate(np.where(is_new, np.arange(starts.size), 0))  # of those that start with it
        before = np.where(first > 0, latest[first - 1], state[0])
        state[:] = before[-1], starts[-1], latest[-1]
        return (returned != NULL) & (before[1:] > returned) & self._in_order[stream]

    def _falls(self, stream: int, series: np.ndarray) -> np.ndarray:
        """Return where a series, `NULL` where it has no value, falls below the last value of its stream, other than by
        coming to the end of its 32 bits; int64.
        """
        has_value = np.flatnonzero(series != NULL)
        values = np.append(self._latest[stream], series[has_value])
        self._latest[stream] = values[-1]
        fell = (values[1:] < values[:-1]) & (values[1:] > values[:-1] - WRAPPED) & (values[:-1] != NULL)
        return has_value[fell]

    def _note_ends(self, stream: int, series: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        """Count the launches of a stream that end after a later one of another launch call has ended.

        A column of `_ends_last` holds of its stream: correlation, start and end of the launch that ends last, whether
        it was counted, and how many of the stream were.
        """
        state = self._ends_last[:, stream]
        calls, starts, ends = (np.append(*pair) for pair in zip(state[:3], (series, start, end), strict=True))
        ends_last = np.append(True, ends[1:] >= np.maximum.accumulate(ends)[:-1])
        last = np.maximum.accumulate(np.where(ends_last, np.arange(ends.size), 0))
        within = ~ends_last & (starts > starts[last]) & (ends > starts)
        within &= (calls != calls[last]) | (calls == NULL)
        is_counted = np.zeros(ends.size, bool)
        is_counted[0] = state[3]
        is_counted[last[within]] = True
        count = int(is_counted.sum()) - int(state[3])
        self.outlasting += count
        self.longest = max(self.longest, int((ends[last] - starts)[within].max(initial=0)))
        state[:] = calls[last[-1]], starts[last[-1]], ends[last[-1]], is_counted[last[-1]], state[4] + count

    def impossible(self) -> list[tuple[int, ...]]:
        """Return the streams with launches whose ends are known to be wrong: process, device and stream of each."""
        if any(map(self._issues.count, SHARED_STREAMS)):
            return []
        has_any = (self._ends_last[4] > 0) & self._in_order
        return [key for key, is_one in zip(self._streams, has_any.tolist(), strict=True) if is_one]

    def report(self) -> None:
        """Add the issues found. What was cut is not added."""
        issues = self._issues
        shared = any(map(issues.count, SHARED_STREAMS))
        if self.late and not shared:
            kind = "late_stamps" if self.late_ns > FEW_LATE * self.launches_ns else "few_late_stamps"
            issues.add(kind, self.late, f"up to {self.most_late_ns / 1e6:,.3f} ms after their calls had returned")
        issues.add("clock_reset", self.resets, f"the first at {self.first_reset or 0:,} ns")
        uncut = self._ends_last[4] if shared else self._ends_last[4][~self._in_order]
        by = f"by up to {self.longest / 1e6:,.3f} ms" if uncut.sum() == self.outlasting else ""
        issues.add("overlapping_launches", int(uncut.sum()), by)

    def count(self) -> dict[int, int]:
        """Return the number of streams with launches of each process."""
        counts: dict[int, int] = {}
        for process, _, _ in self._streams:
            counts[process] = counts.get(process, 0) + 1
        return counts


class _Behind(NamedTuple):
    """What follows on a stream: the launches that come next, of one call or one start, and those behind them; ns.

    Attributes
    ----------
    start, call : int
        Of the first of the next launches.
    least_end : int
        The earliest end of one of them.
    next_start, next_least_end : int
        The start of the first behind them, and the earliest end of all behind them.
    """

    start: int = NEVER
    call: int = NULL
    least_end: int = NEVER
    next_start: int = NEVER
    next_least_end: int = NEVER


_CUT = np.dtype(
    [
        ("row", "<i8"),
        ("start_ns", "<i8"),
        ("duration_ns", "<i8"),
        ("full_ns", "<i8"),
        ("rank", "<u4"),
        ("stream", "<u4"),
        ("device", "<u2"),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Launches that end after a later one of their stream, of another call, has ended: each is cut at the next start on
    its stream, of another call.

    Attributes
    ----------
    rows : ndarray of `_CUT`, shape (cut launches,), by row
        The launch's row in its table, start, duration after and before the cut, rank, stream and device; on disk.
    last_ns : int
        The latest end of all launches, after the cuts.
    total_ns, longest_ns : int
        What was cut off, of all and at most of one.
    """

    rows: np.ndarray = field(default_factory=lambda: np.empty(0, _CUT))
    last_ns: int = NULL
    total_ns: int = 0
    longest_ns: int = 0

    @property
    def count(self) -> int:
        """Launches that were cut."""
        return self.rows.size

    @classmethod
    def of(cls, path: Path, streams: Collection[tuple[int, ...]], unsure_ns: int = 0) -> "Cuts":
        """Return the cuts of launches on some streams, found from the last launch to the first.

        Parameters
        ----------
        path : Path
            The table of launches, ordered by start.
        streams : collection of (int, int, int)
            Rank, device and stream of each.
        unsure_ns : int
            By how much an end must be later to be so for sure, ns.
        """
        behind = dict.fromkeys(streams, _Behind())
        columns = ["start_ns", "duration_ns", "rank", "device", "stream", "correlation"]
        with open_table(path, "launches") as file, tempfile.TemporaryFile(dir=path.parent) as spill:
            end = file.metadata.num_rows
            last = NULL
            total = longest = count = 0
            for group in reversed(range(file.num_row_groups)):
                table = file.read_row_group(group, columns=columns)
                end -= table.num_rows
                block = {name: table.column(name).to_numpy() for name in columns[:-1]}
                block["correlation"] = pc.fill_null(table.column("correlation"), NULL).to_numpy()
                cut = _cut_in(block, behind, unsure_ns)
                cut["row"] += end
                ends = block["start_ns"] + block["duration_ns"]
                ends[cut["row"] - end] = cut["start_ns"] + cut["duration_ns"]
                last = max(last, int(ends.max()))
                lost = cut["full_ns"] - cut["duration_ns"]
                total += int(lost.sum())
                longest = max(longest, int(lost.max(initial=0)))
                count += cut.size
                spill.write(cut[::-1].tobytes())
            spill.flush()
            rows = np.memmap(spill, _CUT, "r")[::-1] if count else np.empty(0, _CUT)
        return cls(rows=rows, last_ns=last, total_ns=total, longest_ns=longest)

    def applied(self, table: pa.Table, first: int) -> pa.Table:
        """Return a part of the table of launches with the durations after the cuts.

        Parameters
        ----------
        table : Table
            Its rows from `first` on; of its columns only `duration_ns` is looked at.
        first : int

        Returns
        -------
        Table
            With the same columns and rows.
        """
        low, high = np.searchsorted(self.rows["row"], [first, first + table.num_rows])
        duration = table.column("duration_ns").to_numpy().copy()
        duration[self.rows["row"][low:high] - first] = self.rows["duration_ns"][low:high]
        return table.set_column(table.column_names.index("duration_ns"), "duration_ns", pa.array(duration))

    def durations(self, rank: np.ndarray, rows: EventBatch) -> np.ndarray:
        """Return the durations of events that are launches, too, after the cuts; int64, shape (n,), ns.

        Parameters
        ----------
        rank : ndarray of int64, shape (n,)
        rows : EventBatch
            With start_ns, duration_ns, device and stream, ordered by start.
        """
        low = np.searchsorted(self.rows["start_ns"], rows["start_ns"][0])
        high = np.searchsorted(self.rows["start_ns"], rows["start_ns"][-1], "right")
        names = ("start_ns", "full_ns", "rank", "device", "stream")
        cut = {tuple(int(row[name]) for name in names): int(row["duration_ns"]) for row in self.rows[low:high]}
        if not cut:
            return rows["duration_ns"]
        columns = (rows["start_ns"], rows["duration_ns"], rank, rows["device"], rows["stream"])
        keys = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([cut.get(key, key[1]) for key in keys], np.int64)


def _cut_in(block: dict[str, np.ndarray], behind: dict[tuple[int, ...], _Behind], unsure_ns: int) -> np.ndarray:
    """Return the cuts in a block of launches, whose rows count from 0, by row; `behind` is brought up to date."""
    names = ("rank", "device", "stream")
    order = np.lexsort([block[name] for name in names])
    ids = np.stack([block[name][order].astype(np.int64) for name in names])
    bounds = np.flatnonzero(np.concatenate([[True], (ids[:, 1:] != ids[:, :-1]).any(axis=0), [True]]))
    cuts = [np.empty(0, _CUT)]
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rank, device, stream = ids[:, begin].tolist()
        key = rank, device, stream
        if key in behind:
            own = order[begin:end]
            start, duration, call = (block[name][own] for name in ("start_ns", "duration_ns", "correlation"))
            cut, until, behind[key] = _cut_on_stream(start, duration, call, behind[key], unsure_ns)
            rows = np.empty(cut.size, _CUT)
            rows["row"] = own[cut]
            rows["start_ns"] = start[cut]
            rows["duration_ns"] = until - start[cut]
            rows["full_ns"] = duration[cut]
            for name, number in zip(names, key, strict=True):
                rows[name] = number
            cuts.append(rows)
    rows = np.concatenate(cuts)
    return rows[np.argsort(rows["row"])]


def _cut_on_stream(
    start: np.ndarray, duration: np.ndarray, call: np.ndarray, behind: _Behind, unsure_ns: int
) -> tuple[np.ndarray, np.ndarray, _Behind]:
    """Return the positions of the launches of one stream that are cut, where, in ns, and what follows on the stream
    before them.

    Launches beside each other of one call (the nodes of a graph) or one start are a group: nothing in it is cut by
    another of it. One of no duration cuts nothing.
    """
    starts = np.append(start, behind.start)
    calls = np.append(call, behind.call)
    begins = (starts[1:] > starts[:-1]) & ((calls[1:] != calls[:-1]) | (calls[1:] == NULL))
    group = np.append(0, np.cumsum(begins))
    ends = np.append(np.where(duration > 0, start + duration, NEVER), behind.least_end)
    first = np.flatnonzero(np.append(True, begins))
    least = np.minimum.reduceat(ends, first)
    after = np.minimum.accumulate(np.append(behind.next_least_end, least[:0:-1]))[::-1]  # of what follows each group
    following = np.append(starts[first[1:]], behind.next_start)
    cut = np.flatnonzero(start + duration - unsure_ns > after[group[:-1]])
    before = _Behind(int(start[0]), int(call[0]), int(least[0]), int(following[0]), int(after[0]))
    return cut, following[group[:-1]][cut], before
