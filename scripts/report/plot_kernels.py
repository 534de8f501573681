"""Kernels ranked by their share of the total variability."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.kernels import plot_kernels
from causeway.tables import read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        plot_kernels(read_table(job.input.kernels, "kernel_summary"), job.wildcards.dataset, job.wildcards.target, job.output.svg)


if "snakemake" in globals():
    main(snakemake)
