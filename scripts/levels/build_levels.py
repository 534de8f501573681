"""The pyramid of a dataset: exact statistics over cells of time, four times as wide from level to level, for each
stream and device.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.levels.pyramid.build import build
from causeway.variability.rows.transfer_links import link

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        build(
            {Path(folder).name: Path(folder) for folder in job.input.tables},
            read_json(job.input.clocks),
            Path(job.output.levels),
            nodes=job.params.nodes,
            error=job.params.levels["quantile_error"],
            share=job.params.levels["share"],
            link_window_ns=round(job.params.link_window_us * 1000),
            link=link,
            metrics=job.params.levels["metrics"],
            telemetry=Path(job.input.telemetry[0]) if job.input.telemetry else None,
        )


if "snakemake" in globals():
    main(snakemake)
