import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.core.errors import CausewayError
from causeway.numeric.moments import Moments, exponent_range, require_finite

INTEGERS = st.integers(-(2**62), 2**62)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)


def exact(values):
    """Return mean and variance with rational arithmetic, rounded once."""
    parts = [Fraction(value) for value in values]
    mean = sum(parts) / len(parts)
    return float(mean), (
        float(sum((part - mean) ** 2 for part in parts) / (len(parts) - 1)) if len(parts) > 1 else math.nan
    )


def of(values, group=None, groups=1):
    values = np.array(values)
    span = None
    if values.dtype.kind == "f":
        span = exponent_range(values) or (0, 0)
    moments = Moments(groups, span)
    moments.add(np.zeros(values.size, np.int64) if group is None else np.array(group), values)
    moments.fold()
    return moments


@settings(deadline=None)
@given(st.lists(INTEGERS, min_size=1, max_size=30))
def test_integer_moments_equal_fractions(values):
    moments = of(np.array(values, np.int64))
    assert moments.sums() == [(len(values), sum(values), sum(value * value for value in values))]
    np.testing.assert_array_equal([moments.mean()[0], moments.variance()[0]], exact(values))
    assert (moments.low[0], moments.high[0]) == (min(values), max(values))


@settings(deadline=None)
@given(st.lists(FLOATS.filter(lambda value: abs(value) < 1e150), min_size=1, max_size=20))
def test_float_moments_equal_fractions(values):
    moments = of(np.array(values, float))
    np.testing.assert_array_equal([moments.mean()[0], moments.variance()[0]], exact(values))
    assert moments.total()[0] == float(sum(map(Fraction, values)))


def test_a_sum_that_cancels_in_floating_point_does_not_here():
    assert of([1e16, 1.0, -1e16, 1.0]).mean()[0] == 0.5


def test_moments_are_the_same_in_any_order_and_split():
    rng = np.random.default_rng(1)
    values = rng.lognormal(10, 3, 5000).astype(np.int64)
    group = rng.integers(0, 7, 5000)
    whole = of(values, group, 7)
    order = rng.permutation(values.size)
    merged = np.zeros_like(whole.table)
    for part in np.array_split(order, 3):
        merged += of(values[part], group[part], 7).table
    again = Moments(7)
    again.table = merged
    again.fold()
    np.testing.assert_array_equal(again.table, whole.table)
    np.testing.assert_array_equal(again.mean(), whole.mean())


def test_two_parts_merge_to_the_whole_with_its_extremes():
    first = of(np.array([5, -3], np.int64), np.array([0, 1], np.int32), 2)
    second = of(np.array([-7, 9], np.int64), np.array([0, 1], np.int32), 2)
    first.merge(second)
    assert (first.low.tolist(), first.high.tolist()) == ([-7, -3], [5, 9])
    assert first.sums() == [(2, -2, 74), (2, 6, 90)]


def test_many_carries():
    """Limbs of the sum of squares carry: 2000 squares of 2^62 + 1 exceed 128 bits."""
    value = 2**62 + 1
    moments = of(np.full(2000, value, np.int64))
    assert moments.sums() == [(2000, 2000 * value, 2000 * value * value)]


def test_an_empty_group_has_no_mean_and_one_value_no_variance():
    moments = of(np.array([5, 6, 7]), [0, 2, 2], 3)
    assert moments.mean()[0] == 5
    assert np.isnan(moments.mean()[1])
    assert np.isnan(moments.variance()[:2]).all()
    assert moments.variance()[2] == 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_by_row(bad):
    with pytest.raises(CausewayError, match=f"counters: row 102 holds {bad}"):
        require_finite(np.array([1.0, 2.0, bad, bad]), 100, "counters")
