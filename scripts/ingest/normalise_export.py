"""One export to normalised tables and its capabilities; a bad export is refused there, with the reason, and does not
fail the workflow.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.readers.normalise import normalise

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        params = job.params
        normalise(
            Path(params.path),
            Path(job.output.tables),
            export=job.wildcards.export,
            source=params.source,
            rank=params.rank,
            position=params.position,
            form=params.format,
            node=params.node,
            targets=tuple(params.table_targets),
        )


if "snakemake" in globals():
    main(snakemake)
