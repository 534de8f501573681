"""Fleet mode's figures and page."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.fleet import plot_coverage, plot_errors
from causeway.plotting.fleet_page import write_page
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given, out = job.input, job.output
        evaluation, coverage = read_json(given.evaluation), read_table(given.coverage, "fleet_coverage").to_pylist()
        plot_coverage([row for row in coverage if row["mode"] != "clear"], out.coverage)
        plot_errors(evaluation, out.errors)
        figures = {"Coverage": Path(out.coverage), "Error of what is released": Path(out.errors)}
        applications = read_table(given.applications, "fleet_applications").to_pylist()
        write_page(evaluation, read_json(given.attacks), applications, figures, out.page)


if "snakemake" in globals():
    main(snakemake)
