"""Causes in the whole dataset: all kernels together, with fixed effects, each kernel weighing the same.

A dataset with one kernel is that kernel: it is analysed once, here, and its outcome stands for both.
"""

from typing import TYPE_CHECKING

from causeway.causal.data.outcome import Scope
from causeway.causal.data.outcome_file import write_outcomes
from causeway.causal.data.scopes import (
    DATASET_SCOPE,
    feature_columns,
    in_time_order,
    observations_of,
    only_kernel,
    pooled,
    read_features,
    row_blocks,
    totals_of,
    unsearched_counters,
)
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.user_interventions import configuration_values, user_interventions_of
from causeway.causal.examination.examine import Extent, examine, for_each_scope
from causeway.core.logs import LOG, failing_clearly
from causeway.numeric.process import give_back, share_one_heap
from causeway.numeric.seeds import derived_seed

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        share_one_heap()
        causes = job.params.causes
        seed = job.params.seed
        dataset = job.wildcards.dataset
        target = job.wildcards.target
        blocks = row_blocks(job.input.features)
        blocks, n_kernels = pooled(
            blocks, causes["max_rows"], derived_seed(seed, dataset, target, DATASET_SCOPE, "rows")
        )
        table = in_time_order(read_features(job.input.features, blocks))
        give_back()
        alone = only_kernel(job.input.kernels, causes["kernels_share"], causes["kernels_count"])
        scope = Scope(
            dataset,
            target,
            DATASET_SCOPE,
            seed=seed,
            resamples=causes["resamples"],
            kernel=alone and (alone.id, alone.name),
            is_collective=alone is not None and alone.is_collective,
        )
        unsearched = unsearched_counters(job.input.features)
        interventions = user_interventions_of(causes["what_if"])
        extent = Extent(
            context=causes["context"],
            context_resamples=causes["context_resamples"],
            interventions=interventions,
            by_configuration=configuration_values(table, interventions),
            totals=totals_of(job.input.kernels),
        )
        columns = feature_columns(table)
        rows = observations_of(table, equal_kernels=True)
        del table  # the search is the larger part
        outcome, evidence = discover(columns, rows, scope, unsearched)
        give_back()
        found = ", ".join(arrow.name for arrow in outcome.arrows) or outcome.refusal or "no cause"
        LOG.info("%d kernels, %d rows, %s: %s", n_kernels, outcome.n_rows, outcome.verdict, found)
        write_outcomes(for_each_scope(examine(outcome, evidence, extent), interventions), job.output.draft)


if "snakemake" in globals():
    main(snakemake)
