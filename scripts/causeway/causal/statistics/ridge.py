"""Weighted ridge regression, one penalty for each cause, estimated by maximising the evidence (MacKay).

Own code: scikit-learn's `BayesianRidge` has one penalty for all coefficients and `ARDRegression` one for each; here the
columns of a cause share one.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

Penalties = np.ndarray
"""Shape (n_columns,), in units of a column's mean square; 0 for the intercept, which comes first and is not shrunk."""
MOST_PENALTY = 1e4
ROUNDS = 30
CONVERGED = 0.02
"""Largest change of a penalty's logarithm at which the rounds end."""
JITTER = 1e-10
"""Added to the diagonal, in units of a column's mean square: far below the least penalty."""


def ridge_solver(design: np.ndarray, weights: np.ndarray, penalties: Penalties) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that gives the coefficients of a response, with given penalties.

    Parameters
    ----------
    design : ndarray of float, shape (n_rows, n_columns)
        The intercept first.
    weights : ndarray of float, shape (n_rows,), positive
    penalties : ndarray of float, shape (n_columns,)

    Returns
    -------
    callable
        From a response, shape (n_rows,), to its coefficients, shape (n_columns,).

    Raises
    ------
    LinAlgError
        If the penalised normal equations are singular, which the bounds of the penalties exclude.
    """
    weighted = design * (weights / weights.sum())[:, None]
    factor = cho_factor(weighted.T @ design + np.diag(penalties))
    return lambda response: cho_solve(factor, weighted.T @ response)


def evidence_ridge(
    design: np.ndarray, response: np.ndarray, weights: np.ndarray, slices: list[slice], least: float
) -> tuple[np.ndarray, Penalties]:
    """Return coefficients, and the penalties that were estimated: one for each cause.

    Parameters
    ----------
    design : ndarray of float, shape (n_rows, n_columns)
        The intercept first.
    response : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive
    slices : list of slice
        The columns of each cause.
    least : float, positive
        Least penalty. Of two causes that coincide, estimated penalties give everything to one; at the least penalty
        they share it. But a clear effect is shrunk by it, the more the fewer and the lighter the rows behind it.

    Returns
    -------
    coefficients, penalties : ndarray of float, shape (n_columns,)

    Notes
    -----
    The coefficients of a cause are taken as draws from a normal distribution, whose variance maximises the likelihood
    of the response: fixed-point steps `penalty = s^2 gamma / |beta|^2` with gamma the effective number of its
    parameters.

    References
    ----------
    D. MacKay, Bayesian interpolation, Neural Comput. 4 (1992) 415, section 4.4.
    """
    n = response.size
    weighted = design * (weights / weights.sum())[:, None]
    gram = weighted.T @ design
    moments = weighted.T @ response
    square = float((weights / weights.sum()) @ response**2)
    penalties = np.full(design.shape[1], 1.0 / n)
    penalties[0] = 0.0
    penalised = gram + 0.0
    for _ in range(ROUNDS):
        np.fill_diagonal(penalised, np.diag(gram) + penalties + JITTER)
        inverse = np.linalg.inv(penalised)
        beta = inverse @ moments
        parameters = 1.0 - penalties * np.diag(inverse)
        residual = max(square - 2 * float(beta @ moments) + float(beta @ gram @ beta), 1e-12 * square, 1e-300)
        noise = residual / max(n - float(parameters.sum()), 1.0)
        new = penalties.copy()
        for part in slices:
            wanted = noise * parameters[part].sum() / max(float(beta[part] @ beta[part]), 1e-300)
            new[part] = min(max(wanted, least), MOST_PENALTY)
        converged = np.all(np.abs(np.log(new[1:] / penalties[1:])) < CONVERGED)
        penalties = new
        if converged:
            break
    return ridge_solver(design, weights, penalties)(response), penalties
