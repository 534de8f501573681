"""All comparisons on one page, run by run."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import read_comparisons
from causeway.plotting.drawing.page import write
from causeway.plotting.pages.comparison_page import draw_history_page

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        home = Path(job.output.page).parents[1]
        # an absolute folder, which no workflow of ours names, must not make equal pages differ
        results = "results" if home.is_absolute() else home.as_posix()
        write(draw_history_page(read_comparisons(job.input.comparisons), results), job.output.page)


if "snakemake" in globals():
    main(snakemake)
