"""What causes do to the time, against structural models whose every intervention can be played."""

from dataclasses import replace

import numpy as np
import pytest
from causal_tables import intervention_model, rows_of, time_effects
from scipy.stats import binom, norm

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.data.scopes import Totals
from causeway.causal.discovery.discover import discover
from causeway.causal.effects import kernel_times, scope_times
from causeway.causal.effects.interventions import what_ifs
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.time_effects import quantile_donors
from causeway.numeric.process import single_threaded
from support import few

pytestmark = pytest.mark.usefixtures("few_picks")
SCOPE = Scope("d", "kernel_variability", "k")


def effects_of(columns, y, scope=SCOPE, totals=None, **rows):
    outcome, evidence = discover(columns, rows_of(y, **rows), scope)
    with single_threaded():
        times = ScopeTimes(evidence, outcome.arrows, scope.target, totals, 7)
        return outcome, evidence, time_effects(times, outcome.arrows)


def percent_between(play, low, high, y):
    """Return the true changes of mean, median, 99th percentile and spread between two settings, in percent."""
    statistics = (np.mean, np.median, lambda t: np.quantile(t, 0.99), np.std)
    return [100 * (of(play(high)) - of(play(low))) / of(y) for of in statistics]


def log_linear(seed, n=2000, rate=0.05):
    rng = np.random.default_rng(seed)
    x, other, noise = rng.standard_normal((3, n))
    scale = 0.03 * np.exp(0.3 * other)

    def play(x):
        return 1e5 * np.exp(rate * x + 0.02 * other + scale * noise)

    return [Feature("x", x), Feature("other", other), Feature("idle", rng.standard_normal(n))], x, play


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_changes_between_percentiles_are_those_that_were_played(seed):
    columns, x, play = log_linear(seed)
    y = play(x)
    _, _, found = effects_of(columns, y)
    effect = found["x"]
    low, high = (np.full(x.size, np.sort(x)[round(share * x.size) - 1]) for share in (0.1, 0.9))
    truth = percent_between(play, low, high, y)
    for estimate, true in zip((effect.mean, effect.p50, effect.p99, effect.spread), truth, strict=True):
        assert estimate.low <= estimate.value <= estimate.high
        assert abs(estimate.value - true) <= 1.6 * (estimate.high - estimate.value) + 0.1
    assert effect.mean.value == pytest.approx(truth[0], abs=0.6)
    assert effect.monotone
    assert effect.launches == x.size


def test_a_cause_of_the_noise_changes_the_tail_and_the_spread():
    rng = np.random.default_rng(3)
    x, noise = rng.standard_normal((2, 3000))

    def play(x):
        return 1e5 * np.exp(0.05 * np.exp(0.4 * x) * noise)

    y = play(x)
    _, _, found = effects_of([Feature("x", x), Feature("z", rng.standard_normal(3000))], y)
    low, high = (np.full(x.size, np.sort(x)[round(share * x.size) - 1]) for share in (0.1, 0.9))
    _, _, tail, spread = percent_between(play, low, high, y)
    effect = found["x"]
    assert effect.p99.low <= tail <= effect.p99.high
    assert effect.p99.low > 0
    assert effect.spread.value == pytest.approx(spread, rel=0.25)


def test_the_cost_is_what_the_better_percentile_would_save():
    columns, x, play = log_linear(5)
    y = play(x)
    _, _, found = effects_of(columns, y)
    low = np.full(x.size, np.sort(x)[round(0.1 * x.size) - 1])
    cost = found["x"].cost
    assert cost.low < y.sum() - play(low).sum() < cost.high
    assert cost.value == pytest.approx(y.sum() - play(low).sum(), rel=0.1)


def test_rows_stand_for_all_launches_of_the_run():
    columns, x, play = log_linear(5)
    y = play(x)
    rows = rows_of(y)
    outcome, evidence = discover(columns, replace(rows, kernels=("k9",)), SCOPE)
    totals = Totals(time={"k9": 50.0 * float(y.sum())}, launches={"k9": 100_000})
    with single_threaded():
        few, many = (
            time_effects(ScopeTimes(evidence, outcome.arrows, "kernel_variability", known, 7), outcome.arrows)["x"]
            for known in (None, totals)
        )
    assert many.cost.value == pytest.approx(50 * few.cost.value)
    assert many.launches == 100_000
    assert many.mean == few.mean


