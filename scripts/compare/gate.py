"""Fails, with one sentence per limit, if a limit of the configuration is broken or not judged."""

from typing import TYPE_CHECKING

from causeway.core.errors import CausewayError
from causeway.core.formatting import counted
from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_json
from causeway.core.vocabulary import INCONCLUSIVE

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        document = read_json(job.input.verdicts)
        if document["reasons"]:
            raise CausewayError("\n".join(["the gate is closed:", *document["reasons"]]))
        if not document["states"]:
            raise CausewayError(
                "`gate:` of the configuration sets no limit that applies to a comparison; set one, for example"
                " `max_slowdown_percent: 5`"
            )
        undecided = sum(state["state"] == INCONCLUSIVE for state in document["states"])
        LOG.info("the gate is open: %s, %d not decided", counted(len(document["states"]), "limit"), undecided)


if "snakemake" in globals():
    main(snakemake)
