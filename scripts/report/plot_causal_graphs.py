"""Causal graphs of one target: a page with one SVG per scope, and the dataset's graph as a figure of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.logs import LOG, failing_clearly
from causeway.plotting.causal_graph import causal_graph_svg
from causeway.plotting.context_graph import write_graphs
from causeway.plotting.marks import write_svg
from causeway.plotting.words import target_name
from causeway.results import read_graphs
from causeway.tables import read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "target_share"]).to_pylist()
        order = {row["kernel"]: place for place, row in enumerate(sorted(kernels, key=lambda row: -row["target_share"]))}
        whole, *scopes = read_graphs(job.input.scopes)
        scopes.sort(key=lambda graph: (order.get(graph["scope"], len(order)), graph["scope"]))
        LOG.info("%d graphs of kernels beside the dataset's", len(scopes))
        title = f"Causes of {target_name(job.wildcards.target)}, {job.wildcards.dataset}"
        write_graphs([whole, *scopes], Path(job.output.page), title)
        write_svg(causal_graph_svg(whole, "whole dataset"), job.output.dataset_svg)


if "snakemake" in globals():
    main(snakemake)
