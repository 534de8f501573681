"""The JSON schemas of all documents, beside the results that they describe."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.files.whole_files import write_whole
from causeway.core.logs import failing_clearly
from causeway.core.tables import SCHEMA_FOLDER

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        folder = Path(job.output.schemas)
        folder.mkdir(parents=True, exist_ok=True)
        for schema in sorted(SCHEMA_FOLDER.glob("*.schema.json")):
            write_whole(folder / schema.name, schema.read_bytes())


if "snakemake" in globals():
    main(snakemake)
