"""When the order of the program is a candidate, on tables whose answer is known."""

import numpy as np
import pytest
from causal_documents import arrow

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Outcome, Scope
from causeway.causal.preparation.known_relations import superfluous_orders, variance_between, with_kernel_names

ROWS = 240
LAYERS = 8
IN_STEP = "launch_in_step"
AFTER = "launched_after"


def rows_of(kernel=None, configuration=None):
    zeros = np.zeros(ROWS, int)
    ones = np.ones(ROWS)
    return Observations(
        ones,
        ones,
        ones,
        ones,
        ones,
        zeros if kernel is None else kernel,
        zeros if configuration is None else configuration,
    )


def texts(name, codes):
    return Feature(name, np.array([f"{name} {code}" for code in codes], object), "context", "time")


@pytest.fixture
def layers():
    """Return the layer of each launch, and a response of which the layers are 90 % of the variance."""
    rng = np.random.default_rng(4)
    layer = np.tile(np.arange(LAYERS), ROWS // LAYERS)
    own = rng.permutation(np.linspace(-1.5, 1.5, LAYERS))
    return layer, own[layer] + 0.3 * rng.standard_normal(ROWS)


def test_of_two_that_tell_the_same_the_order_in_the_step_is_the_candidate(layers):
    layer, response = layers
    found = superfluous_orders([texts(AFTER, layer), texts(IN_STEP, layer)], rows_of(), response, ROWS)
    assert set(found) == {AFTER}


def test_the_launch_before_is_the_candidate_where_it_tells_clearly_more(layers):
    layer, response = layers
    found = superfluous_orders([texts(AFTER, layer), texts(IN_STEP, layer // 4)], rows_of(), response, ROWS)
    assert set(found) == {IN_STEP}


@pytest.mark.parametrize(
    ("name", "of_layer", "is_superfluous"),
    [
        ("shape_bytes", lambda layer: layer * 100.0, True),
        ("shape_bytes", lambda layer: np.where(layer == 3, np.nan, layer), True),
        ("operator", lambda layer: layer % 2, False),
        ("module", lambda layer: layer * 0, False),
        ("idle_before_ns", lambda layer: layer * 100.0, False),
    ],
)
def test_it_is_none_where_the_host_recorded_what_tells_as_much(layers, name, of_layer, is_superfluous):
    layer, response = layers
    values = of_layer(layer)
    recorded = texts(name, values) if name in ("operator", "module") else Feature(name, values, "context", "input")
    found = superfluous_orders([texts(IN_STEP, layer), recorded], rows_of(), response, ROWS)
    assert set(found) == ({IN_STEP} if is_superfluous else set())


def test_two_records_that_tell_it_together_count(layers):
    layer, response = layers
    recorded = [texts("operator", layer // 4), Feature("shape_bytes", layer % 4 * 10.0, "context", "input")]
    for columns, superfluous in ((recorded, {IN_STEP}), (recorded[:1], set())):
        assert set(superfluous_orders([texts(IN_STEP, layer), *columns], rows_of(), response, ROWS)) == superfluous


def test_it_is_none_of_several_kernels_and_asked_within_configurations(layers):
    layer, response = layers
    columns = [texts(IN_STEP, layer), texts(AFTER, layer), texts("operator", layer % 2)]
    assert set(superfluous_orders(columns, rows_of(kernel=layer % 2), response, ROWS)) == {IN_STEP, AFTER}
    assert superfluous_orders([texts("operator", layer)], rows_of(), response, ROWS) == {}
    # the operator tells nothing within configurations that it alone tells apart
    pairs = rows_of(configuration=layer % 2)
    assert set(superfluous_orders(columns[::2], pairs, response + 100.0 * (layer % 2), ROWS)) == set()


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_between_groups_equals_a_prediction_of_each_row_from_the_others(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 30, 80)
    response = rng.standard_normal(80)
    weight = rng.uniform(0.5, 3, 80)
    left = 0.0
    for row in range(80):
        others = np.flatnonzero((groups == groups[row]) & (np.arange(80) != row))
        predicted = np.average(response[others], weights=weight[others]) if others.size else 0.0
        left += weight[row] * (response[row] - predicted) ** 2
    codes = np.unique(groups, return_inverse=True)[1]
    assert variance_between(response, codes, weight) == pytest.approx(1 - left / (weight @ response**2))


def test_the_kernel_before_is_noted_with_its_full_name():
    arrows = (arrow("launched_after", levels=("sum-1a (grid 8)",)), arrow("operator", levels=("copy-2b",)))
    outcome = Outcome(
        scope=Scope("d", "kernel_variability", "k"), seed=1, n_rows=9, n_effective=9.0, arrows=arrows, notes=("few",)
    )
    found = with_kernel_names(outcome, {"sum-1a": f"sum<{'T' * 1000}>", "copy-2b": "copy"})
    note, other = found.notes
    assert other == "few"
    assert note.startswith("sum-1a is the kernel sum<TTT")
    assert len(note) < 430
    assert with_kernel_names(outcome, {}).notes == ("few",)
