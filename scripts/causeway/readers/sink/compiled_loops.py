"""Compiled loops of `distinct`, `joins` and `stream_order`: loaded only for exports that are worth it."""

import numpy as np

from causeway.numeric.compiled import I8, Array, UniTuple, compiled, int64, void
from causeway.readers.common.constants import NULL, WRAPPED

MIX = np.uint64(0x9E3779B97F4A7C15)


@compiled(int64(Array(int64, 2, "C", readonly=True), int64[::1], int64[::1]))
def number_rows(table, first, inverse):
    """Number the columns of a table, which are rows of events, in order of first occurrence.

    Parameters
    ----------
    table : ndarray of int64, shape (columns, n), C order
    first : ndarray of int64, shape (most,)
        Gets the index of each distinct row's first occurrence.
    inverse : ndarray of int64, shape (n,)
        Gets the number of each row.

    Returns
    -------
    int
        How many rows are distinct, -1 if more than `most`.
    """
    size = 1
    while size < 4 * first.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    mask = np.int64(size - 1)
    known = np.int64(0)
    for i in range(table.shape[1]):
        mixed = np.uint64(0)
        for k in range(table.shape[0]):
            mixed = (mixed ^ np.uint64(table[k, i])) * MIX
            mixed ^= mixed >> np.uint64(29)
        slot = np.int64(mixed & np.uint64(mask))
        while slots[slot] >= 0:
            at = first[slots[slot]]
            k = 0
            while k < table.shape[0] and table[k, i] == table[k, at]:
                k += 1
            if k == table.shape[0]:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            if known == first.size:
                return -1
            slots[slot] = known
            first[known] = i
            known += 1
        inverse[i] = slots[slot]
    return known


@compiled(UniTuple(int64, 2)(I8, I8, int64[::1]))
def falls(stream, series, latest):
    """Find where a series falls below the last value of its stream, other than by coming to the end of its 32 bits.

    Parameters
    ----------
    stream, series : ndarray of int64, shape (n,)
        The stream's number, and a value or `NULL`, which is passed over.
    latest : ndarray of int64, shape (streams,)
        The last value of each stream, `NULL` before the first; it is brought up to date.

    Returns
    -------
    count, first : int
        How often the series falls, and the index of the first time, -1 if never.
    """
    count = np.int64(0)
    first = np.int64(-1)
    for i in range(series.size):
        value = series[i]
        before = latest[stream[i]]
        if value == NULL:
            continue
        if before != NULL and before - WRAPPED < value < before:
            if count == 0:
                first = i
            count += 1
        latest[stream[i]] = value
    return count, first


@compiled(UniTuple(int64, 2)(I8, I8, I8, I8, int64[:, ::1]))
def outlasting(stream, series, start, end, latest):
    """Find launches that end after a later one of their stream, of another launch call, has ended.

    Parameters
    ----------
    stream, series, start, end : ndarray of int64, shape (n,)
        The stream's number, the correlation or `NULL`, start and end, in order of the starts.
    latest : ndarray of int64, shape (5, streams)
        Correlation, start and end of the launch of each stream that ends last, whether it was counted, and how many of
        the stream were; it is brought up to date.

    Returns
    -------
    count, longest : int
        How many there are, and how long after the start of such a later one they end at most, in ns.
    """
    count = np.int64(0)
    longest = np.int64(0)
    for i in range(start.size):
        at = stream[i]
        if end[i] >= latest[2, at]:
            latest[0, at] = series[i]
            latest[1, at] = start[i]
            latest[2, at] = end[i]
            latest[3, at] = 0
        elif start[i] > latest[1, at] and end[i] > start[i] and (series[i] != latest[0, at] or series[i] == NULL):
            count += 1 - latest[3, at]
            latest[4, at] += 1 - latest[3, at]
            latest[3, at] = 1
            longest = max(longest, latest[2, at] - start[i])
    return count, longest


@compiled(void(I8, I8, I8, I8, int64[::1]))
def latest_open(start, end, times, order, found):
    """Find for each time the latest-started range that holds it.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n_ranges,)
        Ascending start; closed left, open right.
    times, order : ndarray of int64, shape (n,)
        Ascending; the place of each in `found`.
    found : ndarray of int64, shape (n,)
        Gets the index of the range, or -1.
    """
    stack = np.empty(start.size, np.int64)
    top = 0
    following = 0
    for i in range(times.size):
        while following < start.size and start[following] <= times[i]:
            while top > 0 and end[stack[top - 1]] <= start[following]:
                top -= 1
            stack[top] = following
            top += 1
            following += 1
        while top > 0 and end[stack[top - 1]] <= times[i]:
            top -= 1
        found[order[i]] = stack[top - 1] if top > 0 else -1
