"""Columns that tell the same: the class of a parent, of which the data cannot say which one acts, and the
representative of a cluster.

Columns that correlate above `clustering.SIMILARITY` are merged before the search. Yet a cause and its near copy (or its
mirror image, with the opposite sign) differ. The medoid is chosen without looking at the target; with the other causes
in the model, the data often tell the members apart, and the one that explains the target clearly best represents them.

Other columns of a class are found out by the search: rivals with which the model fits as well, a sum or a ratio of
others among them. All of them are named as members; the one that gives the arrow its name is a choice of names and
order.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.discovery.arrows import Parent
from causeway.causal.preparation.numeric_columns import RELATIVE_UNITS
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.basis import build_basis
from causeway.causal.statistics.multiple_testing import STRONG, VERY_STRONG

ALIKE = 0.8
"""Least absolute correlation, within configurations, of columns that may tell the same. Chosen."""


def promote_better_members(stages: Stages, prepared: Prepared) -> bool:
    """Replace medoids among the parents by clearly better members; tell whether any was replaced."""
    changed = False
    for stage in stages.both:
        for index in stage.chosen:
            candidate = prepared.within[index]
            if candidate is not stage.pruner.candidates[index]:  # replaced since the search
                continue
            others = [name for name in candidate.members if name in prepared.stand_ins]
            if not _computed(candidate):  # a rate or ratio may hold the measured time itself and would win by that
                others = [name for name in others if not _computed(prepared.stand_ins[name])]
            if not others:
                continue
            best = _best(stage, index, others, prepared)
            if best is not None:
                prepared.promote(best)
                changed = True
    return changed


def _computed(candidate: Candidate) -> bool:
    """Tell whether a column is a rate or ratio, by its unit; parts of a sum are counted like the whole."""
    return candidate.unit in RELATIVE_UNITS


def _best(stage: Stage, index: int, names: list[str], prepared: Prepared) -> str | None:
    """Return the member whose basis leaves clearly less of the response than that of candidate `index`; None if there
    is none.
    """
    model = linear_model_of(stage.problem, stage.response, [other for other in stage.chosen if other != index])
    left = float(model.residual @ model.residual)

    def unexplained(values: np.ndarray) -> float:
        rest, _ = model.residual_with(build_basis([values], stage.centring).columns)
        return max(float(rest @ rest) / left, 1e-12) if left > 0 else 1.0

    own = unexplained(prepared.within[index].values)
    fits = sorted((unexplained(prepared.stand_ins[name].values), name) for name in names)
    gain = stage.problem.n_independent * np.log(own / fits[0][0])
    return fits[0][1] if gain > VERY_STRONG else None


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
    criterion is larger by less than `STRONG`.
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

    limit = score(own) + STRONG
    return [one for one in near if score(build_basis([one.values], stage.centring).columns) < limit]


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else 0.0
