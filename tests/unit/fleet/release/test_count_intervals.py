"""Intervals of means over bins and of medians: worked cases without noise, and coverage over repeated draws."""

import numpy as np
import pytest

from causeway.fleet.release.count_intervals import (
    interval_of_given,
    mean_interval,
    mean_of_known_sum,
    median_bins,
    share_intervals,
)

CENTRES = np.array([0.125, 0.375, 0.625, 0.875])


def noisy_copies(counts, scale, n, seed):
    """Return n copies of counts with two servers' noise, and the variance in each cell."""
    rng = np.random.default_rng(seed)
    noise = rng.laplace(0, scale, (2, n, len(counts))).sum(0)
    return counts + noise, np.full((n, len(counts)), 2 * 2 * scale**2)


def unknown(rows):
    """Return sums of rows that are not known from elsewhere, and their variance."""
    return np.full(rows, np.nan), np.zeros(rows)


def test_without_noise_the_interval_is_the_mean():
    counts = np.array([[1.0, 0, 0, 1], [0, 0, 4, 0], [2, 1, 1, 0]])
    low, high = mean_interval(counts, np.zeros((3, 4)), CENTRES)
    assert low == pytest.approx([0.5, 0.625, (0.25 + 0.375 + 0.625) / 4])
    assert high == pytest.approx(low)


def test_the_interval_is_the_set_of_means_that_the_noise_allows():
    """By trying means one by one, in steps of 1e-4."""
    rng = np.random.default_rng(1)
    counts = rng.uniform(0, 300, (30, 4))
    variance = rng.uniform(100, 2000, (30, 4))
    low, high = mean_interval(counts, variance, CENTRES)
    tried = np.arange(0.125, 0.8751, 1e-4)
    for row in range(30):
        away = np.abs(counts[row] @ (CENTRES[:, None] - tried))
        allowed = tried[away <= 1.959964 * np.sqrt(variance[row] @ (CENTRES[:, None] - tried) ** 2)]
        assert low[row] == pytest.approx(allowed[0], abs=2e-4)
        assert high[row] == pytest.approx(allowed[-1], abs=2e-4)


@pytest.mark.parametrize("counts", [[0, 0, 30, 900], [300, 200, 250, 400], [0, 700, 0, 0]], ids=str)
def test_means_lie_in_their_intervals_as_often_as_they_say(counts):
    exact = np.array(counts, float)
    low, high = mean_interval(*noisy_copies(exact, 30.0, 20_000, 2), CENTRES)
    mean = exact @ CENTRES / exact.sum()
    assert ((low <= mean) & (mean <= high)).mean() == pytest.approx(0.95, abs=0.01)
    assert np.median(high - low) < 0.3


def test_a_row_that_is_noise_alone_may_have_any_mean():
    low, high = mean_interval(np.array([[3.0, -4, 2, 1], [-90, 0, -100, 5]]), np.full((2, 4), 100.0), CENTRES)
    assert low.tolist() == [0.125, 0.125]
    assert high.tolist() == [0.875, 0.875]


@pytest.mark.parametrize(
    ("counts", "scale"), [([2100, 600, 180, 0, 0, 0], 70), ([0, 0, 40, 900], 30), ([9000, 300, 100, 0], 400)], ids=str
)
def test_shares_lie_in_their_intervals_as_often_as_they_say(counts, scale):
    """The row's sum is noisy as well: beside a share of .7 it matters more than the count's own noise."""
    exact = np.array(counts, float)
    noisy, variance = noisy_copies(exact, scale, 20_000, 5)
    low, high = share_intervals(noisy, variance, *unknown(20_000))
    true = exact / exact.sum()
    inside = ((low <= true + 1e-12) & (true <= high + 1e-12)).mean(0)
    assert inside[true > 0] == pytest.approx(0.95, abs=0.015)
    assert (inside >= 0.935).all()
    of_count_alone = np.abs(noisy / noisy.sum(1, keepdims=True) - true) <= 1.96 * 2 * scale / noisy.sum(
        1, keepdims=True
    )
    assert of_count_alone[:, np.argmax(true)].mean() < 0.85


def test_the_interval_of_a_share_is_the_set_that_the_noise_allows():
    """By trying shares one by one: 600 of 1,000, each count with a noise of standard deviation 20."""
    low, high = share_intervals(np.array([[600.0, 400.0]]), np.full((1, 2), 400.0), *unknown(1))
    tried = np.arange(0.5, 0.7, 1e-5)
    allowed = tried[np.abs(600 - tried * 1000) <= 1.959964 * 20 * np.sqrt((1 - tried) ** 2 + tried**2)]
    assert (low[0, 0], high[0, 0]) == pytest.approx((allowed[0], allowed[-1]), abs=2e-5)
    assert (low[0, 1], high[0, 1]) == pytest.approx((1 - allowed[-1], 1 - allowed[0]), abs=2e-5)


