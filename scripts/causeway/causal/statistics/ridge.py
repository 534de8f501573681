"""Weighted least squares that shrinks the coefficients of each cause as far as the data ask for."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

Penalties = np.ndarray
"""Shape (n_columns,), in units of a column's mean square; 0 for the intercept, which comes first and is not shrunk."""
LEAST, MOST = 1e-3, 1e4
"""Bounds of the penalties; the lower one keeps columns apart that tell the same."""
ROUNDS = 30


def solved(design: np.ndarray, weights: np.ndarray, penalties: Penalties) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives the coefficients of a response, with given penalties."""
    weighted = design * (weights / weights.sum())[:, None]
    factor = cho_factor(weighted.T @ design + np.diag(penalties))
    return lambda response: cho_solve(factor, weighted.T @ response)


def shrunk(design: np.ndarray, response: np.ndarray, weights: np.ndarray, slices: list[slice]) -> tuple[np.ndarray, Penalties]:
    """Return coefficients, and the penalties that were estimated: one for each cause.

    Parameters
    ----------
    design : ndarray, shape (n_rows, n_columns)
        The intercept first.
    response, weights : ndarray, shape (n_rows,)
    slices : list of slice
        The columns of each cause.

    Notes
    -----
    The coefficients of a cause are taken as draws from a normal distribution, whose variance maximises the likelihood of the response:
    fixed-point steps `penalty = s^2 gamma / |beta|^2` with gamma the effective number of its parameters.

    References
    ----------
    D. MacKay, Bayesian interpolation, Neural Comput. 4 (1992) 415, section 4.4.
    """
    n = response.size
    weighted = design * (weights / weights.sum())[:, None]
    gram, moments, square = weighted.T @ design, weighted.T @ response, float((weights / weights.sum()) @ response**2)
    penalties = np.full(design.shape[1], 1.0 / n)
    penalties[0] = 0.0
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(gram + np.diag(penalties) + 1e-10 * np.eye(penalties.size))
        beta = inverse @ moments
        parameters = 1.0 - penalties * np.diag(inverse)
        left = max(square - 2 * float(beta @ moments) + float(beta @ gram @ beta), 1e-12 * square, 1e-300)
        noise = left / max(n - float(parameters.sum()), 1.0)
        new = penalties.copy()
        for part in slices:
            new[part] = np.clip(noise * parameters[part].sum() / max(float(beta[part] @ beta[part]), 1e-300), LEAST, MOST)
        settled = np.all(np.abs(np.log(new[1:] / penalties[1:])) < 0.02)
        penalties = new
        if settled:
            break
    return solved(design, weights, penalties)(response), penalties
