"""Which rank holds the others back: arrival and transfer of matched collectives, late ranks and why, components of
variance.
"""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.efficiency.ranks.find_stragglers import find_stragglers

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        find_stragglers(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            job.params.seed,
            job.output.stragglers,
            job.output.table,
            runs=dict(job.params.runs),
        )


if "snakemake" in globals():
    main(snakemake)
