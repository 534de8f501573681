"""The two stages of the search: parents of the mean of the signed deviation, then parents of its scale.

The target is an absolute deviation, and folding destroys straight signal; so the signed deviation is explained first, then the size of
what is left. A parent of either is a parent of the target. Once causes of the scale are known, both stages are run again with every row
weighted by the precision that these causes give it: where the noise is small, a launch tells more about the mean.
"""

from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.basis import GroupCentring
from causeway.causal.deviation import robust_scale
from causeway.causal.ground import Ground, Grounds
from causeway.causal.pruning import Pruner
from causeway.causal.rows import Candidate
from causeway.causal.screening import PREFERENCE
from causeway.causal.search import FEW_ROWS, MIN_PARTIAL_R2, Problem, Test, fit_scores, forward, level, model_of

CLIP_MEAN = 2.5
"""Huber's clipping of the deviation, in robust standard deviations: rare long launches count as long, not as everything."""
CLIP_SCALE = 4.0
POWER = 2.0 / 3.0
"""Of the absolute residual: the cube root of a chi-squared variable is nearly normal (E. Wilson, M. Hilferty, PNAS 17 (1931) 684)."""
MIN_SPREAD = 0.25
"""Smallest fitted spread of a row, in the average one: no row is given more than 16 times the average precision."""
INDEPENDENT = 0.5
"""Rows are nearly independent if the effective number behind a test is at least this share of what it would be without autocorrelation."""
RELATED = 0.3
"""Correlation from which a cause of the scale may be what the mean's model misses of a parent of the mean."""
WEIGHTED_ROUNDS = 2
"""At most so often are both stages run again: new causes of the scale give new weights."""


@dataclass
class Stage:
    """One stage of the search and what it found.

    Attributes
    ----------
    name : str
        `mean` or `scale`.
    problem : Problem
    pruner : Pruner
    centring : GroupCentring
    response : ndarray, shape (n_rows,)
        Centred within configurations and weighted.
    unit : float
        Of the response.
    tests : list of Test
        Of the parents.
    """

    name: str
    problem: Problem
    pruner: Pruner
    centring: GroupCentring
    response: np.ndarray
    unit: float
    tests: list[Test]

    @property
    def chosen(self) -> list[int]:
        """The stage's parents, in the order in which they were found."""
        return [test.candidate for test in self.tests]


@dataclass
class Stages:
    """What the two stages found.

    Attributes
    ----------
    mean, scale : Stage
    problem : Problem
        Of the candidates that vary within configurations, rows weighted as they were sampled.
    centring : GroupCentring
        Likewise.
    residual : ndarray, shape (n_rows,)
        What the parents of the mean leave of the standardised deviation; neither clipped nor weighted.
    """

    mean: Stage
    scale: Stage
    problem: Problem
    centring: GroupCentring
    residual: np.ndarray

    @property
    def both(self) -> tuple[Stage, Stage]:
        """The stages in order."""
        return self.mean, self.scale

    def parents(self) -> list[int]:
        """Return the parents of either stage, ascending."""
        return sorted({candidate for stage in self.both for candidate in stage.chosen})


def _stage(ground: Ground, name: str, values: np.ndarray, unit: float, given: tuple[int, ...] = ()) -> Stage:
    """Search the parents of `values`, in `unit`; those `given` are in every model and are tested at the end."""
    response = ground.centring.weighted(values)
    pruner = Pruner(ground.problem, ground.candidates, ground.centring, ground.kernel, given)
    tests = pruner.prune(response, forward(ground.problem, response, given))
    chosen = [test.candidate for test in tests]
    for candidate in given:
        test = pruner.test(response, candidate, chosen)
        if test.p_value <= level(ground.problem, len(tests) + 1) and test.partial_r2 >= MIN_PARTIAL_R2:
            tests.append(test)
    return Stage(name, ground.problem, pruner, ground.centring, response, unit, tests)


def nearly_independent(stage: Stage) -> bool:
    """Tell whether autocorrelation takes less than half of the rows behind each of a stage's parents."""
    return all(test.n_effective >= INDEPENDENT * stage.problem.n_independent for test in stage.tests)


