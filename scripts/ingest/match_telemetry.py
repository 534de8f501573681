"""Telemetry of the site, brought onto a dataset's time line and to its devices."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_json
from causeway.telemetry.match_telemetry import TelemetrySource, match_telemetry

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        rows = [TelemetrySource(**row | {"path": Path(row["path"])}) for row in job.params.rows]
        folders = [Path(folder) for folder in job.input.tables]
        found = match_telemetry(
            job.wildcards.dataset,
            folders,
            read_json(job.input.clocks),
            dict(job.params.nodes),
            rows,
            Path(job.output.telemetry),
            Path(job.output.document),
        )
        LOG.info("%d rows of %s", found["rows"], ", ".join(found["metrics"]) or "no metric")


if "snakemake" in globals():
    main(snakemake)
