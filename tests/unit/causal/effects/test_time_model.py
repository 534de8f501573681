"""The model of the time: what it says of causes that coincide, and of one slow run among several."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

from causeway.causal.effects.time_model import DRAWS, TimeModel
from causeway.numeric.block_resampling import block_numbers
from causeway.numeric.process import single_threaded


def slow_run(seed=1):
    """Return the run of each of 800 launches, its indicators, how late the launch was in its run, and the response:
    launches of the slow run are all later than any other.
    """
    rng = np.random.default_rng(seed)
    run = np.repeat(np.arange(8), 100)
    late = np.where(run == 0, 2.0, 1.0) + 0.5 * rng.random(800)
    response = np.where(run == 0, 0.3, 0.0) + 0.004 * rng.standard_normal(800)
    return run, (run[:, None] == np.arange(1, 8)).astype(float), late, response - response.mean()


def changes(causes, response, set_to):
    """Return the mean change of the slow run's response if the first cause is set, by the model and by each draw."""
    blocks = np.random.default_rng(2).permutation(np.arange(800) // 20)
    with single_threaded():
        model = TimeModel(causes, response, np.ones(800), blocks, np.zeros(800, int), np.random.default_rng(3))
    moved = model.response_with({0: np.full(800, set_to)}) - response[:, None]
    return moved[:100].mean(axis=0)


def test_of_the_slow_run_alone_everything_is_said_to_within_its_noise():
    run, indicators, _, response = slow_run()
    found = changes([indicators], response, 100)
    by_hand = response[run == 1].mean() - response[run == 0].mean()
    assert found[0] == pytest.approx(by_hand, abs=0.001)
    assert found[1:].std() < 0.002


def test_of_two_causes_that_coincide_neither_takes_all_without_an_error():
    run, indicators, late, response = slow_run()
    gap = response[run == 1].mean() - response[run == 0].mean()
    of_run = changes([indicators, late], response, 100)
    of_time = changes([late, indicators], response, 100)
    for found in (of_run, of_time):
        assert 1.5 * gap < found[0] < 0.3 * gap
        assert found[1:].std() > 0.01


@pytest.mark.parametrize("rows", [60, pytest.param(120, marks=pytest.mark.slow)])
def test_the_effect_of_an_episode_of_few_blocks_is_within_its_interval(rows):
    """A cause that is on in one stretch of two or three of ten blocks, beside slow noise: 90 % intervals hold the truth
    in at least 85 % of 60 tables; without their widening 57 and 70 %.
    """
    held = []
    with single_threaded():
        for seed in range(60):
            rng = np.random.default_rng(10_000 + seed)
            noise = lfilter([np.sqrt(1 - 0.88**2)], [1.0, -0.88], rng.standard_normal(1000))[200:]
            first = int(rng.integers(0, 800 - rows))
            on = ((np.arange(800) >= first) & (np.arange(800) < first + rows)).astype(float)
            response = 0.02 * noise + 0.03 * on
            blocks = block_numbers(noise, 800)
            model = TimeModel([on], response - response.mean(), np.ones(800), blocks, np.zeros(800, int), rng)
            off = np.full(800, np.flatnonzero(on == 0)[0])
            moved = model.response_with({0: off}) - model.response[:, None]
            change = model.widened(np.average(moved, axis=0, weights=model.weights)[None, :], [0])[0]
            freedom = int(blocks.max())
            half = student.ppf(0.95, freedom) * np.sqrt((freedom + 1) / freedom) * change[1:].std(ddof=1)
            held.append(abs(change[0] + 0.03 * rows / 800) <= half)
    assert np.mean(held) >= 0.85


def test_a_model_that_is_kept_holds_no_number_for_each_row_and_draw():
    """One is kept for each kernel and choice of causes; what it holds by row and draw weighs more than all else. What is
    made when asked for is the response less mu, and the logarithm of sigma, by their definition.
    """
    _, indicators, late, response = slow_run()
    blocks = np.arange(800) // 20
    with single_threaded():
        model = TimeModel(
            [indicators, late], response, np.ones(800), blocks, np.zeros(800, int), np.random.default_rng(3)
        )
        columns = model.design.columns
        draw = 7
        by_hand = [response[row] - float(columns[row] @ model.mean[:, draw]) for row in range(800)]
        np.testing.assert_allclose(model.residual[:, draw], by_hand, rtol=0, atol=1e-12)
        n_scale = model.scale.shape[0]
        by_hand = [float(columns[row, :n_scale] @ model.scale[:, draw]) for row in range(800)]
        np.testing.assert_allclose(model.linear[:, draw], by_hand, rtol=0, atol=1e-12)
    model.release()
    held = {name: value.shape for name, value in vars(model).items() if np.size(value) >= 800 * DRAWS}
    assert held == {}
