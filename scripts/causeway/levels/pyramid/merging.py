"""Compiled sums of closed cells: rows of equal series and cell become one, in any order and without loss."""

import numpy as np

from causeway.levels.pyramid.cells import LIMB
from causeway.numeric.compiled import I8, U2, U4, compiled, int64, record, uint16, uint32, void


@compiled(void(I8, int64[::1], int64[::1]))
def order_by_series(series, begin, order):
    """Counting sort: indices by series, in their order within each. `begin`, one longer than there are series, gets
    their ends.
    """
    for i in range(series.size):
        begin[series[i] + 1] += 1
    for k in range(begin.size - 1):
        begin[k + 1] += begin[k]
    for i in range(series.size):
        k = series[i]
        order[begin[k]] = i
        begin[k] += 1


@compiled(int64(int64[:, ::1], I8, int64[:, ::1], int64[::1]))
def merge_values(values, order, merged, group):
    """Sum the rows of equal series and cell, adjacent in `order`; return how many are left. `group` gets
    the new index of each.
    """
    n = np.int64(-1)
    for i in order:
        if n < 0 or merged[n, 0] != values[i, 0] or merged[n, 1] != values[i, 1]:
            n += 1
            for column in range(9):
                merged[n, column] = values[i, column]
        else:
            for column in range(2, 7):
                merged[n, column] += values[i, column]
            merged[n, 7] = min(merged[n, 7], values[i, 7])
            merged[n, 8] = max(merged[n, 8], values[i, 8])
        group[i] = n
    for k in range(n + 1):
        merged[k, 5] += merged[k, 4] >> 32
        merged[k, 6] += merged[k, 5] >> 32
        merged[k, 4] &= LIMB
        merged[k, 5] &= LIMB
    return n + 1


SKETCHES = record("SKETCHES", offset=I8, buckets=U2, counts=U4)
"""Sketches of rows.

Attributes
----------
offset : ndarray of int64, shape (rows + 1,)
    Where the entries of each row begin.
buckets : ndarray of uint16, shape (entries,)
counts : ndarray of uint32, shape (entries,)
"""


@compiled(int64(I8, I8, SKETCHES, int64[::1], uint16[::1], uint32[::1], uint32[::1]))
def merge_sketches(order, group, sketches, merged_offset, merged_buckets, merged_counts, histogram):
    """Sum the counts of equal buckets of rows of one group, into arrays like those of `sketches`; return how many
    entries are left. `histogram` is all zero, before and after.
    """
    offset = sketches.offset
    buckets = sketches.buckets
    counts = sketches.counts
    m = np.int64(0)
    used = np.empty(histogram.size, np.uint16)
    i = 0
    while i < order.size:
        here = group[order[i]]
        touched = 0
        while i < order.size and group[order[i]] == here:
            row = order[i]
            for k in range(offset[row], offset[row + 1]):
                bucket = buckets[k]
                if histogram[bucket] == 0:
                    used[touched] = bucket
                    touched += 1
                histogram[bucket] += counts[k]
            i += 1
        names = used[:touched]
        names.sort()
        for k in range(touched):
            merged_buckets[m + k] = names[k]
            merged_counts[m + k] = histogram[names[k]]
            histogram[names[k]] = 0
        m += touched
        merged_offset[here + 1] = m
    return m
