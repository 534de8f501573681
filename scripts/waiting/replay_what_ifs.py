"""What the what-ifs of kernels do to the time of the run, by replays."""

from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.efficiency.ranks.exchanges import left_together
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.replay_what_ifs import replay_what_ifs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        replay_what_ifs(
            job.wildcards.dataset,
            job.input.tables,
            job.input.clocks,
            [Matched(*group) for group in left_together(job.input.tables, job.input.clocks)],
            job.input.steps,
            job.input.scopes,
            job.input.kernels,
            job.output.replayed,
        )


if "snakemake" in globals():
    main(snakemake)
