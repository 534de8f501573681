"""How far each export's clock is shifted onto the dataset's time line."""

from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import write_json
from causeway.inputs.session_clocks import align, nodes_of

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        clocks = align(job.wildcards.dataset, job.input.tables)
        if len(clocks["exports"]) > 1:  # imported here: one export alone is aligned in less time than this import takes
            from causeway.efficiency.ranks.clock_alignment import realigned
            from causeway.efficiency.ranks.collectives import matched

            clocks = realigned(clocks, matched(job.input.tables)[0], nodes_of(job.input.tables))
        LOG.info("%s: %s", clocks["method"], clocks["reason"])
        write_json(clocks, job.output.clocks, schema="clocks")


if "snakemake" in globals():
    main(snakemake)
