"""Tests of parents given their own past and the target's: two slow waves that go together by chance are no evidence.

The effective number of rows is taken from the residual with the candidate in the model. Where two slow series match by
chance, the candidate whitens that residual, and the test takes one coincidence for hundreds of rows. Given the last
launches of both, only what is new at a launch counts: the momentary conditional independence of PCMCI.

It is asked of parents alone, and only where both series change slowly. A pattern that repeats every few launches is
told by its past wholly, and yet its many cycles are evidence.

A clock is a function of its own past by nature: nothing is new in it at a launch. Of a response that wanders slowly by
itself every stretch has some trend. So what a clock explains is compared with the other waves of the response that are
as slow, after all other parents have been judged: a drift above noise stands out of them.

Both are asked where the order of the rows is that of one kernel's launches, and of numbers. Nothing is searched in the
place of what is refused: of a slow cause that the test cannot tell from a wave, others that resemble it would take the
place.

References
----------
J. Runge, P. Nowack, M. Kretschmer, S. Flaxman, D. Sejdinovic, Detecting and quantifying causal associations in large
nonlinear time series datasets, Sci. Adv. 5 (2019) eaau4996. U. K. Mueller, M. W. Watson, Long-run covariability,
Econometrica 86 (2018) 775, for inference from few cosines of the lowest frequencies.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from scipy.fft import dct
from scipy.linalg import qr
from scipy.special import fdtrc

from causeway.causal.data.observations import Candidate, Drop, Dropped, Observations
from causeway.causal.selection.backward import ROWS_PER_COLUMN, Stage, Stages
from causeway.causal.selection.linear_model import ALPHA, SIGNIFICANT, bonferroni, effective_test_size, linear_model_of
from causeway.causal.selection.problem import Problem
from causeway.core.names.prior_knowledge import CLOCK, LAG
from causeway.numeric.effective_size import STANDARD_ERRORS, autocorrelations

REASON = "refused under own lags: what is new in it at a launch goes with nothing that is new in the deviation"
NO_DRIFT = "refused as a drift: other slow waves of the deviation are as large"
WAVES = 11
"""Cosines of the lowest frequencies, of 1 to 11 half periods of a recording, that a drift is compared with."""
LAGS = 20
"""Rows of its own past, and of the target's, that a test is given. Chosen: with them 1 of 40 tables of independent slow
waves has a cause, without the test 6; 8 of 205 slow causes are lost.
"""
SHORTEST = 4 * LAGS
"""Fewest rows, on average, of a stretch in which a clock runs on: one that begins anew in every step is no drift."""
MIN_LAGS = LAGS // 4
"""Fewest lags that are held, however few the rows. Chosen."""
BEGINS_ANEW = 0.5
"""Part of its range by which a clock falls where it begins anew."""
RANK = 1e-5
"""Single precision of the bases, some digits spared."""


def without_slow_waves(
    stages: Stages, candidates: Sequence[Candidate], rows: Observations
) -> tuple[Stages, tuple[Dropped, ...]]:
    """Return the stages without the parents that lose their evidence when the last launches are given, and these.

    The stage with the smaller p-value decides on a parent of both.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    rows : Observations
    """
    if int(rows.kernel.max(initial=0)) > 0:
        return stages, ()
    numbers = [index for index in stages.parents() if not candidates[index].levels]
    roles = {index: candidates[index].role for index in numbers}
    refused: dict[int, str] = {}
    for index in numbers:
        if roles[index] in (CLOCK, LAG):
            continue
        tests = [(test.p_value, stage) for stage in stages.both for test in stage.tests if test.candidate == index]
        if refused_under_lags(min(tests, key=lambda pair: pair[0])[1], index):
            refused[index] = REASON
    waves = [*refused, *(index for index in numbers if roles[index] == LAG)]
    for index in numbers:
        if roles[index] == CLOCK and refused_beside_waves(stages, index, candidates[index].values, waves):
            refused[index] = NO_DRIFT
    if not refused:
        return stages, ()
    mean, scale = (
        replace(stage, tests=[test for test in stage.tests if test.candidate not in refused]) for stage in stages.both
    )
    dropped = tuple(Dropped(candidates[index].name, reason, Drop.REFUSED) for index, reason in refused.items())
    return replace(stages, mean=mean, scale=scale), dropped


def refused_beside_waves(stages: Stages, candidate: int, values: np.ndarray, left_out: Collection[int]) -> bool:
    """Tell whether a clock explains no more of either response than other waves as slow are large.

    Both stages are asked, whichever found the clock: where launches resemble the one before, the stage of the mean may
    take a trend for that.

    Parameters
    ----------
    stages : Stages
        Of rows of one kernel, in time order within a rank.
    candidate : int
        A parent of either; a number, not a category.
    values : ndarray of float, shape (n_rows,)
        The clock.
    left_out : collection of int
        Parents that are none, or hold earlier outcomes: what they explain is left to the clock.
    """
    starts = stretches(values)
    if values.size < SHORTEST * starts.size:
        return False
    p_values = []
    for stage in stages.both:
        roots = stage.centring.roots
        others = {*stage.pruner.given, *stage.chosen} - {candidate, *left_out}
        left = linear_model_of(stage.problem, stage.response, sorted(others)).residual / roots
        columns = stage.problem.basis.columns[:, stage.problem.basis.of(candidate)] / roots[:, None]
        p_values.append(p_value_beside_waves(left, columns, starts))
    return bonferroni(min(p_values), len(p_values)) > ALPHA


def stretches(values: np.ndarray) -> np.ndarray:
    """Return the rows at which a clock begins anew.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        The clock, in any unit.

    Returns
    -------
    ndarray of int, shape (n_stretches,)
        Ascending, the first is 0.

    Examples
    --------
    >>> stretches(np.array([0.0, 1.0, 3.0, 2.5, 4.0, 0.5, 3.0]))
    array([0, 5])
    """
    return np.concatenate([[0], np.flatnonzero(np.diff(values) < -BEGINS_ANEW * np.ptp(values)) + 1])


def p_value_beside_waves(response: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> float:
    """Return the p-value of the F test of a drift's columns against what they leave of the response at the lowest
    frequencies.

    Stretches of several ranks count as one: ranks that do the same wander together.

    Parameters
    ----------
    response : ndarray of float, shape (n_rows,)
    columns : ndarray of float, shape (n_rows, k), k below `WAVES`
        Functions of the clock.
    starts : ndarray of int, shape (n_stretches,)
        First rows of the stretches in which the clock runs on; the first is 0.

    Returns
    -------
    float
        0 to 1; 1 for a clock that differs between stretches alone.
    """
    response = _centred(response[:, None], starts)
    frame = orthonormal(_centred(columns, starts))
    if frame.shape[1] == 0:
        return 1.0
    explained = frame.T @ response
    left = np.split(response - frame @ explained, starts[1:])
    noise = [dct(part[:, 0], norm="ortho")[1 : WAVES + 1] for part in left]
    df = WAVES - frame.shape[1]
    mean_square = float((np.concatenate(noise) ** 2).sum()) / df
    if mean_square <= 0:
        return 0.0
    return float(fdtrc(frame.shape[1], df, float((explained**2).sum()) / frame.shape[1] / mean_square))


def _centred(columns: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return columns less their means over each stretch."""
    return np.vstack([part - part.mean(axis=0) for part in np.split(columns, starts[1:])])


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
    held = np.asfortranarray(np.hstack([model.q / roots, past(np.hstack([response, columns]), lags)])[lags:])
    held -= held.mean(axis=0)  # in place, as `orthonormal` works: these are by far the most columns
    response, columns = (part[lags:] - part[lags:].mean(axis=0) for part in (response, columns))
    return p_value_given(response[:, 0], columns, held, problem, candidate) > SIGNIFICANT


