"""Write a simulated run: exports in the vendor's format and what was planted in them."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.simulate.runs import write_run

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        write_run(job.params.scenario, job.output.run)


if "snakemake" in globals():
    main(snakemake)
