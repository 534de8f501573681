"""Errors of a simulated fleet's results: attribution, coverage, released distributions."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.simulated_day import evaluate

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        files = {name: Path(given[name]) for name in ("reports", "samples", "attributions")}
        modes = {Path(path).parent.name: Path(path) for path in given.releases}
        evaluate(
            job.params.fleet,
            job.params.seed,
            given.catalogue,
            files,
            modes,
            (job.output.evaluation, job.output.coverage),
            job.params.shown,
        )


if "snakemake" in globals():
    main(snakemake)
