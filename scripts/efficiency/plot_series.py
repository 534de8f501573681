"""Series of runs: parallel efficiency, computation scalability and global efficiency, drawn."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.marks import write_svg
from causeway.plotting.series import drawing
from causeway.tables import read_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        write_svg(drawing(read_json(job.input.series)), job.output.figure)


if "snakemake" in globals():
    main(snakemake)
