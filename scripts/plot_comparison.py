"""A comparison as a page, and its figures."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.comparison import plot_changes, plot_ratios, plot_totals
from causeway.plotting.comparison_page import write_page
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        document, rows = read_json(job.input.comparison), read_table(job.input.table, "comparison").to_pylist()
        plot_changes(document, rows, job.output.changes)
        plot_totals(document, job.output.totals)
        plot_ratios(document, rows, job.output.efficiency)
        write_page(document, rows, [job.output.changes, job.output.totals, job.output.efficiency], job.output.page)


if "snakemake" in globals():
    main(snakemake)
