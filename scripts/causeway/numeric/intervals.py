"""Exact integer interval arithmetic: union, intersection, lengths, overlap with a union.

An interval is closed left and open right, in integer nanoseconds, so nothing is ever rounded. A *set* is a pair of
int64 arrays (starts, ends): ascending, non-empty, disjoint and not touching, which makes it unique. Every function
takes any intervals and returns sets; an interval of length zero covers nothing. Everything costs a linear sweep, after
a sort of numbers where the input is not ascending.

Sources: the measures of overlap, idle and exposure of the POP metrics and of HolisticTraceAnalysis are all made of
these operations.
"""

import numpy as np

from causeway.numeric.compiled import I8, UniTuple, compiled, int64, void

Set = tuple[np.ndarray, np.ndarray]


def union(start: np.ndarray, end: np.ndarray) -> Set:
    """Merge intervals that overlap or touch.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,), ns
        In any order; `start <= end`.

    Returns
    -------
    pair of ndarray of int64, shape (m,), ns
        The set that covers the same points, ascending; m is at most n.

    Raises
    ------
    ValueError
        If an interval ends before it starts (the message names its position), or shapes differ.
    """
    start, end, form = _checked(start, end)
    if form == SET:
        return start.copy(), end.copy()
    low = np.empty_like(start)
    high = np.empty_like(end)
    n = _merge_sorted(np.sort(start), np.sort(end), low, high) if form == UNORDERED else _merge(start, end, low, high)
    return low[:n].copy(), high[:n].copy()


def meetings(begin: np.ndarray, end: np.ndarray, cover: Set) -> tuple[np.ndarray, np.ndarray]:
    """Return for each interval and each member of a set that it overlaps the index of both, ordered by the interval.

    Parameters
    ----------
    begin, end : ndarray of int64, shape (n,), ns
        In any order.
    cover : pair of ndarray of int64, shape (m,), ns
        Ascending and without overlap; neighbours may touch.

    Returns
    -------
    interval, member : ndarray of int64, shape (k,)
    """
    low, high = cover
    first = np.searchsorted(high, begin, "right")
    count = np.maximum(np.searchsorted(low, end, "left") - first, 0)
    interval = np.repeat(np.arange(begin.size), count)
    return interval, np.arange(interval.size) - np.repeat(np.cumsum(count) - count - first, count)


def split(begin: np.ndarray, end: np.ndarray, cover: Set) -> tuple[np.ndarray, np.ndarray]:
    """Return the parts of intervals that lie inside of a set, and those outside of it; none is empty.

    Parameters
    ----------
    begin, end : ndarray of int64, shape (n,), ns
        In any order.
    cover : pair of ndarray of int64, shape (m,), ns
        Ascending and without overlap; neighbours may touch, which keeps parts apart.

    Returns
    -------
    inside : ndarray of int64, shape (4, k), ns
        Index of the interval, of the member of `cover`, begin and end of each part.
    outside : ndarray of int64, shape (3, j), ns
        Index of the interval, begin and end of each part.
    """
    low, high = cover
    of, member = meetings(begin, end, cover)
    count = np.bincount(of, minlength=begin.size)
    inside = np.stack([of, member, np.maximum(begin[of], low[member]), np.minimum(end[of], high[member])])
    before = np.stack([of, begin[of], inside[2]])  # from the part inside before it on, where there is one
    follows = np.flatnonzero(of[1:] == of[:-1]) + 1
    before[1, follows] = inside[3, follows - 1]
    behind = np.stack([np.arange(begin.size), begin, end])
    last = np.cumsum(count) - 1
    behind[1, count > 0] = inside[3, last[count > 0]]
    outside = np.concatenate([before, behind], axis=1)
    return inside[:, inside[3] > inside[2]], outside[:, outside[2] > outside[1]]


