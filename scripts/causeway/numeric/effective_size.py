"""Effective sample sizes: Kish's for unequal weights, Bartlett's for two autocorrelated series, and correlation times.

Successive launches resemble each other, and rows are kept with unequal probabilities; both make n rows worth fewer than
n independent ones. Ignoring this is the largest source of false causes.
"""

import math

import numpy as np

MAX_LAGS = 1000
"""Longest lag that is summed. Longer dependence is a trend, which a lag window of a quarter of the rows shows as
well.
"""
VALUES_AT_ONCE = 400_000
"""Numbers in one batch of Fourier transforms: 3 MB, and as much for each of their four intermediate results."""
STANDARD_ERRORS = 2.0
"""An autocorrelation within so many standard errors of white noise counts as zero."""
STANDARD_ERRORS_OF_SUMS = 3.0
"""The same for sums of steps: each coarseness is one more chance to be wrong."""
REFUSED_BELOW = 100.0
"""Effective rows below which causes are not searched, and an arrow is inconclusive."""
MIN_STEPS = 12
MIN_SUMS = 48
"""Steps of a series from which a correlation time is estimated, and sums of steps."""


def kish_size(weights: np.ndarray) -> float:
    """Return Kish's effective number of rows, `(sum w)^2 / sum w^2`; 0 without rows.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rows,), positive
        Inverse inclusion probabilities.

    Returns
    -------
    float
        0 to n_rows.

    References
    ----------
    L. Kish, Survey Sampling, Wiley 1965, section 11.7.
    """
    weights = np.asarray(weights, dtype=float)
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.size else 0.0


