"""The gate as Markdown for a pull request, and as a badge."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.files.whole_files import write_whole
from causeway.core.logs import failing_clearly
from causeway.core.results import read_comparisons
from causeway.core.tables import read_json
from causeway.findings.comparison import comparison_findings
from causeway.findings.first_screen.plan import lines_of_pair
from causeway.plotting.drawing.page import write
from causeway.plotting.pages.gate_summary import gate_badge, gate_markdown

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        verdicts = read_json(job.input.verdicts)
        comparisons = read_comparisons(job.input.comparisons)
        claims = [
            [(finding.headline, finding.subject) for finding in comparison_findings(document, rows)]
            for document, rows in comparisons
        ]
        results = Path(job.output.summary).parents[1]
        lines = [[text for text, _ in lines_of_pair(document, rows, results)] for document, rows in comparisons]
        write_whole(job.output.summary, gate_markdown(verdicts, comparisons, claims, lines))
        write(gate_badge(verdicts["outcome"], verdicts["states"]), job.output.badge)


if "snakemake" in globals():
    main(snakemake)
