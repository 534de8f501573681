"""A day of a simulated fleet: who owns which GPU, and which applications run on it."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.steps import simulate_world

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        simulate_world(job.params.fleet, job.params.seed, job.output.sessions)


if "snakemake" in globals():
    main(snakemake)
