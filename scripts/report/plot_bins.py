"""Variability over time: the bins of one target, by rank."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.bins import plot_bins
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        bins, ranking = read_table(job.input.bins, "bins"), read_table(job.input.ranking, "ranking")
        plot_bins(bins, ranking, read_json(job.input.clocks), job.wildcards.dataset, job.wildcards.target, job.output.svg)


if "snakemake" in globals():
    main(snakemake)
