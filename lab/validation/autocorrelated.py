"""Autocorrelated series: what follows one another in time resembles."""

import numpy as np


def autoregressive(rng: np.random.Generator, rows: int, autocorrelation: np.ndarray) -> np.ndarray:
    """Return AR(1) series of variance 1 with innovations of Student's t (5 degrees of freedom).

    Parameters
    ----------
    rng : Generator
    rows : int
    autocorrelation : ndarray of float, shape (n_series,), 0 to 1
        Lag-1 autocorrelation of each series.

    Returns
    -------
    ndarray of float, shape (rows, n_series)
    """
    from scipy.signal import lfilter

    series = np.empty((rows, autocorrelation.size))
    for j, rho in enumerate(autocorrelation):
        steps = rng.standard_t(5, rows + 300) * np.sqrt(3 / 5)
        series[:, j] = lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], steps)[300:]
    return series


def phases(rng: np.random.Generator, rows: int, autocorrelation: float, count: int = 4) -> np.ndarray:
    """Return the phase of the program at each row: a Markov chain that stays with probability `autocorrelation`.

    Returns
    -------
    ndarray of int, shape (rows,)
        0 .. `count` - 1.
    """
    moves = rng.random(rows) > autocorrelation
    drawn = rng.integers(0, count, rows)
    last = np.maximum.accumulate(np.where(moves | (np.arange(rows) == 0), np.arange(rows), 0))
    return drawn[last]
