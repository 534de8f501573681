"""Slow ranks are named together, and so are those that they are compared with."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover

SCOPE = Scope("d", "kernel_variability", "k")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def of_ranks(slower, seed, ranks=16, each=120):
    """Return the arrow of the rank, of launches of which some ranks' take longer, by so many
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
    outcome, _ = discover(columns, rows_of(y), SCOPE)
    (arrow,) = (one for one in outcome.arrows if one.name == "rank")
    return arrow


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ranks_that_are_slow_alike_are_named(seed):
    arrow = of_ranks({8: 8, 9: 8, 10: 8, 11: 8, 3: 2}, seed)
    assert arrow.levels == ("8", "9", "10", "11")
    assert arrow.level == "8 to 11"
    assert arrow.sign == "+"


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_ranks_are_what_the_others_are_compared_with(seed):
    arrow = of_ranks({8: -8, 9: -8, 10: -8}, seed)
    assert arrow.in_time.ends.levels_low == ("8", "9", "10")
    assert len(arrow.levels) == 13


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_first_ranks_are_compared_with_all_that_are_not_slow(count, seed):
    """The change, and the cost against the median launch, are those that were made."""
    arrow = of_ranks(dict.fromkeys(range(count), 8), seed)
    effect = arrow.in_time
    assert arrow.levels == tuple(str(rank) for rank in range(count))
    assert len(effect.ends.levels_low) == 16 - count
    mean = 1 + 0.08 * count / 16
    assert effect.mean.low <= 8 / mean <= effect.mean.high
    assert effect.mean.low > 7
    assert effect.ends.mean_high / effect.ends.mean_low == pytest.approx(1.08, abs=0.005)
    lost = 1e5 * 0.08 * count * 120
    assert effect.cost.low <= lost <= effect.cost.high


@pytest.mark.parametrize("seed", SEEDS)
def test_slowest_and_fastest_are_named_of_several_groups(seed):
    arrow = of_ranks({5: 8, 6: 2, 7: -8}, seed)
    assert arrow.levels == ("5",)
    assert arrow.in_time.ends.levels_low == ("7",)
    assert arrow.in_time.mean.low <= 16 <= arrow.in_time.mean.high + 0.5
