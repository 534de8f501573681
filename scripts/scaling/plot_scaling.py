"""Time, throughput and efficiency over ranks, with the published curve beside them."""

from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.plotting.scaling import plot_scaling
from causeway.tables import read_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        plot_scaling(read_json(job.input.study), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
