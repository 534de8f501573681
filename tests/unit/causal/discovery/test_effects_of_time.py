"""A counter that follows from the time is no cause of it; one that acts on the time is."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import FOLLOWS_TIME, discover
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")


def outcome_of(seed: int, follows: bool):
    """Return what is found where two counters act on the time, and a third follows the time, or acts on it as well."""
    rng = np.random.default_rng(seed)
    first, second, third = rng.standard_normal((3, 1500))
    time = 100 + 4 * first + 4 * second + 2 * rng.standard_normal(1500)
    if follows:
        third = time + 2.5 * rng.standard_normal(1500)
    else:
        time = time + 4 * third
    table = [Feature(f"unit{at}", values) for at, values in enumerate((first, second, third))]
    return discover(table, rows_of(time), Scope("d", "y", "k"))[0]


@pytest.mark.parametrize("seed", few([9510, 9511, 9512], 1))
def test_a_counter_that_follows_the_time_is_dropped_with_its_reason(seed):
    outcome = outcome_of(seed, follows=True)
    assert {arrow.name for arrow in outcome.arrows} == {"unit0", "unit1"}
    assert {one.feature: one.reason for one in outcome.dropped}["unit2"] == FOLLOWS_TIME


@pytest.mark.parametrize("seed", few([9510, 9511, 9512], 1))
def test_a_third_cause_stays(seed):
    outcome = outcome_of(seed, follows=False)
    assert {arrow.name for arrow in outcome.arrows} == {"unit0", "unit1", "unit2"}
