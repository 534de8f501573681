"""Figure of a dataset's steps: the duration of each, per rank."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.device_time.steps import draw_steps

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        table = read_table(job.input.table, "steps")
        write(draw_steps(read_json(job.input.steps), table, job.wildcards.dataset), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
