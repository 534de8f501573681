"""The samples of a simulated fleet's agents: one report per user and day."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.steps import sample

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        sample(job.params.fleet, job.params.seed, job.input.sessions, job.output.reports, job.output.samples)


if "snakemake" in globals():
    main(snakemake)
