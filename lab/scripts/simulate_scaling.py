"""Tables of a simulated run of a chosen size, for the scaling study."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from lab.scaling.simulated_dataset import write_dataset

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        write_dataset(job.output.dataset, int(job.wildcards.launches), job.params.exports, job.params.seed)


if "snakemake" in globals():
    main(snakemake)
