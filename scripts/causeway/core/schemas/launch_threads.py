"""The threads of a launch, from the grid and the block of its configuration and what the export's grids count.

NVIDIA's profilers count a grid in blocks, AMD's in work-items, that is in threads: the grid alone is then their number.
"""

import math

import pyarrow as pa

from causeway.core.schemas import GRID_AND_BLOCK

GRID = "grid"
"""Under this name, the metadata of an export's tables says what its grids count, as the column map says it."""
BLOCKS = "blocks"
WORK_ITEMS = "work-items"
AS_LAUNCHED = "as launched"
"""Of each launch what its call counts, which is not known."""


def thread_sizes(counts: str) -> list[str] | None:
    """Return the columns of `GRID_AND_BLOCK` whose product is the threads of a launch, where grids count `BLOCKS` or
    `WORK_ITEMS`; None for another word.
    """
    return {BLOCKS: GRID_AND_BLOCK, WORK_ITEMS: GRID_AND_BLOCK[:3]}.get(counts)


def grid_counts(configurations: pa.Table) -> str:
    """Return what the grids of a table count, as its metadata says; without a word on it, blocks.

    Parameters
    ----------
    configurations : Table
        Of `configurations`, any columns of it, with its metadata.
    """
    return (configurations.schema.metadata or {}).get(f"causeway.{GRID}".encode(), BLOCKS.encode()).decode()


def launch_threads(configurations: pa.Table) -> list[int | None]:
    """Return the threads of a launch of each configuration; None where the export has no grid, or does not say what its
    grids count.

    Parameters
    ----------
    configurations : Table
        The columns `GRID_AND_BLOCK` of a table of configurations, as it was read: with its metadata. Without a word on
        it, grids count blocks.
    """
    names = thread_sizes(grid_counts(configurations))
    if names is None:
        return [None] * configurations.num_rows
    rows = zip(*(configurations.column(name).to_pylist() for name in names), strict=True)
    return [None if sizes[0] is None else math.prod(1 if size is None else size for size in sizes) for sizes in rows]


def grids_in_blocks(configurations: pa.Table) -> list[tuple[int | None, ...]]:
    """Return the blocks of a launch of each configuration in x, y and z, a last one that is not full among them; None
    where they are not known.

    Parameters
    ----------
    configurations : Table
        The columns `GRID_AND_BLOCK` of a table of configurations, as in `launch_threads`.
    """
    counts = grid_counts(configurations)
    grids, blocks = (
        zip(*(configurations.column(name).to_pylist() for name in names), strict=True)
        for names in (GRID_AND_BLOCK[:3], GRID_AND_BLOCK[3:])
    )
    if counts == BLOCKS:
        return list(grids)
    if counts != WORK_ITEMS:
        return [(None, None, None)] * configurations.num_rows
    return [
        tuple(None if items is None or not size else -(-items // size) for items, size in zip(grid, block, strict=True))
        for grid, block in zip(grids, blocks, strict=True)
    ]
