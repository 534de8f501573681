"""What the results claim, ranked by what it is worth: `findings.json`."""

from dataclasses import fields
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import write_json
from causeway.findings.collection import ResultFiles, findings_document

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        files = ResultFiles(**{field.name: getattr(job.input, field.name) for field in fields(ResultFiles)})
        document = findings_document(files, job.params.config_hash)
        dropped = sum(one["count"] for one in document["dropped"])
        LOG.info("findings: %d; statements left out: %d", len(document["findings"]), dropped)
        write_json(document, job.output.findings, "findings")


if "snakemake" in globals():
    main(snakemake)
