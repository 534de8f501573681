"""One sweep over events ordered by start: the time of each device, or host thread, in each combination of states,
whole, per bin and per region.

Each device or host thread has one row of the results and up to five kinds of events. For each kind it is enough to know
how far the events seen so far reach: events come in order of their starts, so the union of a kind up to the next start
is final when that start is seen. An event costs a few comparisons, memory depends on devices, bins and regions alone,
and all times are exact integers.
"""

import numpy as np

from causeway.efficiency.device_time.states import STATES
from causeway.numeric.compiled import I4, I8, U1, UniTuple, compiled, compiled_borrowing, int64, record, void

KINDS = 5

_M2 = int64[:, ::1]
_M3 = int64[:, :, ::1]


SWEEP = record(
    "SWEEP",
    now=int64[::1],
    bin_at=int64[::1],
    stop=I8,
    reach=int64[:, ::1],
    edges=I8,
    low=I8,
    high=I8,
    spans=int64[:, :, ::1],
    total=int64[:, ::1],
    binned=int64[:, :, ::1],
    within=int64[:, :, ::1],
)
"""The arrays of a `Sweep`, of devices or host threads.

Attributes
----------
now, bin_at : ndarray of int64, shape (devices,), updated
    How far each is known, ns, and the bin of that moment.
stop : ndarray of int64, shape (devices,), ns
    Where each one's window ends.
reach : ndarray of int64, shape (devices, 5), updated
    How far the events of each kind reach, ns.
edges : ndarray of int64, shape (bins + 1,), ns
low, high : ndarray of int64, shape (intervals,), ns
    Begins and ends of all regions' intervals.
spans : ndarray of int64, shape (devices, regions, 3), updated
    First interval of a region, the end of them, and the next.
total, binned, within : ndarray of int64, updated
    As `Sweep` has them.
"""


