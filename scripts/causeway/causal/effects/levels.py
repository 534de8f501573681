"""The slowest and the fastest levels of a category: levels that do not differ are one group, by configuration.

Which level is slow may change from configuration to configuration, so groups are sought in all configurations
together, in each kernel, and in each configuration; the division that describes the launches best is taken. What is
compared are times less what the other causes do to them.

References
----------
J. Chen, Z. Chen, Extended Bayesian information criteria for model selection with large model spaces, Biometrika 95
(2008) 759: the penalty for having chosen where to divide.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from causeway.causal.data.observations import CLIP_SCALE, NORMAL_MAD
from causeway.causal.preparation.categorical import in_numbers
from causeway.causal.statistics.basis import group_means

MOST_GROUPS = 6
"""More groups of levels change neither the slowest nor the fastest."""


@dataclass(frozen=True, kw_only=True)
class LevelGroups:
    """What is compared of a category.

    Attributes
    ----------
    low, high, usual : ndarray of int, shape (n_used,)
        For each used row the row of its configuration whose level it takes: one of the fastest, of the slowest group,
        and, of launches slower than the median launch, of that one's group; itself where levels do not differ.
    fast, slow : tuple of str
        The levels of both groups in the configuration where they cost most, in order.
    slower : tuple of (tuple of str, float)
        The levels of the groups between them that are slower than the median launch, with their mean time, from the
        slowest.
    configuration : int or None
        That configuration, where other configurations have other groups.
    shown : int
        That configuration.
    """

    low: np.ndarray
    high: np.ndarray
    usual: np.ndarray
    fast: tuple[str, ...]
    slow: tuple[str, ...]
    slower: tuple[tuple[tuple[str, ...], float], ...]
    configuration: int | None
    shown: int


def level_groups(
    response: np.ndarray,
    levels: np.ndarray,
    names: tuple[str, ...],
    configuration: np.ndarray,
    kernel: np.ndarray,
    weight: np.ndarray,
    time: np.ndarray,
    effective: float,
) -> LevelGroups:
    """Return the groups of the levels of a category.

    Parameters
    ----------
    response : ndarray of float, shape (n_used,)
        Times, mostly in logarithms, less the mean of the configuration and what other causes do.
    levels, configuration, kernel : ndarray of int, shape (n_used,)
    names : tuple of str
        Of the levels.
    weight, time : ndarray of float, shape (n_used,)
    effective : float, 0 to 1
        What a row counts for in independent ones.
    """
    cells = np.unique(np.stack([configuration, levels]), axis=1, return_inverse=True)[1].ravel()
    clipped = _clipped(response, cells, weight)
    left = clipped - group_means(clipped, cells, weight)[cells]
    variance = float(weight @ left**2) / max(float(weight.sum()) * (1 - (cells.max() + 1) / left.size), 1e-300)
    scale = effective * weight.size / weight.sum() / max(variance, 1e-300)
    divisions = []
    for part in (np.zeros_like(kernel), kernel, configuration):
        parts = np.unique(part, return_inverse=True)[1]
        divisions.append(_divided(clipped, levels, parts, weight * scale, effective))
    best = min(range(len(divisions)), key=lambda index: divisions[index][0])
    groups = divisions[best][1]
    is_own = best == 2 and np.unique(configuration).size > 1
    return _named(groups, levels, names, configuration, weight, time, is_own)


def _clipped(response: np.ndarray, cells: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the response with launches far from the mean of their level pulled in."""
    middle = group_means(response, cells, weight)[cells]
    spread = NORMAL_MAD * float(np.median(np.abs(response - middle)))
    return np.clip(response, middle - CLIP_SCALE * spread, middle + CLIP_SCALE * spread) if spread > 0 else response


def _divided(
    response: np.ndarray, levels: np.ndarray, parts: np.ndarray, precision: np.ndarray, effective: float
) -> tuple[float, np.ndarray]:
    """Return the criterion of dividing the levels of each part of the rows on their own, and the group of each row,
    0, 1, ... from the fastest of its part.
    """
    total = 0.0
    groups = np.zeros(levels.size, np.int64)
    for part in range(int(parts.max()) + 1):
        rows = np.flatnonzero(parts == part)
        own, codes = np.unique(levels[rows], return_inverse=True)
        counts = np.bincount(codes)
        weights = np.bincount(codes, precision[rows])
        means = np.bincount(codes, precision[rows] * response[rows]) / weights
        order = np.argsort(means, kind="stable")
        order = order[counts[order] >= 2]
        inside = float(precision[rows] @ (response[rows] - means[codes]) ** 2)
        criterion, ends = _best_division(means[order], weights[order], max(effective * rows.size, 2.0))
        total += inside + criterion
        group_of = np.zeros(own.size, np.int64)
        group_of[order] = np.searchsorted(ends, np.arange(order.size), side="right")
        for code in np.flatnonzero(counts < 2):
            near = order[np.argmin(np.abs(means[order] - means[code]))] if order.size else code
            group_of[code] = group_of[near]
        groups[rows] = group_of[codes]
    return total, groups


