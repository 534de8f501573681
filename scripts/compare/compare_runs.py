"""Two datasets compared: matched kernels, changes with intervals, verdicts, where the difference in GPU time
comes from, and which inputs it came with.
"""

from functools import partial
from typing import TYPE_CHECKING

from causeway.causal.models.run_changes import attributed_changes
from causeway.comparison.compare import run
from causeway.comparison.runs.settings import common_causes
from causeway.core.logs import failing_clearly

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.params
        causes = common_causes(given.causes)
        run(
            given.sides,
            given.folders,
            given.efficiency,
            causes,
            given.replays,
            given.choices,
            job.output.comparison,
            job.output.table,
            given.steps,
            attribute=partial(
                attributed_changes,
                seed=given.choices["seed"],
                confidence=given.choices["confidence"],
            ),
        )


if "snakemake" in globals():
    main(snakemake)
