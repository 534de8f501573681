"""Neighbouring cells of a map that are drawn as one, where there are more than a screen shows: the largest value stands
for all of them, in every map, so that no short or lonely loss disappears.
"""

from collections.abc import Sequence

import numpy as np


def cells_together(count: int, most: int) -> int:
    """Return how many neighbours of `count` share a cell, so that no more than `most` cells are drawn."""
    return max(1, -(-count // most))


def largest_by_cell(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the largest value of each cell.

    Parameters
    ----------
    rows, columns : ndarray of int, the same shape
        The cell of each value.
    values : ndarray of float or bool, the same shape
        NaN counts as nothing.
    shape : (int, int)
        Rows and columns of the map.

    Returns
    -------
    ndarray of float64, shape `shape`
        NaN in a cell without a value.
    """
    cells = np.full(shape, np.nan)
    np.fmax.at(cells, (rows, columns), values)
    return cells


def merged_rows(values: np.ndarray, most: int) -> tuple[np.ndarray, list[range]]:
    """Return a map with at most `most` rows, and the rows that each of them stands for; NaN where all are NaN.

    Parameters
    ----------
    values : ndarray of float or bool, shape (n_rows, n_columns)
    most : int

    Returns
    -------
    merged : ndarray of float64, shape (rows, n_columns)
    rows : list of range
    """
    together = cells_together(len(values), most)
    groups = [range(first, min(first + together, len(values))) for first in range(0, len(values), together)]
    row, column = np.indices(values.shape)
    return largest_by_cell(row // together, column, values, (len(groups), values.shape[1])), groups


def rank_labels(ranks: Sequence[int], groups: Sequence[range]) -> list[str]:
    """Return what the rows of a map of ranks are called: `rank 3`, or `ranks 0–2` where they share one."""
    ends = [(ranks[group[0]], ranks[group[-1]]) for group in groups]
    return [f"rank {first}" if first == last else f"ranks {first}–{last}" for first, last in ends]
