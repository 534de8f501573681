"""Average ranks and false-discovery rates, as `scipy.stats` has them, which takes a second of CPU time to load."""

import numpy as np


def rankdata(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Return ranks from 1 on; equal values have the mean of their ranks.

    Parameters
    ----------
    values : ndarray, shape (n,) or (n, k), without NaN
    axis : int or None
        Along which values are ranked; None: all of them, flat.

    Returns
    -------
    ndarray of float, of the shape of `values`, flat without an axis
    """
    values = np.asarray(values)
    if axis is not None and values.ndim > 1:
        return np.apply_along_axis(rankdata, axis, values).astype(float)
    values = values.ravel()
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: values.size])
    counts = np.diff(first, append=values.size)
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(first + 1 + (counts - 1) / 2, counts)
    return ranks


def false_discovery_control(p_values: np.ndarray) -> np.ndarray:
    """Return p-values adjusted for their number by the procedure of Benjamini and Hochberg.

    Parameters
    ----------
    p_values : ndarray of float, shape (n,), 0 to 1

    Returns
    -------
    ndarray of float, shape (n,)
        The smallest false discovery rate at which each is still significant.

    References
    ----------
    Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical Society B 57
    (1995) 289, equation 1.
    """
    p_values = np.asarray(p_values, dtype=float)
    if p_values.size <= 1:
        return p_values
    order = np.argsort(p_values)
    scaled = p_values[order] * (p_values.size / np.arange(1.0, p_values.size + 1))
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.clip(adjusted, 0.0, 1.0)
