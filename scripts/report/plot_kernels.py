"""Kernels ranked by their share of the total variability."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.kernels import draw_kernels

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        table = read_table(job.input.kernels, "kernel_summary")
        write(draw_kernels(table, dataset=job.wildcards.dataset, target=job.wildcards.target), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
