"""What of the values of a whole lies between the groups that it is made of, and what a straight line in their size
explains: exact sums, divided once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from causeway.numeric.moments import Moments

FEWEST_SIZES = 3
"""Sizes that a line needs: through two points it always goes."""


@dataclass(frozen=True, kw_only=True)
class BetweenGroups:
    """What lies between the groups of each whole, NaN where not known.

    Attributes
    ----------
    variance : ndarray of float64, shape (wholes,), 0 .. 1
        Share of the variance of the values that lies between the means of the groups; NaN where nothing varies.
    deviation : ndarray of float64, shape (wholes,)
        Sum over the values of what the mean of their group deviates from the mean of the whole, without sign.
    line : ndarray of float64, shape (wholes,), 0 .. 1
        Share of the variance of the values that a straight line in the size explains.
    constant, slope : ndarray of float64, shape (wholes,)
        The line: the value at size 0, and what one unit of size adds.
    """

    variance: np.ndarray
    deviation: np.ndarray
    line: np.ndarray
    constant: np.ndarray
    slope: np.ndarray


def between_groups(
    groups: Moments, wholes: Moments, whole_of: np.ndarray, sizes: Sequence[int | None]
) -> BetweenGroups:
    """Return what lies between the groups of each whole.

    Parameters
    ----------
    groups, wholes : Moments
        Of the same values.
    whole_of : ndarray of int, shape (groups,)
        The whole that each group is a part of.
    sizes : sequence of int or None, length groups
        Of each group, not negative; a whole with a group of unknown size, or of fewer than `FEWEST_SIZES` sizes, has no
        line.

    Notes
    -----
    The share between groups is that of a one-way analysis of variance (R. A. Fisher, Statistical Methods for Research
    Workers, 1925, chapter 7). The line is that of least squares over the values, all values of a group at its size; its
    share of the variance is the square of Pearson's correlation, Sxy^2 / (Sxx Syy).
    """
    estimates = np.full((4, wholes.count.size), np.nan)
    members: list[list[tuple[int, int, int | None]]] = [[] for _ in range(wholes.count.size)]
    for whole, (n, total, _), size in zip(whole_of.tolist(), groups.sums(), sizes, strict=True):
        if n:
            members[whole].append((n, total, size))
    unit = Fraction(2) ** groups.unit
    for whole, (n, total, squares) in enumerate(wholes.sums()):
        if n:
            parts = members[whole]
            estimates[0, whole] = float(unit * Fraction(sum(abs(s * n - m * total) for m, s, _ in parts), n))
            estimates[1:, whole] = _line(parts, n, total, squares, unit)
    deviation, line, constant, slope = estimates
    variance = _variance_between(groups, wholes, whole_of)
    return BetweenGroups(variance=variance, deviation=deviation, line=line, constant=constant, slope=slope)


def _variance_between(groups: Moments, wholes: Moments, whole_of: np.ndarray) -> np.ndarray:
    """Return the share of the variance of each whole that lies between the means of its groups, NaN where nothing
    varies: 1 less the sum of squares within groups over that in all.
    """
    within: list[list[float]] = [[] for _ in range(wholes.count.size)]
    for whole, count, variance in zip(
        whole_of.tolist(), groups.count.tolist(), groups.variance().tolist(), strict=True
    ):
        if count > 1:
            within[whole].append((count - 1) * variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1 - np.array([math.fsum(parts) for parts in within]) / ((wholes.count - 1) * wholes.variance())
    return np.where(np.isfinite(share), np.clip(share, 0, 1), np.nan)


def _line(
    parts: Sequence[tuple[int, int, int | None]], n: int, total: int, squares: int, unit: Fraction
) -> tuple[float, float, float]:
    """Return the line's share of the variance, its constant and its slope; all NaN where there is no line."""
    sized = [(m, s, x) for m, s, x in parts if x is not None]
    syy = n * squares - total * total
    if len(sized) < len(parts) or len({size for _, _, size in sized}) < FEWEST_SIZES or not syy:
        return np.nan, np.nan, np.nan
    sx = sum(m * x for m, _, x in sized)
    sxx = n * sum(m * x * x for m, _, x in sized) - sx * sx
    sxy = n * sum(x * s for _, s, x in sized) - sx * total
    slope = Fraction(sxy, sxx)
    return float(Fraction(sxy * sxy, sxx * syy)), float(unit * (total - slope * sx) / n), float(unit * slope)
