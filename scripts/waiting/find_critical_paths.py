"""What the time of a dataset's ranks had to wait for, and what a change would be worth."""

from typing import TYPE_CHECKING

import numpy as np

from causeway.core.logs import failing_clearly
from causeway.efficiency.ranks.collectives import MatchedCollectives, bus_factor
from causeway.efficiency.ranks.find_stragglers import matched
from causeway.waiting.find_critical_paths import find_critical_paths
from causeway.waiting.graph.read_graph import Matched

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def joint(group: MatchedCollectives) -> Matched:
    """Return the collectives of a group that all ranks leave together, with the bytes that cross each link."""
    together = group.synchronising()
    factors = [bus_factor(word, len(group.ranks)) or -1.0 for word in group.operations]
    sizes = np.where((group.bytes > 0) & (np.array(factors) > 0), group.bytes * factors, -1).astype(np.int64)
    return Matched(ranks=group.ranks, start=group.start[:, together], bus_bytes=sizes[together])


def main(job) -> None:
    with failing_clearly(job.log[0]):
        find_critical_paths(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            job.input.steps,
            [joint(group) for group in matched(job.input.tables)[0]],
            job.output.path,
            job.output.replay,
            job.output.pieces,
        )


if "snakemake" in globals():
    main(snakemake)
