"""The deviation that the search explains: per configuration, in standard deviations, with outliers pulled in."""

import numpy as np

from causeway.causal.rows import Rows

PRIOR_LAUNCHES = 5.0
"""Weight of the kernel's typical relative spread in a configuration's, in launches: two launches hardly know their spread."""


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return the smallest value whose cumulated weight reaches `share` of the total."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][min(np.searchsorted(reached, share * reached[-1]), values.size - 1)])


def robust_scale(values: np.ndarray, weights: np.ndarray) -> float:
    """Return 1.4826 times the median absolute deviation; the standard deviation if more than half of the values are equal; 0 if all are.

    References
    ----------
    F. R. Hampel, The influence curve and its role in robust estimation, J. Am. Stat. Assoc. 69 (1974) 383.
    """
    middle = weighted_quantile(values, weights, 0.5)
    scale = 1.4826 * weighted_quantile(np.abs(values - middle), weights, 0.5)
    if scale > 0:
        return scale
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def configuration_spread(rows: Rows) -> np.ndarray:
    """Return for each row the standard deviation of its configuration, shrunk towards the kernel's typical one.

    Notes
    -----
    `s_c^2 = (n_c std_c^2 + 5 typical^2) / (n_c + 5)`, where `typical` is the median over the kernel's rows of std (relative to the mean
    if all means are positive). n_c is the number of launches that the configuration's rows stand for. 0 where nothing varies.
    """
    positive = bool(np.all(rows.mean > 0))
    base = rows.mean if positive else np.ones(len(rows))
    relative = rows.std / base
    typical = np.zeros(len(rows))
    for kernel in range(int(rows.kernel.max()) + 1):
        mine = rows.kernel == kernel
        known = mine & np.isfinite(relative)
        if known.any():
            typical[mine] = weighted_quantile(relative[known], rows.weight[known], 0.5)
    launches = np.bincount(rows.configuration, rows.weight)[rows.configuration]
    own = np.where(np.isfinite(rows.std), rows.std, typical * base)
    prior = typical * base
    largest = max(float(own.max(initial=0.0)), float(prior.max(initial=0.0)))
    if largest == 0:
        return np.zeros(len(rows))
    own, prior = own / largest, prior / largest  # squares of extreme values would overflow
    return largest * np.sqrt((launches * own**2 + PRIOR_LAUNCHES * prior**2) / (launches + PRIOR_LAUNCHES))


def standardised_deviation(rows: Rows, spread: np.ndarray) -> np.ndarray:
    """Return the signed deviation in units of the configuration's spread; 0 where nothing varies."""
    return np.where(spread > 0, rows.signed / np.where(spread > 0, spread, 1.0), 0.0)
