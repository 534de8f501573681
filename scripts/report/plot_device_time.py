"""Figures of a dataset's device time: trees, waterfall, map of ranks over time, late ranks, steps, idle time."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import read_rows_of_run
from causeway.core.tables import read_json, read_table, table_metadata
from causeway.plotting.drawing.page import write
from causeway.plotting.figures import device_time, efficiency, stragglers
from causeway.plotting.figures.device_time import draw_step_waterfall, draw_waiting, usual_step
from causeway.plotting.figures.steps import draw_steps

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        draw_device_time(job)


def draw_device_time(job) -> None:
    """Draw where the device time of a dataset goes."""
    name = job.wildcards.dataset
    given = job.input
    made = job.output
    measured = read_json(given.efficiency)
    note = device_time.aligned_by(measured["clocks"])
    write(efficiency.draw_efficiency_trees(measured, name), made.efficiency)
    write(device_time.draw_lost_time(measured, name), made.lost_time)
    write(device_time.draw_rank_map(read_table(given.efficiency_table, "efficiency"), name, note), made.rank_map)
    write(stragglers.draw_stragglers(read_json(given.stragglers), name), made.stragglers)
    write(draw_steps(read_json(given.steps), read_table(given.step_table, "steps"), name), made.steps)
    waiting = read_rows_of_run(given.waiting, "waiting")
    why = table_metadata(given.waiting).get("why")
    write(draw_waiting(waiting, dataset=name, why=why), made.waiting)
    table = read_table(given.step_table, "steps")
    waits = read_rows_of_run(given.waiting, "waiting", usual_step(table))
    write(draw_step_waterfall(table, waits, dataset=name), made.step_waterfall)


if "snakemake" in globals():
    main(snakemake)
