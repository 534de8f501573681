"""The counts of each client's report, before any protection."""

from typing import TYPE_CHECKING

from causeway.fleet.steps import encode_samples
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given, params = job.input, job.params
        encode_samples(params.fleet, params.seed, given.catalogue, given.samples, given.reports, given.attributions, job.output.counts)


if "snakemake" in globals():
    main(snakemake)
