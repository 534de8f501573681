import numpy as np
import pytest

from causeway.causal.effects.scope_times import WIDER, shrunk_mean


def test_the_mean_shrinks_by_its_error():
    # mean 2, variance 1: 2 * 4 / (4 + 1.25²)
    assert shrunk_mean(np.array([1.0, 2.0, 3.0])) == pytest.approx(2 * 4 / (4 + WIDER["mean"] ** 2))
    assert shrunk_mean(np.array([-1.0, -2.0, -3.0])) == pytest.approx(-2 * 4 / (4 + WIDER["mean"] ** 2))


def test_a_certain_change_stays_and_no_change_is_none():
    assert shrunk_mean(np.full(5, 7.5)) == 7.5
    assert shrunk_mean(np.zeros(5)) == 0.0


def test_of_many_small_changes_shrunk_ones_are_nearer_to_the_truth():
    rng = np.random.default_rng(5)
    truth = rng.normal(0.0, 1.0, 400)
    estimates = truth[:, None] + rng.normal(0.0, 1.0, (400, 1)) + rng.normal(0.0, 1.0, (400, 30))
    shrunk = np.array([shrunk_mean(row) for row in estimates])
    assert np.mean((shrunk - truth) ** 2) < 0.8 * np.mean((estimates[:, 0] - truth) ** 2)
