"""Series of runs: computation scalability and global efficiency of datasets that belong together."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import dataset_of
from causeway.core.tables import read_json, write_json
from causeway.efficiency.trees.trees import measure_series

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        documents = {dataset_of(path): read_json(path) for path in job.input.efficiency}
        write_json(measure_series(job.params.series, documents), job.output.series, schema="series")


if "snakemake" in globals():
    main(snakemake)
