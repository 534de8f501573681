"""Of several slow ranks an arrow names one; its effect names the others."""

import numpy as np
import pytest
from causal_tables import rows_of, time_effects

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.numeric.process import single_threaded

SCOPE = Scope("d", "kernel_variability", "k", resamples=0)
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def of_ranks(slower, seed, ranks=16, each=120):
    """Return the named rank and those that do the same, of launches of which some ranks' take longer, by so many
    percent; noise is 2 %.
    """
    random = np.random.default_rng(seed)
    rank = np.tile(np.arange(ranks), each)
    factor = np.ones(ranks)
    factor[list(slower)] += np.array(list(slower.values())) / 100
    y = 1e5 * factor[rank] * np.exp(0.02 * random.standard_normal(rank.size))
    columns = [
        Feature("rank", rank.astype(str).astype(object), "context", "placement"),
        Feature("idle", random.standard_normal(rank.size)),
    ]
    outcome, evidence = discover(columns, rows_of(y), SCOPE)
    with single_threaded():
        found = time_effects(ScopeTimes(evidence, outcome.arrows, SCOPE.target, None, 7), outcome.arrows)
    (arrow,) = (one for one in outcome.arrows if one.name == "rank")
    return arrow.level, found["rank"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [-8, 8])
def test_all_ranks_that_differ_alike_are_named(size, seed):
    level, effect = of_ranks({8: size, 9: size, 10: size, 11: size, 3: size / 4}, seed)
    assert sorted([level, *effect.alike], key=int) == ["8", "9", "10", "11"]
    assert (effect.mean.value > 0) == (size > 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_first_ranks_are_compared_with_one_that_is_not_slow(count, seed):
    """All ranks are as common: the first of them is no better to compare with than another."""
    level, effect = of_ranks(dict.fromkeys(range(count), 8), seed)
    assert sorted([level, *effect.alike]) == [str(rank) for rank in range(count)]
    assert int(effect.against) >= count
    mean = 1 + 0.08 * count / 16
    assert effect.mean.low <= 8 / mean <= effect.mean.high
    assert effect.mean.low > 7


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_slow_rank_is_named_alone(seed):
    level, effect = of_ranks({5: 8, 6: 2, 7: -8}, seed)
    assert level in ("5", "7")
    assert effect.alike == ()
