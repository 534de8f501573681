"""What the results claim, ranked by what it could save: `findings.json`."""

from typing import TYPE_CHECKING

from causeway.findings import Analysis, Scope, summarise
from causeway.logs import LOG, failing_clearly
from causeway.results import by_place, read_capabilities, read_searches, relative, unit_of_target
from causeway.tables import read_json, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        qualities = [read_json(path) for path in job.input.quality]
        capabilities = read_capabilities(job.input.tables)
        searches = read_searches(job.input.graphs, job.input.batches)
        kernels = by_place(job.input.kernels, "kernel_summary")
        tables = dict(zip(kernels, (relative(path, 3) for path in job.input.kernels), strict=True))
        analyses = []
        for (dataset, target), table in kernels.items():
            scopes = [Scope(search.graph, search.contributions, search.table) for search in searches.get((dataset, target), [])]
            unit = unit_of_target(target, capabilities.get(dataset, []))
            analyses.append(Analysis(dataset, target, unit, table.to_pylist(), tables[dataset, target], scopes))
        document = summarise(qualities, analyses, job.params.config_hash)
        LOG.info("%d findings", len(document["findings"]))
        write_json(document, job.output.findings, "findings")


if "snakemake" in globals():
    main(snakemake)
