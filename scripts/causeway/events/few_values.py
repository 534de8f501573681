"""Numbers of which few differ (ranks, devices, streams, threads): their distinct values, found by hashing in one pass
rather than by sorting.
"""

import numpy as np

from causeway.numeric.compiled import I8, compiled, int32, int64

SLOTS = 1 << 12
MOST_DISTINCT = SLOTS // 4
"""Beyond so many distinct values a table of hashes that stays in the first-level cache fills up: they are sorted."""
MULTIPLIER = np.int64(-7046029254386353131)
"""The golden ratio's 64-bit fraction, odd: multiplied by it, close numbers spread over the table (Knuth, volume 3,
section 6.4).
"""


def few_distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values and where each value stands among them, as `numpy.unique` with `return_inverse` does.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)
        Of any size that int64 holds.

    Returns
    -------
    distinct : ndarray of int64, shape (m,), ascending
    codes : ndarray of int32, shape (n,)
    """
    known, codes = few_in_order(values)
    order = np.argsort(known)
    if known.size > 1:
        index = np.empty(known.size, np.int32)
        index[order] = np.arange(known.size, dtype=np.int32)
        codes = index[codes]
    return known[order], codes


def few_in_order(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values in the order in which they are met, and where each value stands among them.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)
        Of any size that int64 holds.

    Returns
    -------
    distinct : ndarray of int64, shape (m,)
    codes : ndarray of int32, shape (n,)
    """
    if values.size and (values.strides == (0,) or (values == values[0]).all()):  # one rank, one device
        return np.array(values[:1], np.int64), np.zeros(values.size, np.int32)
    values = np.ascontiguousarray(values, np.int64)
    codes = np.empty(values.size, np.int32)
    known = np.empty(MOST_DISTINCT, np.int64)
    n = _code(values, known, codes, np.zeros(SLOTS, np.int32))
    if n >= 0:
        return known[:n].copy(), codes
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    index = np.empty(order.size, np.int32)
    index[order] = np.arange(order.size, dtype=np.int32)
    return distinct[order], index[inverse]


def few_pairs(first: np.ndarray, second: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Return the distinct pairs of two columns, and where each row's pair stands among them.

    Parameters
    ----------
    first, second : ndarray of integers, shape (n,)

    Returns
    -------
    pairs : list of (int, int), ascending
    codes : ndarray of int32, shape (n,)
    """
    one, code_of_one = few_distinct(first)
    other, code_of_other = few_distinct(second)
    if one.size == 1:  # a trace of one rank
        return [(int(one[0]), value) for value in other.tolist()], code_of_other
    both, codes = few_distinct(code_of_one.astype(np.int64) * max(other.size, 1) + code_of_other)
    return [(int(one[code // other.size]), int(other[code % other.size])) for code in both.tolist()], codes


@compiled(int64(I8, int64[::1], int32[::1], int32[::1]))
def _code(values, known, codes, slots):
    """Number the distinct values in the order in which they are met; return how many there are, or -1 for too many."""
    n = np.int64(0)
    mask = slots.size - 1
    last = np.int64(0)
    code = np.int32(-1)
    for i in range(values.size):
        value = values[i]
        if code < 0 or value != last:
            at = ((value * MULTIPLIER) >> 40) & mask
            while slots[at] > 0 and known[slots[at] - 1] != value:
                at = (at + 1) & mask
            if slots[at] == 0:
                if n == known.size:
                    return np.int64(-1)
                known[n] = value
                n += 1
                slots[at] = n
            code = slots[at] - np.int32(1)
            last = value
        codes[i] = code
    return n