def is_slow(series: np.ndarray) -> bool:
    """Tell whether a series changes slowly beside the lags that are conditioned on: its mean autocorrelation over them
    is above what white noise has (Bartlett). A pattern that repeats within them has 0.

    Parameters
    ----------
    series : ndarray of float, shape (n_rows,)
        In time order, with mean 0.
    """
    if series.size <= 4 * LAGS:
        return False
    least = STANDARD_ERRORS / np.sqrt(LAGS * series.size)
    return bool(autocorrelations(series[:, None], LAGS)[0].mean() > least)


def lags_that_fit(problem: Problem, n_columns: int) -> int:
    """Return how many lags of a candidate with `n_columns` and of the response the rows can carry, at most `LAGS`."""
    return int(np.clip(problem.n_independent / ROWS_PER_COLUMN / (1 + n_columns), MIN_LAGS, LAGS))


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
        the past is held, not only what is new as `LinearModel` has it. Lost as in `orthonormal`.
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
        What it holds is lost if it lies column after column in memory: the basis takes its place.
    length : float

    Returns
    -------
    ndarray of float, shape (n_rows, rank)
    """
    frame, triangle = qr(columns, overwrite_a=True, mode="economic", check_finite=False)
    left, sizes, _ = np.linalg.svd(triangle, full_matrices=False)
    return frame @ left[:, sizes > RANK * max(sizes.max(initial=0.0), length)]
