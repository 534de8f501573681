"""Causal graphs of one target: a page with one SVG per scope, and the dataset's graph as a figure of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import read_search, scope_folders
from causeway.core.tables import read_table
from causeway.core.vocabulary import target_name
from causeway.findings.figures import consistent_graph
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.causal_graph import draw_causal_graph
from causeway.plotting.pages.causal_graphs import draw_causal_graphs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "target_share"]).to_pylist()
        order = {
            row["kernel"]: position
            for position, row in enumerate(sorted(kernels, key=lambda row: -row["target_share"]))
        }
        searches = [read_search(folder) for folder in scope_folders(job.input.scopes)]
        whole, *scopes = [
            consistent_graph(
                search.graph, search.contributions, lambda graph: draw_causal_graph(graph, ""), theme.UNDECIDED
            )
            for search in searches
        ]
        scopes.sort(key=lambda graph: (order.get(graph["scope"], len(order)), graph["scope"]))
        LOG.info("%d graphs of kernels beside the dataset's", len(scopes))
        title = f"Causes of {target_name(job.wildcards.target)}, {job.wildcards.dataset}"
        for name, drawing in draw_causal_graphs([whole, *scopes], title).items():
            write(drawing, Path(job.output.page) / name)
        write(draw_causal_graph(whole, "whole dataset"), job.output.dataset_svg)


if "snakemake" in globals():
    main(snakemake)
