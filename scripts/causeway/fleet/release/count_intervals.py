"""Intervals of what is computed from noisy histograms: means over bins, and medians. They hold the noise alone; what
lies inside a bin is the caller's.
"""

import numpy as np

from causeway.fleet.release.cell_noise import CONFIDENCE, normal_quantile


def mean_interval(counts: np.ndarray, variance: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of each row's mean of `values`, weighted by exact counts of which noisy ones are known.

    At the true mean m, the sum of count * (value - m) is noise alone, so that all m for which it lies within the noise
    are the interval (Fieller 1954); the row's total need not be known.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, columns)
        Noisy counts, and the variance of the noise in each.
    values : ndarray of float64, shape (columns,)

    Returns
    -------
    low, high : ndarray of float64, shape (rows,)
        Within the least and largest value, which are the interval where the row's sum is not beyond the noise.
    """
    square = normal_quantile(CONFIDENCE) ** 2
    whole = counts.sum(1)
    first = counts @ values
    a = whole**2 - square * variance.sum(1)
    b = first * whole - square * (variance @ values)
    c = first**2 - square * (variance @ values**2)
    bounded = (a > 0) & (whole > 0)
    safe = np.where(bounded, a, 1.0)
    root = np.sqrt(np.maximum(b**2 - a * c, 0))
    low = np.where(bounded, (b - root) / safe, values.min())
    high = np.where(bounded, (b + root) / safe, values.max())
    return np.clip(low, values.min(), values.max()), np.clip(high, values.min(), values.max())


def share_intervals(counts: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals of each count's share of its row, of which the sum is noisy as well; see `mean_interval`.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, columns)
        Noisy counts, and the variance of the noise in each.

    Returns
    -------
    low, high : ndarray of float64, shape (rows, columns), 0 to 1
    """
    found = [mean_interval(counts, variance, alone) for alone in np.eye(counts.shape[1])]
    return tuple(np.column_stack(ends) for ends in zip(*found, strict=True))


def median_bins(counts: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last bin in which each row's median may lie.

    Half of the counts minus those up to an edge is noise plus what truly lies between; edges are tested from both ends
    inwards up to the first one that may be beyond the median, so that testing many costs no confidence.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, bins)
        Noisy counts, and the variance of the noise in each.

    Returns
    -------
    first, last : ndarray of int64, shape (rows,)
    """
    half = normal_quantile(CONFIDENCE) * np.sqrt(variance.sum(1, keepdims=True)) / 2
    below = (np.cumsum(counts, axis=1) - counts.sum(1, keepdims=True) / 2)[:, :-1]
    first = np.logical_and.accumulate(below < -half, axis=1).sum(1)
    after = np.logical_and.accumulate(below[:, ::-1] > half, axis=1).sum(1)
    return first, np.maximum(counts.shape[1] - 1 - after, first)
