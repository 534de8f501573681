"""Causes of one batch of the kernels that matter, not yet corrected for the number of kernels.

The only kernel of a dataset is left to `discover_dataset_causes`.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from causeway.causal.data.outcome import Outcome, Scope
from causeway.causal.data.outcome_file import write_outcomes
from causeway.causal.data.scopes import (
    Kernel,
    PackedFeatures,
    capped,
    feature_columns,
    in_time_order,
    kernel_names,
    kernels_that_matter,
    observations_of,
    of_kernel,
    only_kernel,
    row_blocks,
    totals_of,
    unsearched_counters,
)
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.user_interventions import configuration_values, user_interventions_of
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.preparation.program_order import with_kernel_names
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
        batch = int(job.wildcards.batch)
        which = job.input.kernels, causes["kernels_share"], causes["kernels_count"]
        mine = [] if only_kernel(*which) else kernels_that_matter(*which)[batch :: causes["batches"]]
        blocks = row_blocks(job.input.features)
        seeds = [derived_seed(seed, dataset, target, kernel.id, "rows") for kernel in mine]
        parts = [
            capped(of_kernel(blocks, kernel.id), causes["max_rows"], own)
            for kernel, own in zip(mine, seeds, strict=True)
        ]
        features = PackedFeatures(job.input.features, pa.concat_tables([blocks.slice(0, 0), *parts]))
        give_back()
        totals = totals_of(job.input.kernels)
        names = kernel_names(job.input.kernels)
        unsearched = unsearched_counters(job.input.features)
        interventions = user_interventions_of(causes["what_if"])

        def outcome_of(kernel: Kernel) -> Outcome:
            """Return what is found; all that it was found in is no longer held when the next kernel's turn comes."""
            table = in_time_order(features.taken(kernel.id))
            scope = Scope(
                dataset,
                target,
                kernel.id,
                name=kernel.name,
                seed=seed,
                resamples=causes["resamples"],
                is_collective=kernel.is_collective,
            )
            extent = Extent(
                context=causes["context"],
                context_resamples=causes["context_resamples"],
                interventions=interventions,
                by_configuration=configuration_values(table, interventions),
                totals=totals,
            )
            columns = feature_columns(table)
            rows = observations_of(table)
            del table  # the search is the larger part
            outcome, evidence = discover(columns, rows, scope, unsearched)
            give_back()
            found = ", ".join(arrow.name for arrow in outcome.arrows) or outcome.refusal or "no cause"
            LOG.info("%s: %d rows, %s, before correction: %s", kernel.id, outcome.n_rows, outcome.verdict, found)
            return examine(with_kernel_names(outcome, names), evidence, extent)

        outcomes = []
        for kernel in mine:
            outcomes.append(outcome_of(kernel))
            give_back()
        write_outcomes(outcomes, job.output.drafts)


if "snakemake" in globals():
    main(snakemake)
