"""Distinct values of columns that have few: by hashing, where `numpy.unique` would sort.

What is repeated in an export (names, processes, streams, launch configurations) has a handful of values in millions of rows. Answers are
those of `numpy.unique`, to the bit.
"""

import numpy as np

MOST = 1 << 12
"""Distinct values that are looked for by hashing."""
LEAST_ROWS, WORTH_ROWS = 1 << 12, 1 << 20
"""Rows of a call, and of all calls so far, from which on loading compiled code (half a second, 100 MB) is worth it."""
_rows = 0


def _worth(rows: int) -> bool:
    global _rows
    _rows += rows
    return rows >= LEAST_ROWS and _rows >= WORTH_ROWS


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, the place of each one's first occurrence, and for each value its place among them.

    Parameters
    ----------
    values : ndarray of integers, shape (n,)

    Returns
    -------
    known : ndarray of int64, shape (k,)
    first : ndarray of int64, shape (k,)
    inverse : ndarray of int64, shape (n,)
    """
    values = np.ascontiguousarray(values, np.int64)
    if _worth(values.size):
        from causeway.readers.hashed import number_values, renumber

        first, inverse = np.empty(MOST, np.int64), np.empty(values.size, np.int64)
        if (k := number_values(values, first, inverse)) >= 0:
            first = first[:k]
            order = np.argsort(values[first])
            place = np.empty(k, np.int64)
            place[order] = np.arange(k)
            renumber(place, inverse)
            return values[first[order]], first[order], inverse
    return np.unique(values, return_index=True, return_inverse=True)


def distinct_rows(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Tell apart rows of integer columns, each of shape (n,).

    Returns
    -------
    first : ndarray of int64, shape (k,)
        Place of each distinct row's first occurrence; in the order of these places.
    inverse : ndarray of int64, shape (n,)
        For each row, which of these it equals.
    """
    columns = [np.asarray(column, np.int64) for column in columns]
    varying = [column for column in columns if column.size and not (column == column[0]).all()]
    if not varying:
        rows = columns[0].size
        return np.arange(min(rows, 1)), np.zeros(rows, np.int64)
    table = np.stack(varying)
    if _worth(table.shape[1]):
        from causeway.readers.hashed import mix_rows, same_rows

        mix = np.empty(table.shape[1], np.int64)
        mix_rows(table, mix)
        _, first, inverse = distinct(mix)
        if same_rows(table, first, inverse):  # else two different rows have the same mix of 64 bits
            return _in_order(first, inverse)
    _, first, inverse = np.unique(table, axis=1, return_index=True, return_inverse=True)
    return _in_order(first, inverse.reshape(-1))


def _in_order(first: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(first)
    number = np.empty(first.size, np.int64)
    number[order] = np.arange(first.size)
    return first[order], number[inverse]
