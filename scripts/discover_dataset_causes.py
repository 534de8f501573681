"""Causes in the whole dataset: all kernels together, with fixed effects, each kernel weighing the same.

A dataset with one kernel is that kernel: it is analysed once, here, and the draft stands for both.
"""

from typing import TYPE_CHECKING

from causeway.causal.allocation import keep_freed_memory
from causeway.causal.asked import launch_values, questions_of
from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import Extent, drafts_of
from causeway.causal.scopes import DATASET_SCOPE, blocks_of, columns_of, in_time_order, only_kernel, pooled, read_features, rows_of
from causeway.causal.seeds import derived_seed
from causeway.logs import LOG, failing_clearly
from causeway.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        keep_freed_memory()
        causes, seed = job.params.causes, job.params.seed
        dataset, target = job.wildcards.dataset, job.wildcards.target
        blocks = blocks_of(job.input.features)
        blocks, n_kernels = pooled(blocks, causes["max_rows"], derived_seed(seed, dataset, target, DATASET_SCOPE, "rows"))
        table = in_time_order(read_features(job.input.features, blocks))
        alone = only_kernel(job.input.kernels, causes["kernels_share"], causes["kernels_count"])
        scope = Scope(
            dataset, target, DATASET_SCOPE, None, seed, causes["resamples"], crosscheck=True, kernel=alone and (alone.id, alone.name)
        )
        outcome = discover(columns_of(table), rows_of(table, equal_kernels=True), scope)
        LOG.info("%d kernels, %d rows, %s; %s", n_kernels, outcome.n_rows, outcome.verdict, " ".join(outcome.sentences))
        questions = questions_of(causes["what_if"])
        extent = Extent(causes["context"], causes["context_resamples"], questions, launch_values(table, questions))
        write_json({"drafts": drafts_of(outcome, extent)}, job.output.draft)


if "snakemake" in globals():
    main(snakemake)
