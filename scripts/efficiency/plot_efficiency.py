"""Figures of a dataset's efficiency: trees, waterfall, map of ranks over time, stragglers."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting import efficiency, stragglers
from causeway.plotting.marks import write_svg
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        name, measured = job.wildcards.dataset, read_json(job.input.efficiency)
        note = efficiency.aligned_by(measured["clocks"])
        write_svg(efficiency.tree_table(measured, name), job.output.efficiency)
        write_svg(efficiency.lost_time(measured, name), job.output.lost_time)
        write_svg(efficiency.rank_map(read_table(job.input.table, "efficiency"), name, note), job.output.rank_map)
        write_svg(stragglers.drawing(read_json(job.input.stragglers), name), job.output.stragglers)


if "snakemake" in globals():
    main(snakemake)
