"""One sweep over events ordered by start: the time of each lane in each combination of states, whole, per bin and per region.

A lane is a device or a host thread, and has up to four kinds of events. For each kind it is enough to know how far the events seen so far
reach: events come in order of their starts, so the union of a kind up to the next start is settled when that start is seen. A row costs
a few comparisons, memory depends on lanes, bins and regions alone, and all times are exact integers.
"""

import numpy as np
from numba import int64, void

from causeway.compiled import I4, I8, U1, compiled
from causeway.efficiency.states import STATES

KINDS = 4
UNKNOWN = np.iinfo(np.int64).min
"""The absent time of a call."""
CAUSES = ("host", "kernel_wait", "other")
"""Why a device was idle before an event; see `Sweep.idle`."""

_M2, _M3 = int64[:, ::1], int64[:, :, ::1]


class Sweep:
    """The states of lanes over time.

    Parameters
    ----------
    begin, stop : array of int64, shape (lanes,)
        The window of each lane, ns, in the clock of the events; what lies outside is left out.
    edges : array of int64, shape (bins + 1,), ascending
        Bins; events outside belong to none. Two edges at least.
    regions : sequence, per lane, of sequences of sets of intervals
        The regions of each lane, equally many for all lanes; lanes of one rank may share the same objects.
    kernel_wait_ns : int
        Gaps shorter than this count as the device's own delay between two kernels.

    Attributes
    ----------
    total : ndarray of int64, shape (lanes, 16)
        Time in each state within the window, ns; state 0 is idle.
    binned : ndarray of int64, shape (lanes, bins, 16)
        The same per bin; state 0 is not counted.
    within : ndarray of int64, shape (lanes, regions, 16)
        The same per region.
    idle : ndarray of int64, shape (lanes, 3), ns
        By `CAUSES`: `host`, where the call that made the next event began after the device had become idle; else `kernel_wait`, where the
        gap is short; else `other`, also without a known call, and after the last event.
    last : ndarray of int64, shape (lanes,)
        Where the events seen so far end.
    """

    def __init__(self, begin, stop, edges=(0, 1), regions=None, kernel_wait_ns: int = 0) -> None:
        self.now, self.stop = np.array(begin, np.int64), np.array(stop, np.int64)
        lanes = self.now.size
        self.begin = self.now.copy()
        self.reach = np.repeat(self.now[:, None], KINDS, axis=1)
        self.edges = np.array(edges, np.int64)
        self.total = np.zeros((lanes, STATES), np.int64)
        self.binned = np.zeros((lanes, self.edges.size - 1, STATES), np.int64)
        self.idle = np.zeros((lanes, len(CAUSES)), np.int64)
        self.bin_at = np.zeros(lanes, np.int64)
        self.kernel_wait_ns = kernel_wait_ns
        regions = [[] for _ in range(lanes)] if regions is None else regions
        known: dict[int, tuple[int, int]] = {}
        low, high, size = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        self.spans = np.zeros((lanes, len(regions[0]) if lanes else 0, 3), np.int64)  # first interval, end, next
        for lane, sets in enumerate(regions):
            for region, intervals in enumerate(sets):
                if id(intervals) not in known:
                    known[id(intervals)] = (size, size + intervals[0].size)
                    low.append(intervals[0])
                    high.append(intervals[1])
                    size += intervals[0].size
                first, end = known[id(intervals)]
                self.spans[lane, region] = first, end, first
        self.low, self.high = np.concatenate(low), np.concatenate(high)
        self.within = np.zeros((*self.spans.shape[:2], STATES), np.int64)

    @property
    def last(self) -> np.ndarray:
        """Where the events seen so far end; int64, shape (lanes,)."""
        return self.reach.max(axis=1)

    def take(self, lane: np.ndarray, kind: np.ndarray, start: np.ndarray, end: np.ndarray, call: np.ndarray | None = None) -> None:
        """Take events ordered by start, also after those taken before.

        Parameters
        ----------
        lane : ndarray of int32, shape (n,)
        kind : ndarray of uint8, shape (n,)
            0 to 3; the state's bit is 2 ** kind.
        start, end : ndarray of int64, shape (n,), ns
        call : ndarray of int64, shape (n,), ns, or None
            When the call that made it began, or `UNKNOWN`.
        """
        call = np.full(start.size, UNKNOWN) if call is None else call
        _take(
            np.ascontiguousarray(lane, np.int32), np.ascontiguousarray(kind, np.uint8), start, end, call, self.now, self.stop, self.reach,
            self.edges, self.bin_at, self.low, self.high, self.spans, self.total, self.binned, self.within, self.idle, self.kernel_wait_ns,
        )  # fmt: skip

    def finish(self) -> None:
        """Count what the last events have left open, up to the end of each window."""
        lanes = np.arange(self.now.size, dtype=np.int32)
        _finish(lanes, self.now, self.stop, self.reach, self.edges, self.bin_at, self.low, self.high, self.spans, self.total, self.binned,
                self.within, self.idle)  # fmt: skip


