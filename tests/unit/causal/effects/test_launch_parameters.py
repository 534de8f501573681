"""What-ifs of launch parameters: nothing is proposed that the size of the work decides, or that is so already."""

import numpy as np
import pytest
from causal_tables import intervention_model, rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import what_ifs

SIZES = 2.0 ** np.arange(4, 12)
ROWS = 6000
REASON = "refused: the grid follows the size of the work: no launch had as many threads in blocks of another size"


def what_if(grid, block, kernel, scale, other=None):
    """Return the what-ifs of launches whose noise has a scale, given for each of them."""
    rng = np.random.default_rng(8)
    sizes = {"grid_x": grid, "grid_y": other, "block_x": block}
    columns = [
        Feature(name, values, "launch", "launch configuration") for name, values in sizes.items() if values is not None
    ]
    columns.append(Feature("w", rng.standard_normal(ROWS)))
    configuration = np.unique(np.stack([kernel, grid]), axis=1, return_inverse=True)[1].ravel()
    scope = Scope("d", "kernel_variability", "k", resamples=0)
    rows = rows_of(1000 + scale * rng.standard_normal(ROWS), kernel, configuration)
    outcome, evidence = discover(columns, rows, scope)
    assert len(outcome.arrows) == 1
    return what_ifs(intervention_model(outcome, evidence, 1), outcome.arrows)


def drawn(often):
    """Draw sizes, one of them in half of the launches."""
    rng = np.random.default_rng(7)
    return rng.choice(SIZES, ROWS, p=np.where(often == SIZES, 0.5, 0.5 / (SIZES.size - 1)))


@pytest.mark.parametrize("block", [None, 256.0])
def test_a_grid_that_grows_with_the_threads_is_not_set(block):
    """Blocks are all alike: 128 times as many blocks do more work."""
    grid = drawn(16)
    (row,) = what_if(grid, None if block is None else np.full(ROWS, block), np.zeros(ROWS, int), 0.05 * grid)
    assert (row.verdict, row.change) == ("refused", None)
    assert row.reason == REASON


def test_a_grid_of_as_many_blocks_in_another_direction_is_not_set():
    """Tiles of matrices: rows times columns are the same, and so are the blocks; the shape of the data is another."""
    grid = drawn(16)
    (row,) = what_if(grid, np.full(ROWS, 256.0), np.zeros(ROWS, int), 0.05 * grid, other=2.0**15 / grid)
    assert (row.verdict, row.reason) == ("refused", REASON)


def test_blocks_with_a_grid_of_as_many_threads_are_set_and_no_value_is_proposed_instead_of_itself():
    """The two change together. The best is also the one that most launches have: what is replaced is the most frequent of the others."""
    grid = drawn(16)
    others = np.where(grid == 16, 0, grid)
    values, many = np.unique(others[others > 0], return_counts=True)
    (row,) = what_if(grid, 2.0**15 / grid, np.zeros(ROWS, int), 0.05 * grid)
    usual = values[np.argmax(many)]
    assert (row.features, row.before, row.after) == (("grid_x",), (f"{usual:,.0f}",), ("16",))
    truth = 100 * (16 / grid.mean() - 1)
    assert row.verdict == "supported"
    assert row.change.low - 3 <= truth <= row.change.high + 3


def test_of_two_kernels_the_one_whose_work_is_the_same_is_set():
    """The second kernel works on 50,000 elements in blocks of eight sizes, the last of which is not full: 49 blocks at
    the fewest. Each kernel counts alike, and the first, whose blocks are all alike, stays as it is.
    """
    kernel = np.arange(ROWS) % 2
    size = drawn(64)
    block = np.where(kernel == 0, 128.0, size / 2)
    grid = np.where(kernel == 0, size, np.ceil(50_000 / block))
    (row,) = what_if(grid, block, kernel, 0.05 * grid)
    own = grid[kernel == 1]
    assert (row.features, row.before, row.after) == (("grid_x",), ("1,563",), ("49",))
    truth = 100 * (49 / own.mean() - 1) / 2
    assert row.change.low - 3 <= truth <= row.change.high + 3
