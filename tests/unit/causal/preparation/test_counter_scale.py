"""Counters of kernels of all sizes: read by what is usual where the target goes with that, by their unit where it
goes with the unit.
"""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.numeric_columns import better_standardised, standardised_within_configuration
from causeway.causal.preparation.prepare import prepare
from causeway.causal.selection.problem import DesignCache

pytestmark = [
    pytest.mark.usefixtures("rough_shares"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
N = 1200
KERNELS = 10


def centred(values, group):
    return values - (np.bincount(group, values) / np.bincount(group))[group]


def world(seed, by_share, strength=0.02):
    """Twenty counters of kernels of all sizes, of which the first four are causes: by the share of what is usual, or
    by their unit.
    """
    rng = np.random.default_rng(seed)
    kernel = rng.integers(0, KERNELS, N)
    z = 0.4 * rng.standard_normal((N, 20))
    columns = 1e5 * np.exp(z + 1.5 * rng.standard_normal((KERNELS, 20))[kernel])
    felt = z[:, :4] if by_share else np.column_stack([centred(column, kernel) for column in columns.T[:4]])
    change = (felt / felt.std(axis=0)) @ [1.0, -0.8, 0.7, 0.9] + rng.standard_normal(N)
    y = 1e6 * np.exp(0.3 * rng.standard_normal(KERNELS)[kernel] + strength * change)
    return [Feature(f"c{k}", column) for k, column in enumerate(columns.T)], y, kernel


def causes_of(columns, y, kernel):
    outcome, _ = discover(columns, rows_of(y, kernel), Scope("d", "y", "dataset"))
    return {arrow.name for arrow in outcome.arrows}, outcome.notes


def test_a_column_is_put_in_spreads_of_its_configuration_by_the_formula():
    rng = np.random.default_rng(1)
    kernel = np.repeat([0, 1], [60, 40])
    configuration = np.repeat([0, 1, 2, 3], [57, 3, 20, 20])
    values = np.exp(0.2 * rng.standard_normal(100)) * np.array([10.0, 200.0, 3.0, 5e4])[configuration]
    values[80:] = 5e4  # nothing varies in the last one
    rows = rows_of(1e5 + rng.standard_normal(100), kernel, configuration)
    around = centred(values, configuration)
    means = np.bincount(configuration, values) / np.bincount(configuration)
    variance = np.bincount(configuration, around**2) / np.bincount(configuration)
    relative = (around / means[configuration]) ** 2
    typical = np.array([relative[kernel == k].mean() for k in (0, 1)])[[0, 0, 1, 1]] * means**2
    counts = np.bincount(configuration)
    spread = np.sqrt((counts * variance + 5 * typical) / (counts + 5))
    found = standardised_within_configuration(values, around, rows)
    assert found == pytest.approx(around / spread[configuration])
    assert not found[80:].any()
    assert standardised_within_configuration(1e200 * values, 1e200 * around, rows) == pytest.approx(found)
    signs = values * rng.choice([-1, 1], 100)  # no means to be relative to
    around = centred(signs, configuration)
    variance = np.bincount(configuration, around**2) / counts
    typical = np.array([(around[kernel == k] ** 2).mean() for k in (0, 1)])[[0, 0, 1, 1]]
    spread = np.sqrt((counts * variance + 5 * typical) / (counts + 5))
    assert standardised_within_configuration(signs, around, rows) == pytest.approx(around / spread[configuration])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("by_share", [True, False])
def test_causes_are_found_by_either_reading(by_share, seed):
    columns, y, kernel = world(seed, by_share)
    found, notes = causes_of(columns, y, kernel)
    assert found == {"c0", "c1", "c2", "c3"}
    assert any("standardised within their configuration" in note for note in notes) == by_share


def test_what_tells_nothing_is_read_by_its_unit_and_one_configuration_has_one_reading():
    columns, y, kernel = world(7, by_share=True, strength=0.0)
    rows = rows_of(np.random.default_rng(7).permutation(y), kernel)
    counts = [centred(column.values, kernel) for column in columns]
    relative = [
        standardised_within_configuration(column.values, part, rows)
        for column, part in zip(columns, counts, strict=True)
    ]
    assert not better_standardised(counts, relative, rows).any()
    alone = prepare(columns, rows_of(y), "y")
    assert (alone.on_two_scales, alone.standardised) == (set(), set())


def test_a_counter_on_two_scales_counts_as_two_tests():
    columns, y, kernel = world(8, by_share=True)
    rows = rows_of(y, kernel)
    found = prepare(
        [*columns, Feature("queue_ns", np.random.default_rng(8).exponential(size=N), "context", "time")], rows, "y"
    )
    assert found.on_two_scales == {column.name for column in columns}
    assert DesignCache(rows, found.on_two_scales).plain(found.within).problem.n_tests == 41
    assert DesignCache(rows).plain(found.within).problem.n_tests == 21


def test_noise_has_no_cause_in_kernels_of_all_sizes():
    named = 0
    for seed in range(20):
        columns, _, kernel = world(100 + seed, by_share=True)
        noise = np.random.default_rng(seed).standard_normal(N)
        named += len(causes_of(columns, 1e6 * np.exp(0.3 * np.arange(KERNELS)[kernel] + 0.02 * noise), kernel)[0])
    assert named <= 1


def test_columns_are_merged_by_what_they_share_in_kernels_of_all_sizes():
    """Two counters that go together in the largest kernel alone are two; a copy in other units is one in all of
    them.
    """
    columns, y, kernel = world(9, by_share=True)
    work = 10.0 ** np.arange(KERNELS)[kernel]
    rng = np.random.default_rng(9)
    here, there = (np.exp(0.3 * rng.standard_normal(N)) for _ in range(2))
    there[kernel == KERNELS - 1] = here[kernel == KERNELS - 1]
    pair = [Feature("here", here * work), Feature("there", there * work)]
    assert (
        np.corrcoef(centred(pair[0].values, kernel), centred(pair[1].values, kernel))[0, 1] > 0.95
    )  # so they would be merged
    found = prepare([*columns[:4], *pair, Feature("copy", here * work / 32 + 5)], rows_of(y, kernel), "y")
    clusters = [set(candidate.members) for candidate in found.within]
    assert {"here", "copy"} in clusters
    assert {"there"} in clusters
