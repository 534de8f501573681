"""Figures of a dataset's targets: bins, kernels, causes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import Search, read_examined
from causeway.core.tables import read_json, read_table
from causeway.core.vocabulary import target_name
from causeway.findings.figures import consistent_graph
from causeway.numeric.parts import Parts
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import short_names
from causeway.plotting.drawing.page import svg_of, write
from causeway.plotting.figures.bins import draw_bins
from causeway.plotting.figures.causal_graph import draw_causal_graph
from causeway.plotting.figures.kernel_agreement import HEAD, draw_kernel_agreement
from causeway.plotting.figures.kernels import draw_kernels
from causeway.plotting.pages.causes_page import draw_as_published, draw_causal_graphs, draw_examined_causes

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]), Parts(code=[*job.input.lib, job.input.assets]) as parts:
        home = Path(job.input.clocks).parent
        for target in job.params.targets:
            folder = home / target
            made = [path for path in map(Path, job.output) if path.parent == folder / "figures"]
            inputs = [job.input.clocks, *(path for path in job.input.targets if folder in Path(path).parents)]
            parts.do(f"figures of {target}", partial(draw_target, job, folder), made, inputs)


def draw_target(job, folder: Path) -> None:
    """Draw what a target's folder holds: bins, kernels, causes."""
    dataset = job.wildcards.dataset
    target = folder.name
    figures = folder / "figures"
    kernels = read_table(folder / "kernels.parquet", "kernel_summary")
    names = dict(zip(kernels["kernel"].to_pylist(), kernels["name"].to_pylist(), strict=True))
    write(draw_kernels(kernels, dataset=dataset, target=target), figures / "kernels.svg")
    bins, ranking = (read_table(folder / f"{name}.parquet", name) for name in ("bins", "ranking"))
    clocks = read_json(job.input.clocks)
    write(draw_bins(bins, ranking, clocks, dataset=dataset, target=target), figures / "bins.svg")
    searches = read_examined(folder / "causal" / "scopes.json")
    shares = kernels.select(["kernel", "target_share"]).to_pylist()
    draw_graphs(folder, searches, shares, f"{target_name(target)}, {dataset}")
    draw_examined(folder, searches, names, dataset)
    if any(Path(path) == folder / "figures" / "as_published.html" for path in job.output):
        draw_published(folder, searches, dataset)


def draw_graphs(folder: Path, searches: list[Search], kernels: list[dict], subject: str) -> None:
    """Draw the causal graphs: a page with one of each scope, and the dataset's as a figure of its own."""
    order = {
        row["kernel"]: position for position, row in enumerate(sorted(kernels, key=lambda row: -row["target_share"]))
    }
    whole, *scopes = [
        consistent_graph(
            search.graph, search.contributions, lambda graph: draw_causal_graph(graph, ""), theme.UNDECIDED
        )
        for search in searches
    ]
    scopes.sort(key=lambda graph: (order.get(graph["scope"], len(order)), graph["scope"]))
    LOG.info("%d graphs of kernels beside the dataset's", len(scopes))
    for name, drawing in draw_causal_graphs([whole, *scopes], f"Causes of {subject}").items():
        write(drawing, folder / "figures" / "causal_graphs" / name)
    write(draw_causal_graph(whole, "whole dataset"), folder / "figures" / "causal_graph_dataset.svg")


def draw_examined(folder: Path, searches: list[Search], names: dict[str, str], dataset: str) -> None:
    """Draw the causes examined: bars, refutations and what-ifs of every scope on one page, and kernels
    against the whole dataset.
    """
    target = target_name(folder.name)
    scopes = {search.graph["scope"]: search.graph["scope_name"] or search.graph["scope"] for search in searches[1:]}
    short = short_names(scopes.values(), HEAD)
    matrix = draw_kernel_agreement(
        searches,
        {kernel: short[name] for kernel, name in scopes.items()},
        f"Causes of {target}: kernels and whole dataset",
        folder.name,
    )
    write(matrix, path := folder / "figures" / "agreement.svg")
    title = f"Causes of {target} examined, {dataset}"
    over_kernels = read_table(folder / "causal" / "across_kernels.parquet", "across_kernels")["sentence"].to_pylist()
    page = draw_examined_causes(searches, svg_of(path), title, names, over_kernels)
    write(page, folder / "figures" / "examined_causes.html")


def draw_published(folder: Path, searches: list[Search], dataset: str) -> None:
    """Draw the graphs as published beside ours, where the configuration asks for them."""
    rows = read_table(folder / "causal" / "as_published.parquet", "as_published").to_pylist()
    title = f"Causes of {target_name(folder.name)} as published, and ours, {dataset}"
    write(draw_as_published(searches, rows, title), folder / "figures" / "as_published.html")


if "snakemake" in globals():
    main(snakemake)