@compiled(void(int64, int64, int64, int64, I8, int64[::1], I8, I8, _M3, _M2, _M3, _M3))
def _count(lane, state, begin, end, edges, bin_at, low, high, spans, total, binned, within):
    """Count the time from begin to end in a state."""
    total[lane, state] += end - begin
    if state == 0:
        return
    at, bins = bin_at[lane], edges.size - 1
    while at < bins and edges[at + 1] <= begin:
        at += 1
    bin_at[lane] = at
    while at < bins and edges[at] < end:
        left, right = max(begin, edges[at]), min(end, edges[at + 1])
        if left < right:
            binned[lane, at, state] += right - left
        at += 1
    for region in range(spans.shape[1]):
        at, stop = spans[lane, region, 2], spans[lane, region, 1]
        while at < stop and high[at] <= begin:
            at += 1
        spans[lane, region, 2] = at
        while at < stop and low[at] < end:
            within[lane, region, state] += min(end, high[at]) - max(begin, low[at])
            at += 1


@compiled(int64(int64, int64, int64[::1], _M2, I8, int64[::1], I8, I8, _M3, _M2, _M3, _M3))
def _advance(lane, until, now, reach, edges, bin_at, low, high, spans, total, binned, within):
    """Settle a lane's time up to a moment; return when its idle time before that moment began, or the moment itself."""
    moment = now[lane]
    while moment < until:
        state, stop = np.int64(0), until
        for kind in range(4):
            if reach[lane, kind] > moment:
                state |= np.int64(1) << kind
                stop = min(stop, reach[lane, kind])
        _count(lane, state, moment, stop, edges, bin_at, low, high, spans, total, binned, within)
        if state == 0:
            now[lane] = until
            return moment
        moment = stop
    now[lane] = max(now[lane], until)
    return until


@compiled(
    void(I4, U1, I8, I8, I8, int64[::1], I8, _M2, I8, int64[::1], I8, I8, _M3, _M2, _M3, _M3, _M2, int64)
)  # fmt: skip
def _take(lanes, kinds, starts, ends, calls, now, stops, reach, edges, bin_at, low, high, spans, total, binned, within, idle, wait):
    for i in range(starts.size):
        lane = np.int64(lanes[i])
        start = min(starts[i], stops[lane])
        if start > now[lane]:
            since = _advance(lane, start, now, reach, edges, bin_at, low, high, spans, total, binned, within)
            if since < start:
                if calls[i] > since:
                    cause = 0
                elif start - since < wait:
                    cause = 1
                else:
                    cause = 2
                idle[lane, cause] += start - since
        kind = kinds[i]
        reach[lane, kind] = max(reach[lane, kind], ends[i])


@compiled(void(I4, int64[::1], I8, _M2, I8, int64[::1], I8, I8, _M3, _M2, _M3, _M3, _M2))
def _finish(lanes, now, stops, reach, edges, bin_at, low, high, spans, total, binned, within, idle):
    for lane in lanes:
        since = _advance(np.int64(lane), stops[lane], now, reach, edges, bin_at, low, high, spans, total, binned, within)
        if since < stops[lane]:
            idle[lane, 2] += stops[lane] - since


