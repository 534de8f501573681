"""A comparison as a page, and its figures."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, read_table
from causeway.findings.comparison import comparison_findings
from causeway.findings.first_screen.plan import lines_of_pair
from causeway.plotting.drawing.page import svg_of, write
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.pages.comparison_page import draw_comparison

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        document = read_json(job.input.comparison)
        rows = read_table(job.input.table, "comparison").to_pylist()
        write(draw_changes(document, rows), job.output.changes)
        write(draw_totals(document), job.output.totals)
        write(draw_ratios(document, rows), job.output.efficiency)
        figures = {"changes": job.output.changes, "totals": job.output.totals, "ratios": job.output.efficiency}
        drawn = {name: svg_of(path) for name, path in figures.items()}
        claims = [finding.headline for finding in comparison_findings(document, rows)]
        lines = lines_of_pair(document, rows, Path(job.input.comparison).parents[2])
        write(draw_comparison(document, rows, claims, lines, **drawn), job.output.page)


if "snakemake" in globals():
    main(snakemake)
