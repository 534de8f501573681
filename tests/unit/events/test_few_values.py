"""Distinct values by hashing, against numpy's sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.events.few_values import MOST_DISTINCT, RowNumbers, by_value, few_distinct, few_rows


@pytest.mark.parametrize("values", [[], [7], [7, 7, 7], [0, -1, 0], [2**63 - 1, -(2**63), 0, 2**40, 2**40 + 1]])
def test_small_columns(values):
    values = np.array(values, np.int64)
    distinct, codes = few_distinct(values)
    assert distinct.tolist() == np.unique(values).tolist()
    assert distinct[codes].tolist() == values.tolist()


@pytest.mark.parametrize("count", [1, 2, 63, MOST_DISTINCT, MOST_DISTINCT + 1, 5000])
@pytest.mark.parametrize("step", [1, 1 << 32, -(1 << 40) + 1])
def test_equals_numpy(count, step):
    """Also at the count beyond which values are sorted, and for numbers that lie regularly."""
    values = step * np.random.default_rng(count).integers(0, count, 20_000)
    expected, inverse = np.unique(values, return_inverse=True)
    distinct, codes = few_distinct(values)
    assert distinct.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()


def test_a_column_of_one_value_takes_no_memory_for_each_row():
    assert [one.tolist() for one in few_distinct(np.broadcast_to(np.uint16(5), (7,)))] == [[5], [0] * 7]


@pytest.mark.parametrize("ranks", [1, 3, 40])
def test_pairs(ranks):
    rng = np.random.default_rng(ranks)
    rank = rng.integers(5, 5 + ranks, 3000).astype(np.uint32)
    thread = rng.choice([0, -3, 2**62, 17], 3000)
    pairs, codes = few_rows(rank, thread)
    assert pairs == sorted(set(zip(rank.tolist(), thread.tolist(), strict=True)))
    assert [pairs[code] for code in codes] == list(zip(rank.tolist(), thread.tolist(), strict=True))


def test_rows_of_three_columns_are_numbered_as_they_are_met():
    rng = np.random.default_rng(3)
    blocks = [[rng.integers(0, more, 50) for more in (3, 1 + at, 4)] for at in range(3)]
    numbers = RowNumbers()
    for columns in blocks:
        found = numbers.of(*columns)
        assert [numbers.rows[number] for number in found] == list(zip(*(one.tolist() for one in columns), strict=True))
    assert len(numbers) == len(set(numbers.rows))
    assert numbers.of(np.zeros(0, np.int64), np.zeros(0, np.int64)).size == 0


@settings(deadline=None)
@given(st.lists(st.integers(-3, 100), max_size=200))
def test_by_value_splits_like_numpy(values):
    values = np.array(values, np.int64)
    found = by_value(values)
    assert [value for value, _ in found] == np.unique(values).tolist()
    for value, rows in found:
        np.testing.assert_array_equal(np.arange(values.size) if rows is None else rows, np.flatnonzero(values == value))
