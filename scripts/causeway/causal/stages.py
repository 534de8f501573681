"""The two stages of the search: parents of the mean of the signed deviation, then parents of its scale.

The target is an absolute deviation, and folding destroys straight signal; so the signed deviation is explained first, then the size of
what is left. A parent of either is a parent of the target.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.basis import GroupCentring, build_basis
from causeway.causal.deviation import robust_scale
from causeway.causal.effective_size import kish_size
from causeway.causal.pruning import Pruner
from causeway.causal.rows import Candidate, Rows
from causeway.causal.search import Problem, Test, forward

CLIP_MEAN = 2.5
"""Huber's clipping of the deviation, in robust standard deviations: rare long launches count as long, not as everything."""
CLIP_SCALE = 4.0


@dataclass
class Stages:
    """What the two stages found.

    Attributes
    ----------
    problem, pruner
        Of the candidates that vary within configurations.
    centring : GroupCentring
    mean_response, scale_response : ndarray, shape (n_rows,)
        Centred within configurations and weighted.
    mean_tests, scale_tests : list of Test
    residual : ndarray, shape (n_rows,)
        What the parents of the mean leave of the standardised deviation; neither clipped nor weighted.
    """

    problem: Problem
    pruner: Pruner
    centring: GroupCentring
    mean_response: np.ndarray
    scale_response: np.ndarray
    mean_tests: list[Test]
    scale_tests: list[Test]
    residual: np.ndarray

    def parents(self) -> list[int]:
        """Return the parents of either stage, ascending."""
        return sorted({test.candidate for test in (*self.mean_tests, *self.scale_tests)})


def independent_rows(rows: Rows) -> float:
    """Return Kish's effective size, less what the configurations' means cost."""
    n_configurations = int(rows.configuration.max()) + 1 if len(rows) else 0
    return kish_size(rows.weight) * max(len(rows) - n_configurations, 0) / max(len(rows), 1)


def mean_response_of(deviation: np.ndarray, centring: GroupCentring) -> np.ndarray:
    """Return the response of the mean stage: the deviation clipped, centred within configurations, weighted."""
    scale = robust_scale(deviation, centring.weights)
    return centring.weighted(np.clip(deviation / scale if scale > 0 else deviation, -CLIP_MEAN, CLIP_MEAN))


def scale_response_of(residual: np.ndarray, centring: GroupCentring) -> np.ndarray:
    """Return the response of the scale stage: the root of the absolute residual, clipped, centred within configurations, weighted.

    The root makes the absolute value of a normal variable nearly symmetric (N. Wilson, M. Hilferty, PNAS 17 (1931) 684, for powers of
    chi-squared), so that F tests hold for few rows.
    """
    scale = robust_scale(residual, centring.weights)
    size = np.abs(residual) / (scale if scale > 0 else 1.0)
    return centring.weighted(np.sqrt(np.minimum(size, CLIP_SCALE)))


def residual_after(pruner: Pruner, deviation: np.ndarray, centring: GroupCentring, chosen: list[int]) -> np.ndarray:
    """Return the deviation minus the part that the chosen candidates explain of the clipped deviation, in the deviation's unit.

    The model is the flexible one that pruning uses, in which they may bend, act together, and act differently in each kernel: what a
    stiffer one leaves of the mean would look like scale, and proxies of a cause would be taken for causes of the scale.
    """
    response = mean_response_of(deviation, centring)
    model = pruner.others_model(response, chosen)
    scale = robust_scale(deviation, centring.weights)
    return centring.centred(deviation) - (response - model.residual) / centring.roots * (scale if scale > 0 else 1.0)


def run_stages(candidates: list[Candidate], rows: Rows, deviation: np.ndarray) -> Stages:
    """Search the parents of the mean, then of the scale, among the candidates that vary within configurations."""
    centring = GroupCentring(rows.configuration, rows.weight)
    basis = build_basis([candidate.values for candidate in candidates], centring)
    problem = Problem.of(basis, len(candidates), independent_rows(rows))
    pruner = Pruner(problem, candidates, centring, rows.kernel)
    mean_response = mean_response_of(deviation, centring)
    mean_tests = pruner.prune(mean_response, forward(problem, mean_response))
    residual = residual_after(pruner, deviation, centring, [test.candidate for test in mean_tests])
    scale_response = scale_response_of(residual, centring)
    scale_tests = pruner.prune(scale_response, forward(problem, scale_response))
    return Stages(problem, pruner, centring, mean_response, scale_response, mean_tests, scale_tests, residual)