def test_without_noise_the_interval_of_a_share_is_the_share():
    low, high = share_intervals(np.array([[3.0, 1, 0, 4]]), np.zeros((1, 4)), *unknown(1))
    assert low[0].tolist() == high[0].tolist() == [0.375, 0.125, 0, 0.5]


def test_what_a_noisy_sum_has_beyond_a_known_one_is_divided_among_the_counts():
    """Of a sum of 400 that is known, 480 were counted: 20 too much in each of four. So 260 is 240 of 400, a share of .6.
    Each count has a standard deviation of 20, and its own quarter of the sum's error is taken out: 20 sqrt(3/4) / 400.
    """
    counts = np.array([[260.0, 100, 60, 60]])
    variance = np.full((1, 4), 400.0)
    first = np.array([1.0, 0, 0, 0])
    low, high = mean_of_known_sum(counts, variance, first, np.array([400.0]), np.zeros(1))
    half = 1.959964 * 20 * np.sqrt(0.75) / 400
    assert (low[0], high[0]) == pytest.approx((0.6 - half, 0.6 + half))
    wider = mean_of_known_sum(counts, variance, first, np.array([400.0]), np.array([900.0]))
    half = 1.959964 * np.sqrt(400 * 0.75 + 0.35**2 * 900) / 400
    assert (wider[0][0], wider[1][0]) == pytest.approx((0.6 - half, 0.6 + half))
    for nothing in (np.nan, 0.0, -3.0):
        assert np.isnan(mean_of_known_sum(counts, variance, first, np.array([nothing]), np.zeros(1))).all()


@pytest.mark.parametrize("counts", [[100, 0, 0, 0], [0, 40, 60, 0], [10, 20, 300, 0], [3000, 1000, 0, 0]], ids=str)
def test_shares_and_means_of_rows_that_are_given_hold_among_the_draws_that_give_them(counts):
    """A row is given if its noisy sum is beyond 326; of 100 reports one draw in 25 is, and then three times too large."""
    exact = np.array(counts, float)
    rng = np.random.default_rng(6)
    noisy, variance = noisy_copies(exact, 100 / 3, 200_000, 7)
    given = noisy.sum(1) > 326
    assert given.mean() < 0.05 or exact.sum() > 300
    sums = exact.sum() + rng.normal(0, 15, 200_000)
    known = noisy[given], variance[given], sums[given], np.full(given.sum(), 225.0)
    low, high = share_intervals(*known)
    true = exact / exact.sum()
    inside = (low <= true + 1e-12) & (true <= high + 1e-12)
    assert (inside.mean(0) > 0.935).all()
    ends = interval_of_given(*known[:2], CENTRES, *known[2:])
    mean = true @ CENTRES
    assert ((ends[0] <= mean + 1e-12) & (mean <= ends[1] + 1e-12)).mean() > 0.935
    if exact.sum() == 100:
        plain = share_intervals(*known[:2], *unknown(given.sum()))
        assert ((plain[0] <= true) & (true <= plain[1])).mean(0)[np.argmax(true)] < 0.8


def test_without_noise_the_median_has_one_bin():
    counts = np.array([[5.0, 0, 0, 0], [0, 0, 0, 5], [2, 3, 4, 2], [0, 1, 0, 0]])
    first, last = median_bins(counts, np.zeros((4, 4)))
    assert first.tolist() == last.tolist() == [0, 3, 2, 1]  # of 11 the sixth: 2 + 3 before the third bin


@pytest.mark.parametrize("counts", [[0, 40, 450, 520, 0, 0], [900, 20, 0, 0, 0, 80], [160] * 6], ids=str)
def test_medians_lie_in_their_bins_at_least_as_often_as_they_say(counts):
    exact = np.array(counts, float)
    first, last = median_bins(*noisy_copies(exact, 20.0, 20_000, 3))
    steps = np.cumsum(exact)
    true = int((steps < exact.sum() / 2).sum())
    assert ((first <= true) & (true <= last)).mean() >= 0.945
    assert np.median(last - first) <= 2


def test_the_median_of_noise_alone_may_lie_in_any_bin():
    first, last = median_bins(*noisy_copies(np.zeros(6), 20.0, 5000, 4))
    assert ((first == 0) & (last == 5)).mean() > 0.9
