"""Numbers of which few differ (ranks, devices, streams, threads): their distinct values, found by hashing in one pass
rather than by sorting.
"""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from causeway.numeric.compiled import I8, compiled, int32, int64

Key = TypeVar("Key", bound=Hashable)
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
    if values.size and (values.strides == (0,) or (values == values[0]).all()):  # one rank, one device
        return np.array(values[:1], np.int64), np.zeros(values.size, np.int32)
    values = np.ascontiguousarray(values, np.int64)
    codes = np.empty(values.size, np.int32)
    met = np.empty(MOST_DISTINCT, np.int64)
    n = _code(values, met, codes, np.zeros(SLOTS, np.int32))
    if n < 0:
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct, inverse.astype(np.int32)
    order = np.argsort(met[:n])
    index = np.empty(n, np.int32)
    index[order] = np.arange(n, dtype=np.int32)
    return met[order], index[codes]


def few_rows(*columns: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the distinct rows of some columns, and where each row stands among them.

    Parameters
    ----------
    *columns : ndarray of integers, shape (n,)

    Returns
    -------
    rows : list of tuple of int, ascending
    codes : ndarray of int32, shape (n,)
    """
    rows: list[Any] = [()]
    codes = np.zeros(columns[0].size, np.int32)
    for column in columns:
        values, own = few_distinct(column)
        if len(rows) == 1:  # a trace of one rank
            rows = [(*rows[0], value) for value in values.tolist()]
            codes = own
        elif values.size == 1:
            rows = [(*row, int(values[0])) for row in rows]
        else:
            both, codes = few_distinct(codes.astype(np.int64) * max(values.size, 1) + own)
            rows = [(*rows[code // values.size], int(values[code % values.size])) for code in both.tolist()]
    return rows, codes


def by_value(values: np.ndarray) -> list[tuple[int, np.ndarray | None]]:
    """Return each distinct value, ascending, with the ascending indices that have it; None for the indices if there is
    just one.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)

    Returns
    -------
    list of (int, ndarray of int64, shape (k,), or None)
    """
    distinct, codes = few_distinct(values)
    if distinct.size == 1:
        return [(int(distinct[0]), None)]
    # numbers of 16 bits are sorted by their digits
    order = np.argsort(codes.astype(np.uint16) if distinct.size < 1 << 16 else codes, kind="stable")
    return list(zip(distinct.tolist(), np.split(order, np.cumsum(np.bincount(codes))[:-1]), strict=False))


class Numbers(Generic[Key]):
    """Numbers of distinct keys, such as names, in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def rows(self) -> list[Any]:
        """The keys, by number."""
        return list(self._numbers)

    def number(self, key: Key) -> int:
        """Return the number of a key."""
        return self._numbers.setdefault(key, len(self._numbers))


class RowNumbers(Numbers[tuple[int, ...]]):
    """Numbers of distinct rows, such as rank and device, in the order in which they are met."""

    def of(self, *columns: np.ndarray) -> np.ndarray:
        """Return the number of each row, int32 of shape (n,); `columns` as those of `few_rows`."""
        rows, codes = few_rows(*columns)
        numbers = [self.number(row) for row in rows]
        return codes if numbers == list(range(len(numbers))) else np.array(numbers, np.int32)[codes]


@compiled(int64(I8, int64[::1], int32[::1], int32[::1]))
def _code(values, met, codes, slots):
    """Number the distinct values in the order in which they are met; return how many there are, or -1 for too many."""
    n = np.int64(0)
    mask = slots.size - 1
    last = np.int64(0)
    code = np.int32(-1)
    for i in range(values.size):
        value = values[i]
        if code < 0 or value != last:
            slot = ((value * MULTIPLIER) >> 40) & mask
            while slots[slot] > 0 and met[slots[slot] - 1] != value:
                slot = (slot + 1) & mask
            if slots[slot] == 0:
                if n == met.size:
                    return np.int64(-1)
                met[n] = value
                n += 1
                slots[slot] = n
            code = slots[slot] - np.int32(1)
            last = value
        codes[i] = code
    return n
