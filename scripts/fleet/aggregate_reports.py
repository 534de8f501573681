"""The servers' part after the day: sums, threshold, noise, ledger; and the designer's reading of the release."""

from typing import TYPE_CHECKING

from causeway.fleet.steps import release_day
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given, out = job.input, job.output
        release_day(
            job.params.fleet,
            job.wildcards.mode,
            given.catalogue,
            given.counts,
            given.shards,
            (out.release, out.estimates, out.applications),
        )


if "snakemake" in globals():
    main(snakemake)