def clipped(deviation: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the deviation in robust standard deviations, clipped at `CLIP_MEAN` of them, and this unit."""
    unit = robust_scale(deviation, weights) or 1.0
    return np.clip(deviation / unit, -CLIP_MEAN, CLIP_MEAN), unit


def size_of(residual: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the response of the scale stage: a power of the absolute residual that makes it nearly normal, clipped.

    F tests then hold for few rows.
    """
    return np.minimum(np.abs(residual) / (robust_scale(residual, weights) or 1.0), CLIP_SCALE) ** POWER


def _residual(mean: Stage, deviation: np.ndarray) -> np.ndarray:
    """Return the deviation minus the part that the mean's parents explain of the clipped deviation, in the deviation's unit.

    The model is the flexible one that pruning uses, in which they may bend, act together, and act differently in each kernel: what a
    stiffer one leaves of the mean would look like scale, and proxies of a cause would be taken for causes of the scale.
    """
    model = mean.pruner.others_model(mean.response, mean.chosen)
    return mean.centring.centred(deviation) - (mean.response - model.residual) / mean.centring.roots * mean.unit


def _beside_mean(scale: Stage, mean: Stage) -> Stage:
    """Return the scale stage without parents that add nothing beside a related parent of the mean that tells the scale about as well.

    What the model of the mean misses of a bent effect looks like scale, and goes with whatever goes with that parent of the mean.
    """
    kept = []
    for test in scale.tests:
        others = [one for one in scale.chosen if one != test.candidate]
        score = fit_scores(model_of(scale.problem, scale.response, others))
        near = np.abs(scale.problem.surroundings.correlations(test.candidate)) > RELATED
        related = [one for one in mean.chosen if near[one] and one not in scale.chosen and score[one] < score[test.candidate] + PREFERENCE]
        if related:
            again = scale.pruner.test(scale.response, test.candidate, [*others, *related])
            if again.p_value > level(scale.problem, len(scale.tests)) or again.partial_r2 < MIN_PARTIAL_R2:
                continue
        kept.append(test)
    return replace(scale, tests=kept)


def _spread(scale: Stage, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the spread of each row's residual that the parents of the scale give it, in the average one."""
    model = model_of(scale.problem, scale.response, scale.chosen)
    level = float(np.average(size, weights=weights))
    fitted = 1.0 + (scale.response - model.residual) / scale.centring.roots / level
    spread = np.maximum(fitted, MIN_SPREAD**POWER) ** (1.0 / POWER)
    return np.maximum(spread / np.average(spread, weights=weights), MIN_SPREAD)


def run_stages(candidates: list[Candidate], grounds: Grounds, deviation: np.ndarray) -> Stages:
    """Search the parents of the mean, then of the scale, among the candidates that vary within configurations."""
    plain, rows = grounds.plain(candidates), grounds.rows
    mean = _stage(plain, "mean", *clipped(deviation, rows.weight))
    residual = _residual(mean, deviation)
    size = size_of(residual, rows.weight)
    scale = _beside_mean(_stage(plain, "scale", size, 1.0), mean)
    found = Stages(mean, scale, plain.problem, plain.centring, residual)
    for _ in range(WEIGHTED_ROUNDS):
        again = _weighted(found, candidates, grounds, deviation, size)
        if again is None:
            break
        done = set(again[0].scale.chosen) == set(found.scale.chosen)
        found, size = again
        if done:
            break
    return found


def _weighted(
    found: Stages, candidates: list[Candidate], grounds: Grounds, deviation: np.ndarray, size: np.ndarray
) -> tuple[Stages, np.ndarray] | None:
    """Return what both stages find when rows are weighted by their precision, and the response of the scale; None if weights do not hold.

    They hold if rows are many and nearly independent, and the causes of the scale that gave the weights are found again with them:
    what was taken for scale and was a bent mean is not.
    """
    if not found.scale.tests or found.problem.n_independent < FEW_ROWS or not nearly_independent(found.scale):
        return None
    rows = grounds.rows
    spread = _spread(found.scale, size, rows.weight)
    standard, unit = clipped(found.residual / spread, rows.weight)
    pulled = found.centring.centred(deviation) - found.residual + spread * standard * unit
    mean = _stage(grounds.weighted(candidates, spread**-2), "mean", pulled, 1.0, tuple(found.scale.chosen))
    residual = _residual(mean, deviation)
    size = size_of(residual, rows.weight)
    scale = _beside_mean(_stage(grounds.weighted(candidates, spread ** (-2 * POWER)), "scale", size, 1.0), mean)
    if not set(found.scale.chosen) <= set(scale.chosen):
        return None
    return Stages(mean, scale, found.problem, found.centring, residual), size
