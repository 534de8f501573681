"""Collinearity, rechecked after selection: causes that had been taken for sums of two others.

Columns are called deterministic before the search, without regard to the target. The search leaves a handful of causes,
and these can be looked at closely, with the target at hand.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.data.counter_names import derived_name
from causeway.causal.data.observations import Candidate
from causeway.causal.discovery.cluster_representative import CLEARLY
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.backward import ALTERNATIVE_CORRELATION, flexible_functions, unit_columns
from causeway.causal.selection.forward import EXCHANGE_GAIN, FEW_ROWS
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.screening_off import PREFERENCE
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.basis import Basis, GroupCentring, build_basis

MISSED = 30.0
"""Twice the log-likelihood that a deterministic column must add to what was chosen to come back: beyond the best of
8,000 by chance.
"""
MOST_RIVALS = 20
"""So many deterministic columns are tried in the place of each chosen one."""
NOT_WORSE = 10.0
"""Twice the log-likelihood by which two determining columns must beat the one they determine to keep its place."""


def reinstate_determined(stages: Stages, prepared: Prepared) -> bool:
    """Bring back deterministic columns that are needed after all; tell whether any came back.

    Of a = c - b, c and b may have been kept for their names while a is the cause. Then both are chosen, and a alone
    does what they do together; or others stand in for it, and a explains much of what the chosen leave, or more than
    one of them in its place.
    """
    chosen = {prepared.within[index].name: index for index in stages.parents()}
    back = []
    for name, others in sorted(prepared.determined.items()):
        both = [chosen[other] for other in others if other in chosen]
        if len(both) >= 2 and _fits_as_well(stages, prepared, name, both):
            back.append(name)
    beating = set()
    missed = set()
    for stage in stages.both:
        if stage.tests:
            aside = _Aside.of(prepared, stage)
            missed |= set(_missed(stage, aside, prepared))
            beating |= set(_beating(stage, aside, prepared))
    beating = sorted(beating)
    back = sorted({*back, *missed, *(name for name in beating if name in prepared.determined)})
    promoted = [name for name in beating if name in prepared.stand_ins and prepared.promote_once(name)]
    for name in back:
        prepared.reinstate(name)
    return bool(back or promoted)


@dataclass(frozen=True)
class _Aside:
    """Deterministic and merged columns, in order, with their bases for a stage."""

    names: list[str]
    basis: Basis

    @classmethod
    def of(cls, prepared: Prepared, stage: Stage) -> "_Aside":
        candidates = {**prepared.stand_ins, **prepared.reserve}
        names = sorted(candidates)
        ones = [candidates[name] for name in names]
        return cls(names, build_basis([one.values for one in ones], stage.centring, [one.scores for one in ones]))

    def columns(self, number: int) -> np.ndarray:
        """Return the columns of one of them."""
        return self.basis.columns[:, self.basis.of(number)]


def _missed(stage: Stage, aside: _Aside, prepared: Prepared) -> list[str]:
    """Return the deterministic column that explains most of what the chosen leave of a stage, if it explains that
    much.
    """
    model = stage.pruner.others_model(stage.response, stage.chosen)
    before = float(model.residual @ model.residual)
    gains = {}
    for number, name in enumerate(aside.names):
        if name in prepared.determined:
            residual, _ = model.residual_with(aside.columns(number))
            gains[name] = stage.problem.n_independent * np.log(before / max(float(residual @ residual), 1e-300))
    best = max(gains, key=gains.get, default=None)
    return [best] if best is not None and gains[best] > MISSED else []


def _beating(stage: Stage, aside: _Aside, prepared: Prepared) -> list[str]:
    """Return the deterministic and merged columns that, in the place of a chosen one with which they correlate, fit
    better.

    By the criterion of the search's exchanges (what won by another would lose there), with what the surroundings say of
    the two. Of a = c - b, a noisy copy of a may have been chosen for want of a itself; so may a ratio of a for want of
    a where a near copy stands for it. A column that is derived by its name must be clearly better.
    """
    n = stage.problem.n_independent
    names = aside.names
    found = []
    if not names or n < FEW_ROWS:  # few rows tell such columns apart by chance: the names decide
        return []
    for index in stage.chosen:
        own = stage.problem.basis.columns[:, stage.problem.basis.of(index)]
        strength = np.zeros(len(names))
        np.maximum.at(strength, aside.basis.owner, np.abs(aside.basis.columns.T @ own).max(axis=1, initial=0.0))
        members = stage.pruner.candidates[index].members
        strength[[name in members or prepared.was_promoted(name) for name in names]] = 0.0
        near = [
            one for one in np.argsort(-strength, kind="stable")[:MOST_RIVALS] if strength[one] > ALTERNATIVE_CORRELATION
        ]
        if not near:
            continue
        model = linear_model_of(stage.problem, stage.response, [other for other in stage.chosen if other != index])
        fits = [model.residual_with(part) for part in (own, *(aside.columns(one) for one in near))]
        score = np.asarray([n * np.log(max(float(rest @ rest), 1e-300)) + np.log(n) * df for rest, df in fits])
        score[1:] += [CLEARLY if derived_name(names[one]) else EXCHANGE_GAIN for one in near]
        for place in np.flatnonzero(score[1:] < score[0] + PREFERENCE):
            score[1 + place] -= stage.problem.correlation_cache.preference_of(aside.columns(near[place])[:, 0], index)
        best = int(np.argmin(score))
        if best:
            found.append(names[near[best - 1]])
    return found


def _fits_as_well(stages: Stages, prepared: Prepared, name: str, both: list[int]) -> bool:
    one = prepared.reserve[name]
    for stage in stages.both:
        replaced = [index for index in both if index in stage.chosen]
        if not replaced:
            continue
        model = stage.pruner.others_model(
            stage.response, [index for index in stage.chosen if index not in replaced], tuple(replaced)
        )
        left = [
            float((residual**2).sum())
            for residual, _ in (
                model.residual_with(_columns([one], stage.centring)),
                model.residual_with(_columns([prepared.within[index] for index in replaced], stage.centring)),
            )
        ]
        loss = stage.problem.n_independent * np.log(max(left[0], 1e-300) / max(left[1], 1e-300))
        if len(replaced) >= 2 and loss < NOT_WORSE:
            return True
    return False


def _columns(candidates: list[Candidate], centring: GroupCentring) -> np.ndarray:
    parts = [
        build_basis([one.values for one in candidates], centring, [one.scores for one in candidates]).columns.astype(
            float
        )
    ]
    parts += [unit_columns(centring.weighted(flexible_functions(candidate))) for candidate in candidates]
    return np.hstack(parts)
