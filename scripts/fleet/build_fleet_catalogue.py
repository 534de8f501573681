"""The catalogue of known applications, learnt from simulated runs and from real exports, signed and pinned."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.attribution.exports import runs_of
from causeway.fleet.study.steps import build_catalogue

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        build_catalogue(
            job.params.fleet,
            job.params.seed,
            runs_of(map(Path, job.input.get("tables", []))),
            Path(job.output.catalogue),
        )


if "snakemake" in globals():
    main(snakemake)
