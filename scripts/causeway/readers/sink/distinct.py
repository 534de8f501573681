"""Distinct values of columns that have few: by hashing, where `numpy.unique` would sort.

What is repeated in an export (names, processes, streams, launch configurations) has a handful of values in millions of
rows. Answers are those of `numpy.unique`, to the bit.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.readers.common.constants import NULL
from causeway.readers.sink.batches import EventBatch, is_constant, is_repeated, looked_up, repeated


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, the index of each one's first occurrence, and for each value its index
    among them.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)

    Returns
    -------
    uniques : ndarray of int64, shape (k,)
    first : ndarray of int64, shape (k,)
    inverse : ndarray of int64, shape (n,)
    """
    if is_repeated(values):
        return values[:1].astype(np.int64), np.zeros(1, np.int64), repeated(0, values.size)
    uniques, codes = _coded(values)
    order = np.argsort(uniques)
    inverted = np.empty(order.size, np.int64)
    inverted[order] = np.arange(order.size)
    return uniques[order], _firsts(codes)[order], inverted[codes]


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
    uniques, _, inverse = distinct(values)
    return looked_up(np.array([number_of(value) for value in uniques.tolist()], np.int64), inverse)


def mapped_texts(column: pa.Array, number_of: Callable[[str | bytes | None], int]) -> np.ndarray:
    """Return what a function gives for each text; it is called once for each distinct one, None where there is none.

    Parameters
    ----------
    column : Array, shape (n,)
        Of strings or bytes.
    number_of : callable

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_pylist() + [None] * (coded.null_count > 0)
    numbers = np.array([number_of(text) for text in texts], np.int64)
    return numbers[pc.fill_null(coded.indices.cast(pa.int64()), len(coded.dictionary)).to_numpy(zero_copy_only=False)]


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
    _, codes = _coded(varying[0])
    for column in varying[1:]:
        uniques, own = _coded(column)
        _, codes = _coded(codes * uniques.size + own)  # below n squared
    return _firsts(codes), codes


def distinct_keys(columns: list[np.ndarray]) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the distinct rows of a table of integers in the order in which they are met, and which of them each row
    equals; parameters and the latter as of `distinct_rows`.
    """
    first, inverse = distinct_rows(columns)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), inverse


def _coded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values in the order in which they are met, and the number of each among these; int64."""
    coded = pa.array(values.astype(np.int64, copy=False)).dictionary_encode()
    return coded.dictionary.to_numpy(), coded.indices.to_numpy().astype(np.int64)


def _firsts(codes: np.ndarray) -> np.ndarray:
    """Return where each number first stands, of numbers that are 0, 1, ... in the order in which they are met."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


MOST_OPEN = 1 << 12
"""Events of one start that are held to be compared with those of the next batch."""
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
            repeats = np.ones(together.size, bool)
            repeats[first] = False
            repeats &= self._is_known(rows)[together]
            indices = together[repeats] - before
            again[indices[indices >= 0]] = True
            if "correlation" not in rows.columns and again.mean() < LEAST_REPEATED:
                again[:] = False
            self.count += int(again.sum())
        last = max(int(np.searchsorted(start, start[-1])), len(rows) - MOST_OPEN)
        self._open = rows[last:].copy()
        return again

    def _is_known(self, rows: EventBatch) -> np.ndarray:
        """Return which rows cannot be another event that looks the same."""
        named = rows["correlation"] != NULL if "correlation" in rows.columns else np.zeros(len(rows), bool)
        return named if self._tick_ns is None else named | (rows["duration_ns"] > self._tick_ns)
