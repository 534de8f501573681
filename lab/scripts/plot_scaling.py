"""Time, throughput and efficiency over ranks, with the published curve beside them."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.plotting.drawing.page import write
from lab.scaling.figure import draw_scaling

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        write(draw_scaling(read_json(job.input.study)), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
