"""Causes in the whole dataset: all kernels together, with fixed effects, each kernel weighing the same."""

from typing import TYPE_CHECKING

from causeway.causal.allocation import keep_freed_memory
from causeway.causal.asked import launch_values, questions_of
from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import Extent, examined
from causeway.causal.scopes import DATASET_SCOPE, blocks_of, columns_of, in_time_order, pooled, read_features, rows_of
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
        scope = Scope(dataset, target, DATASET_SCOPE, None, seed, causes["resamples"], crosscheck=True)
        outcome = discover(columns_of(table), rows_of(table, equal_kernels=True), scope)
        LOG.info("%d kernels, %d rows, %s; %s", n_kernels, outcome.n_rows, outcome.verdict, " ".join(outcome.sentences))
        questions = questions_of(causes["what_if"])
        extent = Extent(causes["context"], causes["context_resamples"], questions, launch_values(table, questions))
        write_json({"drafts": [examined(outcome, extent)]}, job.output.draft)


if "snakemake" in globals():
    main(snakemake)
