"""Tests of clocks that run through the recording: whether the response goes with them more than it wanders anyway.

The effective number of rows is taken from the residual with the clock in the model. Of a response that wanders slowly
by itself every stretch has some trend, which the clock whitens: the test takes one coincidence for hundreds of rows.
Nothing is new in a clock at a launch, so that its past cannot be held as `lagged` does. What a clock explains is
compared with the other waves of the response that are as slow: a drift above noise stands out of them.

References
----------
U. K. Mueller, M. W. Watson, Long-run covariability, Econometrica 86 (2018) 775, for inference from few cosines of the
lowest frequencies.
"""

from collections.abc import Collection

import numpy as np
from scipy.fft import dct
from scipy.special import fdtrc

from causeway.causal.selection.lagged import orthonormal
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.multiple_testing import bonferroni

WAVES = 11
"""Cosines of the lowest frequencies, of 1 to 11 half periods of a recording, that a drift is compared with."""
LEVEL = 0.01
"""Level of that test."""
SHORTEST = 80
"""Fewest rows, on average, of a stretch in which a clock runs on: one that begins anew in every step is no drift."""
BEGINS_ANEW = 0.5
"""A clock that falls by more than this share of its range begins anew, as at the first launch of the next rank."""


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
    return bonferroni(min(p_values), len(p_values)) > LEVEL


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
    falls = np.diff(values) < -BEGINS_ANEW * np.ptp(values)
    return np.concatenate([[0], np.flatnonzero(falls) + 1])


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
