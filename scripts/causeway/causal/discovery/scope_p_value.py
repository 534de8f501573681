"""Many candidates, many kernels: what a p-value is worth after looking in many places."""

import numpy as np

from causeway.causal.selection.forward import MIN_TEST_SIZE
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.multiple_testing import simes
from causeway.numeric.effective_size import autocorrelations, bartlett_factor


def stage_p_values(stage: Stage) -> np.ndarray:
    """Return a p-value for every candidate of one stage, shape (candidates,), given the stage's parents; for the
    parents that of their own test.
    """
    problem = stage.problem
    model = linear_model_of(problem, stage.response, stage.chosen)
    explained, df = model.scan()
    of_residual = autocorrelations(model.residual[:, None], problem.n_lags)[0]
    factors = np.ones(problem.n_candidates)
    np.maximum.at(factors, problem.basis.owner, bartlett_factor(problem.lags, of_residual))
    sizes = problem.n_independent / factors
    p_values, _ = model.tests(explained, df, sizes)
    p_values[sizes < MIN_TEST_SIZE] = 1.0
    for test in stage.tests:
        p_values[test.candidate] = test.p_value
    return p_values


def scope_p_value(stages: Stages, controls: list[int], between: list[float], n_between: int) -> float:
    """Return Simes' p-value of the hypothesis that a scope has no cause, over both stages and the configuration level.

    Parameters
    ----------
    stages : Stages
    controls : list of int
        Candidates that are no causes whatever they explain.
    between : list of float
        p-values of the causes at the configuration level, where `n_between` features were tested.
    """
    found = [np.delete(stage_p_values(stage), controls) for stage in stages.both if stage.problem.basis.owner.size]
    return simes(np.concatenate([*found, between, np.ones(max(n_between - len(between), 0))]))
