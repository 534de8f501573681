import numpy as np
import pytest
from causal_tables import make_table, rows_of

from causeway.causal.data.deviation import configuration_spread, standardised_deviation
from causeway.causal.effects.contributions import Slope, estimate_contributions
from causeway.causal.effects.signs import Sign, direction_of, level_of, sign_of
from causeway.numeric.process import single_threaded


def contributions_of(within, y, gains=(), positions=(), absolute=False, weights=None, seed=1):
    n = y.size
    weights = np.ones(n) if weights is None else weights
    return estimate_contributions(
        list(within), list(gains), list(positions), y, weights, np.arange(n) // 5, np.random.default_rng(seed), absolute
    )


def test_a_linear_model_has_the_textbook_contributions_and_slopes():
    rng = np.random.default_rng(1)
    a, b, noise = rng.standard_normal((3, 3000))
    found = contributions_of([a, b], 2 * a - b + noise)
    assert found.percent == pytest.approx([400 / 6, 100 / 6], abs=3)
    assert found.unexplained == pytest.approx(100 / 6, abs=3)
    assert found.percent.sum() + found.unexplained == pytest.approx(100, abs=1e-9)
    assert [slope.value for slope in found.slopes] == pytest.approx([2 / np.sqrt(6), -1 / np.sqrt(6)], abs=0.04)
    assert [sign_of(slope) for slope in found.slopes] == ["+", "-"]
    for percent, low, high in zip(found.percent, found.low, found.high, strict=True):
        assert 0 < low < percent < high < 100


def test_the_absolute_value_hides_the_sign_of_a_symmetric_cause_but_not_its_contribution():
    rng = np.random.default_rng(2)
    a, noise = rng.standard_normal((2, 3000))
    found = contributions_of([a], a + 0.5 * noise, absolute=True)
    assert sign_of(found.slopes[0]) == "?"
    assert found.percent[0] > 60


def directions(found, target="y", absolute=True):
    return [direction_of(slope, move, target, absolute) for slope, move in zip(found.slopes, found.moves, strict=True)]


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_a_table_of_absolute_deviations_has_the_signs_of_its_value(seed):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.standard_normal((3, 300))
    found = contributions_of([a, b], 2 * a - b + noise, absolute=True)
    assert directions(found) == [Sign("+", "value"), Sign("-", "value")]
    assert [move.value for move in found.moves] == pytest.approx([2 / np.sqrt(6), -1 / np.sqrt(6)], abs=0.12)


@pytest.mark.parametrize("target", ["y", "kernel_variability"])
def test_what_scales_the_noise_and_what_moves_the_mean_have_signs_about_different_things(target):
    rng = np.random.default_rng(11)
    a, c, noise = rng.standard_normal((3, 1500))
    found = contributions_of([a, c], -1.2 * a + np.exp(0.6 * c) * noise, absolute=True)
    assert directions(found, target) == [Sign("-", "value"), Sign("+", "target")]
    alone = contributions_of([c], np.exp(0.6 * c) * noise, absolute=True)
    assert directions(alone, target) == [Sign("+", "target")]


def test_for_a_trace_the_size_of_the_deviation_decides_and_for_a_table_what_is_clearer():
    size = Slope(0.2, 0.05, 0.35, 0.99)
    value = Slope(-0.8, -0.9, -0.7, 1.0)
    assert direction_of(size, value, "kernel_variability", True) == Sign("+", "target")
    assert direction_of(size, value, "y", True) == Sign("-", "value")
    assert direction_of(size, value, "y", False) == Sign("+", "target")  # the target is the value
    unknown = Slope(0.01, -0.1, 0.1, 0.55)
    assert direction_of(unknown, value, "kernel_variability", True) == Sign("-", "value")
    assert direction_of(unknown, unknown, "y", True) == Sign("?", "target")


def test_a_cause_of_the_scale_raises_the_absolute_deviation():
    rng = np.random.default_rng(3)
    a, noise = rng.standard_normal((2, 3000))
    found = contributions_of([a], np.exp(0.5 * a) * noise, absolute=True)
    # y = exp(a / 2) |N|: E[Var over a] = E[N^2] Var(exp(a / 2)), E[Var over N] = E[exp(a)] Var(|N|)
    over_a = np.exp(0.25) * (np.exp(0.25) - 1)
    over_noise = np.exp(0.5) * (1 - 2 / np.pi)
    assert sign_of(found.slopes[0]) == "+"
    assert found.percent[0] == pytest.approx(100 * over_a / (over_a + over_noise), abs=8)


def test_weights_undo_selection():
    rng = np.random.default_rng(4)
    a, b, noise = rng.standard_normal((3, 20000))
    y = a + b + noise
    chance = np.where(a > 0.5, 1.0, 0.15)
    taken = rng.random(20000) < chance
    found = contributions_of([a[taken], b[taken]], y[taken], weights=1 / chance[taken])
    assert found.percent == pytest.approx([100 / 3, 100 / 3], abs=4)


def test_a_category_reports_the_level_that_stands_out():
    rng = np.random.default_rng(5)
    level = rng.integers(0, 3, 2000)
    indicators = np.column_stack([level == 1, level == 2]).astype(float)
    found = contributions_of([indicators], 3.0 * (level == 2) + rng.standard_normal(2000))
    assert level_of(found.slopes[0], ("a", "b", "c")) == "c"
    assert sign_of(found.slopes[0]) == "+"


