"""Forward selection of the target's parents: whole candidates by partial F tests, then exchanges.

The target is a sink (nothing measured at a launch is caused by its own deviation), so its parents are its Markov
blanket and no arrow needs orienting. The number of candidates is paid for by Bonferroni.
"""

import numpy as np

from causeway.causal.selection.linear_model import (
    LinearModel,
    Test,
    effective_test_size,
    linear_model_of,
)
from causeway.causal.selection.problem import Problem

ALPHA = 0.01
"""Level of the family of tests in the first step: a candidate enters at `ALPHA / n_tests`."""
MAX_ALPHA = 0.025
"""Level of the later steps, so that over both stages an arrow's p-value times the number of tests stays below 5 %."""
MIN_PARTIAL_R2 = 0.002
"""A candidate that explains less of the residual variance is no cause worth naming, however significant."""
MAX_PARENTS = 15
FEW_ROWS = 300.0
"""With fewer effective rows, nothing that needs many is done: levels do not grow, rows are not weighted by their
precision, and a reader is warned.
"""
MIN_TEST_SIZE = 50
"""Fewer effective rows than this prove nothing, whatever the p-value."""
MOST_TRIED = 40
"""So many candidates are tried per step with their own autocorrelation before the step gives up."""


def significance_level(problem: Problem, rank: int) -> float:
    """Return the level of the test of the `rank`-th parent, counted from 1.

    What is in already is no longer null: as in a step-up procedure, the level grows with the number of parents, but
    only to `MAX_ALPHA`, and not with few rows.

    References
    ----------
    Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57 (1995) 289.
    """
    return (ALPHA if problem.n_independent < FEW_ROWS else min(ALPHA * rank, MAX_ALPHA)) / problem.n_tests


def best_test(model: LinearModel, excluded: set[int], limit: float, least_size: float = MIN_TEST_SIZE) -> Test | None:
    """Return the most significant candidate outside `excluded` whose p-value is at most `limit`; None if there is none.

    With fewer effective rows than `least_size` it counts for none.

    The residual's autocorrelation is taken with the candidate in the model: a true cause that changes slowly leaves
    white noise and is found, a chance resemblance of two slow series leaves a slow residual and is not.
    """
    problem = model.problem
    explained, df = model.scan()
    df[list(excluded)] = 0
    naive, partial = model.tests(explained, df, np.full(problem.n_candidates, problem.n_independent))
    best: Test | None = None
    for candidate in np.lexsort((-partial, naive))[:MOST_TRIED]:
        if naive[candidate] > limit or (best is not None and naive[candidate] >= best.p_value and best.p_value > 0):
            break  # autocorrelation can only weaken a test
        if partial[candidate] < MIN_PARTIAL_R2:
            continue
        residual, _ = model.residual_with(problem.basis.columns[:, problem.basis.of(int(candidate))])
        size = effective_test_size(problem, int(candidate), residual)
        one = [candidate]
        p_value = float(model.tests(explained[one], df[one], np.asarray([size]))[0][0]) if size >= least_size else 1.0
        if p_value <= limit and (best is None or p_value < best.p_value):
            best = Test(int(candidate), p_value, float(partial[candidate]), int(df[candidate]), size)
            if p_value == 0.0:
                break
    return best


def forward(problem: Problem, response: np.ndarray, given: tuple[int, ...] = ()) -> list[int]:
    """Select candidates one by one while the best one's test is significant, then exchange those that another fits
    better.

    A ratio or another mixture may enter first because it stands for two causes at once; once these are in, it is
    exchanged or pruned.

    Parameters
    ----------
    problem : Problem
    response : ndarray of float, shape (n_rows,)
        Centred and weighted like the basis.
    given : tuple of int
        Candidates that are in the model from the start and are not chosen.
    """
    model = linear_model_of(problem, response, list(given))
    chosen: list[int] = []
    while len(chosen) < MAX_PARENTS:
        test = best_test(model, {*given, *chosen}, significance_level(problem, len(chosen) + 1))
        if test is None:
            break
        chosen.append(test.candidate)
        model.add_candidate(test.candidate)
    return chosen
