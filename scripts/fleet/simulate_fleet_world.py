"""A day of a simulated fleet: who owns which GPU, and what runs on it."""

from typing import TYPE_CHECKING

from causeway.fleet.steps import simulate_world
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        simulate_world(job.params.fleet, job.params.seed, job.output.sessions)


if "snakemake" in globals():
    main(snakemake)