@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.7, 0.95])
def test_a_slowdown_has_the_same_sign_and_size_however_common_it_is(prevalence):
    """The absolute deviation rises with a rare slowdown and falls with a common one; the time does not."""
    rng = np.random.default_rng(round(100 * prevalence))
    contended = (rng.random(3000) < prevalence).astype(float)
    y = 1e5 * np.exp(np.log(1.07) * contended + 0.02 * rng.standard_normal(3000))
    columns = [Feature("contended", contended, "context", "contention"), Feature("z", rng.standard_normal(3000))]
    _, _, found = effects_of(columns, y)
    # both percentiles are 0, or 1, where less than a tenth is otherwise: then the extremes are compared
    truth = 7 * y[contended == 0].mean() / y.mean()
    assert found["contended"].mean.value == pytest.approx(truth, abs=0.5)
    assert found["contended"].mean.low > 0


def test_what_if_takes_the_level_that_takes_least_time():
    """By the absolute deviation any level is as good: a constant one removes the variance of the cause."""
    columns, x, play = log_linear(8, rate=0.06)
    outcome, evidence = discover(columns, rows_of(play(x)), SCOPE)
    with single_threaded():
        rows = what_ifs(intervention_model(outcome, evidence, 3), outcome.arrows)
    (row,) = [one for one in rows if one.features == ("x",)]
    assert row.after[0].endswith("(10th percentile)")
    low = np.full(x.size, np.sort(x)[round(0.1 * x.size) - 1])
    truth = 100 * (play(low).sum() / play(x).sum() - 1)
    assert row.mean_change.low <= truth <= row.mean_change.high < 0
    assert row.saved.value == pytest.approx(-row.mean_change.value / 100 * play(x).sum())
    tail = 100 * (np.quantile(play(low), 0.99) / np.quantile(play(x), 0.99) - 1)
    assert row.p99_change.low <= tail <= row.p99_change.high


def test_less_time_counts_more_than_less_deviation():
    """Larger values take longer and vary less: the level that is stated takes least time, not the quietest."""
    rng = np.random.default_rng(18)
    x, noise = rng.standard_normal((2, 3000))
    y = 1e5 * np.exp(0.06 * x + 0.05 * np.exp(-0.9 * x) * noise)
    columns = [Feature("x", x), Feature("z", rng.standard_normal(3000))]
    outcome, evidence = discover(columns, rows_of(y), SCOPE)
    with single_threaded():
        rows = what_ifs(intervention_model(outcome, evidence, 3), outcome.arrows)
    (row,) = [one for one in rows if one.features == ("x",)]
    assert row.after[0].endswith("(10th percentile)")
    assert row.mean_change.high < 0 < row.change.value


@pytest.mark.parametrize("seed", [2, 10])
def test_no_interval_takes_away_more_than_there_was(seed, monkeypatch):
    """A tenth of the launches are slow and differ widely, so that the spread of the draws alone reaches below zero."""
    rng = np.random.default_rng(seed)
    slow = rng.random(400) < 0.1
    noise = rng.standard_normal(400)
    y = np.where(slow, 1e5 * np.exp(noise), 3e3 * np.exp(0.05 * noise))
    columns = [Feature("quick", 1.0 - slow, "context", "contention"), Feature("z", rng.standard_normal(400))]
    monkeypatch.setitem(scope_times.WIDER, "p99", 5.0)
    outcome, evidence, _ = effects_of(columns, y)
    with single_threaded():
        rows = what_ifs(intervention_model(outcome, evidence, 3), outcome.arrows)
    (row,) = [one for one in rows if one.features == ("quick",)]
    assert row.p99_change.low == pytest.approx(-100)
    assert row.p99_change.low < row.p99_change.value < row.p99_change.high
    assert row.mean_change.low > -100

    # the slow launches' own p99 is above that of all, from which it may fall by more than all of that: it is the base
    monkeypatch.setitem(scope_times.WIDER, "p99", 100.0)
    effect = effects_of(columns, y)[2]["quick"]
    assert "p99" in effect.of_first
    assert -100 == effect.p99.low < effect.p99.value < 0
    assert effect.p99.high > 0
    assert effect.mean.low <= 100 * (y[~slow].mean() / y[slow].mean() - 1) <= effect.mean.high