def _best_division(means: np.ndarray, weights: np.ndarray, n: float) -> tuple[float, np.ndarray]:
    """Return the least criterion of a division of sorted means into successive groups, and where groups but the first
    begin: weighted squares between means and their group's, plus the penalty for the groups.
    """
    size = means.size
    if size == 0:
        return 0.0, np.zeros(0, np.int64)
    sums = [np.append(0.0, np.cumsum(weights * means**power)) for power in (0, 1, 2)]

    def squares(first: int, last: int) -> float:
        total, moment, square = (cumulative[last] - cumulative[first] for cumulative in sums)
        return max(float(square - moment**2 / total), 0.0)

    cost = np.array([squares(0, last) for last in range(1, size + 1)])
    begins: list[np.ndarray] = []
    best = (float(cost[-1]), np.zeros(0, np.int64))
    for groups in range(2, min(size, MOST_GROUPS) + 1):
        again = np.full(size, np.inf)
        begin = np.zeros(size, np.int64)
        for last in range(groups - 1, size):
            options = [cost[first - 1] + squares(first, last + 1) for first in range(groups - 1, last + 1)]
            index = int(np.argmin(options))
            again[last] = options[index]
            begin[last] = index + groups - 1
        begins.append(begin)
        cost = again
        choices = gammaln(size) - gammaln(groups) - gammaln(size - groups + 1)
        criterion = float(cost[-1]) + (groups - 1) * np.log(n) + 2.0 * float(choices)
        if criterion < best[0]:
            best = (criterion, _ends(begins, size))
    return best


def _ends(begins: list[np.ndarray], size: int) -> np.ndarray:
    """Return where groups but the first begin, from the last group back."""
    starts = []
    last = size - 1
    for begin in reversed(begins):
        starts.append(int(begin[last]))
        last = starts[-1] - 1
    return np.asarray(starts[::-1], np.int64)


def _named(
    groups: np.ndarray,
    levels: np.ndarray,
    names: tuple[str, ...],
    configuration: np.ndarray,
    weight: np.ndarray,
    time: np.ndarray,
    is_own: bool,
) -> LevelGroups:
    """Return the donors of all rows, and the levels of the slowest and of the fastest group where they cost most."""
    low, high, usual = (np.arange(levels.size) for _ in range(3))
    costs = {}
    ends = {}
    slower_groups: dict[int, list[np.ndarray]] = {}
    for code in np.unique(configuration):
        rows = np.flatnonzero(configuration == code)
        own = groups[rows]
        present = np.unique(own)
        if present.size < 2:
            continue
        fast, slow = (rows[own == present[end]] for end in (0, -1))
        reached = np.cumsum(np.bincount(own, weight[rows]))
        middle = rows[own == np.searchsorted(reached, reached[-1] / 2)]
        low[rows], high[rows] = (in_turn(some, rows.size) for some in (fast, slow))
        slower = rows[own > groups[middle[0]]]
        usual[slower] = in_turn(middle, slower.size)
        mean = np.average(time[fast], weights=weight[fast])
        costs[int(code)] = float(weight[rows] @ np.maximum(time[rows] - mean, 0.0))
        ends[int(code)] = (fast, slow)
        between = present[(present > groups[middle[0]]) & (present < present[-1])]
        slower_groups[int(code)] = [rows[own == group] for group in between[::-1]]
    shown = max(costs, key=costs.__getitem__, default=-1)

    def named(rows: np.ndarray) -> tuple[str, ...]:
        return tuple(sorted({names[level] for level in levels[rows].tolist()}, key=in_numbers))

    fast_names, slow_names = map(named, ends[shown]) if ends else ((), ())
    return LevelGroups(
        low=low,
        high=high,
        usual=usual,
        fast=fast_names,
        slow=slow_names,
        slower=tuple(
            (named(rows), float(np.average(time[rows], weights=weight[rows]))) for rows in slower_groups.get(shown, ())
        ),
        configuration=shown if is_own and ends else None,
        shown=shown,
    )


def in_turn(rows: np.ndarray, count: int) -> np.ndarray:
    """Return `count` rows out of `rows`, each as often as the others.

    Parameters
    ----------
    rows : ndarray of int, shape (n_rows,)
    count : int

    Returns
    -------
    ndarray of int, shape (count,)
    """
    return rows[np.arange(count) % rows.size]
