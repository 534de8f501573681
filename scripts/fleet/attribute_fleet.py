"""Each client's attribution of its own sample: an application of the catalogue, or an anonymous cluster."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.steps import attribute_samples

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        attribute_samples(
            job.params.fleet, job.params.seed, given.catalogue, given.samples, given.reports, job.output.attributions
        )


if "snakemake" in globals():
    main(snakemake)
