"""The servers' part after the day: sums, threshold, noise, ledger; and the designer's estimates from the release."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.steps import release_day

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        out = job.output
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
