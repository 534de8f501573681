"""Exact quartiles of groups that are too large to hold: histograms of ever narrower ranges, one pass over the rows
each.

Counts are integers, so ranks add them exactly and the result is that of a sort. The first histogram needs to know
nothing: its buckets are of equal ratio in the distance from the lowest key, 64 per power of two (as in G. Tene's
HdrHistogram). Each further one divides the buckets in which an order statistic lies into 2^14: durations below a
millisecond are then exact, so that the passes that are made anyway suffice.
"""

import copy

import numpy as np

from causeway.numeric.compiled import I4, I8, bits_of, compiled, int64, void

FIRST_BITS = 6
"""Buckets per power of two in the first histogram, as a power of two itself."""
LARGEST_BITS = 14
SMALLEST_BITS = 6
TABLE_BYTES = 32 << 20
"""Memory of the histograms; with very many groups the buckets are fewer and the passes more."""
WANTED = 6
"""Order statistics per group: the two neighbours of each of three quartiles."""


def keys_of(values: np.ndarray) -> np.ndarray:
    """Return int64 keys that order as float64 values do (IEEE 754: the bits of negative numbers are reversed); -0
    counts as 0.
    """
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def values_of(keys: np.ndarray) -> np.ndarray:
    """Undo `keys_of`."""
    return np.where(keys < 0, keys ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), keys).view(np.float64)


class QuartileSearch:
    """Find q1, median and q3 of int64 keys per group.

    Parameters
    ----------
    groups : int
        Number of groups, numbered from 0.
    lowest : int
        No key is smaller.

    Attributes
    ----------
    table : ndarray of int64
        The counts of the present pass: tables of several workers are added before `narrow`.

    Use: while `open`, pass all rows through `add`, then call `narrow`; then read `order_statistics`.
    """

    def __init__(self, groups: int, lowest: int) -> None:
        self.groups = groups
        self.lowest = lowest
        self.first_bits = FIRST_BITS
        while self.first_bits > 0 and groups * _first_buckets(self.first_bits) * 8 > TABLE_BYTES:
            self.first_bits -= 1
        self.table = np.zeros((groups, _first_buckets(self.first_bits)), np.int64)
        self.begun = False
        self.fraction = np.full((groups, 3), np.nan)
        # one line per group and order statistic: its rank (from 0) among the group's keys, the range it lies in, the
        # keys below that range
        self.group = self.order = self.low = self.high = self.under = np.empty(0, np.int64)

    def fresh(self) -> "QuartileSearch":
        """Return a search in the same ranges with a table of its own, for one worker."""
        other = copy.copy(self)
        other.table = np.zeros_like(self.table)
        return other

    @property
    def open(self) -> bool:
        """Whether another pass is needed."""
        return not self.begun or bool((self.low < self.high).any())

    def add(self, group: np.ndarray, key: np.ndarray) -> None:
        """Count keys (int64, shape (n,)) of groups (int32), as far as they lie in a range which is still open."""
        if not self.begun:
            _count_first(group, key, self.lowest, self.first_bits, self.table)
        elif self.table.size:
            _count(group, key, self.first, self.range_low, self.range_high, self.shift, self.table)

    def narrow(self) -> None:
        """Shrink every range to the bucket that holds its order statistic; `table` must hold the counts of all rows."""
        upto = np.cumsum(self.table, axis=1)
        if not self.begun:
            self._begin(upto)
        else:
            for line in np.flatnonzero(self.range_of >= 0):
                k = self.range_of[line]
                bucket = int(np.searchsorted(upto[k], self.order[line] - self.under[line], side="right"))
                self.under[line] += upto[k, bucket - 1] if bucket else 0
                low = int(self.range_low[k]) + (bucket << int(self.shift[k]))
                self.low[line] = low
                self.high[line] = min(low + (1 << int(self.shift[k])) - 1, int(self.range_high[k]))
        self._prepare()

    def _begin(self, upto: np.ndarray) -> None:
        """Take the ranges from the first histogram, whose sums are how many keys each group has."""
        self.begun = True
        count = upto[:, -1]
        filled = np.flatnonzero(count)
        quarters = (count[filled, None] - 1) * np.array([1, 2, 3])
        below = quarters // 4
        self.fraction[filled] = (quarters % 4) / 4
        self.group = np.repeat(filled, WANTED)
        self.order = np.minimum(
            np.stack([below, below + 1], axis=2).reshape(-1, WANTED), count[filled, None] - 1
        ).reshape(-1)
        bucket = np.array(
            [np.searchsorted(upto[g], order, side="right") for g, order in zip(self.group, self.order, strict=True)],
            int,
        )
        self.under = np.where(bucket > 0, upto[self.group, bucket - 1], 0) if bucket.size else np.empty(0, np.int64)
        edges = [_first_range(int(b), self.first_bits) for b in bucket]
        self.low = np.array([self.lowest + low for low, _ in edges], np.int64)
        self.high = np.array([min(self.lowest + high, (1 << 63) - 1) for _, high in edges], np.int64)

    def _prepare(self) -> None:
        """Lay out one histogram per distinct range, and the list of ranges of each group, ascending."""
        pending = np.flatnonzero(self.low < self.high)
        lines = np.stack([self.group[pending], self.low[pending], self.high[pending], self.under[pending]], axis=1)
        ranges, inverse = (
            np.unique(lines, axis=0, return_inverse=True) if pending.size else (lines, np.empty(0, np.int64))
        )
        self.range_of = np.full(self.group.size, -1, np.int64)
        self.range_of[pending] = inverse.reshape(-1)
        width = [int(high) - int(low) for _, low, high, _ in ranges]
        bits = min(LARGEST_BITS, max((w.bit_length() for w in width), default=0))
        while bits > SMALLEST_BITS and (len(ranges) << bits) * 8 > TABLE_BYTES:
            bits -= 1
        self.first = np.searchsorted(ranges[:, 0], np.arange(self.groups + 1))
        self.range_low = np.ascontiguousarray(ranges[:, 1])
        self.range_high = np.ascontiguousarray(ranges[:, 2])
        self.shift = np.array([max(w.bit_length() - bits, 0) for w in width], np.int64)
        self.table = np.zeros((len(ranges), 1 << bits), np.int64)

    def order_statistics(self) -> np.ndarray:
        """Return the keys below and above each quartile; int64, shape (groups, 3, 2), 0 for an empty group."""
        keys = np.zeros((self.groups, WANTED), np.int64)
        keys[self.group[::WANTED]] = self.low.reshape(-1, WANTED)
        return keys.reshape(-1, 3, 2)

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
        below = values[..., 0].astype(float)
        above = values[..., 1].astype(float)
        step = above - below
        return np.where(self.fraction < 0.5, below + step * self.fraction, above - step * (1.0 - self.fraction))


