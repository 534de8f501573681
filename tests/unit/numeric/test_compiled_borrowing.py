"""Compiled functions that do not count references to the arrays they are given."""

import sys

import numpy as np
import pytest
from numba.core.errors import TypingError

from causeway.numeric.compiled import I8, OF_CALL, compiled, compiled_borrowing, int64, void

WRITABLE = int64[::1]


@compiled_borrowing(void(I8, int64, WRITABLE), cache=False)
def _add(values, i, sums):
    sums[i % sums.size] += values[i]


@compiled_borrowing(int64(I8, int64[:, ::1]), cache=False)
def _add_to_row(values, table):
    row = table[1]
    for i in range(values.size):
        _add(values, i, row)
    return row.sum()


def test_arrays_that_are_handed_on_and_views_of_them_are_as_referenced_as_before():
    values = np.arange(10)
    values.flags.writeable = False
    table = np.zeros((2, 3), np.int64)
    counts = [sys.getrefcount(one) for one in (values, table)]
    add_to_row = _add_to_row.dispatcher()
    assert [add_to_row(values, table) for _ in range(100)] == [45 * (i + 1) for i in range(100)]
    assert table.tolist() == [[0, 0, 0], [1800, 1200, 1500]]
    assert [sys.getrefcount(one) for one in (values, table)] == counts


def test_a_function_that_makes_an_array_is_refused():
    @compiled_borrowing(int64(int64), cache=False)
    def _first(n):
        return np.empty(n, np.int64)[0]

    with pytest.raises(TypingError, match="empty"):
        _first.dispatcher()


@compiled(int64(int64[:, ::1]), cache=False)
def first_of(table):
    return table[0, 0]


@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3)])
def test_the_rows_of_a_table_are_its_longest_axis(shape):
    """Of (columns, rows) the first axis is short, however many rows there are: a large call would not be compiled."""
    assert first_of.plain_rows((np.zeros(shape, np.int64),)) == OF_CALL + 5000
