"""Total effects of levers and exposures: a mediator must not hide what one can set behind it.

Contention raises the DRAM throughput, and the throughput the time: given the counter, contention adds nothing, and the
search among all columns names the counter. What a change of contention would do is its total effect, which is not
adjusted for what lies on the way (J. Pearl, Causality, Cambridge University Press 2009, section 3.3: descendants of the
cause are no covariates). So levers, exposures and clocks are searched once more by themselves. Those that hold there
and vanish beside mediators are causes *through* these mediators.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.discovery.arrows import Parent, parents_within
from causeway.causal.discovery.lag_recheck import without_slow_waves
from causeway.causal.discovery.mean_and_scale import run_stages
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.selection.design_cache import DesignCache
from causeway.causal.selection.forward import ALPHA
from causeway.causal.selection.linear_model import LinearModel, effective_test_size
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.multiple_testing import bonferroni
from causeway.core.names.prior_knowledge import EXPOSURE, LEVER, MEDIATOR

MAX_P = 0.05
"""Largest p-value of a total effect, adjusted for the tests of the whole search: convention."""
MIN_MEDIATION = 0.01
"""A mediator of which a cause explains a smaller share of the variance carries nothing of it. Chosen."""


def is_root(candidate: Candidate) -> bool:
    """Tell whether a candidate is a lever, an exposure or a clock, which lie before all mediators."""
    return candidate.role != MEDIATOR


def mediated_parents(
    stages: Stages,
    candidates: Sequence[Candidate],
    rows: Observations,
    deviation: np.ndarray,
) -> list[Parent]:
    """Return the levers and exposures that act through mediators, each with these in `through`; none of them is a
    parent in `stages`.

    Parameters
    ----------
    stages : Stages
        Of the search among all candidates.
    candidates : sequence of Candidate
        In the order of that search.
    rows : Observations
    deviation : ndarray of float, shape (n_rows,)
        Standardised.
    """
    direct = stages.parents()
    mediators = [one for one in direct if not is_root(candidates[one])]
    roots = [one for one in candidates if is_root(one)]
    if not mediators or not any(_may_be_named(one) for one in roots):
        return []
    found = run_stages(roots, DesignCache(rows), deviation)
    found, _ = without_slow_waves(found, roots, rows)
    known = {candidates[one].name for one in direct}
    hidden = {}
    for index in found.parents():
        if _may_be_named(roots[index]) and roots[index].name not in known:
            through = mediators_of(stages, found, index, mediators)
            if through:
                hidden[roots[index].name] = ", ".join(candidates[one].name for one in through)
    if not hidden:
        return []
    parents = []
    for parent in parents_within(found, roots):
        p_value = bonferroni(parent.p_value, stages.problem.n_tests / found.problem.n_tests)
        if parent.candidate.name in hidden and p_value <= MAX_P:
            parents.append(replace(parent, p_value=p_value, through=hidden[parent.candidate.name]))
    return parents


def _may_be_named(candidate: Candidate) -> bool:
    return candidate.role in (LEVER, EXPOSURE) and candidate.name not in CONTROL_NAMES


def mediators_of(stages: Stages, roots: Stages, root: int, mediators: Sequence[int]) -> list[int]:
    """Return the mediators that a root changes, those first that carry most of it to the deviation.

    Parameters
    ----------
    stages : Stages
        Of the search among all candidates, to which `mediators` belong.
    roots : Stages
        Of the search among the roots, to which `root` belongs.
    root : int
    mediators : sequence of int

    Returns
    -------
    list of int
        The root explains a significant part of each, the mediators' number paid for; what it explains, times what the
        mediator explains of the deviation or its scale, falls.
    """
    columns = roots.problem.basis.columns[:, roots.problem.basis.of(root)]
    carried = {}
    for mediator in mediators:
        first = stages.problem.basis.columns[:, stages.problem.basis.of(mediator)][:, 0].astype(float)
        model = LinearModel(roots.problem, first)
        residual, df = model.residual_with(columns)
        explained = float(first @ first - residual @ residual)
        size = effective_test_size(roots.problem, root, residual)
        p_values, shares = model.tests(np.asarray([explained]), np.asarray([df]), np.asarray([size]))
        if p_values[0] <= ALPHA / len(mediators) and shares[0] >= MIN_MEDIATION:
            strongest = max(
                test.partial_r2 for stage in stages.both for test in stage.tests if test.candidate == mediator
            )
            carried[mediator] = float(shares[0]) * strongest
    return sorted(carried, key=lambda one: (-carried[one], one))