def stretches(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return for each interval where the stretch begins that overlapping or touching intervals form with it.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,), ns
        In any order; none of them empty.

    Returns
    -------
    ndarray of int64, shape (n,), ns
        In the order of the intervals.
    """
    low, _ = union(start, end)
    return low[np.searchsorted(low, start, side="right") - 1]


def intersection(first: Set, second: Set) -> Set:
    """Return the points that both have.

    Parameters
    ----------
    first, second : pair of ndarray of int64, shape (n,), ns
        Any intervals; the two may differ in n.

    Returns
    -------
    pair of ndarray of int64, shape (m,), ns
        A set.
    """
    a = _as_set(first)
    b = _as_set(second)
    low = np.empty(a[0].size + b[0].size, np.int64)
    high = np.empty_like(low)
    n = _intersect(*a, *b, low, high)
    return low[:n].copy(), high[:n].copy()


def length(intervals: Set) -> int:
    """Return how many nanoseconds the intervals (pair of ndarray of int64, shape (n,), in any order) cover, each
    counted once.
    """
    start, end = _as_set(intervals)
    return int((end - start).sum())


def overlap(start: np.ndarray, end: np.ndarray, intervals: Set) -> np.ndarray:
    """Return for each interval how much of it the union of `intervals` covers.

    The covered length up to a point is piecewise linear, so an overlap is the difference of two of its values.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,), ns
        In any order; they may overlap each other.
    intervals : pair of ndarray of int64, shape (m,), ns
        Any intervals.

    Returns
    -------
    ndarray of int64, shape (n,)
        Nanoseconds, 0 to `end - start`.
    """
    start, end, _ = _checked(start, end)
    low, high = _as_set(intervals)
    covered = np.zeros(start.size, np.int64)
    if low.size:
        _overlap(start, end, low, high, np.concatenate(([0], np.cumsum(high - low))), covered)
    return covered


UNORDERED = 0
ORDERED = 1
SET = 2
"""What intervals are already; sets need no further work."""


def _as_set(intervals: Set) -> Set:
    """Return a set; the same arrays where they are one."""
    start, end, form = _checked(*intervals)
    return (start, end) if form == SET else union(start, end)


def _checked(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    start = np.ascontiguousarray(start, np.int64)
    end = np.ascontiguousarray(end, np.int64)
    if start.shape != end.shape or start.ndim != 1:
        raise ValueError(f"starts and ends differ in shape: {start.shape} and {end.shape}")
    form, wrong = _form(start, end)
    if wrong >= 0:
        raise ValueError(f"interval {wrong} ends at {end[wrong]}, before its start {start[wrong]}")
    return start, end, form


@compiled(UniTuple(int64, 2)(I8, I8))
def _form(start, end):
    """Return what intervals are, and the first that ends before it starts or -1."""
    form = np.int64(SET)
    for i in range(start.size):
        if end[i] < start[i]:
            return form, i
        if end[i] == start[i] or (i > 0 and start[i] <= end[i - 1]):
            form = min(form, ORDERED)
        if i > 0 and start[i] < start[i - 1]:
            form = UNORDERED
    return form, -1


@compiled(int64(I8, int64, int64))
def _before(low, point, near):
    """Return how many of `low` (ascending) are at most `point`; found by steps that double from a place near it."""
    size = low.size
    step = 1
    if near < size and low[near] <= point:
        first = near + 1
        last = near + 1
        while last < size and low[last] <= point:
            first = last + 1
            last += step
            step *= 2
        last = min(last, size)
    else:
        first = last = near
        while first > 0 and low[first - 1] > point:
            last = first - 1
            first -= min(step, first)
            step *= 2
    while first < last:
        middle = (first + last) // 2
        if low[middle] <= point:
            first = middle + 1
        else:
            last = middle
    return first


@compiled(void(I8, I8, I8, I8, I8, int64[::1]))
def _overlap(start, end, low, high, before, out):
    position = np.int64(0)
    for i in range(start.size):
        covered = np.int64(0)
        position = _before(low, start[i], position)
        if position > 0:
            covered -= before[position - 1] + min(start[i], high[position - 1]) - low[position - 1]
        stop = _before(low, end[i], position)
        if stop > 0:
            covered += before[stop - 1] + min(end[i], high[stop - 1]) - low[stop - 1]
        out[i] = covered


@compiled(int64(I8, I8, int64[::1], int64[::1]))
def _merge(start, end, low, high):
    n = np.int64(-1)
    reach = np.int64(np.iinfo(np.int64).min)
    for i in range(start.size):
        if start[i] == end[i]:
            continue
        fresh = start[i] > reach or n < 0
        n += fresh
        low[n] = start[i] if fresh else low[n]
        reach = end[i] if fresh else max(reach, end[i])
        high[n] = reach
    return n + 1


@compiled(int64(I8, I8, int64[::1], int64[::1]))
def _merge_sorted(start, end, low, high):
    """Merge intervals from their starts and their ends, each ascending: which belong together does not matter to what
    is covered.

    A stretch is over where as many have ended as have begun and the next one begins later. Numbers are sorted much
    faster than pairs.
    """
    n = first = np.int64(0)
    for i in range(start.size):
        if i + 1 == start.size or start[i + 1] > end[i]:  # i + 1 intervals have begun and ended
            low[n] = start[first]
            high[n] = end[i]
            n += start[first] < end[i]
            first = i + 1
    return n


@compiled(int64(I8, I8, I8, I8, int64[::1], int64[::1]))
def _intersect(a_low, a_high, b_low, b_high, low, high):
    n = i = j = np.int64(0)
    while i < a_low.size and j < b_low.size:  # without branches: which set goes on is as good as random
        low[n] = max(a_low[i], b_low[j])
        high[n] = min(a_high[i], b_high[j])
        n += low[n] < high[n]
        first = a_high[i] <= b_high[j]
        i += first
        j += not first
    return n


def window_of(start: np.ndarray, end: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return the position of the window in which each moment lies, -1 in none.

    Parameters
    ----------
    start, end : ndarray of int64, shape (windows,), ns
        Ascending, without overlap; a window is [start, end).
    moments : ndarray of int64, shape (n,), ns
        In any order.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    if not start.size:
        return np.full(moments.size, -1)
    window = np.searchsorted(start, moments, "right") - 1
    return np.where((window >= 0) & (moments < end[np.maximum(window, 0)]), window, -1)
