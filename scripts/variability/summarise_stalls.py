"""What the warps of a dataset's kernels wait for."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.variability.stall_summary import summarise_stalls

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        folders = [job.input.tables] if isinstance(job.input.tables, str) else list(job.input.tables)
        summarise_stalls(job.wildcards.dataset, [Path(folder) for folder in folders], Path(job.output.summary))


if "snakemake" in globals():
    main(snakemake)
