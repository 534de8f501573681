"""Exact, mergeable moments of groups, and the nine statistics of slices.

Moments are integers from the first row to the last division: count, sum and sum of squares, as multiples of a power of two, in 32-bit limbs
that are stored in 64 bits. Adding is exact, so the result depends neither on the order of rows nor on how they are spread over ranks; the
one rounding is that of the final division, to the nearest float64.
"""

import math

import numpy as np
from numba import njit

from causeway.errors import CausewayError

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1
FOLD_ROWS = 1 << 30
"""Rows after which carries are moved up: a limb takes 2^31 contributions of 32 bits before it could overflow."""
BUCKETS = 4096
"""Most buckets of the histogram in which order statistics are found: it stays in the first-level cache."""
SMALL = 48
"""Slices up to this size are sorted whole: measured as the break-even with the histogram."""
OCTAVES = 24
"""Powers of two below the maximum that the histogram of non-negative values resolves; smaller values share its first bucket."""


class Moments:
    """Exact count, sum, sum of squares, minimum and maximum per group.

    Parameters
    ----------
    groups : int
        Number of groups, numbered from 0.
    exponents : (int, int) or None
        For float64 values: the smallest and largest binary exponent (`exponent_range`) among all values of all ranks. None for int64.

    Attributes
    ----------
    table : ndarray of int64, shape (groups, 1 + limbs of the sum + limbs of the sum of squares)
        Summed over ranks by plain integer addition after `fold`.
    low, high : ndarray, shape (groups,)
        Extremes; where a group is empty, the largest and the smallest number of the type.
    """

    def __init__(self, groups: int, exponents: tuple[int, int] | None = None) -> None:
        self.floating = exponents is not None
        if self.floating:
            lowest, highest = exponents
            self.unit = lowest - 53
            self.sum_limbs = (highest - lowest) // LIMB_BITS + 4
            square_limbs = (2 * (highest - lowest) + 52) // LIMB_BITS + 4
            self.low, self.high = np.full(groups, np.inf), np.full(groups, -np.inf)
        else:
            self.unit, self.sum_limbs, square_limbs = 0, 2, 4
            limits = np.iinfo(np.int64)
            self.low, self.high = np.full(groups, limits.max), np.full(groups, limits.min)
        self.table = np.zeros((groups, 1 + self.sum_limbs + square_limbs), np.int64)
        self.unfolded = 0

    def add(self, group: np.ndarray, value: np.ndarray) -> None:
        """Add values (int64, or finite float64 within `exponents`) to their groups (int64); both of shape (n,)."""
        if self.floating:
            _add_floats(group, value, self.unit, self.sum_limbs, self.table, self.low, self.high)
        else:
            _add_integers(group, value, self.table, self.low, self.high)
        self.unfolded += value.size
        if self.unfolded >= FOLD_ROWS:
            self.fold()

    def fold(self) -> None:
        """Move carries up, so that every limb but the highest of each number is below 2^32 and tables of many ranks can be added."""
        limbs = self.table.shape[1]
        for column in range(1, limbs):
            if column in (self.sum_limbs, limbs - 1):
                continue
            self.table[:, column + 1] += self.table[:, column] >> LIMB_BITS
            self.table[:, column] &= LIMB_MASK
        self.unfolded = 0

    @property
    def count(self) -> np.ndarray:
        """Values per group; int64, shape (groups,)."""
        return self.table[:, 0]

    def sums(self) -> list[tuple[int, int, int]]:
        """Return (count, sum, sum of squares) per group as Python integers, the sums in units of 2^unit and 2^(2 unit)."""
        split = 1 + self.sum_limbs
        totals = [_joined(self.table[:, 1:split]), _joined(self.table[:, split:])]
        return list(zip(self.table[:, 0].tolist(), *totals, strict=True))

    def total(self) -> np.ndarray:
        """Sum per group, correctly rounded; float64, shape (groups,)."""
        return np.array([_scaled(total, 1, self.unit) for _, total, _ in self.sums()], float)

    def mean(self) -> np.ndarray:
        """Arithmetic mean per group, correctly rounded; float64, shape (groups,), NaN for an empty group."""
        return np.array([_scaled(total, n, self.unit) if n else np.nan for n, total, _ in self.sums()], float)

    def variance(self) -> np.ndarray:
        """Sample variance (ddof 1) per group, correctly rounded; float64, shape (groups,), NaN below two values.

        (n sum(x^2) - sum(x)^2) / (n (n - 1)): exact in integers, so it does not cancel.
        """
        exact = [_scaled(n * squares - total * total, n * (n - 1), 2 * self.unit) if n > 1 else np.nan for n, total, squares in self.sums()]
        return np.array(exact, float)


def _joined(limbs: np.ndarray) -> list[int]:
    total = limbs[:, -1].astype(object)
    for column in range(limbs.shape[1] - 2, -1, -1):
        total = total * (1 << LIMB_BITS) + limbs[:, column].astype(object)
    return total.tolist()