def test_a_cause_at_the_configuration_level_scales_the_deviation():
    rng = np.random.default_rng(6)
    position = rng.choice([-1.0, 1.0], 3000)
    found = contributions_of([], rng.standard_normal(3000), gains=[0.7 * position], positions=[position], absolute=True)
    assert sign_of(found.slopes[0]) == "+"
    # y = exp(g) |N| with exp(g) of two values: as above
    gain = np.exp([0.7, -0.7])
    over_gain = gain.var()
    over_noise = (gain**2).mean() * (1 - 2 / np.pi)
    assert found.percent[0] == pytest.approx(100 * over_gain / (over_gain + over_noise), abs=3)


def test_resamples_that_disagree_give_no_sign():
    assert sign_of(Slope(0.1, -0.1, 0.3, 0.89)) == "?"
    assert sign_of(Slope(-0.1, -0.3, 0.1, 0.9)) == "-"


@pytest.mark.parametrize("seed", [21, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (22, 23))])
def test_total_variation_to_the_true_shares(seed):
    table = make_table(seed, p=40)
    rows = rows_of(table.y)
    deviation = standardised_deviation(rows, configuration_spread(rows))
    causes = [(column - column.mean()) / column.std() for column in (table.columns[name] for name in table.causes)]
    found = contributions_of([np.clip(cause, -6, 6) for cause in causes], deviation, absolute=True)
    estimated = np.append(found.percent, found.unexplained)
    assert 0.5 * np.abs(estimated - np.array(list(table.shares.values()))).sum() <= 15


def test_intervals_of_shares_are_as_wide_as_stated_and_cover():
    """Ten tables of a linear model: half an interval is at least the normal quantile times the stated widening of the
    spread of shares from table to table, less a fifth for what ten tables know of it; all but two hold the truth.
    """
    found = []
    with single_threaded():
        for seed in range(10):
            a, b, noise = np.random.default_rng(7000 + seed).standard_normal((3, 200))
            found.append(contributions_of([a, b], a + 0.5 * b + 1.2 * noise, seed=seed))
    low, percent, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "percent", "high"))
    spread = np.sqrt(np.mean((percent - percent.mean(axis=0)) ** 2, axis=0))
    assert (np.mean(high - percent, axis=0) >= 0.8 * 1.645 * 1.5 * spread).all()
    true = 100 * np.array([1.0, 0.25]) / 2.69
    assert ((low <= true) & (true <= high)).sum() >= 18


@pytest.mark.parametrize("spread", [0.02, 0.2])
def test_a_slow_run_has_the_contribution_that_its_mean_gives(spread):
    """One of eight runs is slow, its launches lie in two of ten blocks and scatter as the others do or ten times as
    much. By hand: y = |mu + sd N| has E[Var over runs] and Var over N of the means and standard deviations of the runs.
    """
    rng = np.random.default_rng(12)
    slow = (np.arange(800) >= 240) & (np.arange(800) < 340)
    run = np.zeros(800, int)
    run[~slow] = 1 + np.arange(700) % 7
    mean, sd = (np.where(np.arange(8) == 0, *values) for values in ((2.64, -0.38), (spread, 0.02)))
    noise = rng.standard_normal(800)
    value = mean[run] + sd[run] * noise
    indicators = (run[:, None] == np.arange(1, 8)).astype(float)
    found = estimate_contributions(
        [indicators], [], [], value, np.ones(800), np.arange(800) // 80, np.random.default_rng(1)
    )
    share = np.bincount(run) / 800
    size = np.abs(mean[:, None] + sd[:, None] * noise)  # each launch as if on each run
    over_runs = 0.5 * share @ np.mean((size - np.abs(value)) ** 2, axis=1)
    over_noise = share @ size.var(axis=1)
    by_hand = 100 * over_runs / (over_runs + over_noise)
    assert found.percent[0] == pytest.approx(by_hand, abs=1)
    assert found.low[0] > by_hand - 5


def test_a_level_whose_few_rows_are_all_alike_has_no_slope_of_hundreds_of_standard_deviations():
    """Times are read in ticks: six launches of one level take the same one. Nothing is to be divided by their sigma."""
    rng = np.random.default_rng(5)
    level = np.where(np.arange(240) % 40 == 7, 2, np.arange(240) % 2)
    y = np.array([0, 1.5, 0.4])[level] + np.where(level == 2, 0, 0.5 * rng.standard_normal(240))
    y[np.flatnonzero(level == 2)[0]] = 0.9
    found = contributions_of(
        [np.column_stack([level == 1, level == 2]).astype(float)], (y - y.mean()) / y.std(), absolute=True
    )
    assert all(abs(slope.value) < 3 for slope in (*found.slopes, *found.moves))
    assert found.moves[0].direction == 1
    by_hand = (y[level == 1].mean() - y[level != 1].mean()) / y.std()
    assert found.moves[0].value == pytest.approx(by_hand, abs=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_layers_that_come_back_every_few_blocks_are_learnt(seed):
    """25 layers in turn, each with its own time, in blocks of one launch: five folds dealt in turn would hold a layer
    always in the same one, where no model predicts it; that with trees would be taken by luck, and say 0 %.
    """
    rng = np.random.default_rng(seed)
    layer = np.tile(np.arange(25), 6)
    y = rng.normal(size=25)[layer] + 0.02 * rng.standard_normal(150)
    indicators = (layer[:, None] == np.arange(1, 25)).astype(float)
    found = estimate_contributions(
        [indicators], [], [], y - y.mean(), np.ones(150), np.arange(150), np.random.default_rng(1)
    )
    assert found.percent[0] > 99
    assert found.low[0] > 95
