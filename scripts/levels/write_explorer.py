"""The explorer of a dataset: a page that opens offline and zooms from the whole run to one launch."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.levels.explorer.explorer import write_explorer

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        out = Path(job.output.page)
        folders = {Path(folder).name: Path(folder) for folder in job.input.tables}
        findings = read_json(job.input.findings)["findings"]
        clocks = read_json(job.input.clocks)
        write_explorer(out.parent, folders, clocks, out, findings, job.params.launches, Path(job.input.pieces))


if "snakemake" in globals():
    main(snakemake)
