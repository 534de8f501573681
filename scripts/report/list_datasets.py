"""What the configuration has, so that results of an earlier one are told apart: `datasets.json`."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.params
        names = {
            "datasets": list(given.datasets),
            "reduced": list(given.reduced),
            "comparisons": list(given.comparisons),
        }
        write_json({"schema_version": "1", **names}, job.output.listing, "listing")


if "snakemake" in globals():
    main(snakemake)
