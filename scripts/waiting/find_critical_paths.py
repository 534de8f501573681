"""What the time of a dataset's ranks had to wait for, and what a change would be worth."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.efficiency.ranks.exchanges import left_together
from causeway.waiting.find_critical_paths import find_critical_paths
from causeway.waiting.graph.graph_builder import Matched

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        find_critical_paths(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            job.input.steps,
            [Matched(*group) for group in left_together(job.input.tables, job.input.clocks)],
            job.output.path,
            job.output.replay,
            job.output.pieces,
        )


if "snakemake" in globals():
    main(snakemake)
