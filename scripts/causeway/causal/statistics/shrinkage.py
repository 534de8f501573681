"""Estimates that rest on few launches, shrunk by their own error."""

import numpy as np

ERROR_LARGER = 1.25
"""The spread of draws times this is taken as the error: as much larger as intervals of the mean's change have to be
(`scope_times.WIDER`). On tables on which choices are made, changes of p99 come out a sixth too large without shrinking,
right with it (docs/validation.md).
"""


def shrunk_mean(draws: np.ndarray) -> float:
    """Return the mean m of draws times m² / (m² + e²), where e is their standard deviation times `ERROR_LARGER`.

    The mean of draws varies less than one estimate (Breiman, "Bagging predictors", Machine Learning, 1996), and a
    change that is small beside its error is mostly error (the factor: Thompson, "Some shrinkage techniques for
    estimating the mean", Journal of the American Statistical Association, 1968).

    Parameters
    ----------
    draws : ndarray, shape (n_draws,)
        At least two estimates of the same change.
    """
    mean = float(draws.mean())
    square = mean**2
    error = ERROR_LARGER**2 * float(draws.var(ddof=1))
    return mean * square / (square + error) if square > 0 else 0.0
