"""Causes of one batch of the kernels that matter, before the number of kernels counts."""

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import examined
from causeway.causal.scopes import capped, columns_of, in_time_order, kernels_that_matter, read_features, rows_of
from causeway.causal.seeds import derived_seed
from causeway.logs import LOG, failing_clearly
from causeway.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        causes, seed = job.params.causes, job.params.seed
        dataset, target, batch = job.wildcards.dataset, job.wildcards.target, int(job.wildcards.batch)
        kernels = kernels_that_matter(job.input.kernels, causes["kernels_share"], causes["kernels_count"])
        mine = kernels[batch :: causes["batches"]]
        features = read_features(job.input.features, [kernel.id for kernel in mine]) if mine else None
        drafts = []
        for kernel in mine:
            table = features.filter(pc.equal(features.column("kernel"), kernel.id))
            table = in_time_order(capped(table, causes["max_rows"], derived_seed(seed, dataset, target, kernel.id, "rows")))
            scope = Scope(dataset, target, kernel.id, kernel.name, seed, causes["resamples"])
            outcome = discover(columns_of(table), rows_of(table), scope)
            LOG.info("%s: %d rows, %s; %s", kernel.id, outcome.n_rows, outcome.verdict, " ".join(outcome.sentences))
            drafts.append(examined(outcome))
        write_json({"drafts": drafts}, job.output.drafts)


if "snakemake" in globals():
    main(snakemake)
