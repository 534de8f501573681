"""Compiled loops of `distinct` and `checks`: loaded only for exports that are large enough to be worth it."""

import numpy as np
from numba import int64, types

from causeway.compiled import I8, compiled
from causeway.readers.checks import WRAPPED
from causeway.readers.events import NULL

MIX = np.uint64(0x9E3779B97F4A7C15)


@compiled(int64(types.Array(int64, 2, "C", readonly=True), int64[::1], int64[::1]))
def number_rows(table, first, inverse):
    """Number the columns of a table, which are rows of events, in order of first occurrence.

    Returns how many are distinct, -1 if more than `first`, which gets the place of each one's first occurrence, has room for.
    """
    size = 1
    while size < 4 * first.size:
        size *= 2
    slots, mask = np.full(size, -1, np.int32), np.int64(size - 1)
    known = np.int64(0)
    for i in range(table.shape[1]):
        mixed = np.uint64(0)
        for k in range(table.shape[0]):
            mixed = (mixed ^ np.uint64(table[k, i])) * MIX
            mixed ^= mixed >> np.uint64(29)
        slot = np.int64(mixed & np.uint64(mask))
        while slots[slot] >= 0:
            at, k = first[slots[slot]], 0
            while k < table.shape[0] and table[k, i] == table[k, at]:
                k += 1
            if k == table.shape[0]:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            if known == first.size:
                return -1
            slots[slot], first[known] = known, i
            known += 1
        inverse[i] = slots[slot]
    return known


@compiled(types.UniTuple(int64, 2)(I8, I8, int64[::1]))
def falls(lane, series, latest):
    """Find where a series falls below the last value of its lane, other than by coming to the end of its 32 bits.

    `latest` holds the last value of each lane, `NULL` before the first; such values in the series are passed over. Returns how often it
    falls and where first, -1 if never.
    """
    count, first = np.int64(0), np.int64(-1)
    for i in range(series.size):
        value, before = series[i], latest[lane[i]]
        if value == NULL:
            continue
        if before != NULL and before - WRAPPED < value < before:
            if count == 0:
                first = i
            count += 1
        latest[lane[i]] = value
    return count, first
