"""Shares of the variance of the measured value, against answers by hand: the variance between levels over all of it."""

import numpy as np
import pytest

from causeway.causal.effects.contributions import estimate_contributions


def shares_of(within, value, gains=(), positions=(), absolute=True):
    """Return the contributions of causes of a value in its standard deviations, and the shares of its variance."""
    deviation = (value - value.mean()) / value.std()
    blocks = np.arange(value.size) // 5
    found = estimate_contributions(
        list(within),
        list(gains),
        list(positions),
        deviation,
        np.ones(value.size),
        blocks,
        np.random.default_rng(1),
        absolute,
    )
    assert found.of_value.percent.sum() + found.of_value.unexplained == pytest.approx(100, abs=1e-9)
    return found, found.of_value


def standardised(values):
    return (values - values.mean()) / values.std()


def between(value, level):
    """Return the percent of the variance of a value that lies between the levels of a cause."""
    means = np.bincount(level, value) / np.bincount(level)
    return 100 * means[level].var() / value.var()


@pytest.mark.parametrize(("taken", "shift"), [(750, 200.0), (150, 200.0), (750, 6.0)])
def test_two_levels_share_what_lies_between_their_means(taken, shift):
    """As a kernel beside another that is slower by 200 us, half of the launches or a tenth."""
    rng = np.random.default_rng(1)
    level = rng.permutation((np.arange(1500) < taken).astype(int))
    value = 63.0 + shift * level + 3.0 * rng.standard_normal(1500)
    _, shares = shares_of([standardised(level)], value)
    assert shares.percent[0] == pytest.approx(between(value, level), abs=0.5)
    assert shares.low[0] < between(value, level) < shares.high[0]
    assert shares.unexplained == pytest.approx(100 - between(value, level), abs=0.5)


def test_of_how_far_launches_are_from_the_mean_two_equal_halves_tell_little():
    """|d| is 1 + s N at one level and 1 - s N at the other: a swap of levels changes it by 2 s N in half of the pairs,
    half of whose mean square is s^2, as is the variance of the noise. So the contribution is 50 % where the share is 99.
    """
    rng = np.random.default_rng(2)
    level = rng.permutation(np.arange(3000) % 2)
    noise = rng.standard_normal(3000)
    noise -= np.array([noise[level == one].mean() for one in (0, 1)])[level]
    value = np.array([-1.0, 1.0])[level] + 0.1 * noise
    found, shares = shares_of([standardised(level)], value)
    assert found.percent[0] == pytest.approx(50, abs=3)
    assert shares.percent[0] == pytest.approx(100 / 1.01, abs=0.3)


def test_levels_of_a_category_share_what_lies_between_their_means():
    rng = np.random.default_rng(2)
    level = rng.choice(3, 1500, p=[0.6, 0.3, 0.1])
    value = np.array([10.0, 11.0, 14.0])[level] + rng.standard_normal(1500)
    _, shares = shares_of([np.column_stack([level == 1, level == 2]).astype(float)], value)
    assert shares.percent[0] == pytest.approx(between(value, level), abs=1.5)


def test_a_cause_of_the_spread_alone_shares_what_sigma_varies_by():
    """y = sigma N with sigma of .5 and 1.5: E[N^2] Var(sigma) = .25 over that and E[sigma^2] Var(N) = 1.25."""
    rng = np.random.default_rng(3)
    level = np.arange(4000) % 2
    found, shares = shares_of([standardised(level)], np.array([0.5, 1.5])[level] * rng.standard_normal(4000))
    assert shares.percent[0] == pytest.approx(100 * 0.25 / 1.5, abs=2)
    # of |y| the noise has E[sigma^2] Var(|N|)
    assert found.percent[0] == pytest.approx(100 * 0.25 / (0.25 + 1.25 * (1 - 2 / np.pi)), abs=4)


def test_independent_causes_that_add_up_share_their_variances():
    rng = np.random.default_rng(4)
    level = rng.integers(0, 2, 3000)
    slow, noise = rng.standard_normal((2, 3000))
    value = 4.0 * level + 1.0 * slow + 0.5 * noise
    _, shares = shares_of([standardised(level), slow], value)
    parts = np.array([16 * level.var(), slow.var(), 0.25 * noise.var()])
    assert [*shares.percent, shares.unexplained] == pytest.approx(100 * parts / parts.sum(), abs=1.5)


def test_what_does_nothing_shares_nothing():
    rng = np.random.default_rng(5)
    idle, noise = rng.standard_normal((2, 3000))
    _, shares = shares_of([idle], noise)
    assert shares.percent[0] == pytest.approx(0, abs=0.5)
    assert shares.unexplained == pytest.approx(100, abs=0.5)
    assert shares.low[0] == 0


def test_a_cause_between_configurations_shares_what_its_factor_varies_by():
    rng = np.random.default_rng(6)
    position = rng.choice([-1.0, 1.0], 4000)
    value = rng.standard_normal(4000)
    found, shares = shares_of([], value, gains=[0.7 * position], positions=[position])
    factor = np.exp([0.7, -0.7])
    assert shares.percent[0] == pytest.approx(100 * factor.var() / (factor.var() + (factor**2).mean()), abs=3)
    assert found.percent[0] > shares.percent[0] + 10


def test_where_the_target_is_the_value_both_are_one():
    rng = np.random.default_rng(7)
    a, b, noise = rng.standard_normal((3, 500))
    found, shares = shares_of([a, b], 2 * a - b * noise, absolute=False)
    for name, of_value in vars(shares).items():
        assert np.array_equal(getattr(found, name), of_value)
