"""A kernel that layers launch in turn: what differs from layer to layer is no cause of what differs between launches."""

import numpy as np
import pytest

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")
LAYERS = 12
STEPS = 120
NOISE = 15
"""Metrics that differ from layer to layer and that nothing relates to the time."""


def rows_of(time):
    """Return launches of one configuration that take these times."""
    deviation = time - time.mean()
    mean, std = (np.full(time.size, value) for value in (time.mean(), time.std()))
    same = np.zeros(time.size, int)
    return Observations(np.abs(deviation), deviation, mean, std, np.ones(time.size), same, same)


def in_step(layer):
    words = np.array([f"launch {at + 1} of configuration 3" for at in layer], object)
    return Feature("launch_in_step", words, "context", "time")


def after(layer):
    words = np.array([f"kernel-{at % 5} (grid {at} x 1 x 1)" for at in layer], object)
    return Feature("launched_after", words, "context", "time")


def named(seed, own, known=(), recorded=lambda time: ()):
    """Return the causes found where a cause `x` varies from launch to launch, and layers have times of their own that
    differ by `own` standard deviations of what is left; `recorded` are features of a layer's own time.
    """
    rng = np.random.default_rng(seed)
    layer = np.tile(np.arange(LAYERS), STEPS)
    metrics = [rng.normal(size=LAYERS)[layer] + 0.3 * rng.normal(size=layer.size) for _ in range(NOISE)]
    x = rng.normal(size=layer.size)
    time = own * rng.normal(size=LAYERS)[layer]
    value = 1000 + 10 * time + 10 * rng.normal(size=layer.size) + 5 * x
    rows = rows_of(value)
    columns = [Feature(f"metric{at}", one, "context", "device metrics") for at, one in enumerate(metrics)]
    columns.append(Feature("x", x, "context", "device metrics"))
    columns += [order(layer) for order in known]
    columns += recorded(time)
    return {arrow.name for arrow in discover(columns, rows, Scope("d", "kernel_variability", "k"))[0].arrows}


@pytest.mark.parametrize("seed", few([9701, 9702, 9703], 1))
def test_the_order_in_the_step_takes_the_place_of_what_differs_between_layers(seed):
    assert named(seed, own=2, known=[in_step]) == {"launch_in_step", "x"}


@pytest.mark.slow
def test_without_it_metrics_of_the_layers_are_named():
    assert len(named(9704, own=2)) > 2


@pytest.mark.parametrize("seed", few([9711, 9712], 1))
def test_it_is_not_named_where_layers_take_the_same_time(seed):
    assert named(seed, own=0, known=[in_step, after]) == {"x"}


@pytest.mark.parametrize("seed", few([9721, 9722], 1))
def test_the_launch_before_takes_it_where_no_steps_are_known(seed):
    assert named(seed, own=2, known=[after]) == {"launched_after", "x"}


@pytest.mark.parametrize("seed", few([9731, 9732], 1))
def test_the_size_of_the_input_is_named_instead_of_either_order_where_it_was_recorded(seed):
    def sizes(time):
        return [Feature("shape_elements", np.round(1e6 * (5 + time)), "context", "input")]

    found = named(seed, own=2, known=[in_step, after], recorded=sizes)
    assert found == {"shape_elements", "x"}


def test_an_operator_that_tells_nothing_takes_no_place():
    def operators(time):
        return [Feature("operator", np.array(["aten::mm", "aten::bmm"], object)[np.arange(time.size) % 7 % 2])]

    assert named(9741, own=2, known=[in_step], recorded=operators) == {"launch_in_step", "x"}


def sized(seed, of_size):
    """Return the supported causes found where the size of a layer's input decides on its time, layers also differ in
    what is in flight and queued, and 26 layers run twelve times.
    """
    rng = np.random.default_rng(seed)
    layer = np.tile(np.arange(26), 12)
    sizes = (np.sort(rng.choice(np.arange(1, 40), 6, replace=False)) * 1e5)[rng.integers(0, 6, 26)]
    time = of_size(sizes / sizes.mean(), rng)[layer] * (1 + 0.03 * rng.normal(size=layer.size))
    time += 0.1 * time.std() * rng.normal(size=layer.size)
    rows = rows_of(time)
    in_flight = rng.poisson(2, 26)[layer] + rng.poisson(0.5, layer.size)
    queue = rng.exponential(1e4, 26)[layer] * (1 + 0.2 * rng.normal(size=layer.size))
    columns = [
        Feature("shape_elements", sizes[layer], "context", "input"),
        Feature("launches_in_flight", in_flight.astype(float), "context", "contention"),
        Feature("queue_ns", queue, "context", "time", "ns"),
        in_step(layer),
        after(rng.integers(0, 9, 26)[layer]),
    ]
    outcome = discover(columns, rows, Scope("d", "kernel_variability", "k"))[0]
    return {arrow.name for arrow in outcome.arrows if arrow.verdict == "supported"}


@pytest.mark.usefixtures("exact_shares")
def test_a_size_that_bends_the_time_is_named_in_most_tables_and_never_beside_the_order():
    """Where few sizes are left to tell layers apart by, the order is: it takes what the size leaves of each layer."""
    found = [sized(seed, lambda size, _: size**2.2) for seed in range(9771, 9779)]
    assert sum(one == {"shape_elements"} for one in found) > len(found) / 2
    assert all(len(one & {"launch_in_step", "shape_elements"}) == 1 for one in found)


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize("seed", few([9761, 9762, 9763], 1))
def test_a_size_that_the_search_cannot_tell_leaves_its_place_to_the_order(seed):
    def random_per_size(size, rng):
        own = rng.permutation(np.unique(size))
        return own[np.unique(size, return_inverse=True)[1]]

    assert sized(seed, random_per_size) & {"launch_in_step", "shape_elements"}


BY_SIZE = np.array([7844.0, 13749, 19623, 25415])
"""Nearly a line, as times of a kernel by the number of rows that it works on."""


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize("seed", few(range(9781, 9787), 2))
def test_a_size_that_all_layers_of_a_step_share_is_named_and_not_the_grid_of_the_launch_before(seed):
    """80 steps of eight layers: half-samples have some 40 independent rows, and all but a thousandth of the variance
    lies between sizes. The launch before tells the same sizes apart by its grid.
    """
    rng = np.random.default_rng(seed)
    size = np.repeat(rng.integers(0, 4, 80), 8)
    time = BY_SIZE[size] + 60 * np.repeat(rng.normal(size=80), 8) + 120 * rng.normal(size=size.size)
    columns = [Feature("shape_elements", 1e6 * (size + 1), "context", "input"), after(size)]
    outcome = discover(columns, rows_of(time), Scope("d", "kernel_variability", "k"))[0]
    (arrow,) = outcome.arrows
    assert (arrow.name, arrow.verdict, arrow.determines_time) == ("shape_elements", "supported", True)
