"""The checksum of every result, for `snakemake verify`; a file that was damaged since the last time is refused."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.errors import CausewayError
from causeway.core.files.checksums import damaged, named, output_folders, recorded, times
from causeway.core.logs import failing_clearly
from causeway.core.results import read_listing
from causeway.core.tables import read_json, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        record = Path(job.output.record)
        seen = Path(job.output.times)
        now = times(record.parent)
        files = recorded(record.parent, read_listing(record.parent))
        if record.is_file() and seen.is_file():
            lines = named(damaged(read_json(record, "checksums")["files"], read_json(seen), files, now))
            if lines:
                heading = f"{record.parent}: results are not as they were recorded, though no job wrote them"
                advice = "`snakemake verify --cores 1` says what makes them again"
                raise CausewayError("\n".join([heading, *lines, advice]))
        document = {"schema_version": "1", "files": files, "folders": output_folders(record.parent)}
        write_json(document, record, "checksums")
        write_json(now, seen)


if "snakemake" in globals():
    main(snakemake)
