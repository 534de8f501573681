"""The truth in time is that of a table whose times are written by hand."""

import numpy as np
import pytest

from lab.validation.further_generators.additive import AdditiveSettings, draw_additive
from lab.validation.generator import GeneratorSettings, KnownTable, draw
from lab.validation.time_truth import percentiles, time_truth, what_if_truth


def by_hand(kernel, x, per_unit, base=1000.0):
    """Return a table of y = base + per_unit x + noise, and its noise."""
    noise = np.random.default_rng(1).exponential(20.0, x.size)
    known = {"x": x}

    def play(changed):
        return base + per_unit * (known | changed)["x"] + noise

    return KnownTable(y=play({}), kernel=kernel, columns=known, causes=["x"], drivers=known, play=play), noise


def test_a_straight_cause_changes_the_mean_by_its_slope_times_the_step():
    x = np.random.default_rng(2).permutation(np.arange(1000.0))
    table, _ = by_hand(np.zeros(1000, int), x, 2.0)
    truth = time_truth(table, "x")
    step = np.sort(x)[899] - np.sort(x)[99]
    assert truth.mean == pytest.approx(100 * 2.0 * step / table.y.mean(), rel=1e-12)
    assert truth.p50 == pytest.approx(100 * 2.0 * step / np.median(table.y), rel=1e-9)
    assert truth.p99 == pytest.approx(100 * 2.0 * step / np.quantile(table.y, 0.99), rel=1e-9)
    assert truth.spread == pytest.approx(0.0, abs=1e-9)
    assert truth.cost_ns == pytest.approx(np.sum(2.0 * (x - np.sort(x)[99])), rel=1e-9)


def test_a_rare_binary_cause_is_compared_at_zero_and_one():
    x = (np.arange(1000) % 20 == 0).astype(float)
    table, noise = by_hand(np.zeros(1000, int), x, 50.0)
    truth = time_truth(table, "x")
    assert truth.mean == pytest.approx(100 * 50.0 / table.y.mean())
    assert truth.cost_ns == pytest.approx(50.0 * x.sum())
    assert what_if_truth(table, "x", np.zeros(1000))[0] == pytest.approx(-100 * 50.0 * 0.05 / table.y.mean())
    tail = np.quantile(1000.0 + noise, 0.99) / np.quantile(table.y, 0.99) - 1
    assert what_if_truth(table, "x", np.zeros(1000))[1] == pytest.approx(100 * tail)


def test_percentiles_are_those_of_the_configuration_and_observed():
    kernel = np.repeat([0, 1, 2], 100)
    values = np.concatenate([np.arange(100.0), 1000 + np.arange(100.0), np.full(100, 7.0)])
    low, high = percentiles(values, kernel)
    assert (low[0], high[0], low[100], high[100], low[200], high[200]) == (9, 89, 1009, 1089, 7, 7)
    assert percentiles(np.full(300, 7.0), kernel) is None


@pytest.mark.parametrize(
    "table", [draw(GeneratorSettings(columns=40, kernels=3), 4), draw_additive(AdditiveSettings(), 5)]
)
def test_generators_play_again_what_they_drew(table):
    np.testing.assert_allclose(table.play({}), table.y)
    for name in table.causes:
        np.testing.assert_allclose(table.play({name: table.drivers[name]}), table.y)
    truths = [time_truth(table, name, next(iter(sorted(set(map(str, table.drivers[name])))))) for name in table.causes]
    assert max(abs(truth.mean) for truth in truths if truth) > 0.5
    order = np.arange(table.y.size)[::-1]
    shuffled = table.play({name: table.drivers[name][order] for name in table.causes})
    assert np.abs(shuffled / table.y - 1).mean() > 0.01


def test_slopes_of_a_generator_agree_with_the_change_of_its_mean():
    table = draw_additive(AdditiveSettings(kernels=1), 8)
    for name in table.causes:
        assert np.sign(time_truth(table, name).mean) == np.sign(table.moves[name])
