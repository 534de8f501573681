"""Causes that are significant over all kernels of a dataset and target, and the documents of every scope."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.causal.data.outcome_file import read_outcomes
from causeway.causal.data.scopes import (
    DATASET_SCOPE,
    kernel_names,
    kernels_that_matter,
    totals_of,
    variance_shares,
)
from causeway.causal.effects.user_interventions import user_interventions_of, without_scope
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import across_kernels_rows, agreement_rows, write_rows, write_scope
from causeway.causal.report.kernel_agreement import agreement, contradictions
from causeway.causal.report.kernel_effects import effects_over_kernels
from causeway.causal.report.kernel_support import borne_out, with_kernels_variance
from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        causes = job.params.causes
        manifest = Path(job.output.scopes)
        matter = kernels_that_matter(job.input.kernels, causes["kernels_share"], causes["kernels_count"])
        ids = [kernel.id for kernel in matter]
        uncorrected = {
            outcome.scope.scope: outcome
            for path in (*job.input.drafts, job.input.whole)
            for outcome in read_outcomes(path)
        }
        kernels = correct([uncorrected[kernel] for kernel in ids])
        (whole,) = correct([uncorrected[DATASET_SCOPE]])
        shares = {kernel.id: kernel.share for kernel in matter}
        collectives = totals_of(job.input.kernels).collectives
        whole = borne_out(whole, kernels, shares, collectives, kernel_names(job.input.kernels))
        whole = with_kernels_variance(whole, variance_shares(job.input.configurations))
        scopes = [(outcome.scope.scope, outcome.scope.name) for outcome in (*kernels, whole)]
        refused = without_scope(user_interventions_of(causes["what_if"]), scopes)
        examination = replace(whole.examination, what_ifs=(*whole.examination.what_ifs, *refused))
        whole = replace(whole, examination=examination)
        rows = agreement(kernels, whole)
        reasons = contradictions(rows, DATASET_SCOPE)
        for outcome in (*kernels, whole):
            scope = outcome.scope.scope
            LOG.info("%s: %s, q = %s", scope, outcome.verdict, outcome.q_value)
            write_scope(outcome, manifest.parent / scope, reasons.get(scope, ()))
        facts = {"dataset": job.wildcards.dataset, "target": job.wildcards.target}
        write_rows(agreement_rows(rows), job.output.agreement, "agreement", facts)
        effects = across_kernels_rows(effects_over_kernels(kernels))
        write_rows(effects, job.output.across_kernels, "across_kernels", facts)
        write_json({"scopes": ids}, manifest, schema="scopes")


if "snakemake" in globals():
    main(snakemake)
