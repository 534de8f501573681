"""Where a dataset's device time goes: efficiency trees, breakdown, idle by cause, launch path and copies."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.efficiency.measure_efficiency import measure_efficiency

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        measure_efficiency(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            job.params.choices,
            job.output.efficiency,
            job.output.table,
        )


if "snakemake" in globals():
    main(snakemake)
