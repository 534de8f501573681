"""One export of a reduced dataset: the events that the filter keeps, and in filter.json what it dropped."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.clock import Clock, clocks_of
from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.levels.filters import Clause, first_launch, reduce_export

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        settings = job.params.filter
        export = job.wildcards.export
        folders = {Path(folder).name: Path(folder) for folder in job.input.tables}
        clocks = read_json(job.input.clocks)
        clock = clocks_of(clocks).get(export, Clock()).counting_from(first_launch(folders, clocks) or 0)
        reduce_export(
            folders[export],
            Path(job.output.tables),
            [Clause.of(entry) for entry in settings["keep"]],
            clock,
            source_dataset=settings["dataset"],
            settings=settings["keep"],
        )


if "snakemake" in globals():
    main(snakemake)
