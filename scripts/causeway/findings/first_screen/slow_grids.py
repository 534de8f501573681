"""Kernels that are slower with one of their grids than its size explains."""

import math
from contextlib import closing
from dataclasses import dataclass

from causeway.core.names.work_classes import work_of
from causeway.core.queries import bounded_database
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunTables

FEWEST_GRIDS = 4
"""Grids of a kernel of which one may be slow: the others must be alike."""
MOST_APART = 1.2
"""Times by which the time for their size differs between the others at most, to be alike."""
SLOW_GRID = 1.5
"""Times as long as the slowest other one that the slow grid takes for its size, at least."""
GRIDS = (
    "SELECT short_name, max_by([x, y, z], each), max(each) / max(each, 2)[2] AS times, count(*) - 1,"
    " max_by(launches, each), round(max_by(ns, each) * (1 - 1 / times))::BIGINT FROM (SELECT *, x::DOUBLE * y * z"
    " * threads AS size, ns / launches / size AS each FROM (SELECT k.short_name, grid_x AS x, coalesce(grid_y, 1) AS y,"
    " coalesce(grid_z, 1) AS z, coalesce(block_x::DOUBLE * block_y * block_z, 1) AS threads, count(*) AS launches,"
    " sum(duration_ns)::BIGINT AS ns FROM read_parquet($launches)"
    " JOIN read_parquet($configurations) USING (configuration) JOIN read_parquet($kernels) k USING (kernel)"
    " WHERE k.class::VARCHAR = 'compute' AND grid_x > 0 GROUP BY ALL)) GROUP BY short_name HAVING count(*) >= $fewest"
    " AND times >= $slow AND max(each, 2)[2] <= $apart * min(each) AND max_by(size, each) > min(size)"
)
"""Kernels of which one grid takes longer for its size than all others, which are alike: not the smallest, which may
leave a device empty.
"""
DEEP = ("matrix products", "convolution", "attention")
"""Work of which the threads are not the size: a product's depth is not in them."""


@dataclass(frozen=True)
class SlowGridFact:
    """A kernel that is slower with one grid: its name, the grid along x, y and z, how many times as long it takes for
    its size as with its other grids, how many these are, its launches, and what they take beyond the others, ns.
    """

    kernel: str
    grid: tuple[int, ...]
    times: float
    others: int
    launches: int
    cost_ns: int


def slow_grid_facts(tables: RunTables) -> list[SlowGridFact]:
    """Return kernels that take longer for their size with one grid than with all others, which are alike, where that is
    a hundredth of the kernels' time, most first.
    """
    total = math.fsum(row["value_sum"] for row in tables.kernels)
    limits = {"fewest": FEWEST_GRIDS, "apart": MOST_APART, "slow": SLOW_GRID}
    facts = []
    with closing(bounded_database()) as base:
        for folder in tables.folders:
            given = {name: str(folder / f"{name}.parquet") for name in ("launches", "configurations", "kernels")}
            if (folder / "launches.parquet").is_file():
                rows = base.execute(GRIDS, given | limits).fetchall()
                facts += [SlowGridFact(row[0], tuple(row[1]), *row[2:]) for row in rows]
    facts = [fact for fact in facts if fact.cost_ns >= NOTICEABLE * total]
    facts = [fact for fact in facts if work_of(fact.kernel, None, "compute") not in DEEP]
    return sorted(facts, key=lambda fact: (-fact.cost_ns, fact.kernel))
