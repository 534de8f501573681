"""One report of a profiler to an export, by the profiler's own tool where it is there; a report that cannot be
converted is refused by the reader, with the tool's error, and does not fail the workflow.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.readers.report_conversion import convert_report

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

CACHE = Path(".snakemake", "causeway", "converted")


def main(job) -> None:
    with failing_clearly(job.log[0]):
        params = job.params
        convert_report(
            Path(job.input.report), Path(job.output.converted), CACHE, source=params.source, tools=params.tools
        )


if "snakemake" in globals():
    main(snakemake)
