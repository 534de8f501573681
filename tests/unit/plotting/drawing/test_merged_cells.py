"""Neighbours that are drawn as one show the largest value."""

import numpy as np
import pytest

from causeway.plotting.drawing.charts import cells_together, largest_by_cell, merged_rows, rank_labels


@pytest.mark.parametrize(("count", "most", "together"), [(1, 48, 1), (48, 48, 1), (49, 48, 2), (97, 48, 3), (0, 5, 1)])
def test_no_more_cells_are_drawn_than_there_is_room_for(count, most, together):
    assert cells_together(count, most) == together
    assert -(-count // together) <= most


def test_the_largest_value_of_a_cell_stands_for_it_and_nothing_stays_nothing():
    row = np.array([0, 0, 1, 1])
    column = np.array([0, 0, 0, 1])
    cells = largest_by_cell(row, column, np.array([1.0, 3.0, np.nan, -2.0]), (2, 2))
    assert np.array_equal(cells, [[3.0, np.nan], [np.nan, -2.0]], equal_nan=True)


def test_rows_are_merged_in_groups_of_neighbours():
    values = np.array([[1.0, np.nan], [5.0, np.nan], [2.0, 7.0]])
    cells, groups = merged_rows(values, 2)
    assert np.array_equal(cells, [[5.0, np.nan], [2.0, 7.0]], equal_nan=True)
    assert rank_labels([0, 3, 8], groups) == ["ranks 0–3", "rank 8"]
    same, groups = merged_rows(values, 3)
    assert np.array_equal(same, values, equal_nan=True)
    assert len(groups) == 3
