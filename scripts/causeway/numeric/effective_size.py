"""Effective sample sizes: Kish's for unequal weights, Bartlett's for two autocorrelated series.

Successive launches resemble each other, and rows are kept with unequal probabilities; both make n rows worth fewer than n independent
ones. Ignoring this is the largest source of false causes.
"""

import numpy as np
from scipy import fft

MAX_LAGS = 1000
"""Longest lag that is summed. Longer dependence is a trend, which a lag window of a quarter of the rows shows as well."""


def kish_size(weights: np.ndarray) -> float:
    """Return Kish's effective number of rows, `(sum w)^2 / sum w^2`; 0 without rows.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rows,), positive
        Inverse inclusion probabilities.

    References
    ----------
    L. Kish, Survey Sampling, Wiley 1965, section 11.7.
    """
    weights = np.asarray(weights, dtype=float)
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.size else 0.0


def lag_count(n_rows: int) -> int:
    """Return how many lags are summed for a series of `n_rows`: a quarter of it, at most `MAX_LAGS`."""
    return max(1, min(n_rows // 4, MAX_LAGS))


def autocorrelations(columns: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocorrelations of each column at lags 1 .. `lags`, with the biased estimator (divided by n at every lag).

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, n_columns)
        Series in time order, each with mean 0.
    lags : int
        Number of lags, below n_rows.

    Returns
    -------
    ndarray of float32, shape (n_columns, lags); 0 for a column without variance.
    """
    n_rows, n_columns = columns.shape
    size = fft.next_fast_len(n_rows + lags, real=True)
    found = np.zeros((n_columns, lags), dtype=np.float32)
    step = max(1, 4_000_000 // size)
    for first in range(0, n_columns, step):
        part = np.ascontiguousarray(columns[:, first : first + step].T, dtype=np.float64)
        power = np.abs(fft.rfft(part, size, axis=1)) ** 2
        covariance = fft.irfft(power, size, axis=1)[:, : lags + 1]
        variance = covariance[:, :1]
        np.divide(covariance[:, 1:], variance, out=covariance[:, 1:], where=variance > 0)
        found[first : first + step] = np.where(variance > 0, covariance[:, 1:], 0.0)
    return found


def bartlett_factor(of_columns: np.ndarray, of_residual: np.ndarray) -> np.ndarray:
    """Return by how much autocorrelation inflates the variance of each column's covariance with the residual, never below 1.

    `1 + 2 sum_k rho_x(k) rho_res(k)`: n rows are worth n divided by this.

    Parameters
    ----------
    of_columns : ndarray, shape (n_columns, lags)
    of_residual : ndarray, shape (lags,)

    Returns
    -------
    ndarray of float, shape (n_columns,)

    References
    ----------
    M. S. Bartlett, Some aspects of the time-correlation problem in regard to tests of significance, J. R. Stat. Soc. 98 (1935) 536.
    """
    return np.maximum(1.0, 1.0 + 2.0 * (of_columns @ of_residual.astype(of_columns.dtype)).astype(float))


def correlation_time(of_series: np.ndarray) -> float:
    """Return the integrated autocorrelation time in rows, `1 + 2 sum rho`, summed to the first lag that is not positive.

    References
    ----------
    C. J. Geyer, Practical Markov chain Monte Carlo, Stat. Sci. 7 (1992) 473, initial positive sequence.
    """
    below = np.flatnonzero(of_series <= 2.0 / np.sqrt(4.0 * max(of_series.size, 1)))
    last = int(below[0]) if below.size else of_series.size
    return float(1.0 + 2.0 * of_series[:last].sum())
