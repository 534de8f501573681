"""The ridge regression: estimated penalties shrink what is noise and leave alone what is not."""

import numpy as np
import pytest

from causeway.causal.statistics.ridge import evidence_ridge


def slow_level(noise, seed=1):
    """Return a design of eight levels, indicators of seven in standard deviations, and the response: 3 in the level
    without an indicator, 0 in the others.
    """
    level = np.repeat(np.arange(8), 100)
    columns = (level[:, None] == np.arange(1, 8)).astype(float)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    response = np.where(level == 0, 3.0, 0.0) + noise * np.random.default_rng(seed).standard_normal(800)
    return np.hstack([np.ones((800, 1)), columns]), response, level


@pytest.mark.parametrize("weight", [1.0, 0.01])
def test_a_level_that_stands_out_clearly_is_not_shrunk(weight):
    """Also where its rows weigh a hundredth, as rows with ten times the noise do."""
    design, response, level = slow_level(0.02)
    weights = np.where(level == 0, weight, 1.0)
    fitted = design @ evidence_ridge(design, response, weights, [slice(1, 8)], 1e-6)[0]
    means = np.bincount(level, response) / 100
    assert np.bincount(level, fitted) / 100 == pytest.approx(means, abs=0.002)


def test_noise_is_shrunk_away():
    rng = np.random.default_rng(2)
    columns = rng.standard_normal((500, 20))
    design = np.hstack([np.ones((500, 1)), columns])
    coefficients, penalties = evidence_ridge(design, rng.standard_normal(500), np.ones(500), [slice(1, 21)], 1e-5)
    assert np.abs(coefficients[1:]).max() < 0.03  # 1 / sqrt(500) = 0.045 is the standard error of a single one
    assert penalties[0] == 0
