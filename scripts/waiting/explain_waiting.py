"""Why the devices of a dataset were idle: one reason for every nanosecond."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.waiting.explain_waiting import explain_waiting

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        explain_waiting(job.wildcards.dataset, job.input.tables, job.input.clocks, job.input.steps, job.output.waiting)


if "snakemake" in globals():
    main(snakemake)