class Sweep:
    """The states of devices, or of host threads, over time.

    Parameters
    ----------
    begin, stop : array of int64, shape (devices,)
        The window of each device, ns, in the clock of the events; what lies outside is left out.
    edges : array of int64, shape (bins + 1,), ascending
        Bins; events outside belong to none. Two edges at least.
    regions : sequence, per device, of sequences of sets of intervals
        The regions of each device, equally many for all; devices of one rank may share the same objects.

    Attributes
    ----------
    total : ndarray of int64, shape (devices, 32)
        Time in each state within the window, ns; state 0 is idle.
    binned : ndarray of int64, shape (devices, bins, 32)
        The same per bin; state 0 is not counted.
    within : ndarray of int64, shape (devices, regions, 32)
        The same per region.
    last : ndarray of int64, shape (devices,)
        Where the events seen so far end.
    """

    def __init__(self, begin, stop, edges=(0, 1), regions=None) -> None:
        self.begin = np.array(begin, np.int64)
        rows = self.begin.size
        edges = np.array(edges, np.int64)
        self.total = np.zeros((rows, STATES), np.int64)
        self.binned = np.zeros((rows, edges.size - 1, STATES), np.int64)
        regions = [[] for _ in range(rows)] if regions is None else regions
        extents: dict[int, tuple[int, int]] = {}
        low = [np.empty(0, np.int64)]
        high = [np.empty(0, np.int64)]
        size = 0
        spans = np.zeros((rows, len(regions[0]) if rows else 0, 3), np.int64)
        for row, sets in enumerate(regions):
            for region, intervals in enumerate(sets):
                if id(intervals) not in extents:
                    extents[id(intervals)] = (size, size + intervals[0].size)
                    low.append(intervals[0])
                    high.append(intervals[1])
                    size += intervals[0].size
                first, end = extents[id(intervals)]
                spans[row, region] = first, end, first
        self.within = np.zeros((*spans.shape[:2], STATES), np.int64)
        self._arrays = SWEEP.of(
            now=self.begin.copy(), bin_at=np.zeros(rows, np.int64), stop=np.array(stop, np.int64),
            reach=np.repeat(self.begin[:, None], KINDS, axis=1), edges=edges, low=np.concatenate(low),
            high=np.concatenate(high), spans=spans, total=self.total, binned=self.binned, within=self.within,
        )  # fmt: skip

    @property
    def last(self) -> np.ndarray:
        """Where the events seen so far end; int64, shape (devices,)."""
        return self._arrays.reach.max(axis=1)

    def take(self, row: np.ndarray, kind: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        """Take events ordered by start, also after those taken before.

        Parameters
        ----------
        row : ndarray of int32, shape (n,)
            Which device or host thread: its row of the results.
        kind : ndarray of uint8, shape (n,)
            0 to 4; the state's bit is 2 ** kind.
        start, end : ndarray of int64, shape (n,), ns
        """
        _take(np.ascontiguousarray(row, np.int32), np.ascontiguousarray(kind, np.uint8), start, end, self._arrays)

    def finish(self) -> None:
        """Count what the last events have left open, up to the end of each window."""
        rows = np.arange(self.begin.size, dtype=np.int32)
        kind = np.zeros(rows.size, np.uint8)
        _take(rows, kind, self._arrays.stop, self.begin, self._arrays)


@compiled_borrowing(UniTuple(int64, 2)(int64, int64, int64, _M2))
def _state_from(row, moment, until, reach):
    """Return the state of a device at a moment, and up to when it lasts, at most `until`."""
    state = int64(0)
    stop = until
    for kind in range(KINDS):
        end = reach[row, kind]
        if end > moment:
            state |= int64(1) << kind
            stop = min(stop, end)
    return state, stop


@compiled_borrowing(void(int64, int64, int64, int64, I8, int64[::1], _M3))
def _add_to_bins(row, state, moment, stop, edges, bin_at, binned):
    """Add the time from a moment to `stop` to the bins; later times are looked for from the moment's bin on."""
    bins = edges.size - 1
    index = bin_at[row]
    while index < bins and edges[index + 1] <= moment:
        index += 1
    bin_at[row] = index
    while index < bins and edges[index] < stop:
        left = max(moment, edges[index])
        right = min(stop, edges[index + 1])
        if left < right:
            binned[row, index, state] += right - left
        index += 1


@compiled_borrowing(void(int64, int64, int64, int64, I8, I8, _M3, _M3))
def _add_to_regions(row, state, moment, stop, low, high, spans, within):
    """Add the time from a moment to `stop` to the regions; later times are looked for from the interval reached on."""
    for region in range(spans.shape[1]):
        index = spans[row, region, 2]
        last = spans[row, region, 1]
        while index < last and high[index] <= moment:
            index += 1
        spans[row, region, 2] = index
        while index < last and low[index] < stop:
            within[row, region, state] += min(stop, high[index]) - max(moment, low[index])
            index += 1


@compiled_borrowing(void(I4, U1, I8, I8, SWEEP))
def _take(rows, kinds, starts, ends, sweep):
    """Take events ordered by start: `Sweep.take`, with the arrays of `Sweep`."""
    now = sweep.now
    reach = sweep.reach
    for i in range(starts.size):
        row = int64(rows[i])
        until = min(starts[i], sweep.stop[row])
        moment = now[row]
        if until > moment:
            while moment < until:
                state, stop = _state_from(row, moment, until, reach)
                sweep.total[row, state] += stop - moment
                if state == 0:
                    break
                _add_to_bins(row, state, moment, stop, sweep.edges, sweep.bin_at, sweep.binned)
                _add_to_regions(row, state, moment, stop, sweep.low, sweep.high, sweep.spans, sweep.within)
                moment = stop
            now[row] = until
        reach[row, kinds[i]] = max(reach[row, kinds[i]], ends[i])


COPY_FIELDS = ("copies", "duration_ns", "sized", "bytes", "sized_ns")
"""Per direction: copies and their durations; those with a known size, their bytes and durations."""


@compiled(void(I4, U1, I8, I8, I8, int64[:, :, ::1]))
def take_copies(devices, kinds, starts, ends, sizes, copies):
    """Add up transfers by direction; a size below 0 is unknown."""
    for i in range(starts.size):
        sums = copies[np.int64(devices[i]), np.int64(kinds[i])]
        duration = ends[i] - starts[i]
        sums[0] += 1
        sums[1] += duration
        if sizes[i] >= 0:
            sums[2] += 1
            sums[3] += sizes[i]
            sums[4] += duration
