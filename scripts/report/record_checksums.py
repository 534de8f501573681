"""The checksum of every result, for `snakemake verify`."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.files.checksums import recorded
from causeway.core.logs import failing_clearly
from causeway.core.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        files = recorded(Path(job.output.record).parent)
        write_json({"schema_version": "1", "files": files}, job.output.record, "checksums")


if "snakemake" in globals():
    main(snakemake)
