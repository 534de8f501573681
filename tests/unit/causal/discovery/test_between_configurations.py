import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Candidate, configuration_spread, standardised_deviation
from causeway.causal.discovery.between_configurations import configuration_effects


def effects(y, configuration, features, kernel=None):
    """Return names with signs, reasons by name."""
    rows = rows_of(y, kernel, configuration)
    spread = configuration_spread(rows)
    candidates = [
        Candidate(name, "launch", "launch configuration", "", np.asarray(values), (name,))
        for name, values in features.items()
    ]
    found, dropped, _ = configuration_effects(candidates, rows, standardised_deviation(rows, spread), spread)
    return {effect.candidate.name: "+" if effect.slope > 0 else "-" for effect in found}, {
        d.feature: d.reason for d in dropped
    }


@pytest.fixture
def run():
    """Twelve configurations of 200 launches: four block sizes, three grid sizes; the mean is proportional to the
    grid.
    """
    rng = np.random.default_rng(1)
    configuration = rng.integers(0, 12, 2400)
    block = 64.0 * 2 ** (np.arange(12) % 4)
    grid = 100.0 * (1 + np.arange(12) // 4)
    return rng.standard_normal(2400), configuration, block, grid


def test_a_block_size_that_scales_the_noise_is_found(run):
    noise, configuration, block, grid = run
    y = 1000 * grid[configuration] * (1 + 0.01 * (block[configuration] / 64) ** 0.8 * noise)
    assert effects(y, configuration, {"block_x": block, "grid_x": grid}) == ({"block_x": "+"}, {})


def test_longer_launches_that_vary_more_only_because_they_are_longer_are_not_a_cause(run):
    noise, configuration, block, grid = run
    y = 1000 * grid[configuration] * (1 + 0.02 * noise)
    assert effects(y, configuration, {"block_x": block, "grid_x": grid})[0] == {}


def test_noise_that_does_not_depend_on_the_length_is_not_a_cause(run):
    noise, configuration, block, grid = run
    y = 1000 * grid[configuration] + 500 * noise
    assert effects(y, configuration, {"block_x": block, "grid_x": grid})[0] == {}


def test_features_that_change_together_are_merged(run):
    noise, configuration, block, grid = run
    y = 1e5 * (1 + 0.01 * (block[configuration] / 64) * noise)
    found, reasons = effects(y, configuration, {"block_x": block, "shared": block * 16, "grid_x": grid})
    assert list(found) == ["shared"]
    assert reasons == {"block_x": "merged into shared: they change together over the configurations"}


def test_two_configurations_prove_nothing_however_many_launches():
    rng = np.random.default_rng(2)
    configuration = rng.integers(0, 2, 20000)
    y = 1e5 * (1 + 0.01 * (1 + 5 * configuration) * rng.standard_normal(20000))
    found, reasons = effects(y, configuration, {"grid_x": [1.0, 2.0]})
    assert found == {}
    assert "2 configurations" in reasons["grid_x"]


def test_null_configurations_give_no_cause():
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        configuration = rng.integers(0, 8, 800)
        y = 1e5 * (1 + 0.01 * np.exp(0.5 * rng.standard_normal(8))[configuration] * rng.standard_t(5, 800))
        found += len(effects(y, configuration, {name: rng.uniform(1, 100, 8) for name in "abc"})[0])
    assert found / 200 <= 0.03


def test_kernels_are_compared_within_themselves_only():
    # the larger kernels are the noisier ones, but within each kernel the size does nothing
    rng = np.random.default_rng(3)
    kernel_of = np.repeat([0, 1, 2], 6)
    configuration = rng.integers(0, 18, 5400)
    size = 10.0**kernel_of * rng.uniform(1, 4, 18)
    y = 1e5 * (1 + 0.01 * 3.0 ** kernel_of[configuration] * rng.standard_normal(5400))
    assert effects(y, configuration, {"grid_x": size}, kernel_of[configuration])[0] == {}
