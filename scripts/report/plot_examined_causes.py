"""Causes examined: bars, refutations, what-ifs and baselines of every scope on one page, and kernels against the
whole dataset.
"""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import read_examined
from causeway.core.tables import read_table
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing.kernel_labels import short_names
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.kernel_agreement import HEAD, draw_kernel_agreement
from causeway.plotting.pages.examined_causes import draw_examined_causes

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        searches = read_examined(job.input.scopes)
        target = target_name(job.wildcards.target)
        names = {search.graph["scope"]: search.graph["scope_name"] or search.graph["scope"] for search in searches[1:]}
        short = short_names(names.values(), HEAD)
        rows = read_table(job.input.agreement, "agreement").to_pylist()
        matrix = draw_kernel_agreement(
            rows,
            {kernel: short[name] for kernel, name in names.items()},
            f"Causes of {target}: kernels and whole dataset",
            job.wildcards.target,
        )
        write(matrix, job.output.matrix)
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "name"]).to_pylist()
        known = {row["kernel"]: row["name"] for row in kernels}
        title = f"Causes of {target} examined, {job.wildcards.dataset}"
        write(draw_examined_causes(searches, matrix, title, known), job.output.page)


if "snakemake" in globals():
    main(snakemake)
