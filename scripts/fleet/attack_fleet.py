"""Attacks on a simulated fleet: poisoning, Sybils, re-identification, linkage, and an audit of epsilon."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.fleet.study.simulated_day import attack

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        files = {name: Path(job.input[name]) for name in ("reports", "counts")}
        attack(job.params.fleet, job.params.seed, job.input.catalogue, files, Path(job.output.attacks))


if "snakemake" in globals():
    main(snakemake)
