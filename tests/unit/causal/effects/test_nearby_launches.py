"""Where a cause makes a slow mode likelier, mean and scale do not describe the tail, and what is said holds the truth."""

import numpy as np
import pytest
from causal_tables import rows_of, series, time_effects

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.kernel_times import column_quantiles, near_level
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.numeric.process import single_threaded

N = 1500


def effects_of(x, y):
    """Return what a cause does, with its values at the 10th and the 90th percentile."""
    rng = np.random.default_rng(5)
    columns = [Feature("x", 1000 + 10 * x), *(Feature(f"c{k}", rng.standard_normal(N)) for k in range(5))]
    outcome, evidence = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
    with single_threaded():
        found = time_effects(ScopeTimes(evidence, outcome.arrows, "kernel_variability", None, 7), outcome.arrows)
    return found["x"], *(np.full(N, np.sort(x)[round(share * N) - 1]) for share in (0.1, 0.9))


def truths(low, high, y):
    return {
        "mean": 100 * (high.mean() - low.mean()) / y.mean(),
        "p99": 100 * (np.quantile(high, 0.99) - np.quantile(low, 0.99)) / np.quantile(y, 0.99),
        "spread": 100 * (high.std() - low.std()) / y.std(),
    }


@pytest.mark.parametrize(("slower", "steep", "rare", "seed"), [(0.6, 1.5, 2.0, 51), (0.15, 1.0, 0.0, 42)])
def test_a_cause_that_makes_a_slow_mode_likelier(slower, steep, rare, seed):
    """Slow launches are as slow at each level, only more of them: the 99th percentile hardly moves."""
    rng = np.random.default_rng(seed)
    x = series(rng, N, 1, 0.3)[:, 0]
    chance = rng.random(N)
    noise = np.exp(0.01 * rng.standard_normal(N))

    def play(x):
        return 1e5 * (1 + slower * (chance < 1 / (1 + np.exp(rare - steep * x)))) * noise

    y = play(x)
    found, *ends = effects_of(x, y)
    for name, truth in truths(*map(play, ends), y).items():
        estimate = getattr(found, name)
        assert estimate.low <= truth <= estimate.high, name
    assert found.mean.low > 0  # the mean is still said to rise


def test_a_cause_of_mean_and_scale_keeps_its_narrow_tail():
    rng = np.random.default_rng(43)
    x = series(rng, N, 1, 0.3)[:, 0]
    noise = rng.standard_normal(N)

    def play(x):
        return 1e5 * np.exp(0.04 * x + 0.03 * np.exp(0.5 * x) * noise)

    y = play(x)
    found, *ends = effects_of(x, y)
    truth = truths(*map(play, ends), y)["p99"]
    assert 0 < found.p99.low <= truth <= found.p99.high < 2 * truth


def test_launches_near_a_level():
    x = np.array([5.0, 1, 9, 3, 7, 2, 8, 4, 6])
    one = np.zeros(9, int)
    lowest = np.full(9, 1)
    assert sorted(x[near_level(x, one, lowest)]) == [1, 2, 3]
    assert sorted(x[near_level(x, one, np.zeros(9, int))]) == [4, 5, 6]
    two = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    donors = np.array([1, 1, 1, 1, 1, 1, 7, 7, 7])  # the lowest of each configuration
    assert sorted(x[near_level(x, two, donors)]) == [1, 2, 4]
    flags = np.array([0.0, 1, 0, 0, 1, 0])
    assert near_level(flags, np.zeros(6, int), np.full(6, 4)).tolist() == [False, True, False, False, True, False]
    levels = np.eye(3)[[0, 1, 2, 1]][:, 1:]
    assert near_level(levels, np.zeros(4, int), np.full(4, 3)).tolist() == [False, True, False, True]


def test_quantiles_of_columns_are_those_of_a_weighted_sample():
    """Against NumPy's inverse of the weighted distribution, with rows that do not count."""
    rng = np.random.default_rng(45)
    values = rng.standard_normal((50, 3))
    weights = rng.integers(0, 3, (50, 3)).astype(float)
    found = column_quantiles(values, weights, (0.25, 0.9))
    for share, row in zip((0.25, 0.9), found, strict=True):
        expected = [np.quantile(values[:, k], share, weights=weights[:, k], method="inverted_cdf") for k in range(3)]
        assert row.tolist() == expected
