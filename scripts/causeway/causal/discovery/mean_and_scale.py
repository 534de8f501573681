"""The two stages of the search: parents of the mean of the signed deviation, then parents of its scale.

The target is an absolute deviation, and folding destroys straight signal; so the signed deviation is explained first,
then the size of what is left. A parent of either is a parent of the target. Once causes of the scale are known, both
stages are run again with every row weighted by the precision that these causes give it: where the noise is small, a
launch tells more about the mean.

*Total effects.* A mediator must not hide what one can set behind it. Contention raises the DRAM throughput, and the
throughput the time: given the counter, contention adds nothing, and the search among all columns names the counter.
What a change of contention would do is its total effect, which is not adjusted for what lies on the way (J. Pearl,
Causality, Cambridge University Press 2009, section 3.3: descendants of the cause are no covariates). So levers,
exposures and clocks are searched once more by themselves. Those that hold there and vanish beside mediators are causes
*through* these mediators.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import POWER, Candidate, Observations, clipped_deviation, scale_response
from causeway.causal.data.outcome import StageName
from causeway.causal.discovery.arrows import Parent, parents_within
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.selection.backward import ORIGINAL, PART_OF_RATIO, Pruner, Stage, Stages
from causeway.causal.selection.lagged import without_slow_waves
from causeway.causal.selection.linear_model import (
    ALPHA,
    FEW_ROWS,
    MIN_PARTIAL_R2,
    SIGNIFICANT,
    LinearModel,
    bonferroni,
    effective_test_size,
    fit_scores,
    forward,
    linear_model_of,
    significance_level,
)
from causeway.causal.selection.problem import Design, DesignCache
from causeway.core.feature_registry import MISSING_VALUES
from causeway.core.names.prior_knowledge import EXPOSURE, LEVER, MEDIATOR

INDEPENDENT = 0.5
"""Share of the rows behind a test that autocorrelation leaves, from which they are nearly independent."""
MIN_SPREAD = 0.25
"""Smallest fitted spread of a row, in the average one: no row is given more than 16 times the average precision."""
WEIGHTED_ROUNDS = 2
"""At most so often are both stages run again: new causes of the scale give new weights."""


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
    mediators = [index for index in direct if not is_root(candidates[index])]
    roots = [candidate for candidate in candidates if is_root(candidate)]
    if not mediators or not any(_may_be_named(root) for root in roots):
        return []
    of_roots = run_stages(roots, DesignCache(rows), deviation)
    of_roots, _ = without_slow_waves(of_roots, roots, rows)
    direct_names = {candidates[index].name for index in direct}
    parents = []
    for index, parent in zip(of_roots.parents(), parents_within(of_roots, roots), strict=True):
        if _may_be_named(parent.candidate) and parent.name not in direct_names:
            through = ", ".join(candidates[number].name for number in mediators_of(stages, of_roots, index, mediators))
            p_value = bonferroni(parent.p_value, stages.problem.n_tests / of_roots.problem.n_tests)
            if through and p_value <= SIGNIFICANT:
                parents.append(replace(parent, p_value=p_value, through=through))
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
        if p_values[0] <= ALPHA / len(mediators) and shares[0] >= MIN_PARTIAL_R2:
            strongest = max(
                test.partial_r2 for stage in stages.both for test in stage.tests if test.candidate == mediator
            )
            carried[mediator] = float(shares[0]) * strongest
    return sorted(carried, key=lambda mediator: (-carried[mediator], mediator))


def _stage(ground: Design, name: StageName, values: np.ndarray, unit: float, given: tuple[int, ...] = ()) -> Stage:
    """Search the parents of `values`, in `unit`; those `given` are in every model and are tested at the end."""
    response = ground.centring.weighted(values)
    pruner = Pruner(ground, given)
    tests = pruner.prune(response, forward(ground.problem, response, given))
    chosen = [test.candidate for test in tests]
    for candidate in given:
        test = pruner.test(response, candidate, chosen)
        if test.p_value <= significance_level(ground.problem, len(tests) + 1) and test.partial_r2 >= MIN_PARTIAL_R2:
            tests.append(test)
    if name == "scale":  # what a column tells is left over where it is missing, and scatters there
        tests = [test for test in tests if ground.candidates[test.candidate].group != MISSING_VALUES]
    return Stage(name, ground.problem, pruner, ground.centring, response, unit, tests)


def nearly_independent(stage: Stage) -> bool:
    """Tell whether autocorrelation takes less than half of the rows behind each of a stage's parents."""
    return all(test.n_effective >= INDEPENDENT * stage.problem.n_independent for test in stage.tests)


