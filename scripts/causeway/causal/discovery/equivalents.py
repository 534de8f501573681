"""The class of a parent: all columns that tell the same of the target, of which the data cannot say which one acts.

Columns that correlate above `clustering.SIMILARITY` are merged before the search. Others are found out by it: rivals
with which the model fits as well, a sum or a ratio of others among them. All of them are named as
members; the one that gives the arrow its name is a choice of names and order.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.discovery.arrows import Parent
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.basis import build_basis

ALIKE = 0.8
"""Least absolute correlation, within configurations, of columns that may tell the same. Chosen."""
TOLD = 6.0
"""Difference of the Bayesian information criterion from which the data tell two columns apart: "strong" evidence (R. E.
Kass, A. E. Raftery, Bayes factors, J. Am. Stat. Assoc. 90 (1995) 773).
"""


def with_whole_class(parents: Sequence[Parent], stages: Stages, prepared: Prepared) -> list[Parent]:
    """Return parents within configurations with all columns that tell the same as members.

    Parameters
    ----------
    parents : sequence of Parent
    stages : Stages
        That found them.
    prepared : Prepared
    """
    position = {one.name: index for index, one in enumerate(prepared.within)}
    chosen = {prepared.within[index].name for index in stages.parents()} | {one.candidate.name for one in parents}
    rivals = [one for one in prepared.within if one.name not in chosen and not one.levels]
    found = []
    for parent in parents:
        more: set[str] = set()
        index = position[parent.candidate.name]
        for stage in stages.both:
            if index in stage.chosen and not parent.candidate.levels:
                more |= {name for one in _equivalent(stage, index, rivals) for name in one.members}
        members = (*parent.candidate.members, *sorted(more - set(parent.candidate.members)))
        found.append(replace(parent, candidate=replace(parent.candidate, members=members)) if more else parent)
    return found


def _equivalent(stage: Stage, index: int, rivals: Sequence[Candidate]) -> list[Candidate]:
    """Return the rivals with which, in the place of a parent, a stage's model fits as well: the Bayesian information
    criterion is larger by less than `TOLD`.
    """
    own = stage.problem.basis.columns[:, stage.problem.basis.of(index)].astype(float)
    scores = stage.pruner.candidates[index].scores
    near = [one for one in rivals if abs(_correlation(scores, one.scores)) > ALIKE]
    if not near:
        return []
    others = [*stage.pruner.given, *(other for other in stage.chosen if other != index)]
    model = linear_model_of(stage.problem, stage.response, [other for other in dict.fromkeys(others) if other != index])
    n_rows = stage.problem.n_independent

    def score(columns: np.ndarray) -> float:
        residual, df = model.residual_with(columns)
        return n_rows * np.log(max(float(residual @ residual), 1e-300)) + np.log(n_rows) * df

    limit = score(own) + TOLD
    return [one for one in near if score(build_basis([one.values], stage.centring).columns) < limit]


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else 0.0
