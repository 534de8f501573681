"""Distinct values by hashing, against numpy's sort."""

import numpy as np
import pytest

from causeway.events.few_values import MOST_DISTINCT, few_distinct, few_in_order, few_pairs


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


@pytest.mark.parametrize("ranks", [1, 3, 40])
def test_pairs(ranks):
    rng = np.random.default_rng(ranks)
    rank = rng.integers(5, 5 + ranks, 3000).astype(np.uint32)
    thread = rng.choice([0, -3, 2**62, 17], 3000)
    pairs, codes = few_pairs(rank, thread)
    assert pairs == sorted(set(zip(rank.tolist(), thread.tolist(), strict=True)))
    assert [pairs[code] for code in codes] == list(zip(rank.tolist(), thread.tolist(), strict=True))


@pytest.mark.parametrize("count", [1, 5, MOST_DISTINCT, MOST_DISTINCT + 1])
def test_values_in_the_order_in_which_they_are_met(count):
    values = np.random.default_rng(count).permutation(np.concatenate([np.arange(count), np.arange(count)]))
    distinct, codes = few_in_order(values)
    assert distinct.tolist() == list(dict.fromkeys(values.tolist()))
    assert distinct[codes].tolist() == values.tolist()
    same = np.broadcast_to(np.uint16(count), (7,))
    assert [one.tolist() for one in few_in_order(same)] == [[count], [0] * 7]
