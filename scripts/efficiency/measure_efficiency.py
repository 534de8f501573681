"""Where a dataset's device time goes: efficiency trees, breakdown, idle by cause, launch path and copies."""

from typing import TYPE_CHECKING

from causeway.efficiency.program import run
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        run(job.wildcards.dataset, job.input.tables, job.input.clocks, job.params.choices, job.output.efficiency, job.output.table)


if "snakemake" in globals():
    main(snakemake)
