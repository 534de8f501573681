"""The launches themselves beside the model: those whose cause has about the value that is set.

The model keeps each launch's own residual, in standard deviations, when a cause is set. Where an effect saturates, or a
cause makes a slow mode likelier, the quantiles that it predicts are those of no launch. Nearby launches need no form of
the effect, but take a third of the values for one and do not hold the other causes. Intervals of p50, p99 and spread
hold both answers.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.statistics.basis import two_valued

NEAR = 1 / 3
"""Share of a configuration's launches, by rank of the cause, that stand for a value."""


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
        Of a category, or of two values, the rows that have one of the values that rows of their configuration take;
        else those of a third of their configuration by rank, which ends where the ranks end.
    """
    if donors is None:
        return np.ones(len(values), bool)
    if values.ndim > 1 or two_valued(values):
        codes = values @ np.arange(1.0, values.shape[1] + 1.0) if values.ndim > 1 else values
        numbers = np.unique(codes, return_inverse=True)[1] + configuration.astype(np.int64) * len(values)
        return np.isin(numbers, numbers[donors])
    from scipy.stats import rankdata  # a second of CPU time, where it is needed

    ranks = np.empty(values.size)
    for code in np.unique(configuration):
        own = configuration == code
        ranks[own] = (rankdata(values[own]) - 0.5) / own.sum()
    middle = np.clip(ranks[donors], NEAR / 2, 1 - NEAR / 2)
    return (values == values[donors]) | (np.abs(ranks - middle) <= NEAR / 2)


def column_quantiles(values: np.ndarray, weights: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    """Return the smallest values at which shares of the weight are reached, by column.

    Parameters
    ----------
    values, weights : ndarray of float, shape (n_rows, n_columns)
    shares : sequence of float, 0 to 1

    Returns
    -------
    list of ndarray of float, shape (n_columns,)
    """
    found = [np.empty(values.shape[1]) for _ in shares]
    for column, (own, weight) in enumerate(zip(np.ascontiguousarray(values.T), weights.T, strict=True)):
        order = np.argsort(own)
        reached = np.cumsum(weight[order])
        for number, share in enumerate(shares):
            at = min(int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))), order.size - 1)
            found[number][column] = own[order[at]]
    return found
