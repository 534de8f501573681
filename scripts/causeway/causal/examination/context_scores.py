"""The score of BOSS' searches, compiled: a search asks for thousands, each of which takes causal-learn an inverse
matrix in Python.
"""

import math
from collections.abc import Callable

import numpy as np

from causeway.numeric.compiled import compiled, float64, int64

LEAST_VARIANCE = 1e-12
"""A column of which those before it leave no more than this share of its variance adds nothing to a regression."""


@compiled(float64(float64[:, ::1], int64, int64[::1]))
def residual_variance(covariance, node, parents):
    """Return the variance of a column that its regression on others leaves, by Cholesky factors.

    Parameters
    ----------
    covariance : array of float64, shape (p, p)
    node : int
    parents : array of int64, shape (k,)
        Others; one that follows from those before it is left out.
    """
    k = parents.size
    factor = np.zeros((k + 1, k))
    left = covariance[node, node]
    for i in range(k + 1):
        own = parents[i] if i < k else node
        for j in range(min(i, k)):
            value = covariance[own, parents[j]]
            for m in range(j):
                value -= factor[i, m] * factor[j, m]
            factor[i, j] = value / factor[j, j] if factor[j, j] > 0 else 0.0
        if i == k:
            break
        value = covariance[own, own]
        for m in range(i):
            value -= factor[i, m] ** 2
        factor[i, i] = math.sqrt(value) if value > LEAST_VARIANCE * covariance[own, own] else 0.0
    for m in range(k):
        left -= factor[k, m] ** 2
    return left


class CompiledScores:
    """Stands in for causal-learn's `LocalScoreClass` with `local_score_BIC_from_cov`: the same values but for rounding.

    Parameters
    ----------
    data : ndarray of float, shape (n_rows, p)
    local_score_fun : callable
        Which score is meant, as BOSS passes it; not used.
    parameters : dict
        `lambda_value`, the penalty of an edge over log n.

    References
    ----------
    `causallearn.score.LocalScoreFunction.local_score_BIC_from_cov`: -n / 2 (1 + log sigma^2) - lambda (k + 1) log n.
    """

    def __init__(self, data: np.ndarray, local_score_fun: Callable, parameters: dict[str, float]) -> None:
        self.data = data
        self._size = len(data)
        self._covariance = np.ascontiguousarray(np.cov(data.T, ddof=0).reshape(data.shape[1], -1))
        self._penalty = parameters["lambda_value"] * math.log(len(data))

    def score_nocache(self, node: int, parents: list[int]) -> float:
        """Return the score of a column with its parents; higher is better."""
        left = residual_variance(self._covariance, node, np.array(parents, np.int64))
        left = left if left > 0 else np.finfo(float).eps
        return -0.5 * self._size * (1 + math.log(left)) - self._penalty * (len(parents) + 1)
