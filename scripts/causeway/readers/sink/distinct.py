"""Distinct values of columns that have few: by hashing, where `numpy.unique` would sort.

What is repeated in an export (names, processes, streams, launch configurations) has a handful of values in millions of
rows. Answers are those of `numpy.unique`, to the bit.
"""

from collections.abc import Callable

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.sink.batches import EventBatch, is_constant, is_repeated, looked_up, repeated

MOST = 1 << 12
"""Distinct values for which there is room at first: what is looked up stays in the cache."""
LEAST_ROWS = 1 << 12
WORTH_ROWS = 1 << 20
"""Rows of a call, and of all calls so far, from which on loading compiled code (half a second, 100 MB) is worth it."""
_rows = 0


def worth_compiling(rows: int) -> bool:
    """Count rows that compiled code would serve; return whether it pays to load it for them."""
    global _rows
    _rows += rows
    return rows >= LEAST_ROWS and _rows >= WORTH_ROWS


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, the index of each one's first occurrence, and for each value its index
    among them.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)

    Returns
    -------
    known : ndarray of int64, shape (k,)
    first : ndarray of int64, shape (k,)
    inverse : ndarray of int64, shape (n,)
    """
    if is_repeated(values):
        return values[:1].astype(np.int64), np.zeros(1, np.int64), repeated(0, values.size)
    values = np.ascontiguousarray(values, np.int64)
    if worth_compiling(values.size):
        first, inverse = _hashed(values[None])
        order = np.argsort(values[first])
        return values[first[order]], first[order], _inverted(order)[inverse]
    return np.unique(values, return_index=True, return_inverse=True)


def mapped(values: np.ndarray, number_of: Callable[[int], int]) -> np.ndarray:
    """Return what a function gives for each value; it is called once for each distinct one, in ascending order.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
    number_of : callable

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    known, _, inverse = distinct(values)
    return looked_up(np.array([number_of(value) for value in known.tolist()], np.int64), inverse)


def distinct_rows(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a table of integers.

    Parameters
    ----------
    columns : list of ndarray of integers, shape (n,)

    Returns
    -------
    first : ndarray of int64, shape (k,)
        Index of each distinct row's first occurrence, ascending.
    inverse : ndarray of int64, shape (n,)
        For each row, which of these it equals.
    """
    varying = [column for column in columns if column.size and not is_constant(column)]
    if not varying:
        rows = columns[0].size
        return np.arange(min(rows, 1)), repeated(0, rows)
    table = np.stack(varying, dtype=np.int64, casting="unsafe")
    if worth_compiling(table.shape[1]):
        return _hashed(table)
    _, first, inverse = np.unique(table, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], _inverted(order)[inverse.reshape(-1)]


def _hashed(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do what `distinct_rows` does, for a table of shape (columns, n)."""
    from causeway.readers.sink.compiled_loops import number_rows

    inverse = np.empty(table.shape[1], np.int64)
    for most in (MOST, table.shape[1]):
        first = np.empty(most, np.int64)
        if (k := number_rows(table, first, inverse)) >= 0:
            break
    return first[:k], inverse


def _inverted(order: np.ndarray) -> np.ndarray:
    """Return the inverse of a permutation."""
    inverse = np.empty(order.size, np.int64)
    inverse[order] = np.arange(order.size)
    return inverse


LEAST_REPEATED = 0.25
"""Share of repeated events without an id from which on they are repeats: half of an export that was written twice is,
while an operator may call itself within one tick (6 of 200,000 in a trace of PyTorch).
"""


class RepeatedRows:
    """Find events of one kind that equal an earlier one in all columns: an export that was written twice over, or whose
    rows were inserted twice, has each of its events again, which happened once.

    Parameters
    ----------
    tick_ns : int or None
        Of the clock: several events of a stream that are no longer than it may begin in one tick, and look the same
        unless they have a correlation. None if no length tells, since the export names no streams.

    Attributes
    ----------
    count : int
        Such events so far.
    """

    def __init__(self, tick_ns: int | None) -> None:
        self.count = 0
        self._tick_ns = tick_ns
        self._open: EventBatch | None = None

    def find(self, rows: EventBatch) -> np.ndarray:
        """Return which rows, ordered by start over all calls, were there before; bool, shape (n,)."""
        again = np.zeros(len(rows), bool)
        start = rows["start_ns"]
        before = 0
        if self._open is not None and self._open["start_ns"][-1] == start[0]:
            before = len(self._open)
            rows = EventBatch.concatenated([self._open, rows])
            start = rows["start_ns"]
        equal = start[1:] == start[:-1]
        together = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        if together.size:
            columns = [column[together] for column in rows.columns.values()]
            first, _ = distinct_rows(columns)
            found = np.ones(together.size, bool)
            found[first] = False
            found &= self._is_known(rows)[together]
            indices = together[found] - before
            again[indices[indices >= 0]] = True
            if "correlation" not in rows.columns and again.mean() < LEAST_REPEATED:
                again[:] = False
            self.count += int(again.sum())
        last = max(int(np.searchsorted(start, start[-1])), len(rows) - MOST)
        self._open = rows[last:].copy()
        return again

    def _is_known(self, rows: EventBatch) -> np.ndarray:
        """Return which rows cannot be another event that looks the same."""
        named = rows["correlation"] != NULL if "correlation" in rows.columns else np.zeros(len(rows), bool)
        return named if self._tick_ns is None else named | (rows["duration_ns"] > self._tick_ns)
