"""What the exports of a dataset allow together, with every issue, its severity and what it rules out."""

from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_json, write_json
from causeway.inputs.quality import check

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        telemetry = read_json(job.input.telemetry[0]) if job.input.telemetry else None
        quality = check(job.wildcards.dataset, job.input.tables, telemetry)
        for issue in quality["issues"]:
            LOG.info("%s: %s %s", issue["export"] or "dataset", issue["severity"], issue["detail"])
        write_json(quality, job.output.quality, schema="quality")


if "snakemake" in globals():
    main(snakemake)
