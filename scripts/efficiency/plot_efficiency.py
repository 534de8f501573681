"""Figures of a dataset's efficiency: trees, waterfall, map of ranks over time, stragglers."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.figures import efficiency, stragglers
from causeway.plotting.figures.device_time import lost_time

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        name = job.wildcards.dataset
        measured = read_json(job.input.efficiency)
        note = lost_time.aligned_by(measured["clocks"])
        write(efficiency.draw_efficiency_trees(measured, name), job.output.efficiency)
        write(lost_time.draw_lost_time(measured, name), job.output.lost_time)
        write(lost_time.draw_rank_map(read_table(job.input.table, "efficiency"), name, note), job.output.rank_map)
        write(stragglers.draw_stragglers(read_json(job.input.stragglers), name), job.output.stragglers)


if "snakemake" in globals():
    main(snakemake)
