"""The overview page: what was read, what varies and why, for every dataset."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.overview import DatasetView, TargetView, write_overview
from causeway.results import by_place, dataset_of, read_capabilities, read_comparisons, read_searches
from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def views(job) -> list[DatasetView]:
    """Return the datasets in the order of their quality documents, each with its targets in the order of their kernels tables."""
    capabilities = read_capabilities(job.input.tables)
    clocks = {dataset_of(path): read_json(path) for path in job.input.clocks}
    searches = read_searches(job.input.scopes)
    kernels, bins = by_place(job.input.kernels, "kernel_summary"), by_place(job.input.bins, "bins")
    ranking = by_place(job.input.ranking, "ranking")
    efficiency = {dataset_of(path): read_json(path) for path in job.input.efficiency}
    tables = {dataset_of(path): read_table(path, "efficiency") for path in job.input.efficiency_tables}
    stragglers = {dataset_of(path): read_json(path) for path in job.input.stragglers}
    found = []
    for path in job.input.quality:
        dataset = dataset_of(path)
        targets = [
            TargetView(target, table, bins[name, target], ranking[name, target], searches.get((name, target), []))
            for (name, target), table in kernels.items()
            if name == dataset
        ]
        ranks = (efficiency.get(dataset), tables.get(dataset), stragglers.get(dataset))
        found.append(DatasetView(dataset, read_json(path), clocks[dataset], capabilities.get(dataset, []), targets, *ranks))
    return found


def main(job) -> None:
    with failing_clearly(job.log[0]):
        comparisons = read_comparisons(job.input.comparisons)
        write_overview(views(job), read_json(job.input.findings), job.params.settings, job.output.page, comparisons)


if "snakemake" in globals():
    main(snakemake)
