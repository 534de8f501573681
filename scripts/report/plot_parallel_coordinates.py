"""Parallel coordinates of the launches of the kept bins: a page for brushing, and a static figure of the same lines."""

from typing import TYPE_CHECKING

from causeway.logs import LOG, failing_clearly
from causeway.plotting.coordinates import coordinates_of
from causeway.plotting.parallel import write_page, write_static
from causeway.plotting.words import unit_stated
from causeway.tables import read_table

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        dataset, target = job.wildcards.dataset, job.wildcards.target
        contributions = read_table(job.input.contributions, "contributions").to_pylist()
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "name"])
        names = dict(zip(kernels.column("kernel").to_pylist(), kernels.column("name").to_pylist(), strict=True))
        unit = unit_stated(kernels)
        chosen = coordinates_of(job.input.features, contributions, names, dataset, target, unit, job.params.rows, job.params.seed)
        LOG.info("drawn: %s", "nothing" if chosen is None else chosen.selection)
        write_page(chosen, dataset, target, job.output.page)
        write_static(chosen, dataset, target, job.output.svg)


if "snakemake" in globals():
    main(snakemake)
