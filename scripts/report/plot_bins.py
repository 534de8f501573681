"""Variability over time: the bins of one target, by rank."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.bins import draw_bins

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        bins = read_table(job.input.bins, "bins")
        ranking = read_table(job.input.ranking, "ranking")
        clocks = read_json(job.input.clocks)
        drawing = draw_bins(bins, ranking, clocks, dataset=job.wildcards.dataset, target=job.wildcards.target)
        write(drawing, job.output.svg)


if "snakemake" in globals():
    main(snakemake)
