"""Fleet mode's figures and page."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.pages.fleet_page import draw_coverage, draw_errors, draw_fleet

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        out = job.output
        evaluation = read_json(given.evaluation)
        coverage = read_table(given.coverage, "fleet_coverage").to_pylist()
        write(draw_coverage([row for row in coverage if row["mode"] != "clear"]), out.coverage)
        write(draw_errors(evaluation), out.errors)
        figures = {"Coverage": Path(out.coverage), "Error of what is released": Path(out.errors)}
        applications = read_table(given.applications, "fleet_applications").to_pylist()
        write(draw_fleet(evaluation, read_json(given.attacks), applications, figures), out.page)


if "snakemake" in globals():
    main(snakemake)
