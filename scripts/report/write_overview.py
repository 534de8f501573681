"""The overview page: what was read, what varies and why, for every dataset."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import (
    dataset_and_target,
    dataset_of,
    read_capabilities,
    read_comparisons,
    read_rows_of_run,
    read_searches,
    tables_by_target,
)
from causeway.core.tables import read_json, read_table
from causeway.findings.figures import consistent_graph
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.causal_graph import draw_causal_graph
from causeway.plotting.figures.device_time.step_waterfall import usual_step
from causeway.plotting.overview.overview import DatasetView, TargetView, draw_overview
from causeway.plotting.overview.variability.linked_copies import sums_by_kernel

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def views(job) -> list[DatasetView]:
    """Return the datasets in the order of their quality documents, each with its targets in the order of their
    kernels tables.
    """
    capabilities = read_capabilities(job.input.tables)
    clocks = {dataset_of(path): read_json(path) for path in job.input.clocks}
    searches = {
        key: [
            replace(
                one,
                graph=consistent_graph(
                    one.graph, one.contributions, lambda graph: draw_causal_graph(graph, ""), theme.UNDECIDED
                ),
            )
            for one in found
        ]
        for key, found in read_searches(job.input.scopes).items()
    }
    kernels = tables_by_target(job.input.kernels, "kernel_summary")
    bins = tables_by_target(job.input.bins, "bins")
    ranking = tables_by_target(job.input.ranking, "ranking")
    across = {
        dataset_and_target(Path(path).parent): read_table(path, "across_kernels").to_pylist()
        for path in job.input.across_kernels
    }
    replayed = tables_by_target(job.input.replayed, "replayed_what_ifs")
    copies = {dataset_and_target(path): sums_by_kernel(path) for path in job.input.kept}
    efficiency = {dataset_of(path): read_json(path) for path in job.input.efficiency}
    tables = {dataset_of(path): read_table(path, "efficiency") for path in job.input.efficiency_tables}
    stragglers = {dataset_of(path): read_json(path) for path in job.input.stragglers}
    steps = {dataset_of(path): read_json(path) for path in job.input.steps}
    step_tables = {dataset_of(path): read_table(path, "steps") for path in job.input.step_tables}
    waiting = {
        dataset_of(path): read_rows_of_run(path, "waiting", usual_step(step_tables[dataset_of(path)]))
        for path in job.input.waiting
    }
    paths = {dataset_of(path): read_table(path, "critical_path") for path in job.input.critical_paths}
    replays = {dataset_of(path): read_table(path, "replay") for path in job.input.replays}
    operators = {dataset_of(path): read_table(path, "operator_summary") for path in job.input.operators}
    sizes = {dataset_of(path): read_table(path, "collective_sizes") for path in job.input.collectives}
    stalls = {dataset_of(path): read_table(path, "stall_reasons") for path in job.input.stalls}
    levels = {dataset_of(path): read_json(Path(path) / "index.json") for path in job.input.levels}
    found = []
    for path in job.input.quality:
        dataset = dataset_of(path)
        targets = [
            TargetView(
                target=target,
                kernels=table,
                bins=bins[name, target],
                ranking=ranking[name, target],
                searches=searches.get((name, target), []),
                across_kernels=across[name, target],
                replayed=replayed.get((name, target)),
                linked_copies=copies.get((name, target), {}),
            )
            for (name, target), table in kernels.items()
            if name == dataset
        ]
        view = DatasetView(
            name=dataset,
            quality=read_json(path),
            clocks=clocks[dataset],
            capabilities=capabilities.get(dataset, []),
            targets=targets,
            efficiency=efficiency.get(dataset),
            efficiency_table=tables.get(dataset),
            stragglers=stragglers.get(dataset),
            steps=steps.get(dataset),
            steps_table=step_tables.get(dataset),
            waiting=waiting.get(dataset),
            critical_path=paths.get(dataset),
            replay=replays.get(dataset),
            operators=operators.get(dataset),
            collectives=sizes.get(dataset),
            stalls=stalls.get(dataset),
            levels=levels.get(dataset),
        )
        found.append(view)
    return found


def main(job) -> None:
    with failing_clearly(job.log[0]):
        home = Path(job.output.page).parent
        page = draw_overview(
            views(job),
            read_json(job.input.findings),
            json.loads(job.params.settings),
            # an absolute folder, which no workflow of ours names, must not make equal pages differ
            results="results" if home.is_absolute() else home.as_posix(),
            comparisons=read_comparisons(job.input.comparisons),
            links=job.params.links,
        )
        write(page, job.output.page)


if "snakemake" in globals():
    main(snakemake)
