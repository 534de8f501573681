import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.numeric.slice_statistics import BUCKETS, SMALL, slice_statistics


def by_numpy(values):
    spread = [values.var(ddof=1), values.std(ddof=1)] if values.size > 1 else [np.nan, np.nan]
    return [values.min(), values.max(), values.mean(), *spread, *np.quantile(values, [0.25, 0.5, 0.75])]


@pytest.mark.parametrize(
    "shape", ["deviations", "signed", "ties", "constant", "wide", "zeros", "tiny", "tiny signed", "far"]
)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, SMALL, SMALL + 1, 100, 1352, 3 * BUCKETS])
def test_nine_statistics_equal_numpy(shape, size):
    rng = np.random.default_rng(size)
    values = {
        "deviations": np.abs(rng.normal(0, 1000, size)),
        "signed": rng.normal(0, 1000, size),
        "ties": rng.integers(0, 4, size).astype(float),
        "constant": np.full(size, 7.25),
        "wide": 10.0 ** rng.uniform(-300, 150, size),
        "zeros": np.where(rng.random(size) < 0.9, 0.0, 1e9),
        "tiny": rng.random(size) * 5e-320,
        "tiny signed": (rng.random(size) - 0.5) * 5e-320,
        "far": rng.normal(1e9, 1, size),
    }[shape]
    expected = by_numpy(values)
    count, found = slice_statistics(values, np.array([0, size]))
    assert count.tolist() == [size]
    assert found[0, :2].tolist() == list(expected[:2])
    np.testing.assert_allclose(found[0, 2:], expected[2:], rtol=1e-12)


def test_slices_are_taken_apart_and_nulls_left_out():
    value = np.array([1.0, np.nan, 3.0, np.nan, 4.0, 8.0, np.nan])
    count, found = slice_statistics(value, np.array([0, 3, 4, 6, 6, 7]))
    assert count.tolist() == [2, 0, 2, 0, 0]
    np.testing.assert_array_equal(found[0], [1, 3, 2, 2, math.sqrt(2), 1.5, 2, 2.5])
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[2], [4, 8, 6, 8, math.sqrt(8), 5, 6, 7])
    assert np.isnan(found[3:]).all()


def test_no_slices():
    count, found = slice_statistics(np.empty(0), np.array([0]))
    assert count.size == 0
    assert found.shape == (0, 8)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_order_statistics_equal_a_sort(values):
    values = np.array(values)
    found = slice_statistics(values, np.array([0, values.size]))[1][0]
    np.testing.assert_allclose(
        found[[0, 1, 5, 6, 7]], np.quantile(values, [0, 1, 0.25, 0.5, 0.75]), rtol=1e-12, atol=1e-300
    )
