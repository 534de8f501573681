"""Marks of the causal analysis on the tables of one case: drawn, analysed as features of a dataset are, and compared with their truth."""

import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.causal.discovery import Outcome, Scope, discover
from causeway.causal.scopes import columns_of, in_time_order, rows_of
from causeway.logs import LOG, failing_clearly
from causeway.tables import write_json
from causeway.validation.cases import CASES, Case
from causeway.validation.features_file import features_table, plain_columns
from causeway.validation.marks import Claim, marks
from causeway.validation.rivals import rivals
from causeway.validation.selection import inclusion_probabilities, selection_marks
from causeway.validation.worlds import Table, draw

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def claims_of(outcome: Outcome) -> list[Claim]:
    """Return what an analysis claims."""
    return [Claim(a.candidate.name, a.candidate.members, a.sign, a.percent, a.robustness, a.sign_of) for a in outcome.arrows]


def measured(case: Case, seed: int) -> dict[str, dict]:
    """Return the marks of each method on one table."""
    table = draw(case.world, seed)
    inclusion = inclusion_probabilities(table, seed) if case.selected else None
    features = in_time_order(features_table(table, inclusion))
    begun = time.process_time()
    columns, rows = columns_of(features), rows_of(features, equal_kernels=True)
    outcome = discover(columns, rows, Scope("validation", "y", "dataset", seed=seed, resamples=case.resamples))
    spent = time.process_time() - begun
    unexplained = outcome.unexplained[0] if outcome.unexplained else None
    found = {"ours": marks(claims_of(outcome), unexplained, table) | {"cpu_s": spent}}
    if case.selected:
        found["ours"] |= selection_marks(table, inclusion)
    if case.rivals:
        found |= _rivals(table, seed)
    return found


def _rivals(table: Table, seed: int) -> dict[str, dict]:
    """Return the marks of the methods to beat. They are told how many causes there are, and are spared the leaks."""
    names, columns, target = plain_columns(table)
    told = max(len(table.causes), 1)
    return {
        name: marks(claims, rest, table)
        for name, (claims, rest) in rivals(names, columns, target, told if table.causes else 6, seed).items()
    }


def main(job) -> None:
    with failing_clearly(job.log[0]):
        case = CASES[job.wildcards.case]
        seeds = [job.params.first_seed + number for number in range(getattr(case, job.params.study))]
        found = []
        for seed in seeds:
            found.append({"seed": seed, "methods": measured(case, seed)})
            LOG.info(
                "%s, seed %d: %s", case.name, seed, {name: round(float(value), 3) for name, value in found[-1]["methods"]["ours"].items()}
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        write_json({"case": case.name, "title": case.title, "tables": found, "peak_mib": peak}, Path(job.output.marks))


if "snakemake" in globals():
    main(snakemake)
