import numpy as np
import pytest
from causal_tables import series

from causeway.numeric.effective_size import (
    autocorrelations,
    bartlett_factor,
    blocked_correlation_time,
    correlation_time,
    kish_size,
    lag_count,
    shown_below,
)


def test_kish_by_hand():
    assert kish_size(np.array([1.0, 1.0, 1.0, 1.0])) == 4
    assert kish_size(np.array([1.0, 3.0])) == pytest.approx(16 / 10)
    assert kish_size(np.zeros(0)) == 0


def test_autocorrelations_equal_the_sums_they_stand_for():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((57, 3))
    x -= x.mean(axis=0)
    found = autocorrelations(x, 9)
    for column in range(3):
        for lag in range(1, 10):
            expected = (x[lag:, column] * x[:-lag, column]).sum() / (x[:, column] ** 2).sum()
            assert found[column, lag - 1] == pytest.approx(expected, abs=1e-6)


def test_a_constant_column_has_no_autocorrelation():
    assert not autocorrelations(np.zeros((40, 1)), 5).any()


def test_bartlett_factor_of_two_autoregressive_series():
    # for lag-1 coefficients a and b the sum is geometric: 1 + 2ab / (1 - ab) = (1 + ab) / (1 - ab)
    rng = np.random.default_rng(2)
    x = series(rng, 200_000, 1, 0.8)
    y = series(rng, 200_000, 1, 0.6)
    factor = bartlett_factor(autocorrelations(x - x.mean(), 200), autocorrelations(y - y.mean(), 200)[0])
    assert factor[0] == pytest.approx(1.48 / 0.52, rel=0.05)


def test_the_factor_predicts_the_variance_of_correlations_of_independent_slow_series():
    rng = np.random.default_rng(3)
    n = 600
    x = series(rng, n, 300, 0.9)
    y = series(rng, n, 300, 0.9)
    x, y = (part - part.mean(axis=0) for part in (x, y))
    r = (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    lags = lag_count(n)
    of_x = autocorrelations(x, lags)
    of_y = autocorrelations(y, lags)
    factors = [bartlett_factor(of_x[[j]], of_y[j])[0] for j in range(300)]
    assert np.median(factors) / n == pytest.approx(r.var(), rel=0.35)


def test_opposite_autocorrelation_gains_nothing():
    assert bartlett_factor(np.array([[0.5]]), np.array([-0.5]))[0] == 1


def test_correlation_time_of_an_autoregressive_series():
    x = series(np.random.default_rng(4), 100_000, 1, 0.9)
    assert correlation_time(autocorrelations(x - x.mean(), 1000)[0]) == pytest.approx(1.9 / 0.1, rel=0.15)


@pytest.mark.parametrize("size", [999, 1023, 4097])
def test_a_series_of_any_length_is_summed_in_blocks(size):
    noise = np.random.default_rng(5).standard_normal(size)
    assert 1 <= blocked_correlation_time(noise) < 3
    taken_twice = np.repeat(noise, 2)[:size]
    assert 1.5 < blocked_correlation_time(taken_twice) < 4


@pytest.mark.parametrize(
    ("size", "limit", "words"), [(99.6, 100.0, "99"), (23.6, 100.0, "24"), (1299.9, 1300, "1,299")]
)
def test_a_size_below_a_limit_reads_so(size, limit, words):
    assert shown_below(size, limit) == words
