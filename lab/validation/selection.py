"""Rows kept by their outcome: the most variable bins, and a sample of the others with a known probability."""

import numpy as np

from lab.validation.generator import KnownTable

ROWS_PER_BIN = 32
KEPT_SHARE = 0.1
"""Share of the bins that are kept for their variance."""
CONTROL_SHARE = 0.12
"""Share of the others that are kept as controls."""


def inclusion_probabilities(table: KnownTable, seed: int) -> np.ndarray:
    """Return for each row, float, shape (n_rows,), 1 if its bin is kept for its variance, `CONTROL_SHARE` if it is a
    control, 0 if it is left out.
    """
    bins = np.arange(table.y.size) // ROWS_PER_BIN
    counts = np.bincount(bins)
    size = np.abs(table.y - (np.bincount(table.kernel, table.y) / np.bincount(table.kernel))[table.kernel])
    mean = np.bincount(bins, size) / counts
    variance = np.bincount(bins, (size - mean[bins]) ** 2) / counts
    kept = variance >= np.quantile(variance, 1 - KEPT_SHARE)
    control = np.random.default_rng(seed).random(kept.size) < CONTROL_SHARE
    return np.where(kept, 1.0, np.where(control, CONTROL_SHARE, 0.0))[bins]


def selection_scores(table: KnownTable, inclusion: np.ndarray) -> dict[str, float]:
    """Return how the kept rows bias what all rows say, with their weights and without.

    Parameters
    ----------
    table : KnownTable
    inclusion : ndarray of float, shape (n_rows,)
        As of `inclusion_probabilities`.

    Returns
    -------
    dict of str to float
        `slope_ratio`: slope of the run time on the numeric cause that moves it most (a cause of the noise alone has no
        slope to compare), kept rows over all rows; `spurious`: largest absolute difference of a correlation between two
        numeric causes; `slope_ratio_plain` and `spurious_plain` without the weights.
    """
    names = [name for name in table.causes if table.columns[name].dtype != object]
    names.sort(key=lambda name: -abs(table.moves[name]))
    values = np.column_stack(
        [np.nan_to_num(table.columns[name], nan=float(np.nanmean(table.columns[name]))) for name in names]
    )
    values = np.clip(
        values, *np.quantile(values, [0.001, 0.999], axis=0)
    )  # one launch in a thousand must not own a slope
    y = np.clip(table.y, *np.quantile(table.y, [0.001, 0.999]))
    kept = inclusion > 0
    scores = {}
    for suffix, weights in (("", 1.0 / inclusion[kept]), ("_plain", np.ones(int(kept.sum())))):
        slope, correlations = _moments(values[kept], y[kept], weights)
        of_all, among_all = _moments(values, y, np.ones(kept.size))
        scores[f"slope_ratio{suffix}"] = slope / of_all
        scores[f"spurious{suffix}"] = float(np.abs(correlations - among_all).max())
    return scores


def _moments(values: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the slope of y on the first column, and the correlations of the columns."""
    centred = values - np.average(values, axis=0, weights=weights)
    covariance = centred.T @ (centred * weights[:, None])
    slope = float(centred[:, 0] * weights @ (y - np.average(y, weights=weights)) / covariance[0, 0])
    spread = np.sqrt(np.diag(covariance))
    return slope, covariance / np.outer(spread, spread)
