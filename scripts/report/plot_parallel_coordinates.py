"""Parallel coordinates of the launches of the kept bins: a page for brushing, and a static figure of the same lines."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import read_table
from causeway.plotting.drawing.page import write
from causeway.plotting.drawing.target_labels import unit_stated
from causeway.plotting.figures.coordinate_axes import coordinates_of
from causeway.plotting.figures.parallel_coordinates import draw_parallel_coordinates
from causeway.plotting.pages.coordinates_page import draw_coordinates_page, write_plotly_script

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        dataset = job.wildcards.dataset
        target = job.wildcards.target
        contributions = read_table(job.input.contributions, "contributions").to_pylist()
        kernels = read_table(job.input.kernels, "kernel_summary", ["kernel", "name"])
        names = dict(zip(kernels.column("kernel").to_pylist(), kernels.column("name").to_pylist(), strict=True))
        unit = unit_stated(kernels)
        chosen = coordinates_of(
            job.input.features,
            contributions,
            names,
            dataset=dataset,
            target=target,
            unit=unit,
            most=job.params.rows,
            seed=job.params.seed,
            wanted=job.params.axes,
        )
        LOG.info("drawn: %s", "nothing" if chosen is None else chosen.selection)
        about = {
            "dataset": dataset,
            "target": target,
            "of_kernels": any(row["kernels_percent"] is not None for row in contributions),
        }
        write(draw_coordinates_page(chosen, **about), Path(job.output.page) / "index.html")
        if chosen is not None:
            write_plotly_script(Path(job.output.page))
        write(draw_parallel_coordinates(chosen, **about), job.output.svg)


if "snakemake" in globals():
    main(snakemake)
