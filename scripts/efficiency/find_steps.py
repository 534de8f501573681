"""Steps: the iterations of each rank from annotations or from repeats of its launches, and why some are slow."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.efficiency.steps.find_steps import find_steps

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        find_steps(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            job.params.seed,
            job.output.steps,
            job.output.table,
            job.output.causes,
        )


if "snakemake" in globals():
    main(snakemake)
