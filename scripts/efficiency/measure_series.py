"""Series of runs: computation scalability and global efficiency of datasets that belong together."""

from typing import TYPE_CHECKING

from causeway.efficiency.series import measure_series
from causeway.logs import failing_clearly
from causeway.results import dataset_of
from causeway.tables import read_json, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        documents = {dataset_of(path): read_json(path) for path in job.input.efficiency}
        write_json(measure_series(job.params.series, documents), job.output.series, schema="series")


if "snakemake" in globals():
    main(snakemake)
