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

    As `numpy.unique` of the stacked columns along axis 1, some ten times as fast.
    """
    values, number = _encoded(columns[0])
    rows = values[np.newaxis]
    for column in columns[1:]:
        values, code = _encoded(column)
        pairs, number = _encoded(number * max(values.size, 1) + code)  # each factor is at most n: no overflow
        left, right = np.divmod(pairs, max(values.size, 1))
        rows = np.concatenate([rows[:, left], values[np.newaxis, right]])
    return rows, number


def _encoded(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, and the number of each value; int64."""
    encoded = pa.array(column, pa.int64()).dictionary_encode()
    values = encoded.dictionary.to_numpy()
    order = np.argsort(values)
    index = np.empty(order.size, np.int64)
    index[order] = np.arange(order.size)
    return values[order], index[encoded.indices.to_numpy()]
