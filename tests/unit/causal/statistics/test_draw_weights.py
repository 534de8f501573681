"""Weights of draws: what they keep, and that a mean varies under them as its variance says."""

import numpy as np
import pytest

from causeway.causal.effects.time_model import DrawWeights


def indicators(codes):
    return (codes[:, None] == np.arange(1, codes.max() + 1)).astype(float)


def test_a_mean_varies_as_the_means_of_blocks_say():
    """Rubin: the variance of the mean is that of the block means over one more than their number."""
    rng = np.random.default_rng(1)
    blocks = np.arange(600) // 15
    values = np.repeat(rng.standard_normal(40), 15) + 0.1 * rng.standard_normal(600)
    drawn = DrawWeights(np.ones(600), blocks, [], 20_000, rng).of_rows()
    assert drawn.shape == (600, 20_000)
    means = values @ drawn / drawn.sum(axis=0)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.var() == pytest.approx(values.reshape(40, 15).mean(axis=1).var() / 41, rel=0.05)


def test_no_block_is_left_out_and_rows_of_a_block_keep_their_proportions():
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 100)
    blocks = np.arange(100) // 10
    drawn = DrawWeights(weights, blocks, [np.linspace(0, 1, 100)], 30, np.random.default_rng(3)).of_rows()
    assert (drawn > 0).all()
    assert drawn.sum(axis=0) == pytest.approx(np.full(30, weights.sum()))
    of_block = (drawn / weights[:, None]).reshape(10, 10, 30)
    assert np.ptp(of_block, axis=1) == pytest.approx(np.zeros((10, 30)), abs=1e-9)
    assert np.ptp(of_block, axis=2).min() > 0.1


def test_levels_keep_their_weight_in_each_draw():
    rng = np.random.default_rng(4)
    weights = rng.uniform(0.5, 2.0, 400)
    blocks = np.arange(400) // 20
    rank = np.arange(400) // 50  # a level of two and a half blocks
    busy = (rng.random(400) < 0.3).astype(float) * 7.0
    alone = DrawWeights(weights, blocks, [indicators(rank)], 20, np.random.default_rng(5)).of_rows()
    for draw in alone.T:
        assert np.bincount(rank, draw) == pytest.approx(np.bincount(rank, weights), rel=1e-12)
    together = DrawWeights(weights, blocks, [indicators(rank), busy], 20, np.random.default_rng(5)).of_rows()
    for draw in together.T:
        assert np.bincount(rank, draw) == pytest.approx(np.bincount(rank, weights), rel=0.02)
        assert draw[busy > 0].sum() == pytest.approx(weights[busy > 0].sum(), rel=1e-12)


def test_levels_in_few_blocks_widen_and_one_in_a_single_block_lets_its_category_vary():
    """By hand, with t of one and nine degrees of freedom at .95: 6.314 and 1.833."""
    blocks = np.arange(200) // 20
    two = (np.arange(200) < 30).astype(float)
    one = (np.arange(200) < 20).astype(float)
    drawn = DrawWeights(np.ones(200), blocks, [two, one, np.arange(200.0)], 20, np.random.default_rng(7))
    assert drawn.widening == pytest.approx([6.314 * np.sqrt(3 / 1) / (1.833 * np.sqrt(11 / 9)), 1, 1], rel=1e-3)
    weights = drawn.of_rows()
    assert weights[two > 0].sum(axis=0) == pytest.approx(np.full(20, 30.0))
    assert np.std(weights[one > 0].sum(axis=0)) > 1


def test_the_same_generator_gives_the_same_draws_as_often_as_they_are_asked_for():
    blocks = np.arange(60) // 6
    one, other = (DrawWeights(np.ones(60), blocks, [], 5, np.random.default_rng(6)) for _ in range(2))
    np.testing.assert_array_equal(one.of_rows(), other.of_rows())
    np.testing.assert_array_equal(one.of_rows(), one.of_rows())
