"""Scores of the causal analysis on the tables of one case: drawn, analysed as features of a dataset are, and compared
with their truth.
"""

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causeway.causal.data.outcome import Estimate, Outcome, Scope, WhatIf
from causeway.causal.data.scopes import Totals, feature_columns, in_time_order, observations_of
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import InterventionModel, what_ifs
from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import write_json
from lab.validation.baselines import baseline_claims
from lab.validation.cases import CASES, Case, drawn
from lab.validation.features_file import features_table, plain_columns
from lab.validation.generator import KnownTable
from lab.validation.scores import Claim, Interval, score_claims, share_scores
from lab.validation.selection import inclusion_probabilities, selection_scores
from lab.validation.time_scores import WhatIfClaim, interval_of, time_claim, time_scores, what_if_scores

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

CLAIMS_WITHOUT_CAUSES = 6
"""Columns that rank correlation and trees name where there is no cause."""


@dataclass(frozen=True)
class Analysis:
    """What the analysis finds in a table: its outcome and its what-ifs."""

    outcome: Outcome
    what_ifs: list[WhatIf]


def claims_of(outcome: Outcome) -> list[Claim]:
    """Return what an analysis claims; of a cause that acts through mediators no share is stated."""
    claims = []
    for arrow in outcome.arrows:
        shares = None if arrow.through else _shares(arrow.contribution, arrow.variance)
        facts = (arrow.sign, arrow.contribution.value, arrow.robustness, arrow.sign_of, shares)
        claims.append(Claim(arrow.name, arrow.node.members, *facts))
    return claims


def _shares(contribution: Estimate, variance: Estimate) -> tuple[Interval, Interval]:
    return (contribution.value, contribution.low, contribution.high), (variance.value, variance.low, variance.high)


def analysed(table: KnownTable, case: Case, seed: int, inclusion: np.ndarray | None = None) -> Analysis:
    """Return what the analysis finds in a table, as the workflow finds it in the features of a dataset."""
    features = in_time_order(features_table(table, inclusion))
    columns = feature_columns(features)
    rows = observations_of(features, equal_kernels=True)
    scope = Scope("validation", table.target, "dataset", seed=seed)
    outcome, evidence = discover(columns, rows, scope, totals=totals_of_table(table))
    if not outcome.arrows or evidence is None:
        return Analysis(outcome, [])
    return Analysis(outcome, what_ifs(InterventionModel(evidence.times, outcome.arrows), outcome.arrows))


def totals_of_table(table: KnownTable) -> Totals:
    """Return what the rows of a table stand for: each for itself, however the kernels are weighted in the search."""
    kernels = np.unique(table.kernel)
    time_by_kernel = {f"kernel-{number:02d}": float(table.y[table.kernel == number].sum()) for number in kernels}
    launches = {f"kernel-{number:02d}": int((table.kernel == number).sum()) for number in kernels}
    return Totals(time=time_by_kernel, launches=launches)


def measured(case: Case, seed: int) -> dict[str, dict]:
    """Return the scores of each method on one table."""
    table = drawn(case.settings, seed)
    inclusion = inclusion_probabilities(table, seed) if case.selected else None
    begun = time.process_time()
    analysis = analysed(table, case, seed, inclusion)
    spent = time.process_time() - begun
    outcome = analysis.outcome
    unexplained = outcome.unexplained.value if outcome.unexplained else None
    claims = claims_of(outcome)
    scores = {"ours": score_claims(claims, unexplained, table) | {"cpu_s": spent}}
    if outcome.unexplained is not None and not table.definition:
        scores["ours"] |= share_scores(claims, _shares(outcome.unexplained, outcome.unexplained_variance), table)
    if case.selected:
        scores["ours"] |= selection_scores(table, inclusion)
    else:
        scores["ours"] |= scores_in_time(analysis, table)
    if case.baselines:
        scores |= _baseline_scores(table, seed)
    return scores


def scores_in_time(analysis: Analysis, table: KnownTable) -> dict[str, float]:
    """Return the scores of what is said on durations, of the causes that are named, by their own name or a copy's."""
    claims = [claim for arrow in analysis.outcome.arrows if (claim := time_claim(arrow, table)) is not None]
    settings = [
        WhatIfClaim(
            cause=what_if.features[0],
            words=what_if.after[0],
            mean=interval_of(what_if.mean_change),
            p99=interval_of(what_if.p99_change),
        )
        for what_if in analysis.what_ifs
        if len(what_if.features) == 1 and what_if.features[0] in table.causes
    ]
    return time_scores(claims, table) | what_if_scores(settings, table)


def _baseline_scores(table: KnownTable, seed: int) -> dict[str, dict]:
    """Return the scores of the baselines, which are given the number of causes and are spared the leaked columns."""
    names, columns, target = plain_columns(table)
    n_causes = len(table.causes) or CLAIMS_WITHOUT_CAUSES
    by_method = baseline_claims(names, columns, target, n_causes, seed)
    return {name: score_claims(claims, rest, table) for name, (claims, rest) in by_method.items()}


def main(job) -> None:
    with failing_clearly(job.log[0]):
        case = CASES[job.wildcards.case]
        seeds = [job.params.first_seed + number for number in range(getattr(case, job.params.study))]
        tables = []
        for seed in seeds:
            tables.append({"seed": seed, "methods": measured(case, seed)})
            LOG.info(
                "%s, seed %d: %s",
                case.name,
                seed,
                {name: round(float(value), 3) for name, value in tables[-1]["methods"]["ours"].items()},
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        write_json(
            {"case": case.name, "title": case.title, "tables": tables, "peak_mib": peak}, Path(job.output.scores)
        )


if "snakemake" in globals():
    main(snakemake)