def test_a_kernel_in_which_a_cause_does_not_vary_is_not_changed_by_it():
    """Two kernels, the cause varies in one: the change of both is that of one, weighed by its time."""
    rng = np.random.default_rng(4)
    n = 3000
    kernel = np.arange(n) % 2
    x = np.where(kernel == 0, rng.standard_normal(n), 3.0)
    y = np.where(kernel == 0, 1e5, 4e5) * np.exp(np.where(kernel == 0, 0.05 * x, 0.0) + 0.02 * rng.standard_normal(n))
    scope = Scope("d", "kernel_variability", "dataset")
    columns = [Feature("x", x), Feature("z", rng.standard_normal(n))]
    _, _, found = effects_of(columns, y, scope, kernel=kernel)
    effect = found["x"]
    own = y[kernel == 0]
    low, high = np.quantile(x[kernel == 0], [0.1, 0.9])
    of_one = np.exp(0.05 * high) - np.exp(0.05 * low)
    truth = 100 * of_one * (own * np.exp(-0.05 * x[kernel == 0])).sum() / y.sum()
    assert effect.mean.value == pytest.approx(truth, abs=0.3)
    assert effect.launches == n // 2


def test_a_mediator_takes_nothing_from_the_total_effect_of_a_lever():
    """contention -> throughput -> time: with the throughput held, contention does nothing; its total effect is all."""
    rng = np.random.default_rng(6)
    n = 3000
    lever = rng.standard_normal(n)
    mediator = 0.8 * lever + 0.6 * rng.standard_normal(n)
    y = 1e5 * np.exp(0.05 * mediator + 0.02 * rng.standard_normal(n))
    columns = [Feature("lever", lever), Feature("mediator", mediator)]
    outcome, evidence = discover(columns, rows_of(y), SCOPE)
    (arrow,) = outcome.arrows
    both = (arrow, replace(arrow, node=replace(arrow.node, name="lever", members=("lever",)), role="lever"))
    with single_threaded():
        found = time_effects(ScopeTimes(evidence, both, "kernel_variability", None, 7), both)
    low, high = np.quantile(lever, [0.1, 0.9])
    truth = 100 * 0.05 * 0.8 * (high - low)
    assert found["lever"].mean.value == pytest.approx(truth, abs=0.7)
    low, high = np.quantile(mediator, [0.1, 0.9])
    assert found["mediator"].mean.value == pytest.approx(100 * 0.05 * (high - low), abs=0.7)


def test_a_u_shaped_effect_is_not_monotone():
    rng = np.random.default_rng(9)
    x = rng.standard_normal(3000)
    y = 1e5 * np.exp(0.04 * x**2 + 0.01 * rng.standard_normal(3000))
    _, _, found = effects_of([Feature("x", x), Feature("z", rng.standard_normal(3000))], y)
    assert not found["x"].monotone


@pytest.mark.parametrize("seeds", [range(5020, 5028), pytest.param(range(5000, 5120), marks=pytest.mark.slow)])
def test_intervals_cover(seeds):
    """Tables with a bent effect and a cause of the spread: 90 % intervals of the mean's change cover in as many as a
    binomial chance of one in a hundred leaves where they cover nine tenths, and tell the effect from none.
    """
    covered = []
    widths = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = 500
        x, z, noise = rng.standard_normal((3, n))

        def play(x, z=z, noise=noise):
            return 1e5 * np.exp(0.06 * np.maximum(x, 0.3) + 0.03 * np.exp(0.4 * z) * noise)

        y = play(x)
        _, _, found = effects_of([Feature("x", x), Feature("z", z)], y)
        low, high = (np.full(n, np.sort(x)[round(share * n) - 1]) for share in (0.1, 0.9))
        true = 100 * (play(high).mean() - play(low).mean()) / y.mean()
        if "x" in found:
            mean = found["x"].mean
            covered.append(mean.low <= true <= mean.high)
            widths.append(mean.high - mean.low)
    assert len(covered) >= 0.95 * len(seeds)
    assert np.sum(covered) >= binom.ppf(0.01, len(covered), 0.9)
    assert np.mean(widths) < 2 * norm.ppf(0.95) * 100 * 0.032 / np.sqrt(500) * 6  # six times that of a mean alone


