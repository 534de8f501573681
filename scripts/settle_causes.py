"""Verdicts over all kernels of a dataset and target, and the documents of every scope."""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.causal.asked import questions_of, unanswered
from causeway.causal.scopes import DATASET_SCOPE, kernels_that_matter
from causeway.causal.settlement import agreement, flagged, settled, write_rows, write_scope
from causeway.logs import LOG, failing_clearly
from causeway.tables import read_json, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        causes, manifest = job.params.causes, Path(job.output.scopes)
        ids = [kernel.id for kernel in kernels_that_matter(job.input.kernels, causes["kernels_share"], causes["kernels_count"])]
        drafts = {draft["graph"]["scope"]: draft for path in (*job.input.drafts, job.input.whole) for draft in read_json(path)["drafts"]}
        kernels = settled([drafts[kernel] for kernel in ids])
        (whole,) = settled([drafts[DATASET_SCOPE]])
        scopes = [(draft["graph"]["scope"], draft["graph"]["scope_name"]) for draft in (*kernels, whole)]
        whole["whatif"] = [*whole["whatif"], *unanswered(questions_of(causes["what_if"]), scopes)]
        rows = agreement(kernels, whole)
        flagged(kernels, whole, rows)
        for draft in (*kernels, whole):
            graph = draft["graph"]
            LOG.info("%s: %s, q = %s", graph["scope"], graph["verdict"], graph["q_value"])
            write_scope(draft, manifest.parent / graph["scope"])
        facts = {"dataset": job.wildcards.dataset, "target": job.wildcards.target}
        write_rows(rows, job.output.agreement, "agreement", facts)
        write_json({"scopes": ids}, manifest, schema="scopes")


if "snakemake" in globals():
    main(snakemake)
