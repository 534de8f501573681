"""Whether a model of mean and scale describes the tail of the times at the levels of a cause that are compared.

The model gives each launch its own residual in standard deviations, and keeps it when a cause is set. That holds where
these residuals are alike at all levels of the cause. Where a cause makes a slow mode likelier - a lost clock state, a
cache that is missed - they are not: at a quiet level the few slow launches lie many standard deviations out, at a noisy
one slow and fast launches lie one to each side. Quantiles that the model predicts are then those of no launch.

What is compared instead are the launches themselves, those whose cause has about the value that is set. That is a
cruder estimate: it takes a third of the values for one, and does not hold the other causes.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.statistics.basis import two_valued

TAIL = 0.95
"""Quantile of the standardised residuals above which launches are counted: the 99th of a third of 300 launches is the
largest of them.
"""
NEAR = 1 / 3
"""Share of a configuration's launches, by rank of the cause, that stand for a level."""
FEWEST = 50
"""Launches near a level from which it is compared."""
STANDARD_ERRORS = 3.0
"""Difference of the shares above `TAIL`, in standard errors, from which the tails differ."""


def near_level(values: np.ndarray, configuration: np.ndarray, donors: np.ndarray | None) -> np.ndarray:
    """Return which rows have about the value of a cause that they are to take.

    Parameters
    ----------
    values : ndarray, shape (n_rows,), or (n_rows, n_levels - 1) of a category
    configuration : ndarray of int, shape (n_rows,)
    donors : ndarray of int, shape (n_rows,), or None
        The row of its configuration whose value each row takes; None: each keeps its own.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        Of a category, or of two values, the rows that have the very value; else those of a third of their
        configuration by rank, which ends where the ranks end.
    """
    from scipy.stats import rankdata  # a second of CPU time, where it is needed

    if donors is None:
        return np.ones(len(values), bool)
    if values.ndim > 1:
        return np.all(values == values[donors], axis=1)
    same = values == values[donors]
    if two_valued(values):
        return same
    ranks = np.empty(values.size)
    for code in np.unique(configuration):
        mine = configuration == code
        ranks[mine] = (rankdata(values[mine]) - 0.5) / mine.sum()
    middle = np.clip(ranks[donors], NEAR / 2, 1 - NEAR / 2)
    return same | (np.abs(ranks - middle) <= NEAR / 2)


def tails_differ(residual: np.ndarray, weights: np.ndarray, one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether standardised residuals exceed their own 95th percentile more often in one set of rows than in
    another, beyond what draws of the weights leave open.

    Parameters
    ----------
    residual : ndarray of float, shape (n_rows,)
        In standard deviations that the model predicts.
    weights : ndarray of float, shape (n_rows, 1 + n_draws), positive
        As they are, then in each draw.
    one, other : ndarray of bool, shape (n_rows,)
    """
    if min(np.count_nonzero(one), np.count_nonzero(other)) < FEWEST:
        return False
    limit = np.quantile(residual, TAIL, weights=weights[:, 0], method="inverted_cdf")
    beyond = residual > limit
    shares = [(weights * (beyond & rows)[:, None]).sum(axis=0) / weights[rows].sum(axis=0) for rows in (one, other)]
    difference = shares[0] - shares[1]
    return bool(abs(difference[0]) > STANDARD_ERRORS * difference[1:].std(ddof=1))


def column_quantiles(values: np.ndarray, weights: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    """Return the smallest values at which shares of the weight are reached, by column.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows, n_columns)
    weights : ndarray of float, shape (n_rows, n_columns), not negative
        A row of weight 0 does not count.
    shares : sequence of float
        0 to 1.

    Returns
    -------
    list of ndarray of float, shape (n_columns,)
        One for each share.
    """
    found = [np.empty(values.shape[1]) for _ in shares]
    for column, (own, weight) in enumerate(zip(np.ascontiguousarray(values.T), weights.T, strict=True)):
        order = np.argsort(own)
        reached = np.cumsum(weight[order])
        for number, share in enumerate(shares):
            at = min(int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))), order.size - 1)
            found[number][column] = own[order[at]]
    return found
