"""One export of a reduced dataset: the events that the filter keeps, and in filter.json what it dropped."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.levels.filters import Clause, first_launch, reduce_export
from causeway.logs import failing_clearly
from causeway.tables import read_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        settings, export = job.params.filter, job.wildcards.export
        folders = {Path(folder).name: Path(folder) for folder in job.input.tables}
        clocks = read_json(job.input.clocks)
        origin = (first_launch(folders, clocks) or 0) - clocks["exports"].get(export, {"shift_ns": 0})["shift_ns"]
        reduce_export(
            folders[export],
            Path(job.output.tables),
            [Clause.of(entry) for entry in settings["keep"]],
            origin,
            source_dataset=settings["dataset"],
            settings=settings["keep"],
        )


if "snakemake" in globals():
    main(snakemake)