@compiled(void(I8, I8, I8, int64[::1], int64[::1], int64[::1]))
def remember(key, start, end, keys, starts, ends):
    """Keep calls by key in a table in which each key has one place; a later call with another key of that place replaces it.

    Keys are rank and correlation number, numbers follow each other, so a place is taken again after as many calls as the table has places.
    Of nested calls with one number (runtime and driver) the one that returns last is kept: it made the launch.
    """
    mask = keys.size - 1
    for i in range(key.size):
        if key[i] < 0:
            continue
        place = (key[i] ^ (key[i] >> 40)) & mask
        if keys[place] != key[i] or end[i] > ends[place]:
            keys[place], starts[place], ends[place] = key[i], start[i], end[i]


@compiled(void(I8, I8, I8, I8, int64[::1], int64[::1]))
def recall(key, keys, starts, ends, start, end):
    """Write start and end of the call with each key, or leave them as they are."""
    mask = keys.size - 1
    for i in range(key.size):
        if key[i] < 0:
            continue
        place = (key[i] ^ (key[i] >> 40)) & mask
        if keys[place] == key[i]:
            start[i], end[i] = starts[place], ends[place]


STREAM_FIELDS = ("events", "host_ns", "kernel_wait_ns", "other_ns", "overlap_ns", "queue_max")
"""Per stream: rows; gaps between one event's end and the next one's start, by cause as in `Sweep.idle`; what events overlap; the longest
queue."""
PATH_FIELDS = ("launches", "kernel_ns", "small", "small_ns", "called", "call_ns", "queued", "queue_ns", "total_ns")
"""Per device: launches and K; those shorter than the limit; launches with a known call and A; those that started after it, and Q; T."""
QUEUE = 1024
"""Longest queue that is told apart; a stream of a device holds about as many launches."""


@compiled(
    void(I4, I4, U1, I8, I8, I8, I8, int64, int64, int64[::1], _M2, _M2, int64[::1], _M2)
)  # fmt: skip
def take_streams(lanes, slots, launch, starts, ends, call_starts, call_ends, small, wait, before, gaps, ring, filled, path):
    """Take events in order for their streams' gaps and queues and, for launches, the path from call to end.

    A queue is as long as the events whose calls have begun and that have not started: when event j is called, those of its stream that
    started later than that, and itself. Path (Nsight Systems, `cuda_kern_exec`): A is the call's duration, Q = start - call's end where
    positive, K the kernel's duration, T = max(call's end, kernel's end) - call's start.
    """
    for i in range(starts.size):
        lane, slot = np.int64(lanes[i]), np.int64(slots[i])
        start, end = starts[i], ends[i]
        called, returned = call_starts[i], call_ends[i]
        gaps[slot, 0] += 1
        if before[slot] != UNKNOWN:
            gap = start - before[slot]
            if called > before[slot]:
                cause = 1
            elif gap < wait:
                cause = 2
            else:
                cause = 3
            if gap >= 0:
                gaps[slot, cause] += gap
            else:
                gaps[slot, 4] -= gap
        before[slot] = end
        if called != UNKNOWN:
            count, n = np.int64(1), filled[slot]
            while count < QUEUE and count <= n and ring[slot, (n - count) % QUEUE] > called:
                count += 1
            gaps[slot, 5] = max(gaps[slot, 5], count)
        ring[slot, filled[slot] % QUEUE] = start
        filled[slot] += 1
        if launch[i]:
            path[lane, 0] += 1
            path[lane, 1] += end - start
            if end - start < small:
                path[lane, 2] += 1
                path[lane, 3] += end - start
            if called != UNKNOWN:
                path[lane, 4] += 1
                path[lane, 5] += returned - called
                path[lane, 8] += max(returned, end) - called
            if returned != UNKNOWN and start > returned:
                path[lane, 6] += 1
                path[lane, 7] += start - returned


COPY_FIELDS = ("copies", "duration_ns", "sized", "bytes", "sized_ns")
"""Per direction: rows and their durations; rows with a known size, their bytes and durations."""


@compiled(void(I4, U1, I8, I8, I8, int64[:, :, ::1]))
def take_copies(lanes, kinds, starts, ends, sizes, found):
    """Add up transfers by direction; a size below 0 is unknown."""
    for i in range(starts.size):
        row = found[np.int64(lanes[i]), np.int64(kinds[i])]
        duration = ends[i] - starts[i]
        row[0] += 1
        row[1] += duration
        if sizes[i] >= 0:
            row[2] += 1
            row[3] += sizes[i]
            row[4] += duration
