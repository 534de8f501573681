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


def what_if(grid, block, kernel, scale, other=None, counts="blocks"):
    """Return the what-ifs of launches whose noise has a scale, given for each of them."""
    rng = np.random.default_rng(8)
    sizes = {"grid_x": grid, "grid_y": other, "block_x": block}
    columns = [
        Feature(name, values, "launch", "launch configuration", counts=counts if name.startswith("grid") else "blocks")
        for name, values in sizes.items()
        if values is not None
    ]
    columns.append(Feature("w", rng.standard_normal(ROWS)))
    shapes = np.stack([kernel, grid, np.zeros(ROWS) if block is None else block])
    configuration = np.unique(shapes, axis=1, return_inverse=True)[1].ravel()
    scope = Scope("d", "kernel_variability", "k")
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


MORE = "refused: blocks of another size are more or fewer threads: no launch had as many in such blocks"
UNTOLD = "refused: it is not known whether grids count blocks or threads, so not which launches do as much work"


@pytest.mark.parametrize(("counts", "reason"), [("work-items", None), ("blocks", MORE), ("as launched", UNTOLD)])
def test_a_grid_that_stays_is_the_same_work_where_it_counts_work_items_alone(counts, reason):
    """AMD: 2^15 work-items in blocks of eight sizes. NVIDIA: 2^15 blocks, which are more threads if they are larger."""
    block = drawn(1024)
    (row,) = what_if(np.full(ROWS, 2.0**15), block, np.zeros(ROWS, int), 0.05 * block, counts=counts)
    assert (row.features, row.reason) == (("block_x",), reason)
    if reason:
        assert (row.verdict, row.change, row.after) == ("refused", None, ("another block",))
        return
    assert (row.before, row.after, row.verdict) == (("1,024",), ("16",), "supported")
    truth = 100 * (16 / block.mean() - 1)
    assert row.change.low - 3 <= truth <= row.change.high + 3


def test_work_items_of_blocks_whose_last_is_not_full_are_the_same_work():
    """50,000 elements of the second kernel, in whole blocks: 50,000 to 51,200 work-items. The first one's blocks are
    all alike, and it has more work-items for more data: it stays.
    """
    kernel = np.arange(ROWS) % 2
    size = drawn(64)
    block = np.where(kernel == 0, 128.0, size)
    grid = np.where(kernel == 0, 128.0 * size, np.ceil(50_000 / block) * block)
    (row,) = what_if(grid, block, kernel, 0.05 * np.where(kernel == 0, 100.0, size), counts="work-items")
    own = block[kernel == 1]
    assert (row.features, row.after, row.verdict) == (("block_x",), ("16",), "supported")
    truth = 100 * (16 / own.mean() - 1) / 2
    assert row.change.low - 3 <= truth <= row.change.high + 3


@pytest.mark.parametrize(("counts", "reason"), [("work-items", REASON), ("as launched", UNTOLD)])
def test_more_work_items_are_more_work(counts, reason):
    grid = 256.0 * drawn(16)
    (row,) = what_if(grid, np.full(ROWS, 256.0), np.zeros(ROWS, int), 0.0002 * grid, counts=counts)
    assert (row.verdict, row.reason, row.after) == ("refused", reason, ("another grid",))


def test_blocks_alone_are_set_where_no_grid_was_measured():
    block = drawn(1024)
    rng = np.random.default_rng(8)
    columns = [Feature("block_x", block, "launch", "launch configuration"), Feature("w", rng.standard_normal(ROWS))]
    none = np.zeros(ROWS, int)
    rows = rows_of(1000 + 0.05 * block * rng.standard_normal(ROWS), none, np.unique(block, return_inverse=True)[1])
    outcome, evidence = discover(columns, rows, Scope("d", "kernel_variability", "k"))
    (row,) = what_ifs(intervention_model(outcome, evidence, 1), outcome.arrows)
    assert (row.before, row.after, row.verdict) == (("1,024",), ("16",), "supported")
