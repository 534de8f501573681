"""Who stands for a cluster that turned out to be a cause: the member that explains the target best, if it does so clearly.

Members of a cluster correlate above .95, and yet a cause and its near copy (or its mirror image, with the opposite sign) differ. The
medoid is chosen without looking at the target; with the other causes in the model, the data often tell the members apart.
"""

from dataclasses import replace

import numpy as np

from causeway.causal.basis import build_basis
from causeway.causal.prepare import RELATIVE_UNITS, Prepared, merged_reason
from causeway.causal.rows import Candidate, Dropped
from causeway.causal.search import model_of
from causeway.causal.stages import Stage, Stages

CLEARLY = 10.0
"""Difference of twice the log-likelihood from which a member displaces the medoid: "very strong" evidence in R. Kass, A. Raftery,
J. Am. Stat. Assoc. 90 (1995) 773."""


def better_members(stages: Stages, prepared: Prepared) -> bool:
    """Replace medoids among the parents by clearly better members; tell whether any was replaced.

    Changes `prepared.within` and the reasons in `prepared.dropped` in place.
    """
    changed = False
    for stage in stages.both:
        for index in stage.chosen:
            candidate = prepared.within[index]
            if candidate is not stage.pruner.candidates[index]:  # replaced since the search
                continue
            others = [name for name in candidate.members if name != candidate.name and name in prepared.merged]
            if not _computed(candidate):  # a rate or ratio may hold the measured time itself and would win by that
                others = [name for name in others if not _computed(prepared.merged[name])]
            if not others:
                continue
            best = _best(stage, index, candidate, others, prepared)
            if best is not None:
                _replace(prepared, index, best)
                changed = True
    return changed


def _computed(candidate: Candidate) -> bool:
    """Tell whether a column is a rate or ratio, by its unit; parts of a sum are counted like the whole."""
    return candidate.unit in RELATIVE_UNITS


def _best(stage: Stage, index: int, candidate: Candidate, names: list[str], prepared: Prepared) -> str | None:
    """Return the member whose basis leaves clearly less of the response than the candidate's own; None if there is none."""
    model = model_of(stage.problem, stage.response, [other for other in stage.chosen if other != index])
    left = float(model.residual @ model.residual)

    def unexplained(values: np.ndarray) -> float:
        rest, _ = model.residual_with(build_basis([values], stage.centring).columns)
        return max(float(rest @ rest) / left, 1e-12) if left > 0 else 1.0

    own = unexplained(candidate.values)
    fits = sorted((unexplained(prepared.merged[name].values), name) for name in names)
    gain = stage.problem.n_independent * np.log(own / fits[0][0])
    return fits[0][1] if gain > CLEARLY else None


def promote(prepared: Prepared, name: str) -> bool:
    """Let a merged column stand for its cluster, once for each cluster; tell whether there was one that it stood behind.

    What did not win the search when it was tried does not win it the next time, and two members would take turns.
    """
    index = next((place for place, candidate in enumerate(prepared.within) if name in candidate.members), None)
    if index is None or name in prepared.tried:
        return False
    _replace(prepared, index, name)
    prepared.tried.update(prepared.within[index].members)
    return True


def _replace(prepared: Prepared, index: int, name: str) -> None:
    """Let `name` stand for the cluster of candidate `index`."""
    old, new = prepared.within[index], prepared.merged.pop(name)
    prepared.merged[old.name] = replace(old, members=(old.name,))
    members = (name, *sorted(member for member in old.members if member != name))
    prepared.within[index] = replace(new, members=members)
    kept = [dropped for dropped in prepared.dropped if dropped.feature not in members]
    prepared.dropped = sorted([*kept, *(Dropped(m, merged_reason(name)) for m in members[1:])], key=lambda dropped: dropped.feature)
