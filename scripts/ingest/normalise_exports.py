"""Many exports to normalised tables, one after the other; what a stopped job has finished is not read again."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.readers.batch import normalise_batch

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        # the names of these files hold digests of the code and of the column maps
        code = [str(path) for path in [job.input.columns, *job.input.lib]]
        normalise_batch(
            {Path(folder).name: Path(folder) for folder in job.output.tables},
            dict(job.params.exports),
            tuple(job.params.table_targets),
            code,
            tuple(getattr(job.params, "communication", ())),  # a caller may make no choice
        )


if "snakemake" in globals():
    main(snakemake)
