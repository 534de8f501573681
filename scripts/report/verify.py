"""Compares all results with their recorded checksums; fails with what differs and the command that makes it again."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.errors import CausewayError
from causeway.core.files.checksums import differences, in_words, left_over_in_words
from causeway.core.files.listing import Listing
from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        record = Path(job.params.record)
        if not record.is_file():
            raise CausewayError(f"{record}: there is no record of checksums yet; run `snakemake` to its end first")
        document = read_json(record, "checksums")
        given = job.params.listing
        listing = Listing((*given["datasets"], *given["reduced"]), tuple(given["comparisons"]))
        recorded = document["files"]
        differing = differences(record.parent, recorded, document.get("folders", []), listing)
        for line in left_over_in_words(differing):
            LOG.info("%s", line)
        for name in differing.unknown:
            LOG.info("%s: not in the record, it came later", name)
        if lines := in_words(record.parent, differing, job.params.command):
            raise CausewayError("\n".join(lines))
        LOG.info("%d files are as they were recorded", len(recorded))


if "snakemake" in globals():
    main(snakemake)
