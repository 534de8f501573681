"""Link each launch to the transfer that it competes with: compiled sweeps over rows ordered by time.

Definition (DESIGN): the transfer on the same rank and device with the longest overlap with the launch; if none overlaps, the last one that
ended before it within the window; ties: earlier start, then smaller row number; else none. Or, where asked for: the one with the launch's
correlation id.
"""

import numpy as np
from numba import boolean, int64, void

from causeway.compiled import I4, I8, compiled

NONE = -1
MOST_LANES = 1 << 16
UNKNOWN = np.iinfo(np.int64).min
"""Stands for a null in an integer column."""


def link(
    start: np.ndarray, end: np.ndarray, lane: np.ndarray, t_start: np.ndarray, t_end: np.ndarray, t_lane: np.ndarray, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Link launches to transfers, lane by lane.

    Costs O(n + m) for n launches and m transfers, besides one step for each pair of a launch and a transfer that begins inside it, however
    long a transfer lasts.

    Parameters
    ----------
    start, end, lane : ndarray of int64, shape (n,)
        Launches, ascending in `start`; `lane` numbers their (rank, device).
    t_start, t_end, t_lane : ndarray of int64, shape (m,)
        Transfers in the order of their rows, ascending in `t_start`.
    window : int
        Nanoseconds: a transfer that ended longer ago than this before a launch is not linked to it.

    Returns
    -------
    linked : ndarray of int64, shape (n,)
        Index of the transfer, or -1.
    overlap : ndarray of int64, shape (n,)
        Nanoseconds that the two share; 0 for a transfer that ended before, or none.
    """
    linked, overlap = np.full(start.size, NONE, np.int64), np.zeros(start.size, np.int64)
    if start.size == 0 or t_start.size == 0:
        return linked, overlap
    first = int(t_lane.min())
    lanes = int(t_lane.max()) - first + 1
    if lanes > MOST_LANES:  # far apart: numbered afresh; launches of lanes without transfers get the number after the last
        known = np.unique(t_lane)
        own, t_lane = np.searchsorted(known, lane), np.searchsorted(known, t_lane)
        lane = np.where(known[np.minimum(own, known.size - 1)] == lane, own, known.size)
        first, lanes = 0, known.size
    place, offset, ts, te = np.empty(0, np.int64), np.array([0, t_start.size]), t_start, t_end
    if lanes > 1:
        place, offset = np.empty(t_start.size, np.int64), np.zeros(lanes + 1, np.int64)
        _by_lane(t_lane, first, place, offset)
        ts, te = t_start[place], t_end[place]
    if _sweep(start, end, lane, first, offset, place, ts, te, window, linked, overlap):
        empty = np.flatnonzero(start == end)
        for k in np.unique(lane[empty]) - first:
            if 0 <= k < lanes and offset[k] < offset[k + 1]:
                here, theirs = empty[lane[empty] == k + first], slice(offset[k], offset[k + 1])
                found = _last_ended(start[here], te[theirs], window, offset[k])
                linked[here] = np.where(found == NONE, NONE, place[found]) if place.size else found
    return linked, overlap


def link_by_correlation(launches: dict[str, np.ndarray], transfers: dict[str, np.ndarray], window: int) -> tuple[np.ndarray, np.ndarray]:
    """Link launches to transfers of the same correlation id, which one call of the program made: the work of one CUDA graph, for example.

    Of several such transfers on the launch's rank and device that begin before the launch ends and end at most `window` ns before it begins
    the one with the earliest start counts, then that of the smallest row number.

    Parameters
    ----------
    launches, transfers : dict of ndarrays of int64
        start, end, lane and correlation (`UNKNOWN` if null) of each; transfers in the order of their rows, ascending in start.
    window : int

    Returns
    -------
    linked, overlap : ndarray of int64, shape (n,)
        As `link`.
    """
    order = np.lexsort((transfers["lane"], transfers["correlation"]))  # stable: rows of one key stay in order
    linked, overlap = np.full(launches["start"].size, NONE, np.int64), np.zeros(launches["start"].size, np.int64)
    names = ("start", "end", "lane", "correlation")
    _match(*(launches[name] for name in names), *(transfers[name][order] for name in names), order, window, linked, overlap)
    return linked, overlap


@compiled(void(I8, I8, I8, I8, I8, I8, I8, I8, I8, int64, int64[::1], int64[::1]))
def _match(start, end, lane, correlation, t_start, t_end, t_lane, t_correlation, order, window, linked, overlap):
    for i in range(start.size):
        if correlation[i] == UNKNOWN:
            continue
        low, high = 0, order.size
        while low < high:
            middle = (low + high) // 2
            known = t_correlation[middle]
            if known < correlation[i] or (known == correlation[i] and t_lane[middle] < lane[i]):
                low = middle + 1
            else:
                high = middle
        k = low
        while k < order.size and t_correlation[k] == correlation[i] and t_lane[k] == lane[i] and t_start[k] < end[i]:
            if t_end[k] >= start[i] - window:
                linked[i] = order[k]
                overlap[i] = max(0, min(end[i], t_end[k]) - max(start[i], t_start[k]))
                break
            k += 1


def by_value(values: np.ndarray) -> list[tuple[int, np.ndarray | None]]:
    """Return each distinct value of integers with the ascending places that have it, by value; None for the places if there is just one."""
    if values.size == 0:
        return []
    if all_equal(values, values[0]):
        return [(int(values[0]), None)]
    values = np.ascontiguousarray(values, np.int64)
    distinct = np.empty(64, np.int64)
    n = _distinct(values, distinct)
    known = np.sort(distinct[:n]) if n >= 0 else np.unique(values)
    order, offset = np.empty(values.size, np.int64), np.zeros(known.size + 1, np.int64)
    _spread(values, known, order, offset)
    return [(int(value), order[offset[k] : offset[k + 1]]) for k, value in enumerate(known)]


def all_equal(values: np.ndarray, value: int) -> bool:
    """Return whether every one of `values` (int32 or int64) equals `value`."""
    return _all_equal(values, value)


@compiled([boolean(kind, int64) for kind in (I4, I8)])
def _all_equal(values, value):
    differ = np.int64(0)
    for i in range(values.size):  # without an early end, which would keep it from being done eight at a time
        differ += values[i] != value
    return differ == 0


@compiled(int64(I8, int64[::1]))
def _distinct(values, distinct):
    """Gather the distinct values; -1 if there are more than `distinct` holds."""
    n = np.int64(0)
    last = values[0] - 1
    for value in values:
        if value == last:
            continue
        last = value
        k = 0
        while k < n and distinct[k] != value:
            k += 1
        if k == n:
            if n == distinct.size:
                return -1
            distinct[n] = value
            n += 1
    return n


@compiled(void(I8, I8, int64[::1], int64[::1]))
def _spread(values, known, order, offset):
    """Counting sort: places by value, in their order within each. `offset` gets where each value begins, and the end of the last."""
    place = np.empty(values.size, np.int32)
    for i in range(values.size):
        place[i] = np.searchsorted(known, values[i])
        offset[place[i] + 1] += 1
    for k in range(known.size):
        offset[k + 1] += offset[k]
    fill = offset[:-1].copy()
    for i in range(values.size):
        order[fill[place[i]]] = i
        fill[place[i]] += 1


@compiled(void(I8, int64, int64[::1], int64[::1]))
def _by_lane(lane, first, place, offset):
    """Counting sort: the rows of lane `first + k`, in their order, come to stand in `place[offset[k]:offset[k + 1]]`."""
    for i in range(lane.size):
        offset[lane[i] - first + 1] += 1
    for k in range(offset.size - 1):
        offset[k + 1] += offset[k]
    fill = offset[:-1].copy()
    for i in range(lane.size):
        place[fill[lane[i] - first]] = i
        fill[lane[i] - first] += 1


@compiled(boolean(I8, I8, I8, int64, I8, I8, I8, I8, int64, int64[::1], int64[::1]))
def _sweep(start, end, lane, first_lane, offset, place, t_start, t_end, window, linked, overlap):
    """Link the launches of all lanes in one pass; return whether some are of length zero, which `_last_ended` must link.

    Transfers stand lane by lane: those of lane `first_lane + k`, ascending, are `offset[k]:offset[k + 1]`, and `place` tells their rows
    (without elements: the rows are in this order). Each lane has a queue,
    `active[head[k]:tail[k]]`, of transfers that have begun and not ended, less those that an earlier row with no earlier end makes useless:
    such a transfer never overlaps more, and loses ties. So rows and ends both ascend: the first to end leave at the head, the first that
    covers a whole launch is found by bisection, and one very long transfer is one entry. The last to have ended matters only when none is
    active, so all that began have ended: it is the one with the latest end so far.
    """
    n = offset.size - 1
    active = np.empty(t_start.size, np.int64)
    head, tail, after = offset[:n].copy(), offset[:n].copy(), offset[:n].copy()
    latest_end, latest = np.full(n, np.int64(-(1 << 62))), np.full(n, np.int64(-1))
    empty = False
    for i in range(start.size):
        own = lane[i] - first_lane
        if own < 0 or own >= n:
            continue
        s, e, last = start[i], end[i], offset[own + 1]
        j, first, stop = after[own], head[own], tail[own]
        while j < last and t_start[j] <= s:
            if t_end[j] > latest_end[own]:
                latest_end[own], latest[own] = t_end[j], j
            if stop == first or t_end[j] > t_end[active[stop - 1]]:
                active[stop] = j
                stop += 1
            j += 1
        while first < stop and t_end[active[first]] <= s:
            first += 1
        after[own], head[own], tail[own] = j, first, stop
        best, most = np.int64(-1), np.int64(0)
        if first < stop and e > s:
            low, high = first, stop - 1
            while low < high:
                middle = (low + high) // 2
                if t_end[active[middle]] >= e:
                    high = middle
                else:
                    low = middle + 1
            best = active[low]
            most = min(t_end[best], e) - s
        k = j
        while k < last and t_start[k] < e and most < e - t_start[k]:
            shared = min(t_end[k], e) - t_start[k]
            if shared > most:
                best, most = k, shared
            k += 1
        if best < 0 and latest[own] >= 0 and latest_end[own] <= s and s - latest_end[own] <= window:
            best = latest[own]
        linked[i], overlap[i] = place[best] if best >= 0 and place.size else best, most
        empty |= s == e
    return empty


def _last_ended(start, t_end, window, first):
    """Return the last transfer to have ended before each launch of length zero, which overlaps nothing while others may still be active.

    All are of one lane; places count from `first`.
    """
    order = np.lexsort((-np.arange(t_end.size), t_end))
    place = np.searchsorted(t_end[order], start, side="right") - 1
    candidate = order[np.maximum(place, 0)]
    near = (place >= 0) & (start - t_end[candidate] <= window)
    return np.where(near, candidate + first, NONE)