def _scaled(numerator: int, denominator: int, exponent: int) -> float:
    """Return numerator * 2^exponent / denominator: Python divides integers with one, correct rounding."""
    return numerator / (denominator << -exponent) if exponent < 0 else (numerator << exponent) / denominator


def exponent_range(value: np.ndarray) -> tuple[int, int] | None:
    """Return the smallest and largest binary exponent (that of `frexp`) of float64 values; None if all are zero."""
    exponent = np.frexp(value)[1][value != 0]
    return (int(exponent.min()), int(exponent.max())) if exponent.size else None


def require_finite(value: np.ndarray, first_row: int, what: str) -> None:
    """Refuse NaN and infinities: an average that holds one says nothing.

    Raises
    ------
    CausewayError
        Naming `what` and the row, counted from `first_row`.
    """
    bad = np.flatnonzero(~np.isfinite(value))
    if bad.size:
        raise CausewayError(
            f"{what}: row {first_row + bad[0]} holds {value[bad[0]]}, which is no number;"
            f" expected finite values, or none (null) where nothing was measured"
        )


@njit(cache=True)
def _add_integers(group, value, table, low, high):
    mask = np.uint64(LIMB_MASK)
    half = np.uint64(LIMB_BITS)
    for i in range(value.size):
        g, v = group[i], value[i]
        row = table[g]
        row[0] += 1
        row[1] += v & LIMB_MASK
        row[2] += v >> LIMB_BITS
        magnitude = np.uint64(abs(v))
        a, b = magnitude & mask, magnitude >> half
        square = a * a
        row[3] += np.int64(square & mask)
        row[4] += np.int64(square >> half)
        if b != 0:  # beyond 4.3 s in nanoseconds: rare
            product = a * b
            row[4] += 2 * np.int64(product & mask)
            row[5] += 2 * np.int64(product >> half)
            square = b * b
            row[5] += np.int64(square & mask)
            row[6] += np.int64(square >> half)
        low[g] = min(low[g], v)
        high[g] = max(high[g], v)


@njit(cache=True)
def _add_floats(group, value, unit, sum_limbs, table, low, high):
    for i in range(value.size):
        g, v = group[i], value[i]
        table[g, 0] += 1
        low[g] = min(low[g], v)
        high[g] = max(high[g], v)
        if v == 0.0:
            continue
        fraction, exponent = math.frexp(v)
        whole = np.int64(fraction * 9007199254740992.0)  # 2^53: the mantissa as an integer
        shift = exponent - 53 - unit
        sign = 1 if whole > 0 else -1
        whole = abs(whole)
        _put(table[g], 1, whole, shift, sign)
        upper, lower = whole >> 26, whole & 0x3FFFFFF
        first = 1 + sum_limbs
        _put(table[g], first, upper * upper, 2 * shift + 52, 1)
        _put(table[g], first, 2 * upper * lower, 2 * shift + 26, 1)
        _put(table[g], first, lower * lower, 2 * shift, 1)


@njit(cache=True, inline="always")
def _put(row, first, magnitude, shift, sign):
    """Add sign * magnitude * 2^shift to the limbs that begin at `first`; magnitude < 2^54, so it touches three limbs."""
    limb, offset = first + shift // 32, shift % 32
    row[limb] += sign * ((magnitude << offset) & LIMB_MASK)
    row[limb + 1] += sign * ((magnitude >> (32 - offset)) & LIMB_MASK)
    row[limb + 2] += sign * ((magnitude >> 32) >> (32 - offset))