def lag_count(n_rows: int) -> int:
    """Return how many lags are summed for a series of `n_rows`: a quarter of it, at least 1, at most `MAX_LAGS`."""
    return max(1, min(n_rows // 4, MAX_LAGS))


def autocorrelations(columns: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocorrelations of each column at lags 1 .. `lags`, with the biased estimator (divided by n at every
    lag).

    Own code: SciPy has none, and statsmodels' `acf` takes one column at a time; here there are thousands.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, n_columns)
        Series in time order, each with mean 0.
    lags : int
        Number of lags, below n_rows.

    Returns
    -------
    ndarray of float32, shape (n_columns, lags)
        -1 to 1, the shortest lag first; 0 for a column without variance.
    """
    from scipy import fft

    n_rows, n_columns = columns.shape
    size = fft.next_fast_len(n_rows + lags, real=True)
    correlations = np.zeros((n_columns, lags), dtype=np.float32)
    step = max(1, VALUES_AT_ONCE // size)
    for first in range(0, n_columns, step):
        part = np.ascontiguousarray(columns[:, first : first + step].T, dtype=np.float64)
        power = np.abs(fft.rfft(part, size, axis=1)) ** 2
        covariance = fft.irfft(power, size, axis=1)[:, : lags + 1]
        variance = covariance[:, :1]
        np.divide(covariance[:, 1:], variance, out=covariance[:, 1:], where=variance > 0)
        correlations[first : first + step] = np.where(variance > 0, covariance[:, 1:], 0.0)
    return correlations


def bartlett_factor(of_columns: np.ndarray, of_residual: np.ndarray) -> np.ndarray:
    """Return by how much autocorrelation inflates the variance of each column's covariance with the residual, never
    below 1.

    `1 + 2 sum_k rho_x(k) rho_res(k)`: n rows are worth n divided by this.

    Parameters
    ----------
    of_columns : ndarray of float, shape (n_columns, lags)
        Autocorrelations of the columns, the shortest lag first.
    of_residual : ndarray of float, shape (lags,)
        Those of the residual.

    Returns
    -------
    ndarray of float, shape (n_columns,)
        At least 1: autocorrelations of opposite sign gain nothing.

    References
    ----------
    M. S. Bartlett, Some aspects of the time-correlation problem in regard to tests of significance, J. R. Stat. Soc. 98
    (1935) 536.
    """
    return np.maximum(1.0, 1.0 + 2.0 * (of_columns @ of_residual.astype(of_columns.dtype)).astype(float))


def correlation_time(of_series: np.ndarray) -> float:
    """Return the integrated autocorrelation time in rows, `1 + 2 sum rho`, summed to the last lag before rho is first
    within two standard errors of white noise.

    Parameters
    ----------
    of_series : ndarray of float, shape (lags,)
        Autocorrelations of a series at lags 1, 2, ..., as many as `lag_count` says.

    Returns
    -------
    float
        At least 1.

    Notes
    -----
    The standard error of an autocorrelation of n values of white noise is `1 / sqrt(n)` (Bartlett). n is taken as four
    times the number of lags: the number of rows up to `4 MAX_LAGS` of them, and that many for longer series, so that
    chance correlations of the longest lags are not summed. The cut-off is coarser than Geyer's initial positive
    sequence (Stat. Sci. 7 (1992) 473), which sums pairs of lags and holds for reversible Markov chains only.

    References
    ----------
    M. S. Bartlett, On the theoretical specification and sampling properties of autocorrelated time-series, Suppl. J. R.
    Stat. Soc. 8 (1946) 27.
    """
    below = np.flatnonzero(of_series <= STANDARD_ERRORS / np.sqrt(4.0 * max(of_series.size, 1)))
    last = int(below[0]) if below.size else of_series.size
    return float(1.0 + 2.0 * of_series[:last].sum())


def blocked_correlation_time(values: np.ndarray) -> float:
    """Return the integrated autocorrelation time of a series in its own steps, at least 1: the longest that is seen at
    any coarseness.

    Launches of different kernels take turns, so what follows at once may be unrelated and what follows an iteration
    later is not: the time is estimated on the series and on its sums over blocks of 2, 4, 8 ... steps, as long as
    `MIN_SUMS` of them are left.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        In time order.

    Returns
    -------
    float
        Steps; 1 for a series shorter than `MIN_STEPS`.

    References
    ----------
    H. Flyvbjerg, H. G. Petersen, Error estimates on averages of correlated data, J. Chem. Phys. 91 (1989) 461, for
    sums over blocks of doubled length.
    """
    longest = 1.0
    width = 1
    summed = values - values.mean() if values.size else values
    while summed.size >= (MIN_STEPS if width == 1 else MIN_SUMS):
        beyond = STANDARD_ERRORS if width == 1 else STANDARD_ERRORS_OF_SUMS
        longest = max(longest, 1.0 + width * (_time_at_one_coarseness(summed, beyond) - 1.0))
        width *= 2
        summed = summed[: summed.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    return longest


def _time_at_one_coarseness(values: np.ndarray, beyond: float) -> float:
    """Return `1 + 2 sum rho` up to the first lag that is within `beyond` standard errors of white noise.

    It is at least what the first lag alone gives in an AR(1) process.

    The first lag is corrected for its bias in short series (Kendall, Note on bias in the estimation of autocorrelation,
    Biometrika 41 (1954) 403): without, long times in short series are taken for half of what they are.
    """
    n = values.size
    centred = values - values.mean()
    if not centred.any():
        return 1.0
    from scipy import fft

    size = fft.next_fast_len(2 * n, real=True)
    covariance = fft.irfft(np.abs(fft.rfft(centred, size)) ** 2, size)[: n // 2]
    rho = covariance[1:] / covariance[0]
    noise = np.flatnonzero(rho < beyond / np.sqrt(n))
    last = int(noise[0]) if noise.size else rho.size
    if last == 0:
        return 1.0
    first = min(rho[0] + (1 + 3 * rho[0]) / n, 1 - 1 / n)
    return float(max(1.0 + 2.0 * rho[:last].sum(), (1 + first) / (1 - first)))


def shown_below(size: float, limit: float) -> str:
    """Return an effective size that is below a limit as a whole number, which is below it, too: 99.6 is no 100."""
    return f"{min(round(size), math.ceil(limit) - 1):,}"