def _residual(mean: Stage, deviation: np.ndarray) -> np.ndarray:
    """Return the deviation minus the part that the mean's parents explain of the clipped deviation, in the deviation's
    unit.

    The model is the flexible one that pruning uses, in which they may bend, act together, and act differently in each
    kernel: what a stiffer one leaves of the mean would look like scale, and proxies of a cause would be taken for
    causes of the scale.
    """
    model = mean.pruner.others_model(mean.response, mean.chosen)
    return mean.centring.centred(deviation) - (mean.response - model.residual) / mean.centring.roots * mean.unit


def _beside_mean(scale: Stage, mean: Stage) -> Stage:
    """Return the scale stage without parents that add nothing beside a related parent of the mean that tells the scale
    as well.

    What the model of the mean misses of a bent effect looks like scale, and goes with whatever goes with that parent of
    the mean.
    """
    kept = []
    for test in scale.tests:
        others = [other for other in scale.chosen if other != test.candidate]
        near = scale.problem.firsts_like(test.candidate) ** 2 > PART_OF_RATIO
        score = fit_scores(linear_model_of(scale.problem, scale.response, others))
        as_well = near & (score < score[test.candidate] + ORIGINAL)
        related = [parent for parent in mean.chosen if as_well[parent] and parent not in scale.chosen]
        if related:
            again = scale.pruner.test(scale.response, test.candidate, [*others, *related])
            if again.p_value > significance_level(scale.problem, len(scale.tests)) or again.partial_r2 < MIN_PARTIAL_R2:
                continue
        kept.append(test)
    return replace(scale, tests=kept)


def _spread(scale: Stage, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the spread of each row's residual that the parents of the scale give it, in the average one."""
    model = linear_model_of(scale.problem, scale.response, scale.chosen)
    level = float(np.average(size, weights=weights))
    fitted = 1.0 + (scale.response - model.residual) / scale.centring.roots / level
    spread = np.maximum(fitted, MIN_SPREAD**POWER) ** (1.0 / POWER)
    return np.maximum(spread / np.average(spread, weights=weights), MIN_SPREAD)


def run_stages(candidates: list[Candidate], grounds: DesignCache, deviation: np.ndarray) -> Stages:
    """Search the parents of the mean, then of the scale, of `deviation`, shape (n,), among the candidates that vary
    within configurations.
    """
    plain = grounds.plain(candidates)
    rows = grounds.rows
    mean = _stage(plain, "mean", *clipped_deviation(deviation, rows.weight))
    residual = _residual(mean, deviation)
    size = scale_response(residual, rows.weight)
    scale = _beside_mean(_stage(plain, "scale", size, 1.0), mean)
    stages = Stages(mean, scale, plain.problem, plain.centring, residual)
    for _ in range(WEIGHTED_ROUNDS):
        again = _weighted(stages, candidates, grounds, deviation, size)
        if again is None:
            break
        done = set(again[0].scale.chosen) == set(stages.scale.chosen)
        stages, size = again
        if done:
            break
    return stages


def _weighted(
    stages: Stages, candidates: list[Candidate], grounds: DesignCache, deviation: np.ndarray, size: np.ndarray
) -> tuple[Stages, np.ndarray] | None:
    """Return what both stages find when rows are weighted by their precision, and the response of the scale; None if
    weights do not hold.

    They hold if rows are many and nearly independent, and the causes of the scale that gave the weights are found again
    with them: what was taken for scale and was a bent mean is not.
    """
    if not stages.scale.tests or stages.problem.n_independent < FEW_ROWS or not nearly_independent(stages.scale):
        return None
    rows = grounds.rows
    spread = _spread(stages.scale, size, rows.weight)
    standard, unit = clipped_deviation(stages.residual / spread, rows.weight)
    pulled = stages.centring.centred(deviation) - stages.residual + spread * standard * unit
    mean = _stage(grounds.weighted(candidates, spread**-2), "mean", pulled, 1.0, tuple(stages.scale.chosen))
    residual = _residual(mean, deviation)
    size = scale_response(residual, rows.weight)
    scale = _beside_mean(_stage(grounds.weighted(candidates, spread ** (-2 * POWER)), "scale", size, 1.0), mean)
    if not set(stages.scale.chosen) <= set(scale.chosen):
        return None
    return Stages(mean, scale, stages.problem, stages.centring, residual), size
