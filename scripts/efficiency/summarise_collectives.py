"""How long the collectives of a dataset take by operation, algorithm and size, and the bandwidth that they reach."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.efficiency.ranks.collective_sizes import summarise_collectives

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        folders = [Path(folder) for folder in job.input.tables]
        usable = [folder for folder in folders if read_json(folder / "capabilities.json")["status"] != "refused"]
        summarise_collectives(job.wildcards.dataset, usable, Path(job.output.sizes))


if "snakemake" in globals():
    main(snakemake)
