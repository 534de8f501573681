"""What the agents of a simulated fleet sample: one report per user and day."""

from typing import TYPE_CHECKING

from causeway.fleet.steps import sample
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        sample(job.params.fleet, job.params.seed, job.input.sessions, job.output.reports, job.output.samples)


if "snakemake" in globals():
    main(snakemake)
