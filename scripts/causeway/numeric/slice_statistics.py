"""The nine statistics of slices of a column: count, minimum, maximum, mean, variance, standard deviation and quartiles.

A slice, the rows of one bin, stays in the first-level cache while it is worked on.
"""

import math

import numpy as np

from causeway.numeric.compiled import F8, I8, UniTuple, bits_of, compiled, float64, int32, int64, uint16, void

BUCKETS = 4096
"""Most buckets of the histogram in which order statistics are found: it stays in the first-level cache."""
FEWEST_BUCKETS = 64
SMALL = 48
"""Slices up to this size are sorted whole: measured as the break-even with the histogram."""
OCTAVES = 24
"""Powers of two below the maximum that the histogram of non-negative values resolves; smaller values share its first
bucket.
"""
LARGEST_FLOAT = float(np.finfo(np.float64).max)


def slice_statistics(value: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nine statistics of consecutive slices of a column.

    Two passes give mean and variance (the second corrected by the sum of deviations: Chan, Golub and LeVeque,
    "Algorithms for computing the sample variance", 1983, eq. 1.7); a histogram finds the buckets that hold the order
    statistics, and only these are sorted. Quantiles are linear between order statistics, definition 7 of Hyndman and
    Fan (1996), the default of numpy and pandas.

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
    count = np.zeros(slices, np.int64)
    statistics = np.full((slices, 8), np.nan)
    longest = int(np.diff(offset).max()) if slices else 0
    _slice_statistics(
        value, offset, count, statistics, np.empty(longest), np.empty(longest), np.empty(longest, np.uint16)
    )
    return count, statistics


def first_fall(values: np.ndarray, before: int) -> int:
    """Return the first position whose value is less than the one before it; -1 if all ascend from `before` on.

    Parameters
    ----------
    values : ndarray of int, shape (n,)
    before : int
    """
    if values.size and values[0] < before:
        return 0
    falls = values[1:] < values[:-1]
    return int(falls.argmax()) + 1 if falls.any() else -1


@compiled(UniTuple(float64, 2)(F8))
def _extremes(x):
    """Return the least and the largest of x; four of each at a time, as the next comparison need not wait for the
    last.
    """
    a = b = c = d = e = f = g = h = x[0]
    i = 0
    while i + 4 <= x.size:
        a = min(a, x[i])
        b = min(b, x[i + 1])
        c = min(c, x[i + 2])
        d = min(d, x[i + 3])
        e = max(e, x[i])
        f = max(f, x[i + 1])
        g = max(g, x[i + 2])
        h = max(h, x[i + 3])
        i += 4
    while i < x.size:
        a = min(a, x[i])
        e = max(e, x[i])
        i += 1
    return min(min(a, b), min(c, d)), max(max(e, f), max(g, h))


@compiled(float64(F8))
def _sum(x):
    """Sum x in blocks whose sums are added with compensation (Neumaier 1974): the error does not grow with the size."""
    total = rest = 0.0
    for begin in range(0, x.size, 512):
        a = b = c = d = e = f = g = h = 0.0
        stop = min(begin + 512, x.size)
        i = begin
        while i + 8 <= stop:
            a = a + x[i]
            b = b + x[i + 1]
            c = c + x[i + 2]
            d = d + x[i + 3]
            e = e + x[i + 4]
            f = f + x[i + 5]
            g = g + x[i + 6]
            h = h + x[i + 7]
            i += 8
        while i < stop:
            a += x[i]
            i += 1
        block = ((a + e) + (c + g)) + ((b + f) + (d + h))
        fresh = total + block
        rest += (total - fresh) + block if abs(total) >= abs(block) else (block - fresh) + total
        total = fresh
    return total + rest


@compiled(UniTuple(float64, 2)(F8, float64))
def _deviations(x, centre):
    """Return the sums of x - centre and of its square."""
    total = squares = 0.0
    for begin in range(0, x.size, 512):
        a = b = c = d = e = f = g = h = 0.0
        stop = min(begin + 512, x.size)
        i = begin
        while i + 4 <= stop:
            p = x[i] - centre
            q = x[i + 1] - centre
            r = x[i + 2] - centre
            s = x[i + 3] - centre
            a = a + p
            b = b + q
            c = c + r
            d = d + s
            e = e + p * p
            f = f + q * q
            g = g + r * r
            h = h + s * s
            i += 4
        while i < stop:
            p = x[i] - centre
            a = a + p
            e = e + p * p
            i += 1
        total += (a + b) + (c + d)
        squares += (e + f) + (g + h)
    return total, squares


@compiled(void(float64[::1]))
def _sort(x):
    i = 1
    while i < x.size and x[i - 1] <= x[i]:  # equal values, of which some columns have few, take the sort longest
        i += 1
    if i < x.size:
        x.sort()  # compiled once: it is the largest function here


@compiled(void(F8, int64, int64, float64[::1]))
def _interpolate(ordered, n, q, out):
    quarters = (n - 1) * (q + 1)
    k = quarters // 4
    fraction = (quarters % 4) / 4
    below = ordered[k]
    above = ordered[min(k + 1, n - 1)]
    out[5 + q] = below + (above - below) * fraction if fraction < 0.5 else above - (above - below) * (1.0 - fraction)


@compiled(void(F8, int64, int32[::1], int64[::1], float64[::1], uint16[::1], float64[::1]))
def _collect(x, buckets, histogram, slots, spare, bucket, out):
    """Sort the buckets that hold order statistics of the quartiles, each in its own part of `spare`; the rest keeps
    its gaps.
    """
    n = x.size
    fill = slots[:6]
    begins = slots[6:12]
    number = slots[12:18]
    seen = used = np.int64(0)
    k = np.int64(0)  # of the six order statistics: the lower and the upper neighbour of each quartile
    wanted = (n - 1) // 4
    for b in range(buckets):
        begin = seen
        seen += histogram[b]
        if k < 6 and wanted < seen:
            fill[used] = begins[used] = begin
            number[used] = b
            used += 1
            while k < 6 and wanted < seen:
                k += 1
                wanted = min((n - 1) * (k // 2 + 1) // 4 + k % 2, n - 1)
    histogram[:buckets] = -1
    for slot in range(used):
        histogram[number[slot]] = slot
    for i in range(n):
        slot = histogram[bucket[i]]
        if slot >= 0:
            spare[fill[slot]] = x[i]
            fill[slot] += 1
    for slot in range(used):
        _sort(spare[begins[slot] : fill[slot]])
    for q in range(3):
        _interpolate(spare, n, q, out)


@compiled(void(F8, float64, float64, int32[::1], int64[::1], float64[::1], uint16[::1], float64[::1]))
def _quartiles(x, low, high, histogram, slots, spare, bucket, out):
    """Write q1, median and q3 of x to out[5:8]; `spare` and `bucket` are scratch of at least its size."""
    if low == high:
        out[5:8] = low
        return
    n = x.size
    span = high - low
    if n <= SMALL or not np.isfinite(span):
        for i in range(n):
            spare[i] = x[i]
        _sort(spare[:n])
        for q in range(3):
            _interpolate(spare, n, q, out)
        return
    buckets = FEWEST_BUCKETS
    while 2 * buckets < n and buckets < BUCKETS:
        buckets *= 2
    histogram[:buckets] = 0
    if low >= 0.0:
        # the bits of non-negative floats order as they do, so buckets of equal width in bits are of equal ratio in
        # value
        last = bits_of(high)
        first = max(bits_of(low + 0.0), last - (OCTAVES << 52))
        shift = 0
        while (last - first) >> shift >= buckets:
            shift += 1
        for i in range(n):
            bucket[i] = (
                max(bits_of(x[i] + 0.0) - first, 0) >> shift
            )  # + 0.0: the bits of -0.0 are those of the least number
    else:
        scale = min((buckets - 1) / span, LARGEST_FLOAT)  # infinite times a distance would be no bucket
        for i in range(n):
            bucket[i] = np.int64((x[i] - low) * scale)
    for i in range(n):
        histogram[bucket[i]] += 1
    _collect(x, buckets, histogram, slots, spare, bucket, out)


@compiled(int64(F8, float64[::1]))
def _present(x, held):
    """Return how many of x are not null; if not all, put those into `held`."""
    n = np.int64(0)
    for i in range(x.size):
        n += x[i] == x[i]
    if n < x.size:
        k = 0
        for i in range(x.size):
            if x[i] == x[i]:
                held[k] = x[i]
                k += 1
    return n


@compiled(void(F8, I8, int64[::1], float64[:, ::1], float64[::1], float64[::1], uint16[::1]))
def _slice_statistics(value, offset, count, statistics, held, spare, bucket):
    histogram = np.zeros(BUCKETS, np.int32)
    slots = np.empty(18, np.int64)
    for k in range(offset.size - 1):
        x = value[offset[k] : offset[k + 1]]
        n = count[k] = _present(x, held)
        if n == 0:
            continue
        if n < x.size:
            x = held[:n]
        out = statistics[k]
        out[0], out[1] = low, high = _extremes(x)
        mean = _sum(x) / n
        rest, squares = _deviations(x, mean)
        out[2] = min(max(mean + rest / n, low), high)
        if n > 1:
            out[3] = max(squares - rest * rest / n, 0.0) / (n - 1)
            out[4] = math.sqrt(out[3])
        _quartiles(x, low, high, histogram, slots, spare, bucket, out)
