"""What is compared where percentiles coincide, and that nothing is said of a mean that few launches have."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from causal_documents import ARROW
from causal_tables import rows_of, time_effects

from causeway.causal.data.observations import Candidate, Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.time_effects import extremes
from causeway.causal.preparation.categorical import category_candidates
from causeway.causal.report.sentences import cause_sentence
from causeway.numeric.block_resampling import block_numbers
from causeway.numeric.process import single_threaded

N = 1200


def times_of(values, y, configuration=None, name="last_h2d_bytes", unit="bytes"):
    """Return the launches as the models of the time see them, and the arrow of their only cause."""
    if values.dtype == object:
        one = category_candidates([(name, Feature(name, values, "context", "time"))])[0][0]
    else:
        one = Candidate(name, "context", "", unit, (values - values.mean()) / values.std(), (name,))
    evidence = SimpleNamespace(
        rows=rows_of(y, configuration=configuration),
        columns=[Feature(name, values, "context", "", unit)],
        prepared=SimpleNamespace(within=[one], numbers={}),
        stages=SimpleNamespace(blocks=block_numbers(y - y.mean(), y.size)),
        candidate_of=lambda name: one,
    )
    arrow = SimpleNamespace(name=name, stage="context", role="exposure")
    return ScopeTimes(evidence, [arrow], "kernel_variability", None, 7), one, arrow


def said(values, y, **facts):
    """Return the effect in time of a cause, and its sentence."""
    with single_threaded():
        times, _, arrow = times_of(values, y, **facts)
        effect = time_effects(times, [arrow]).get(arrow.name)
        groups = times.compared[arrow.name].groups
    node = replace(ARROW.node, name=arrow.name, members=(arrow.name,), group="time")
    levels = groups.slow if groups else ()
    drawn = replace(ARROW, node=node, level=", ".join(levels), levels=levels, in_time=effect, through="")
    return effect, cause_sentence(drawn, Scope("d", "kernel_variability", "k"))


def noisy(slow, size=0.15, seed=1):
    return 2304 * (1 + size * slow) * (1 + 0.01 * np.random.default_rng(seed).standard_normal(slow.size))


@pytest.mark.parametrize("odd", [20, 40, 100])
def test_where_percentiles_coincide_the_values_and_their_launches_are_named(odd):
    slow = np.arange(N) % (N // odd) == 5
    assert slow.sum() == odd
    y = noisy(slow)
    effect, sentence = said(np.where(slow, 15472.0, 1024.0), y)
    assert f" from 1 KiB ({N - odd:,} launches) to 15.1 KiB ({odd} launches)" in sentence
    assert "percentile" not in sentence
    by_hand = 100 * (y[slow].mean() - y[~slow].mean()) / y.mean()
    assert effect.mean.low < by_hand < effect.mean.high
    assert effect.mean.value == pytest.approx(by_hand, abs=1)


@pytest.mark.parametrize("odd", [5, 19])
def test_few_slow_launches_far_beyond_noise_are_stated_with_their_means(odd):
    """12 of 2,400 launches that take 15 % longer are no accident."""
    slow = np.arange(N) % (N // odd) == 7
    slow[np.flatnonzero(slow)[odd:]] = False
    y = noisy(slow)
    effect, sentence = said(np.where(slow, 15472.0, 1024.0), y)
    by_hand = 100 * (y[slow].mean() - y[~slow].mean()) / y.mean()
    assert effect.mean.low < by_hand < effect.mean.high
    assert effect.mean.low > 7
    assert f"15.1 KiB ({odd} launches)" in sentence
    assert effect.ends.mean_high == pytest.approx(y[slow].mean())


def test_three_launches_with_another_value_tell_nothing_of_the_mean():
    slow = np.arange(N) < 3
    effect, sentence = said(np.where(slow, 15472.0, 1024.0), noisy(slow))
    assert effect is None
    assert " % [" not in sentence.partition("explains")[0].partition("explain")[0]


def test_a_long_tail_is_compared_at_the_value_that_enough_launches_reach():
    """Nine tenths and more are zero, all others differ: the largest is one launch's."""
    rng = np.random.default_rng(4)
    values = np.where(np.arange(N) % 15 == 0, np.exp(rng.standard_normal(N)), 0.0)
    with single_threaded():
        times, candidate, _ = times_of(values, noisy(values > 0), unit="")
        low, high = extremes(times, candidate)
    assert set(values[low]) == {0.0}
    assert set(values[high]) == {np.sort(values)[-20]}
    effect, _ = said(values, noisy(values > 0), unit="")
    assert (effect.ends.launches_low, effect.ends.launches_high) == (np.count_nonzero(values == 0), 20)


def test_percentiles_that_differ_are_compared_as_before():
    values = np.random.default_rng(5).standard_normal(N)
    effect, sentence = said(values, noisy(values > 1), unit="")
    assert effect.ends is None
    assert "from their 10th to their 90th percentile" in sentence


def test_configurations_with_and_without_percentiles_are_told_apart():
    configuration = np.arange(N) % 2
    rng = np.random.default_rng(6)
    odd = rng.random(N) < 0.06
    values = np.where(configuration == 0, rng.standard_normal(N), np.where(odd, 9.0, 1.0))
    count = np.count_nonzero(odd & (configuration == 1))
    assert count >= 20
    effect, sentence = said(values, noisy(odd), configuration=configuration, unit="")
    rest = np.count_nonzero(configuration == 1) - count
    words = f"or lowest to highest values where these are one ({rest} and {count} launches)"
    assert words in sentence or effect.mean.low <= 0 <= effect.mean.high
    assert not effect.ends.are_everywhere


@pytest.mark.parametrize("odd", [12, 20])
def test_a_level_of_a_hundredth_of_the_launches_is_compared(odd):
    slow = np.arange(N) % (N // odd) == 3
    slow[np.flatnonzero(slow)[odd:]] = False
    values = np.where(slow, "swarm_init", "update").astype(object)
    effect, _ = said(values, noisy(slow, -0.1), name="launched_after")
    assert effect.ends.levels_low == ("swarm_init",)
    assert effect.ends.launches_low == odd


def test_a_rare_slow_value_falls_by_less_than_all():
    """Every tenth launch takes twenty times as long: to the quick value the mean falls by six times that of all."""
    slow = np.arange(N) % 11 == 0
    y = noisy(slow, 19)
    effect, sentence = said(np.where(slow, 0.0, 1.0), y, unit="", name="quick")
    assert "mean" in effect.of_first
    by_hand = 100 * (y[~slow].mean() / y[slow].mean() - 1)
    assert -100 <= effect.mean.low < by_hand < effect.mean.high
    assert min(one.low for one in (effect.mean, effect.p50, effect.p99, effect.spread)) >= -100
    assert "of that of all launches" not in sentence.partition(" and explain")[0]
    assert f" from 0 ({slow.sum()} launches) to 1 ({(~slow).sum():,} launches)" in sentence