def slice_statistics(value: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nine statistics of consecutive slices of a column.

    Two passes give mean and variance (the second corrected by the sum of deviations: Chan, Golub and LeVeque, "Algorithms for computing
    the sample variance", 1983, eq. 1.7); a histogram finds the buckets that hold the order statistics, and only these are sorted.
    Quantiles are linear between order statistics, definition 7 of Hyndman and Fan (1996), the default of numpy and pandas.

    Parameters
    ----------
    value : ndarray of float64, shape (n,)
        NaN stands for null and is left out; infinities must have been refused.
    offset : ndarray of int64, shape (slices + 1,)
        Slice k is `value[offset[k]:offset[k + 1]]`.

    Returns
    -------
    count : ndarray of int64, shape (slices,)
        Values that are not null.
    statistics : ndarray of float64, shape (slices, 8)
        min, max, mean, variance (ddof 1), std, q1, median, q3; NaN where undefined.
    """
    slices = offset.size - 1
    count, statistics = np.zeros(slices, np.int64), np.full((slices, 8), np.nan)
    longest = int(np.diff(offset).max()) if slices else 0
    _slice_statistics(value, offset, count, statistics, np.empty(longest), np.empty(longest), np.empty(longest, np.int32))
    return count, statistics


@njit(cache=True)
def _slice_statistics(value, offset, count, statistics, held, spare, bucket):
    histogram = np.zeros(BUCKETS, np.int32)
    for k in range(offset.size - 1):
        n = np.int64(0)  # a plain 0 would make numba compile every function below twice, for the constant too
        low, high = np.inf, -np.inf
        for i in range(offset[k], offset[k + 1]):
            v = value[i]
            if v == v:
                held[n] = v
                n += 1
                low, high = min(low, v), max(high, v)
        count[k] = n
        if n == 0:
            continue
        out = statistics[k]
        out[0], out[1] = low, high
        mean = _sum(held, n, 0.0) / n
        mean += _sum(held, n, mean) / n
        out[2] = min(max(mean, low), high)
        if n > 1:
            out[3] = max(_sum_of_squares(held, n, mean) - _sum(held, n, mean) ** 2 / n, 0.0) / (n - 1)
            out[4] = np.sqrt(out[3])
        _quartiles(held, n, low, high, histogram, spare, bucket, out)


@njit(cache=True)
def _sum(x, n, centre):
    """Sum of x - centre, in blocks whose sums are added with compensation (Neumaier 1974): the error does not grow with n."""
    total = rest = 0.0
    for begin in range(0, n, 512):
        a = b = c = d = 0.0
        stop = min(begin + 512, n)
        i = begin
        while i + 4 <= stop:
            a += x[i] - centre
            b += x[i + 1] - centre
            c += x[i + 2] - centre
            d += x[i + 3] - centre
            i += 4
        while i < stop:
            a += x[i] - centre
            i += 1
        block = (a + b) + (c + d)
        fresh = total + block
        rest += (total - fresh) + block if abs(total) >= abs(block) else (block - fresh) + total
        total = fresh
    return total + rest


@njit(cache=True)
def _sum_of_squares(x, n, centre):
    total = 0.0
    for begin in range(0, n, 512):
        a = b = 0.0
        stop = min(begin + 512, n)
        i = begin
        while i + 2 <= stop:
            a += (x[i] - centre) ** 2
            b += (x[i + 1] - centre) ** 2
            i += 2
        if i < stop:
            a += (x[i] - centre) ** 2
        total += a + b
    return total


@njit(cache=True)
def _quartiles(x, n, low, high, histogram, spare, bucket, out):
    """Write q1, median and q3 of x[:n] to out[5:8]; `spare` and `bucket` are scratch of at least n."""
    if low == high:
        out[5:8] = low
        return
    span = high - low
    if n <= SMALL or not np.isfinite(span):
        spare[:n] = x[:n]
        spare[:n].sort()
        for q in range(3):
            _interpolate(spare, n, q, out)
        return
    buckets = 64
    while buckets < n and buckets < BUCKETS:
        buckets *= 2
    histogram[:buckets] = 0
    if low >= 0.0:
        # the bits of non-negative floats order as they do, so buckets of equal width in bits are of equal ratio in value
        bits = x[:n].view(np.int64)
        ends = np.array((low, high)).view(np.int64)
        first = max(ends[0], ends[1] - (OCTAVES << 52))
        shift = 0
        while (ends[1] - first) >> shift >= buckets:
            shift += 1
        for i in range(n):
            b = max(bits[i] - first, 0) >> shift
            bucket[i] = b
            histogram[b] += 1
    else:
        scale = (buckets - 1) / span
        for i in range(n):
            b = np.int64((x[i] - low) * scale)
            bucket[i] = b
            histogram[b] += 1
    _collect(x, n, buckets, histogram, spare, bucket, out)


@njit(cache=True)
def _collect(x, n, buckets, histogram, spare, bucket, out):
    """Sort the buckets that hold order statistics of the quartiles, each in its own place of `spare`; the rest keeps its gaps."""
    wanted = np.empty(6, np.int64)
    for q in range(3):
        wanted[2 * q] = (n - 1) * (q + 1) // 4
        wanted[2 * q + 1] = min(wanted[2 * q] + 1, n - 1)
    fill = np.empty(6, np.int64)
    seen = k = used = 0
    for b in range(buckets):
        begin = seen
        seen += histogram[b]
        histogram[b] = -1
        if k < 6 and wanted[k] < seen:
            fill[used] = begin
            histogram[b] = used
            used += 1
            while k < 6 and wanted[k] < seen:
                k += 1
    begins = fill.copy()
    for i in range(n):
        slot = histogram[bucket[i]]
        if slot >= 0:
            spare[fill[slot]] = x[i]
            fill[slot] += 1
    for slot in range(used):
        spare[begins[slot] : fill[slot]].sort()
    for q in range(3):
        _interpolate(spare, n, q, out)


@njit(cache=True)
def _interpolate(ordered, n, q, out):
    quarters = (n - 1) * (q + 1)
    k, fraction = quarters // 4, (quarters % 4) / 4
    below = ordered[k]
    above = ordered[min(k + 1, n - 1)]
    out[5 + q] = below + (above - below) * fraction if fraction < 0.5 else above - (above - below) * (1.0 - fraction)
