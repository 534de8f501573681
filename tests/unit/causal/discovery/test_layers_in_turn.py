"""A kernel that layers launch in turn: what differs from layer to layer is no cause of what differs between launches."""

import numpy as np
import pytest

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover

LAYERS = 12
STEPS = 120
NOISE = 15
"""Metrics that differ from layer to layer and that nothing relates to the time."""


def named(seed, own, is_known):
    """Return the causes found where a cause `x` varies from launch to launch, and layers have times of their own that
    differ by `own` standard deviations of what is left.
    """
    rng = np.random.default_rng(seed)
    layer = np.tile(np.arange(LAYERS), STEPS)
    metrics = [rng.normal(size=LAYERS)[layer] + 0.3 * rng.normal(size=layer.size) for _ in range(NOISE)]
    x = rng.normal(size=layer.size)
    value = 1000 + 10 * own * rng.normal(size=LAYERS)[layer] + 10 * rng.normal(size=layer.size) + 5 * x
    deviation = value - value.mean()
    same = np.zeros(layer.size, int)
    rows = Observations(
        np.abs(deviation),
        deviation,
        np.full(layer.size, value.mean()),
        np.full(layer.size, value.std()),
        np.ones(layer.size),
        same,
        same,
    )
    columns = [Feature(f"metric{at}", one, "context", "device metrics") for at, one in enumerate(metrics)]
    columns.append(Feature("x", x, "context", "device metrics"))
    if is_known:
        words = np.array([f"launch {at + 1} of configuration 3" for at in layer], object)
        columns.append(Feature("launch_in_step", words, "context", "time"))
    return {
        arrow.name for arrow in discover(columns, rows, Scope("d", "kernel_variability", "k", resamples=20))[0].arrows
    }


@pytest.mark.parametrize("seed", [9701, 9702, 9703])
def test_the_order_in_the_step_takes_the_place_of_what_differs_between_layers(seed):
    assert named(seed, own=2, is_known=True) == {"launch_in_step", "x"}


def test_without_it_metrics_of_the_layers_are_named():
    assert len(named(9702, own=2, is_known=False)) > 2


@pytest.mark.parametrize("seed", [9711, 9712])
def test_it_is_not_named_where_layers_take_the_same_time(seed):
    assert named(seed, own=0, is_known=True) == {"x"}
