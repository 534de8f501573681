"""Each world is what its title says, by another computation than the one that drew it."""

import numpy as np
import pytest

from lab.validation.cases import CASES, drawn
from lab.validation.further_generators.additive import AdditiveSettings, draw_additive
from lab.validation.further_generators.special_cases import PREVALENCES, WORLDS, WorldSettings, draw_world
from lab.validation.time_truth import time_truth


def world(name, seed=3):
    return draw_world(WorldSettings(name), seed)


def r2(x, y):
    return np.corrcoef(x, y)[0, 1] ** 2


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_seed_gives_the_same_table_and_playing_it_gives_the_same_times(name):
    table = world(name)
    again = world(name)
    np.testing.assert_array_equal(table.y, again.y)
    assert list(table.columns) == list(again.columns)
    assert not np.array_equal(world(name, 4).y, table.y)
    np.testing.assert_allclose(table.play({}), table.y)
    np.testing.assert_allclose(table.play(table.drivers), table.y)
    assert not np.allclose(table.play({}, 5), table.y)
    np.testing.assert_array_equal(table.play({}, 5), table.play({}, 5))
    assert set(table.causes) <= set(table.columns)
    assert sum(table.shares.values()) == pytest.approx(100)


def test_one_counter_is_the_whole_time():
    table = world("determined")
    (cause,) = table.determining
    assert r2(np.log(table.columns[cause]), np.log(table.y)) > 0.99


@pytest.mark.parametrize("seed", range(7))
def test_a_binary_cause_costs_the_same_at_any_prevalence(seed):
    table = world("prevalence", seed)
    (cause,) = table.causes
    share = table.columns[cause].mean()
    assert share == pytest.approx(PREVALENCES[seed], abs=0.03)
    mean_off, mean_on = (table.y[table.columns[cause] == one].mean() for one in (0, 1))
    assert mean_on / mean_off == pytest.approx(np.exp(0.06), abs=0.01)
    expected = 100 * (np.exp(0.06) - 1) * mean_off / table.y.mean()
    assert time_truth(table, cause).mean == pytest.approx(expected, rel=0.08)


def test_an_exposure_acts_through_its_counter_alone():
    table = world("behind")
    exposure, counter = table.causes
    low = np.zeros(table.y.size)
    high = np.full(table.y.size, 2.0**21)
    moved = np.log(table.play({exposure: high}) / table.play({exposure: low}))
    np.testing.assert_allclose(moved, 2.5e-6 * 2**21 / 64)
    held = {counter: table.columns[counter]}
    np.testing.assert_allclose(table.play({exposure: high} | held), table.y)


def test_waves_correlate_with_a_time_that_nothing_causes():
    tables = [world("null_waves", seed) for seed in range(4)]
    assert all(table.causes == [] for table in tables)
    strongest = [
        max(r2(values, table.y) for name, values in table.columns.items() if "wave" in name) for table in tables
    ]
    assert max(strongest) > 0.05


def test_a_bystander_correlates_with_the_time_and_does_nothing():
    table = world("correlated")
    bystander = table.columns["dram__reads_x_3"]
    assert r2(bystander, table.y) > 0.25
    one, other = (table.columns[name] for name in table.causes)
    assert np.sqrt(r2(one, other)) == pytest.approx(0.8, abs=0.04)
    design = np.column_stack([np.ones(table.y.size), one, other, bystander])
    slopes = np.linalg.lstsq(design, np.log(table.y), rcond=None)[0]
    np.testing.assert_allclose(slopes[1:], [2.5e-4, 3e-4, 0.0], atol=2e-5)


@pytest.mark.parametrize(("seed", "sign"), [(2, -1), (3, 1)])
def test_a_ratio_or_a_total_acts_beyond_its_parts(seed, sign):
    table = world("ratio", seed)
    (cause,) = table.causes
    hits = table.columns["lts__tags_a_10"]
    misses = table.columns["lts__tags_b_11"]
    np.testing.assert_allclose(table.columns[cause], 100 * hits / (hits + misses) if sign < 0 else hits + misses)
    assert np.sign(time_truth(table, cause).mean) == sign


def test_a_cause_acts_in_two_of_eight_kernels():
    table = world("some_kernels")
    (cause,) = table.causes
    doubled = table.play({cause: 2 * table.columns[cause]})
    moved = {
        int(kernel)
        for kernel in np.unique(table.kernel)
        if np.any(doubled[table.kernel == kernel] != table.y[table.kernel == kernel])
    }
    assert moved == {0, 1}


def test_an_exposed_copy_follows_its_bytes_and_what_is_copied_beside_it():
    table = world("exposed_copy")
    assert table.target == "memory_stall"
    assert r2(table.columns["transfer_bytes"], table.y) > 0.3
    alone = table.play({"d2h_bytes_in_flight": np.zeros(table.y.size)})
    rate = np.where(table.columns["transfer_copy_kind"] == "host to device", 24.0, 20.0)
    longer = table.columns["transfer_bytes"] / rate * table.columns["d2h_bytes_in_flight"] / 2**23
    clear = alone > 10_000
    np.testing.assert_allclose((table.y - alone)[clear & (table.y > alone)], longer[clear & (table.y > alone)])


def test_added_mechanisms_cost_what_a_regression_finds():
    table = draw_additive(AdditiveSettings(kernels=1), 4)
    extras = [name for name in table.causes if name in ("smem_replayed", "ecc_hit")]
    assert extras
    for name in extras:
        step = table.play({name: table.drivers[name] + 1.0}) - table.y
        assert np.ptp(step) <= 33.0
        assert (step.mean() > 0) == (table.moves[name] > 0)


def test_hidden_heat_moves_its_columns_and_the_time():
    table = draw_additive(AdditiveSettings(hidden=True), 4)
    plain = draw_additive(AdditiveSettings(), 4)
    assert not plain.proxies
    for name in table.proxies:
        assert name not in table.causes
        within = table.y / (np.bincount(table.kernel, table.y) / np.bincount(table.kernel))[table.kernel]
        assert r2(table.columns[name], within) > 0.01


def test_every_case_draws():
    assert {name for name, case in CASES.items() if isinstance(case.settings, WorldSettings)} == set(WORLDS)
    assert drawn(CASES["additive_null"].settings, 1).causes == []
