"""The catalogue of known applications, learnt from simulated runs and from real exports, signed and pinned."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.fleet.exports import runs_of
from causeway.fleet.steps import build_catalogue
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        build_catalogue(job.params.fleet, job.params.seed, runs_of(map(Path, job.input.get("tables", []))), Path(job.output.catalogue))


if "snakemake" in globals():
    main(snakemake)