def _first_buckets(bits: int) -> int:
    """Return how many buckets distances below 2^64 need: those below 2^(bits + 1) one each, then 2^bits per power of
    two.
    """
    return (65 - bits) << bits


def _first_range(bucket: int, bits: int) -> tuple[int, int]:
    """Return the least and the largest distance in a bucket of the first histogram."""
    shift = max((bucket >> bits) - 1, 0)
    low = (bucket - (shift << bits)) << shift
    return low, low + (1 << shift) - 1


@compiled(void(I4, I8, int64, int64, int64[:, ::1]))
def _count_first(group, key, lowest, bits, table):
    for i in range(key.size):
        distance = np.uint64(key[i]) - np.uint64(lowest)
        # the exponent of the nearest float64: where that rounds up to a power of two, the bucket comes out the same
        shift = min(max((bits_of(np.float64(distance)) >> 52) - 1023 - bits, 0), 63 - bits)
        table[group[i], (shift << bits) + np.int64(distance >> np.uint64(shift))] += 1


@compiled(void(I4, I8, I8, I8, I8, I8, int64[:, ::1]))
def _count(group, key, first, low, high, shift, table):
    for i in range(key.size):
        g = group[i]
        v = key[i]
        k = first[g]
        last = first[g + 1] - 1
        while k < last and v > high[k]:
            k += 1
        if k <= last and low[k] <= v <= high[k]:
            table[k, np.int64((np.uint64(v) - np.uint64(low[k])) >> np.uint64(shift[k]))] += 1
