"""Series of runs: parallel efficiency, computation scalability and global efficiency, drawn."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.efficiency import draw_series

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        write(draw_series(read_json(job.input.series)), job.output.figure)


if "snakemake" in globals():
    main(snakemake)
