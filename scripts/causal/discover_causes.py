"""Causes of one batch of the kernels that matter, before the number of kernels counts.

The only kernel of a dataset is left to `discover_dataset_causes`.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from causeway.causal.allocation import keep_freed_memory
from causeway.causal.asked import launch_values, questions_of
from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import Extent, examined
from causeway.causal.scopes import (
    blocks_of,
    capped,
    columns_of,
    in_time_order,
    kernels_that_matter,
    of_kernel,
    only_kernel,
    read_features,
    rows_of,
)
from causeway.causal.seeds import derived_seed
from causeway.logs import LOG, failing_clearly
from causeway.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        keep_freed_memory()
        causes, seed = job.params.causes, job.params.seed
        dataset, target, batch = job.wildcards.dataset, job.wildcards.target, int(job.wildcards.batch)
        which = job.input.kernels, causes["kernels_share"], causes["kernels_count"]
        mine = [] if only_kernel(*which) else kernels_that_matter(*which)[batch :: causes["batches"]]
        blocks = blocks_of(job.input.features)
        seeds = [derived_seed(seed, dataset, target, kernel.id, "rows") for kernel in mine]
        parts = [capped(of_kernel(blocks, kernel.id), causes["max_rows"], own) for kernel, own in zip(mine, seeds, strict=True)]
        features = read_features(job.input.features, pa.concat_tables([blocks.slice(0, 0), *parts]))
        drafts, questions = [], questions_of(causes["what_if"])
        for kernel in mine:
            table = in_time_order(of_kernel(features, kernel.id))
            scope = Scope(dataset, target, kernel.id, kernel.name, seed, causes["resamples"])
            outcome = discover(columns_of(table), rows_of(table), scope)
            LOG.info("%s: %d rows, %s; %s", kernel.id, outcome.n_rows, outcome.verdict, " ".join(outcome.sentences))
            extent = Extent(causes["context"], causes["context_resamples"], questions, launch_values(table, questions))
            drafts.append(examined(outcome, extent))
        write_json({"drafts": drafts}, job.output.drafts)


if "snakemake" in globals():
    main(snakemake)
