"""The encoding of each client's report as counts, before any protection."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.steps import encode_samples

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        params = job.params
        encode_samples(
            params.fleet,
            params.seed,
            given.catalogue,
            given.samples,
            given.reports,
            given.attributions,
            job.output.counts,
        )


if "snakemake" in globals():
    main(snakemake)
