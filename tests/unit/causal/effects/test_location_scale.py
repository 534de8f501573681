"""Where boosted trees are added to the additive model of mu and sigma."""

import numpy as np
import pytest
from scipy.optimize import brentq

from causeway.causal.effects import location_scale
from causeway.causal.effects.location_scale import LEAST_GAIN, Causes, cross_fitted, useful_trees
from causeway.numeric.process import single_threaded

ROWS = 1500


def drawn(seed=1):
    """Return two causes and noise."""
    return np.random.default_rng(seed).standard_normal((3, ROWS))


def fitted(causes, deviation):
    folds = np.arange(ROWS) // 5 % 5
    with single_threaded():
        return cross_fitted(Causes(list(causes), ROWS), folds, deviation, np.ones(ROWS), 3)


def test_additive_causes_need_no_trees_and_two_folds_tell(monkeypatch):
    trained = []
    add_trees = location_scale.LocationScale.add_trees
    monkeypatch.setattr(
        location_scale.LocationScale, "add_trees", lambda self, *parts: trained.append(1) or add_trees(self, *parts)
    )
    a, b, noise = drawn()
    assert fitted([a, b], 2 * a - b + noise) == []
    assert len(trained) == 2


def test_causes_that_act_together_get_trees_of_mu():
    a, b, noise = drawn()
    parts = fitted([a, b], 2 * a * b + noise)
    assert np.array_equal(np.sort(np.concatenate([rows for rows, _ in parts])), np.arange(ROWS))
    assert len(parts) == 5
    assert all(model.mean_trees is not None for _, model in parts)
    for rows, model in parts:  # half of the variance of the product at least, on rows that the trees have not seen
        left = 2 * a[rows] * b[rows] + noise[rows] - model.predict(rows)[0]
        assert left.var() < 1 + 0.5 * 4


def test_noise_that_two_causes_raise_together_gets_trees_of_sigma_alone():
    a, b, noise = drawn()
    parts = fitted([a, b], np.where(a * b > 0, 3.0, 1.0) * noise)
    assert all(model.mean_trees is None and model.scale_trees is not None for _, model in parts)


@pytest.mark.parametrize("more", [0.9, 1.1])
def test_trees_stay_from_a_hundredth_of_the_error_on(more):
    deviation = np.array([1.0, -1.0, 2.0, -2.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    nothing = np.zeros(4)
    even = np.ones(4)
    shrunk = deviation * (1 - np.sqrt(1 - more * LEAST_GAIN))  # leaves 1 - more * LEAST_GAIN of the squared error
    assert useful_trees(deviation, weights, np.array([nothing, even, shrunk, even])) == (more > 1, False)

    size = np.abs(deviation)
    best = np.average(size, weights=weights)  # the constant sigma of the least deviance
    wanted = 1 + np.log(best) + more * LEAST_GAIN
    worse = brentq(lambda one: np.average(size / one + np.log(one), weights=weights) - wanted, best, 4 * best)
    sigma = np.full(4, worse)
    assert useful_trees(deviation, weights, np.array([nothing, sigma, nothing, best / sigma])) == (False, more > 1)


def test_trees_that_do_harm_go():
    a, _, noise = drawn()
    weights = np.ones(ROWS)
    said = np.array([a, np.ones(ROWS), -a, np.full(ROWS, 5.0)])
    assert useful_trees(a + noise, weights, said) == (False, False)
