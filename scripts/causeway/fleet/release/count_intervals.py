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


def mean_of_known_sum(
    counts: np.ndarray, variance: np.ndarray, values: np.ndarray, sums: np.ndarray, sums_variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of each row's mean of `values`, if the row's true sum is known from elsewhere.

    What the noisy sum has beyond the true one is divided among the counts as their noise is. So the interval also holds
    among those draws in which a noisy sum is large enough to be given, of which many are too large.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, columns)
    values : ndarray of float64, shape (columns,)
        As of `mean_interval`.
    sums, sums_variance : ndarray of float64, shape (rows,)
        True sums as far as known, independent of the counts, with the variance of the noise in them; NaN if unknown.

    Returns
    -------
    low, high : ndarray of float64, shape (rows,)
        Within the least and largest value; NaN where the sum is not known or not above 0.
    """
    whole = variance.sum(1)
    middle = np.where(whole > 0, variance @ values / np.where(whole > 0, whole, 1), values.mean())
    is_positive = sums > 0
    safe = np.where(is_positive, sums, 1.0)
    mean = np.clip((counts @ values - (counts.sum(1) - safe) * middle) / safe, values.min(), values.max())
    spread = (variance * (values - middle[:, None]) ** 2).sum(1) + (mean - middle) ** 2 * sums_variance
    half = normal_quantile(CONFIDENCE) * np.sqrt(spread) / safe
    low, high = (np.clip(end, values.min(), values.max()) for end in (mean - half, mean + half))
    return np.where(is_positive, low, np.nan), np.where(is_positive, high, np.nan)


def interval_of_given(
    counts: np.ndarray, variance: np.ndarray, values: np.ndarray, sums: np.ndarray, sums_variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of each row's mean of `values` that holds whether the row's true sum is `sums` or another:
    that of `mean_interval` and, where the sum is known, of `mean_of_known_sum` together.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, columns)
    values : ndarray of float64, shape (columns,)
    sums, sums_variance : ndarray of float64, shape (rows,)
        As of `mean_of_known_sum`.

    Returns
    -------
    low, high : ndarray of float64, shape (rows,)
    """
    free = mean_interval(counts, variance, values)
    fixed = mean_of_known_sum(counts, variance, values, sums, sums_variance)
    return np.fmin(free[0], fixed[0]), np.fmax(free[1], fixed[1])


def share_intervals(
    counts: np.ndarray, variance: np.ndarray, sums: np.ndarray, sums_variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals of each count's share of its row, of which the sum is noisy as well; see
    `interval_of_given`.

    Parameters
    ----------
    counts, variance : ndarray of float64, shape (rows, columns)
        Noisy counts, and the variance of the noise in each.
    sums, sums_variance : ndarray of float64, shape (rows,)
        As of `mean_of_known_sum`.

    Returns
    -------
    low, high : ndarray of float64, shape (rows, columns), 0 to 1
    """
    intervals = [interval_of_given(counts, variance, alone, sums, sums_variance) for alone in np.eye(counts.shape[1])]
    low, high = zip(*intervals, strict=True)
    return np.column_stack(low), np.column_stack(high)


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
