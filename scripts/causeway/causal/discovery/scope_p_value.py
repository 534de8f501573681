"""Many candidates, many kernels: what a p-value is worth after looking in many places."""

import numpy as np

from causeway.causal.effective_size import autocorrelations, bartlett_factor
from causeway.causal.search import MIN_TEST_SIZE, model_of
from causeway.causal.stages import Stage, Stages


def simes(p_values: np.ndarray) -> float:
    """Return Simes' p-value of the hypothesis that no candidate matters: `min p_(k) d / k`; 1 without candidates.

    References
    ----------
    R. J. Simes, An improved Bonferroni procedure for multiple tests of significance, Biometrika 73 (1986) 751.
    """
    p_values = np.sort(np.asarray(p_values, dtype=float))
    return float(min(1.0, (p_values * p_values.size / np.arange(1, p_values.size + 1)).min())) if p_values.size else 1.0


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Return q-values: the smallest false discovery rate at which each hypothesis is rejected.

    References
    ----------
    Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57 (1995) 289.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(-p_values, kind="stable")
    scaled = p_values[order] * p_values.size / np.arange(p_values.size, 0, -1)
    q_values = np.empty(p_values.size)
    q_values[order] = np.minimum(1.0, np.minimum.accumulate(scaled)) if p_values.size else []
    return q_values


def adjusted(p_value: float, n_tests: int) -> float:
    """Return a p-value after Bonferroni over the candidates of a search."""
    return float(min(1.0, p_value * max(n_tests, 1)))


def over_families(p_value: float, n_selected: int, n_families: int) -> float:
    """Return the q-value of a hypothesis in one of `n_selected` families out of `n_families`; `p_value` is adjusted within the family.

    References
    ----------
    Y. Benjamini, M. Bogomolov, Selective inference on multiple families of hypotheses, J. R. Stat. Soc. B 76 (2014) 297: if the false
    discovery rate selects R of m families, hypotheses within them are tested at R / m times the level.
    """
    return float(min(1.0, p_value * n_families / max(n_selected, 1)))


def stage_p_values(stage: Stage) -> np.ndarray:
    """Return a p-value for every candidate of one stage, given the stage's parents; for the parents that of their own test."""
    problem = stage.problem
    model = model_of(problem, stage.response, stage.chosen)
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
