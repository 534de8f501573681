"""What the results claim, ranked by what it could save: `findings.json`."""

from typing import TYPE_CHECKING

from causeway.findings import Analysis, summarise
from causeway.logs import LOG, failing_clearly
from causeway.results import place_of, read_searches, relative
from causeway.tables import read_json, read_table, table_metadata, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        qualities = [read_json(path) for path in job.input.quality]
        searches = read_searches(job.input.scopes)
        analyses = []
        for path in job.input.kernels:
            rows, unit = read_table(path, "kernel_summary").to_pylist(), table_metadata(path).get("value_unit", "")
            analyses.append(Analysis(*place_of(path), unit, rows, relative(path, 3), searches.get(place_of(path), [])))
        document = summarise(qualities, analyses, job.params.config_hash)
        LOG.info("%d findings", len(document["findings"]))
        write_json(document, job.output.findings, "findings")


if "snakemake" in globals():
    main(snakemake)
