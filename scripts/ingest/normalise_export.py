"""One export to normalised tables and its capabilities; a bad export is refused there, with the reason, and does not
fail the workflow.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import converted_export

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        params = job.params
        path = Path(params.path)
        failure = None
        if params.converted:
            path, failure = converted_export(path, Path(params.converted))
        normalise(
            path,
            Path(job.output.tables),
            export=job.wildcards.export,
            source=params.source,
            rank=params.rank,
            position=params.position,
            form=params.format,
            node=params.node,
            targets=tuple(params.table_targets),
            communication=tuple(getattr(params, "communication", ())),  # a caller may make no choice
            failure=failure,
        )


if "snakemake" in globals():
    main(snakemake)
