"""Levers and exposures are named with their total effect, though a counter lies between them and the time."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from support import few

N = 1000


def mediation(seed, name="launches_in_flight", direct=0.0, size=0.08):
    """A binary exposure raises a counter, and the counter the time."""
    rng = np.random.default_rng(seed)
    busy = (rng.random(N) < rng.uniform(0.2, 0.8)).astype(float)
    read = 5e5 * np.exp(0.4 * busy + 0.15 * rng.standard_normal(N))
    y = 1e5 * np.exp(size / 0.4 * np.log(read) + direct * busy + 0.02 * rng.standard_normal(N))
    columns = [Feature(name, busy, "context", "contention"), Feature("sectors", read)]
    columns += [Feature("idle_before_ns", rng.exponential(1e4, N), "context", "time", "ns")]
    columns += [Feature(f"c{k}", rng.standard_normal(N)) for k in range(6)]
    return columns, y


def arrows(columns, y):
    outcome = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))[0]
    return {arrow.name: arrow for arrow in outcome.arrows}


@pytest.mark.parametrize("seed", few(range(20), 2))
def test_a_lever_behind_a_mediator_is_named(seed):
    found = arrows(*mediation(8800 + seed))
    assert set(found) == {"launches_in_flight", "sectors"}
    exposure = found["launches_in_flight"]
    assert (exposure.role, exposure.through) == ("exposure", "sectors")
    assert (found["sectors"].role, found["sectors"].through) == ("mediator", "")
    assert exposure.value_effect.low > 0
    assert sum(arrow.contribution.value for arrow in found.values()) <= 100 + 1e-6


def test_the_slope_of_what_is_mediated_is_that_of_a_regression_on_it_alone():
    columns, y = mediation(8850)
    slope = arrows(columns, y)["launches_in_flight"].value_effect
    expected = np.corrcoef(columns[0].values, y)[0, 1]
    assert slope.low < expected < slope.high
    assert slope.value == pytest.approx(expected, abs=0.1)


def test_a_cause_with_an_effect_of_its_own_is_no_mediated_one():
    found = arrows(*mediation(8860, direct=0.1))
    assert found["launches_in_flight"].through == ""
    assert "sectors" in found


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_an_exposure_without_effect_is_not_named(seed):
    columns, y = mediation(8870 + seed)
    columns[0] = Feature("launches_in_flight", np.random.default_rng(seed).permutation(columns[0].values), "context")
    assert set(arrows(columns, y)) == {"sectors"}


@pytest.mark.parametrize("prevalence", [0.05, 0.15, 0.5, 0.85, 0.95])
def test_the_slope_of_a_slowdown_is_positive_however_common_it_is(prevalence):
    rng = np.random.default_rng(8900)
    busy = (rng.random(N) < prevalence).astype(float)
    y = 1e5 * (1 + 0.07 * busy) * np.exp(0.02 * rng.standard_normal(N))
    columns = [Feature("launches_in_flight", busy, "context"), Feature("z", rng.standard_normal(N))]
    found = arrows(columns, y)
    assert set(found) == {"launches_in_flight"}
    assert found["launches_in_flight"].value_effect.low > 0
