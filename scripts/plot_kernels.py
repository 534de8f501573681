"""Kernels ranked by their share of the total variability."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.kernels import plot_kernels
from causeway.results import read_capabilities, unit_of_target
from causeway.tables import read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        dataset, target = job.wildcards.dataset, job.wildcards.target
        unit = unit_of_target(target, read_capabilities(job.input.tables).get(dataset, []))
        plot_kernels(read_table(job.input.kernels, "kernel_summary"), dataset, target, job.output.svg, unit)


if "snakemake" in globals():
    main(snakemake)
