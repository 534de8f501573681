"""The threads of a launch, from the grid and the block of its configuration and what the export's grids count.

NVIDIA's profilers count a grid in blocks, AMD's in work-items, that is in threads: the grid alone is then their number.
"""

import math

import pyarrow as pa

from causeway.core.schemas.star_tables import GRID_AND_BLOCK

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


def launch_threads(configurations: pa.Table) -> list[int | None]:
    """Return the threads of a launch of each configuration; None where the export has no grid, or does not say what its
    grids count.

    Parameters
    ----------
    configurations : Table
        The columns `GRID_AND_BLOCK` of a table of configurations, as it was read: with its metadata. Without a word on
        it, grids count blocks.
    """
    counts = (configurations.schema.metadata or {}).get(f"causeway.{GRID}".encode(), BLOCKS.encode()).decode()
    names = thread_sizes(counts)
    if names is None:
        return [None] * configurations.num_rows
    rows = zip(*(configurations.column(name).to_pylist() for name in names), strict=True)
    return [None if sizes[0] is None else math.prod(1 if one is None else one for one in sizes) for sizes in rows]
