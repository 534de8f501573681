"""Tests of parents given their own past and the target's: two slow waves that go together by chance are no evidence.

The effective number of rows is taken from the residual with the candidate in the model. Where two slow series match by
chance, the candidate whitens that residual, and the test takes one coincidence for hundreds of rows. Given the last
launches of both, only what is new at a launch counts: the momentary conditional independence of PCMCI.

It is asked of parents alone, and only where both series change slowly. A pattern that repeats every few launches is
told by its past wholly, and yet its many cycles are evidence.

References
----------
J. Runge, P. Nowack, M. Kretschmer, S. Flaxman, D. Sejdinovic, Detecting and quantifying causal associations in large
nonlinear time series datasets, Sci. Adv. 5 (2019) eaau4996.
"""

import numpy as np
from scipy.special import fdtrc

from causeway.causal.selection.linear_model import effective_test_size, linear_model_of
from causeway.causal.selection.problem import Problem
from causeway.causal.selection.stages import Stage
from causeway.numeric.effective_size import autocorrelations

LAGS = 20
"""Rows of its own past, and of the target's, that a test is given. Chosen: with them 1 of 40 tables of independent slow
waves has a cause, without the test 6; 8 of 205 slow causes are lost.
"""
SLOW = 0.05
"""A series is slow whose mean autocorrelation over these lags is above this; a pattern that repeats within them has 0.
Chosen.
"""
LEVEL = 0.05
"""Level of the test given the past: convention, of a single test of what was found at a level divided by all."""
ROWS_PER_LAG = 6
"""At least so many independent rows per column of the past, as `backward.ROWS_PER_COLUMN`."""
MIN_LAGS = 5
"""Fewest lags that are held, however few the rows. Chosen."""
RANK = 1e-5
"""Single precision of the bases, some digits spared."""


def refused_under_lags(stage: Stage, candidate: int) -> bool:
    """Tell whether a parent of a stage loses its evidence when its own past and the response's are given.

    Parameters
    ----------
    stage : Stage
        Of rows in time order, of one kernel.
    candidate : int
        One of `stage.chosen`; a number, not a category.
    """
    problem = stage.problem
    others = {*stage.pruner.given, *stage.chosen} - {candidate}
    roots = stage.centring.roots[:, None]  # rows weighted by what a cause does to the scale would not follow their past
    model = linear_model_of(problem, stage.response, sorted(others))
    columns = problem.basis.columns[:, problem.basis.of(candidate)] / roots
    if not (is_slow(model.residual / roots[:, 0]) and any(is_slow(column) for column in columns.T)):
        return False
    response = stage.response[:, None] / roots
    lags = lags_that_fit(problem, columns.shape[1])
    held = np.hstack([model.q / roots, past(np.hstack([response, columns]), lags)])
    parts = [part[lags:] - part[lags:].mean(axis=0) for part in (response, columns, held)]
    return p_value_given(parts[0][:, 0], parts[1], parts[2], problem, candidate) > LEVEL


def is_slow(series: np.ndarray) -> bool:
    """Tell whether a series changes slowly beside the lags that are conditioned on.

    Parameters
    ----------
    series : ndarray of float, shape (n_rows,)
        In time order, with mean 0.
    """
    if series.size <= 4 * LAGS:
        return False
    return bool(autocorrelations(series[:, None], LAGS)[0].mean() > SLOW)


def lags_that_fit(problem: Problem, n_columns: int) -> int:
    """Return how many lags of a candidate with `n_columns` and of the response the rows can carry, at most `LAGS`."""
    return int(np.clip(problem.n_independent / ROWS_PER_LAG / (1 + n_columns), MIN_LAGS, LAGS))


def past(columns: np.ndarray, lags: int) -> np.ndarray:
    """Return columns shifted by 1 to `lags` rows.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, k)
        In time order.
    lags : int
        Below n_rows.

    Returns
    -------
    ndarray of float, shape (n_rows, k * lags)
        Lag by lag; 0 before the first row.
    """
    return np.hstack([np.pad(columns[:-lag], ((lag, 0), (0, 0))) for lag in range(1, lags + 1)])


def p_value_given(
    response: np.ndarray, columns: np.ndarray, held: np.ndarray, problem: Problem, candidate: int
) -> float:
    """Return the p-value of the partial F test of a candidate's columns beside those that are held.

    Parameters
    ----------
    response : ndarray of float, shape (n_rows,)
    columns : ndarray of float, shape (n_rows, k)
        Of the candidate.
    held : ndarray of float, shape (n_rows, m)
        What of `columns` follows from these adds nothing; slow series follow nearly from their past, so that all of
        the past is held, not only what is new as `LinearModel` has it.
    problem : Problem
    candidate : int

    Returns
    -------
    float
        0 to 1; 1 if the candidate adds nothing.
    """
    frame = orthonormal(held)
    left = response - frame @ (frame.T @ response)
    new = orthonormal(columns - frame @ (frame.T @ columns), np.sqrt((columns**2).sum(axis=0)).max(initial=0.0))
    if new.shape[1] == 0:
        return 1.0
    residual = left - new @ (new.T @ left)
    size = effective_test_size(problem, candidate, residual)
    df = size - 1 - frame.shape[1] - new.shape[1]
    after = float(residual @ residual)
    if df < 1 or after <= 0:
        return 1.0
    return float(fdtrc(new.shape[1], df, float(left @ left - after) / new.shape[1] / (after / df)))


def orthonormal(columns: np.ndarray, length: float = 0.0) -> np.ndarray:
    """Return an orthonormal basis of columns, without what is rounding beside the longest direction or `length`.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, k)
    length : float

    Returns
    -------
    ndarray of float, shape (n_rows, rank)
    """
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > RANK * max(sizes.max(initial=0.0), length)]
