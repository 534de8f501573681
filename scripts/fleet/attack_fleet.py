"""What attackers can do to a simulated fleet: leaks, re-identification, damage, and an audit of epsilon."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.fleet.study import attack
from causeway.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        files = {name: Path(job.input[name]) for name in ("reports", "counts")}
        attack(job.params.fleet, job.params.seed, job.input.catalogue, files, Path(job.output.attacks))


if "snakemake" in globals():
    main(snakemake)
