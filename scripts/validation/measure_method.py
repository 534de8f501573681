"""Scores of the causal analysis on the tables of one case: drawn, analysed as features of a dataset are, and compared
with their truth.
"""

import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.causal.data.outcome import Outcome, Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery.discover import discover
from causeway.core.logs import LOG, failing_clearly
from causeway.core.tables import write_json
from causeway.validation.baselines import baseline_claims
from causeway.validation.cases import CASES, Case
from causeway.validation.features_file import features_table, plain_columns
from causeway.validation.generator import KnownTable, draw
from causeway.validation.scores import Claim, score_claims
from causeway.validation.selection import inclusion_probabilities, selection_scores

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

CLAIMS_WITHOUT_CAUSES = 6
"""Columns that rank correlation and trees name where there is no cause."""


def claims_of(outcome: Outcome) -> list[Claim]:
    """Return what an analysis claims."""
    return [
        Claim(a.name, a.node.members, a.sign, a.contribution.value, a.robustness, a.sign_of) for a in outcome.arrows
    ]


def measured(case: Case, seed: int) -> dict[str, dict]:
    """Return the scores of each method on one table."""
    table = draw(case.settings, seed)
    inclusion = inclusion_probabilities(table, seed) if case.selected else None
    features = in_time_order(features_table(table, inclusion))
    begun = time.process_time()
    columns = feature_columns(features)
    rows = observations_of(features, equal_kernels=True)
    outcome, _ = discover(columns, rows, Scope("validation", "y", "dataset", seed=seed, resamples=case.resamples))
    spent = time.process_time() - begun
    unexplained = outcome.unexplained.value if outcome.unexplained else None
    found = {"ours": score_claims(claims_of(outcome), unexplained, table) | {"cpu_s": spent}}
    if case.selected:
        found["ours"] |= selection_scores(table, inclusion)
    if case.baselines:
        found |= _baseline_scores(table, seed)
    return found


def _baseline_scores(table: KnownTable, seed: int) -> dict[str, dict]:
    """Return the scores of the baselines, which are given the number of causes and are spared the leaked columns."""
    names, columns, target = plain_columns(table)
    n_causes = len(table.causes) or CLAIMS_WITHOUT_CAUSES
    found = baseline_claims(names, columns, target, n_causes, seed)
    return {name: score_claims(claims, rest, table) for name, (claims, rest) in found.items()}


def main(job) -> None:
    with failing_clearly(job.log[0]):
        case = CASES[job.wildcards.case]
        seeds = [job.params.first_seed + number for number in range(getattr(case, job.params.study))]
        found = []
        for seed in seeds:
            found.append({"seed": seed, "methods": measured(case, seed)})
            LOG.info(
                "%s, seed %d: %s",
                case.name,
                seed,
                {name: round(float(value), 3) for name, value in found[-1]["methods"]["ours"].items()},
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        write_json({"case": case.name, "title": case.title, "tables": found, "peak_mib": peak}, Path(job.output.scores))


if "snakemake" in globals():
    main(snakemake)
