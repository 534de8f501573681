"""All columns that tell the same are named, and none that tells less."""

import numpy as np
import pytest
from causal_tables import columns_of, make_table, rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 900


def classes(columns, y):
    table = [Feature(name, values) for name, values in columns.items()]
    outcome, _ = discover(table, rows_of(y), Scope("d", "y", "k"))
    return [set(arrow.node.members) for arrow in outcome.arrows]


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_that_tells_the_same_is_a_member_and_its_small_part_is_not(seed):
    rng = np.random.default_rng(8600 + seed)
    hits = np.exp(0.6 * rng.standard_normal(N)) * 1e5
    misses = np.exp(0.3 * rng.standard_normal(N)) * 2e2  # hardly any of the total
    y = 1e5 * np.exp(0.06 * np.log(hits) + 0.02 * rng.standard_normal(N))
    columns = {"hits": hits, "misses": misses, "requests": hits + misses, "z": rng.standard_normal(N)}
    assert classes(columns, y) == [{"hits", "requests"}]


def test_a_rival_that_the_data_cannot_tell_is_a_member():
    """Both act, by too little to be told apart."""
    found = []
    for seed in range(8650, 8658):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(N)
        near, far = x + 0.4 * rng.standard_normal((2, N)) * [[1], [3]]
        y = 100 + 0.4 * (x + near) + 3 * rng.standard_normal(N)
        found += classes({"x": x, "near": near, "far": far}, y)
    assert len(found) == 8
    assert not any("far" in members for members in found)
    assert sum(members == {"x", "near"} for members in found) >= 4


def test_causes_that_the_data_tell_apart_have_no_member_but_copies_and_sums():
    table = make_table(8700, p=60)
    outcome, _ = discover(columns_of(table), rows_of(table.y), Scope("d", "y", "k"))
    for arrow in outcome.arrows:
        if arrow.name in table.causes:
            assert all(arrow.name in member for member in arrow.node.members)
