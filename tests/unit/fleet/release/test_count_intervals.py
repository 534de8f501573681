"""Intervals of means over bins and of medians: worked cases without noise, and coverage over repeated draws."""

import numpy as np
import pytest

from causeway.fleet.release.count_intervals import mean_interval, median_bins, share_intervals

CENTRES = np.array([0.125, 0.375, 0.625, 0.875])


def noisy_copies(counts, scale, n, seed):
    """Return n copies of counts with two servers' noise, and the variance in each cell."""
    rng = np.random.default_rng(seed)
    noise = rng.laplace(0, scale, (2, n, len(counts))).sum(0)
    return counts + noise, np.full((n, len(counts)), 2 * 2 * scale**2)


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
    low, high = share_intervals(noisy, variance)
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
    low, high = share_intervals(np.array([[600.0, 400.0]]), np.full((1, 2), 400.0))
    tried = np.arange(0.5, 0.7, 1e-5)
    allowed = tried[np.abs(600 - tried * 1000) <= 1.959964 * 20 * np.sqrt((1 - tried) ** 2 + tried**2)]
    assert (low[0, 0], high[0, 0]) == pytest.approx((allowed[0], allowed[-1]), abs=2e-5)
    assert (low[0, 1], high[0, 1]) == pytest.approx((1 - allowed[-1], 1 - allowed[0]), abs=2e-5)


def test_without_noise_the_interval_of_a_share_is_the_share():
    low, high = share_intervals(np.array([[3.0, 1, 0, 4]]), np.zeros((1, 4)))
    assert low[0].tolist() == high[0].tolist() == [0.375, 0.125, 0, 0.5]


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
