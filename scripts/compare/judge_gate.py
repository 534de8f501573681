"""The limits of the configuration, each judged for every comparison by its interval."""

from typing import TYPE_CHECKING

from causeway.comparison.gate import judge, missing, outcome, reasons
from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import read_capabilities, read_comparisons
from causeway.core.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        limits = job.params.limits
        states = []
        exports = read_capabilities(job.input.exports)
        for document, rows in read_comparisons(job.input.comparisons):
            states += judge(document, rows, limits)
            states += missing(document, exports, rows)
        stops = reasons(states, limits["strict"])
        LOG.info("%d limits judged, %d stop the gate", len(states), len(stops))
        for sentence in stops:
            LOG.warning("%s", sentence)
        document = {"limits": dict(limits), "states": states, "reasons": stops, "outcome": outcome(states, stops)}
        write_json({"schema_version": "1", **document}, job.output.verdicts, "gate")


if "snakemake" in globals():
    main(snakemake)
