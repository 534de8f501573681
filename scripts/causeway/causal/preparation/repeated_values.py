"""Which values launches have again and again: what a single launch has, or about one of each rank, is nothing to
compare the others with.

The first launch of a process follows another kernel, has another input, waits for what is set up once. That it takes
another time says nothing of the launches behind it: none of them can be a first one.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.data.observations import Feature, Observations
from causeway.events.distinct_texts import distinct_texts

MIN_LEVEL_ROWS = 4
"""Rows of a level of its own: of three rows two may have been slow by chance, and the level would stand for the whole
category.
"""
MIN_PER_RANK = 2
"""The same on average of the ranks that have it: of one row a rank nothing is repeated there."""


def ranks_of(columns: Sequence[Feature], n_rows: int) -> np.ndarray:
    """Return the number of each row's rank, 0, 1, ...; int, shape (n_rows,). Without several ranks all are 0."""
    rank = next((one for one in columns if one.name == "rank" and one.values.dtype == object), None)
    return np.zeros(n_rows, np.int64) if rank is None else distinct_texts(rank.values.tolist(), "")[1]


def is_repeated(rows: np.ndarray, ranks: np.ndarray) -> bool:
    """Tell whether rows are enough to be compared with others: at least `MIN_LEVEL_ROWS` in all, and `MIN_PER_RANK` on
    the ranks that have any.

    Parameters
    ----------
    rows : ndarray of bool, shape (n_rows,)
    ranks : ndarray of int, shape (n_rows,)
        As of `ranks_of`.

    >>> ranks = np.repeat([0, 1, 2, 3], 5)
    >>> is_repeated(np.arange(20) % 5 == 0, ranks), is_repeated(np.arange(20) % 5 < 2, ranks)
    (False, True)
    """
    count = np.count_nonzero(rows)
    return bool(count >= MIN_LEVEL_ROWS and count >= MIN_PER_RANK * np.unique(ranks[rows]).size)


def differing_rows(values: np.ndarray, known: np.ndarray, rows: Observations) -> np.ndarray:
    """Return which known values differ from the median of their configuration, which is the commonest value where
    nearly all are one.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        Without NaN.
    known : ndarray of bool, shape (n_rows,)
    rows : Observations

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    order = np.lexsort((values, rows.configuration))
    counts = np.bincount(rows.configuration)
    firsts = np.cumsum(counts) - counts
    middle = values[order][np.minimum(firsts + counts // 2, values.size - 1)]
    return known & (values != middle[rows.configuration])
