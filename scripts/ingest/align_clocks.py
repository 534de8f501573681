"""The exports of a dataset together: how far each clock is shifted, the site's telemetry, and what the data allow."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_json, write_json
from causeway.numeric.parts import Parts

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]), Parts(code=job.input.lib) as parts:
        made = job.output
        read = job.input
        parts.do("clocks", lambda: write_clocks(job), [made.clocks], read.clock_tables)
        documents = list(read.telemetry)
        if job.params.telemetry:
            documents = [made.document]
            inputs = [*read.tables, made.clocks, *read.files]
            choices = [job.params.telemetry, job.params.nodes]
            parts.do(
                "telemetry", lambda: write_telemetry(job), [made.telemetry, made.document], inputs, choices, ["clocks"]
            )
        needs = ["telemetry"] if job.params.telemetry else []
        inputs = [*read.tables, *documents]
        parts.do("quality", lambda: write_quality(job, documents), [made.quality], inputs, needs=needs)


def write_clocks(job) -> None:
    """Align the clocks of the exports by what they share: collectives, else when their sessions began."""
    from causeway.inputs.session_clocks import align, nodes_of

    clocks = align(job.wildcards.dataset, job.input.clock_tables)
    if len(clocks["exports"]) > 1:  # imported here: one export alone is aligned in less time than this import takes
        from causeway.efficiency.ranks.clock_alignment import realigned
        from causeway.efficiency.ranks.collectives import matched

        clocks = realigned(clocks, matched(job.input.clock_tables)[0], nodes_of(job.input.clock_tables))
    LOG.info("%s: %s", clocks["method"], clocks["reason"])
    write_json(clocks, job.output.clocks, schema="clocks")


def write_telemetry(job) -> None:
    """Bring the site's telemetry onto the dataset's time line and to its devices."""
    from causeway.telemetry.match_telemetry import TelemetrySource, match_telemetry

    document = match_telemetry(
        job.wildcards.dataset,
        [Path(folder) for folder in job.input.tables],
        read_json(job.output.clocks),
        dict(job.params.nodes),
        [TelemetrySource(**row | {"path": Path(row["path"])}) for row in job.params.telemetry],
        Path(job.output.telemetry),
        Path(job.output.document),
    )
    LOG.info("%d rows of %s", document["rows"], ", ".join(document["metrics"]) or "no metric")


def write_quality(job, documents: list[str]) -> None:
    """Say what the exports allow together, with every issue, its severity and what it rules out."""
    from causeway.inputs.quality import check

    telemetry = read_json(documents[0]) if documents else None
    quality = check(job.wildcards.dataset, job.input.tables, telemetry)
    for issue in quality["issues"]:
        LOG.info("%s: %s %s", issue["export"] or "dataset", issue["severity"], issue["detail"])
    write_json(quality, job.output.quality, schema="quality")


if "snakemake" in globals():
    main(snakemake)
