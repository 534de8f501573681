"""The deviation that the search explains: per configuration, in standard deviations, with outliers pulled in."""

import numpy as np

from causeway.causal.data.observations import Observations

PRIOR_LAUNCHES = 5.0
"""Weight of the kernel's typical relative spread in a configuration's, in launches: two launches hardly know their
spread.
"""
NORMAL_MAD = 1.4826
"""Standard deviations per median absolute deviation of a normal variable, `1 / Phi^-1(3/4)`."""
CLIP_MEAN = 2.5
"""Huber's clipping of the deviation, in robust standard deviations: rare long launches count as long, not as
everything.
"""
CLIP_SCALE = 4.0
"""The same of the absolute residual, whose upper tail is what the scale stage explains."""
POWER = 2.0 / 3.0
"""Of the absolute residual: the cube root of a chi-squared variable is nearly normal (E. Wilson, M. Hilferty, PNAS
17 (1931) 684).
"""


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the smallest value at which half of the total weight is reached.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        At least one, finite, in any order.
    weights : ndarray of float, shape (n,), positive
    """
    return float(np.quantile(values, 0.5, weights=weights, method="inverted_cdf"))


def robust_scale(values: np.ndarray, weights: np.ndarray) -> float:
    """Return 1.4826 times the median absolute deviation; the standard deviation if more than half of the values are
    equal; 0 if all are.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        At least one, finite.
    weights : ndarray of float, shape (n,), positive

    References
    ----------
    F. R. Hampel, The influence curve and its role in robust estimation, J. Am. Stat. Assoc. 69 (1974) 383.
    """
    middle = weighted_median(values, weights)
    scale = NORMAL_MAD * weighted_median(np.abs(values - middle), weights)
    if scale > 0:
        return scale
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def configuration_spread(observations: Observations) -> np.ndarray:
    """Return for each row the standard deviation of its configuration, shrunk towards the kernel's typical one.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        In the measured value's unit; 0 where nothing varies.

    Notes
    -----
    `s_c^2 = (n_c std_c^2 + 5 typical^2) / (n_c + 5)`, where `typical` is the median over the kernel's rows of std
    (relative to the mean if all means are positive). n_c is the number of launches that the configuration's rows stand
    for.
    """
    positive = bool(np.all(observations.mean > 0))
    base = observations.mean if positive else np.ones(len(observations))
    relative = observations.std / base
    typical = np.zeros(len(observations))
    for kernel in range(int(observations.kernel.max()) + 1):
        mine = observations.kernel == kernel
        known = mine & np.isfinite(relative)
        if known.any():
            typical[mine] = weighted_median(relative[known], observations.weight[known])
    launches = np.bincount(observations.configuration, observations.weight)[observations.configuration]
    own = np.where(np.isfinite(observations.std), observations.std, typical * base)
    prior = typical * base
    largest = max(float(own.max(initial=0.0)), float(prior.max(initial=0.0)))
    if largest == 0:
        return np.zeros(len(observations))
    own = own / largest  # squares of extreme values would overflow
    prior = prior / largest
    return largest * np.sqrt((launches * own**2 + PRIOR_LAUNCHES * prior**2) / (launches + PRIOR_LAUNCHES))


def standardised_deviation(observations: Observations, spread: np.ndarray) -> np.ndarray:
    """Return the signed deviation in units of the configuration's spread.

    Parameters
    ----------
    observations : Observations
    spread : ndarray of float, shape (n_rows,)
        In the measured value's unit.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        0 where nothing varies.
    """
    return np.where(spread > 0, observations.signed / np.where(spread > 0, spread, 1.0), 0.0)


def clipped_deviation(deviation: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the response of the mean stage: the deviation in robust standard deviations, clipped at `CLIP_MEAN`.

    Parameters
    ----------
    deviation : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    response : ndarray of float, shape (n_rows,)
        Within -`CLIP_MEAN` .. `CLIP_MEAN`.
    unit : float
        The robust standard deviation, 1 where there is none.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Stat. 35 (1964) 73.
    """
    unit = robust_scale(deviation, weights) or 1.0
    return np.clip(deviation / unit, -CLIP_MEAN, CLIP_MEAN), unit


def scale_response(residual: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the response of the scale stage: a power of the absolute residual that makes it nearly normal, clipped.

    F tests then hold for few rows.

    Parameters
    ----------
    residual : ndarray of float, shape (n_rows,)
        The deviation less what the causes of its mean explain.
    weights : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    ndarray of float, shape (n_rows,)
        0 to `CLIP_SCALE ** POWER`.
    """
    return np.minimum(np.abs(residual) / (robust_scale(residual, weights) or 1.0), CLIP_SCALE) ** POWER
