"""What one launch has, or about one of each rank, is no candidate: there is nothing to compare the others with."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.preparation.prepare import prepare

RANKS = 4
PER_RANK = 100
N = RANKS * PER_RANK
RANK = np.repeat(np.arange(RANKS), PER_RANK).astype(str).astype(object)
POSITION = np.tile(np.arange(PER_RANK), RANKS)


def prepared(name, values, ranks=RANK, configuration=None):
    columns = [Feature(name, values, "context", "time"), Feature("noise", np.random.default_rng(3).standard_normal(N))]
    columns += [] if ranks is None else [Feature("rank", ranks, "context", "placement")]
    y = 100 + np.random.default_rng(2).standard_normal(N)
    return prepare(columns, rows_of(y, configuration=configuration), "kernel_variability")


def is_candidate(found, name):
    reasons = {one.feature: one.reason for one in found.dropped}
    return any(one.name == name for one in found.within), reasons.get(name)


@pytest.mark.parametrize(
    ("first", "ranks", "stays"),
    [
        (1, RANK, False),  # the first launch of each of four ranks: 1 % of all
        (2, RANK, True),
        (1, None, True),  # four launches of one rank, as far as is known
    ],
)
def test_a_level_that_each_rank_has_once_is_none(first, ranks, stays):
    after = np.where(first > POSITION, "swarm_init", "update").astype(object)
    found, reason = is_candidate(prepared("launched_after", after, ranks), "launched_after")
    assert found == stays
    assert reason == (None if stays else "2 levels, but for one none holds more than about one launch of each rank")


def test_levels_that_each_rank_has_once_are_no_level_together():
    """Other kernels before the first launch of each rank: as `other` they would be compared, too."""
    after = np.where(POSITION == 0, np.char.add("init_", RANK.astype(str)), "update").astype(object)
    found, reason = is_candidate(prepared("launched_after", after), "launched_after")
    assert not found
    assert reason == "5 levels, but for one none holds 1 % of the rows"


@pytest.mark.parametrize(("odd", "stays"), [(1, False), (3, False), (4, True)])
def test_a_number_that_differs_in_a_launch_or_three_is_none(odd, stays):
    size = np.where(np.arange(N) < odd, 15472.0, 1024.0)
    found, reason = is_candidate(prepared("last_h2d_bytes", size), "last_h2d_bytes")
    assert found == stays
    launches = "1 launch" if odd == 1 else f"{odd} launches"
    assert reason == (None if stays else f"constant within configurations but for {launches}")


def test_a_number_that_differs_in_the_first_launch_of_each_rank_is_none():
    size = np.where(POSITION == 0, 7.0, 5.0)
    assert is_candidate(prepared("x", size), "x") == (False, "constant within configurations but for 4 launches")
    assert is_candidate(prepared("x", np.where(POSITION < 2, 7.0, 5.0)), "x")[0]
    assert is_candidate(prepared("x", size, ranks=None), "x")[0]


def test_launches_are_counted_within_configurations():
    """Two sizes, each of its own configuration, and three launches with another one."""
    configuration = np.arange(N) % 2
    size = np.where(configuration == 0, 1000.0, 4000.0)
    size[[5, 100, 301]] = 2000.0
    found, reason = is_candidate(prepared("x", size, configuration=configuration), "x")
    assert (found, reason) == (False, "constant within configurations but for 3 launches")
