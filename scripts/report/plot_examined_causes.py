"""Causes examined: bars, refutations, what-ifs and baselines of every scope on one page, and kernels against the whole dataset."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.agreement import HEAD, agreement_svg
from causeway.plotting.examined import write_examined
from causeway.plotting.marks import write_svg
from causeway.plotting.names import short_names
from causeway.plotting.words import target_name
from causeway.results import read_examined
from causeway.tables import read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        searches = read_examined(job.input.scopes)
        target = target_name(job.wildcards.target)
        names = {search.graph["scope"]: search.graph["scope_name"] or search.graph["scope"] for search in searches[1:]}
        short = short_names(names.values(), HEAD)
        rows = read_table(job.input.agreement, "agreement").to_pylist()
        matrix = agreement_svg(
            rows, {kernel: short[name] for kernel, name in names.items()}, f"Causes of {target}: kernels and whole dataset"
        )
        write_svg(matrix, job.output.matrix)
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "name"]).to_pylist()
        known = {row["kernel"]: row["name"] for row in kernels}
        write_examined(searches, matrix, job.output.page, f"Causes of {target} examined, {job.wildcards.dataset}", known)


if "snakemake" in globals():
    main(snakemake)