def test_donors_have_the_weighted_quantile_of_their_configuration():
    rng = np.random.default_rng(2)
    values = rng.standard_normal(60)
    configuration = np.repeat([0, 1, 2], 20)[rng.permutation(60)]
    weight = rng.uniform(1, 4, 60)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        donors = quantile_donors(values, configuration, weight, share)
        for code in range(3):
            mine = configuration == code
            (donor,) = set(donors[mine].tolist())
            expected = np.quantile(values[mine], share, weights=weight[mine], method="inverted_cdf")
            assert values[donor] == expected
            assert configuration[donor] == code


def test_a_few_slow_launches_are_not_predicted_beyond_what_was_observed(monkeypatch):
    """What scales the noise must not turn one launch of a hundred times the usual time into one of millions."""
    random = np.random.default_rng(11)
    wait = random.exponential(1.0, 287)
    noise = random.standard_t(1.5, 287)
    y = 1e4 * np.exp(0.4 * wait + 0.1 * np.exp(0.8 * wait) * noise)
    columns = [Feature("wait", wait)]
    effect = effects_of(columns, y)[2]["wait"]
    middle = np.exp(np.log(y).mean())
    most = 100 * middle * (y.max() / middle) ** 1.5 / y.mean()
    assert abs(effect.mean.value) < most
    reach = kernel_times.KernelTimes._reach
    monkeypatch.setattr(kernel_times.KernelTimes, "_reach", lambda self: tuple(1e9 * end for end in reach(self)))
    assert abs(effects_of(columns, y)[2]["wait"].mean.value) > 10 * abs(effect.mean.value)


def test_causes_that_no_launch_met_together_have_each_their_own_effect():
    """A copy in one direction, in the other, or none: the data tell what each does alone, and nothing of both at once.
    Products of such causes follow from the causes, and once took half of each effect."""
    rng = np.random.default_rng(12)
    arm = rng.integers(3, size=900)
    y = 1e5 * np.choose(arm, [1.0, 1.06, 1.016]) * np.exp(0.003 * rng.standard_normal(arm.size))
    _, _, found = effects_of([Feature("a", 64.0 * (arm == 1)), Feature("b", 64.0 * (arm == 2))], y)
    for name, number in (("a", 1), ("b", 2)):
        truth = 100 * (y[arm == number].mean() - y[arm == 0].mean()) / y.mean()
        assert found[name].mean.value == pytest.approx(truth, rel=0.02)
        assert found[name].launches == arm.size


def test_where_every_launch_met_one_of_them_effects_follow_from_their_sizes():
    """No launch is without a copy: what none at all would do follows from how the time grows with the size."""
    rng = np.random.default_rng(13)
    arm = rng.integers(3, size=1500)
    size = rng.choice([32.0, 48.0, 64.0], arm.size)
    rate = np.choose(arm, [0.06, 0.03, 0.01])
    y = 1e5 * (1 + rate * size / 48) * np.exp(0.003 * rng.standard_normal(arm.size))
    late = (arm == 0) & (rng.random(arm.size) < 0.05)
    y = np.where(late, 1.1 * y, y)
    _, _, found = effects_of([Feature(name, size * (arm == number)) for number, name in enumerate("abc")], y)
    assert {"a", "b"} <= set(found)
    for effect in found.values():
        assert all(np.isfinite(one.value) for one in (effect.mean, effect.p50, effect.p99, effect.spread))
    for name, largest in (("a", 8.0), ("b", 4.0)):
        assert found[name].mean.value == pytest.approx(100 * largest * 1e3 / y.mean(), rel=0.12)
