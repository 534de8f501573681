"""The representative of a cluster that turned out to be a cause: the member that explains the target best, if it does
so clearly.

Members of a cluster correlate above .95, and yet a cause and its near copy (or its mirror image, with the opposite
sign) differ. The medoid is chosen without looking at the target; with the other causes in the model, the data often
tell the members apart.
"""

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.preparation.numeric_columns import RELATIVE_UNITS
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.basis import build_basis

CLEARLY = 10.0
"""Difference of twice the log-likelihood from which a member displaces the medoid: "very strong" evidence in R.
Kass, A. Raftery, J. Am. Stat. Assoc. 90 (1995) 773."""


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
    return fits[0][1] if gain > CLEARLY else None
