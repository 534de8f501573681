"""Why the devices of a dataset wait, as a figure."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.results import read_rows_of_run
from causeway.core.tables import table_metadata
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.device_time.waiting import draw_waiting

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        table = read_rows_of_run(job.input.waiting, "waiting")
        why = table_metadata(job.input.waiting).get("why")
        write(draw_waiting(table, dataset=job.wildcards.dataset, why=why), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
