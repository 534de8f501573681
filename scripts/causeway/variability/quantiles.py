"""Exact quartiles of groups that are too large to hold: histograms of ever narrower ranges, one pass over the rows each.

Counts are integers, so ranks add them exactly and the result is that of a sort. The first pass spans each group's extremes; every further
one the buckets in which an order statistic lies. 2^14 buckets need one pass for values up to 16,384 apart, two up to 2^28.
"""

import numpy as np
from numba import njit

from causeway.ranks import Ranks

LARGEST_BITS, SMALLEST_BITS = 14, 6
TABLE_BYTES = 32 << 20
"""Memory of the histograms; with very many groups the buckets are fewer and the passes more."""
WANTED = 6
"""Order statistics per group: the two neighbours of each of three quartiles."""


def keys_of(values: np.ndarray) -> np.ndarray:
    """Return int64 keys that order as float64 values do (IEEE 754: the bits of negative numbers are reversed); -0 counts as 0."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def values_of(keys: np.ndarray) -> np.ndarray:
    """Undo `keys_of`."""
    return np.where(keys < 0, keys ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), keys).view(np.float64)


class QuartileSearch:
    """Find q1, median and q3 of int64 keys per group.

    Parameters
    ----------
    count, low, high : ndarray of int64, shape (groups,)
        Keys of each group, and their extremes.

    Use: while `open`, pass all rows through `add` on every rank, then call `narrow`; then read `order_statistics`.
    """

    def __init__(self, count: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        filled = np.flatnonzero(count)
        quarters = (count[filled, None] - 1) * np.array([1, 2, 3])
        below = quarters // 4
        self.groups = count.size
        self.fraction = np.full((count.size, 3), np.nan)
        self.fraction[filled] = (quarters % 4) / 4
        # one line per group and order statistic: its place (from 0) among the group's keys, the range it lies in, the keys below that range
        self.group = np.repeat(filled, WANTED)
        self.place = np.minimum(np.stack([below, below + 1], axis=2).reshape(-1, WANTED), count[filled, None] - 1).reshape(-1)
        self.low, self.high = np.repeat(low[filled], WANTED), np.repeat(high[filled], WANTED)
        self.under = np.zeros(self.group.size, np.int64)
        self._prepare()

    @property
    def open(self) -> bool:
        """Whether another pass is needed."""
        return bool((self.low < self.high).any())

    def _prepare(self) -> None:
        """Lay out one histogram per distinct range, and the list of ranges of each group."""
        pending = np.flatnonzero(self.low < self.high)
        lines = np.stack([self.group[pending], self.low[pending], self.high[pending], self.under[pending]], axis=1)
        ranges, place = np.unique(lines, axis=0, return_inverse=True) if pending.size else (lines, np.empty(0, np.int64))
        self.range_of = np.full(self.group.size, -1, np.int64)
        self.range_of[pending] = place.reshape(-1)
        bits = LARGEST_BITS
        while bits > SMALLEST_BITS and (len(ranges) << bits) * 8 > TABLE_BYTES:
            bits -= 1
        self.first = np.searchsorted(ranges[:, 0], np.arange(self.groups + 1))
        self.range_low, self.range_high = np.ascontiguousarray(ranges[:, 1]), np.ascontiguousarray(ranges[:, 2])
        width = self.range_high.astype(object) - self.range_low.astype(object)
        self.shift = np.array([max(int(w).bit_length() - bits, 0) for w in width], np.int64)
        self.table = np.zeros((len(ranges), 1 << bits), np.int64)

    def add(self, group: np.ndarray, key: np.ndarray) -> None:
        """Count keys (int64, shape (n,)) of groups (int64) that lie in a range which is still open."""
        if self.table.size:
            _count(group, key, self.first, self.range_low, self.range_high, self.shift, self.table)

    def narrow(self, ranks: Ranks) -> None:
        """Add up the counts of all ranks and shrink every range to the bucket that holds its order statistic."""
        table = ranks.total(self.table)
        upto = np.cumsum(table, axis=1)
        for line in np.flatnonzero(self.range_of >= 0):
            k = self.range_of[line]
            bucket = int(np.searchsorted(upto[k], self.place[line] - self.under[line], side="right"))
            self.under[line] += upto[k, bucket - 1] if bucket else 0
            low = int(self.range_low[k]) + (bucket << int(self.shift[k]))
            self.low[line], self.high[line] = low, min(low + (1 << int(self.shift[k])) - 1, int(self.range_high[k]))
        self._prepare()

    def order_statistics(self) -> np.ndarray:
        """Return the keys below and above each quartile; int64, shape (groups, 3, 2), 0 for an empty group."""
        found = np.zeros((self.groups, WANTED), np.int64)
        found[self.group[::WANTED]] = self.low.reshape(-1, WANTED)
        return found.reshape(-1, 3, 2)

    def quartiles(self, values: np.ndarray) -> np.ndarray:
        """Interpolate linearly between neighbours.

        Parameters
        ----------
        values : ndarray, shape (groups, 3, 2)
            `order_statistics`, as values.

        Returns
        -------
        ndarray of float64, shape (groups, 3)
            q1, median, q3 as numpy's default gives them; NaN for an empty group.
        """
        below, above = values[..., 0].astype(float), values[..., 1].astype(float)
        step = above - below
        return np.where(self.fraction < 0.5, below + step * self.fraction, above - step * (1.0 - self.fraction))


@njit(cache=True)
def _count(group, key, first, low, high, shift, table):
    for i in range(key.size):
        g = group[i]
        v = key[i]
        for k in range(first[g], first[g + 1]):
            if low[k] <= v <= high[k]:
                table[k, np.int64((np.uint64(v) - np.uint64(low[k])) >> np.uint64(shift[k]))] += 1
                break
