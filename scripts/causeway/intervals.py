"""Exact integer interval arithmetic: union, intersection, difference, lengths, overlap with a union.

An interval is closed left and open right, in integer nanoseconds, so nothing is ever rounded. A *set* is a pair of int64 arrays
(starts, ends): ascending, non-empty, disjoint and not touching, which makes it unique. Every function takes any intervals and returns
sets; an interval of length zero covers nothing. Everything costs a linear sweep, after a sort where the input is not ascending.

Sources: the measures of overlap, idle and exposure of the POP metrics and of HolisticTraceAnalysis are all made of these operations.
"""

import numpy as np
from numba import int64

from causeway.compiled import I8, compiled

Set = tuple[np.ndarray, np.ndarray]


def union(start: np.ndarray, end: np.ndarray) -> Set:
    """Merge intervals that overlap or touch.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)
        In any order; `start <= end`.

    Returns
    -------
    pair of ndarray of int64
        The set that covers the same points.

    Raises
    ------
    ValueError
        If an interval ends before it starts; the message names its position.
    """
    start, end = _checked(start, end)
    if start.size > 1 and (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    low, high = np.empty_like(start), np.empty_like(end)
    n = _merge(start, end, low, high)
    return low[:n].copy(), high[:n].copy()


def stretches(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return for each interval, none of them empty, where the stretch begins that overlapping or touching intervals form with it."""
    low, _ = union(start, end)
    return low[np.searchsorted(low, start, side="right") - 1]


def intersection(first: Set, second: Set) -> Set:
    """Return the points that both have."""
    a, b = union(*first), union(*second)
    low = np.empty(a[0].size + b[0].size, np.int64)
    high = np.empty_like(low)
    n = _intersect(*a, *b, low, high)
    return low[:n].copy(), high[:n].copy()


def difference(first: Set, second: Set) -> Set:
    """Return the points of `first` that `second` does not have."""
    a, b = union(*first), union(*second)
    low = np.empty(a[0].size + b[0].size, np.int64)
    high = np.empty_like(low)
    n = _subtract(*a, *b, low, high)
    return low[:n].copy(), high[:n].copy()


def length(intervals: Set) -> int:
    """Return how many nanoseconds the intervals cover, each counted once."""
    start, end = union(*intervals)
    return int((end - start).sum())


def overlap(start: np.ndarray, end: np.ndarray, intervals: Set) -> np.ndarray:
    """Return for each interval how much of it the union of `intervals` covers.

    The covered length up to a point is piecewise linear, so an overlap is the difference of two of its values.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)
        In any order; they may overlap each other.
    intervals : pair of ndarray of int64
        Any intervals.

    Returns
    -------
    ndarray of int64, shape (n,)
        Nanoseconds, 0 to `end - start`.
    """
    start, end = _checked(start, end)
    low, high = union(*intervals)
    if low.size == 0:
        return np.zeros(start.size, np.int64)
    before = np.concatenate(([0], np.cumsum(high - low)))

    def covered(point: np.ndarray) -> np.ndarray:
        index = np.searchsorted(low, point, side="right")
        last = np.maximum(index - 1, 0)
        return np.where(index > 0, before[last] + np.minimum(point, high[last]) - low[last], 0)

    return covered(end) - covered(start)


def _checked(start: np.ndarray, end: np.ndarray) -> Set:
    start, end = np.ascontiguousarray(start, np.int64), np.ascontiguousarray(end, np.int64)
    if start.shape != end.shape or start.ndim != 1:
        raise ValueError(f"starts and ends differ in shape: {start.shape} and {end.shape}")
    wrong = np.flatnonzero(end < start)
    if wrong.size:
        raise ValueError(f"interval {wrong[0]} ends at {end[wrong[0]]}, before its start {start[wrong[0]]}")
    return start, end


@compiled(int64(I8, I8, int64[::1], int64[::1]))
def _merge(start, end, low, high):
    n = np.int64(0)
    for i in range(start.size):
        if start[i] == end[i]:
            continue
        if n > 0 and start[i] <= high[n - 1]:
            high[n - 1] = max(high[n - 1], end[i])
        else:
            low[n], high[n] = start[i], end[i]
            n += 1
    return n


@compiled(int64(I8, I8, I8, I8, int64[::1], int64[::1]))
def _intersect(a_low, a_high, b_low, b_high, low, high):
    n = i = j = 0
    while i < a_low.size and j < b_low.size:
        left, right = max(a_low[i], b_low[j]), min(a_high[i], b_high[j])
        if left < right:
            low[n], high[n] = left, right
            n += 1
        if a_high[i] <= b_high[j]:
            i += 1
        else:
            j += 1
    return n


@compiled(int64(I8, I8, I8, I8, int64[::1], int64[::1]))
def _subtract(a_low, a_high, b_low, b_high, low, high):
    n = j = 0
    for i in range(a_low.size):
        left = a_low[i]
        while j < b_low.size and b_high[j] <= left:
            j += 1
        k = j
        while k < b_low.size and b_low[k] < a_high[i]:
            if left < b_low[k]:
                low[n], high[n] = left, b_low[k]
                n += 1
            left = max(left, b_high[k])
            k += 1
        if left < a_high[i]:
            low[n], high[n] = left, a_high[i]
            n += 1
        j = max(j, k - 1)
    return n
