"""Variability over time: the bins of one target, by rank."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.bins import plot_bins
from causeway.results import read_capabilities, unit_of_target
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        dataset, target = job.wildcards.dataset, job.wildcards.target
        unit = unit_of_target(target, read_capabilities(job.input.tables).get(dataset, []))
        bins, ranking = read_table(job.input.bins, "bins"), read_table(job.input.ranking, "ranking")
        plot_bins(bins, ranking, read_json(job.input.clocks), dataset, target, job.output.svg, unit)


if "snakemake" in globals():
    main(snakemake)
