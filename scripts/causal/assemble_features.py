"""Features of the kept launches: configuration, context at their start, counters."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.causal.data.features import assemble, exports_of
from causeway.core.logs import LOG, failing_clearly
from causeway.core.reduced import CONTEXT_FEATURES, why_not
from causeway.core.tables import read_json, read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        kept = Path(job.input.kept)
        folders = [job.input.tables] if isinstance(job.input.tables, str) else list(job.input.tables)
        clocks = read_json(job.input.clocks)
        exports = exports_of(folders, clocks, dict(job.params.nodes), dict(job.params.runs))
        configurations = read_table(kept.with_name("configurations.parquet"), "configuration_summary")
        if filtered := why_not(folders, CONTEXT_FEATURES):
            LOG.info("context features: %s", filtered)
        assemble(
            kept,
            exports,
            configurations,
            kept.parent.name,
            Path(job.output.features),
            with_context=not filtered,
            telemetry=Path(job.input.telemetry[0]) if job.input.telemetry else None,
            steps=Path(job.input.steps[0]) if job.input.steps else None,
        )


if "snakemake" in globals():
    main(snakemake)
