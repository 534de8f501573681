"""Basis of a candidate: what a column may do to the target without assuming a straight line.

A numeric column gives its normal score (any monotone effect), itself in standard deviations (a straight effect and heavy tails) and the
absolute normal score (both ends against the middle). A category gives one indicator per level but the most frequent. Columns that add
nothing to those before them are left out.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

NEW_SHARE = 0.02
"""A basis column whose variance is explained up to this share by those before it adds nothing."""


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Return the normal scores of finite `values`, ties at their average rank: `Phi^-1((rank - 0.5) / n)`.

    References
    ----------
    Waerden's scores in the form of G. Blom, Statistical Estimates and Transformed Beta-Variables, Wiley 1958.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, values.size))
    scores = np.empty(values.size)
    scores[order] = np.repeat(ndtri((starts + lengths / 2.0) / values.size), lengths)
    return scores


@dataclass(frozen=True)
class Basis:
    """The bases of all candidates, side by side.

    Attributes
    ----------
    columns : ndarray of float32, shape (n_rows, n_columns)
        Unit length each, centred within groups, multiplied by the roots of the rows' weights.
    owner : ndarray of int64, shape (n_columns,), ascending
        The candidate that a column belongs to.
    """

    columns: np.ndarray
    owner: np.ndarray

    def of(self, candidate: int) -> np.ndarray:
        """Return the positions of a candidate's columns."""
        return np.arange(*np.searchsorted(self.owner, [candidate, candidate + 1]))


class GroupCentring:
    """Subtract the weighted mean of each group, and multiply by the roots of the weights: what fixed effects amount to.

    Parameters
    ----------
    groups : ndarray of int, shape (n_rows,), 0 .. n_groups - 1
    weights : ndarray of float, shape (n_rows,), positive
    """

    def __init__(self, groups: np.ndarray, weights: np.ndarray) -> None:
        self.groups, self.weights = groups, weights
        self.n_groups = int(groups.max()) + 1 if groups.size else 0
        self.order = np.argsort(groups, kind="stable")
        self.starts = np.searchsorted(groups[self.order], np.arange(self.n_groups))
        self.totals = np.add.reduceat(weights[self.order], self.starts) if groups.size else np.zeros(0)
        self.roots = np.sqrt(weights / weights.mean()) if groups.size else weights

    def centred(self, columns: np.ndarray) -> np.ndarray:
        """Return `columns`, shape (n_rows,) or (n_rows, n_columns), minus the weighted mean of their group."""
        weights = self.weights if columns.ndim == 1 else self.weights[:, None]
        sums = np.add.reduceat((columns * weights)[self.order], self.starts, axis=0)
        means = sums / (self.totals if columns.ndim == 1 else self.totals[:, None])
        return columns - means[self.groups]

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Return the centred columns times the roots of the weights (mean 1): ordinary least squares on them is the weighted one."""
        return self.centred(columns) * (self.roots if columns.ndim == 1 else self.roots[:, None])


def independent_columns(columns: np.ndarray, share: float = NEW_SHARE) -> list[int]:
    """Return which of a few columns of unit length add more than `share` of their variance to those before them."""
    kept: list[int] = []
    frame = np.zeros((columns.shape[0], 0))
    for position in range(columns.shape[1]):
        rest = columns[:, position] - frame @ (frame.T @ columns[:, position])
        length = float(rest @ rest)
        if length > share:
            kept.append(position)
            frame = np.column_stack([frame, rest / np.sqrt(length)])
    return kept


def numeric_functions(values: np.ndarray) -> np.ndarray:
    """Return the functions of one numeric column, shape (n_rows, 3), or (n_rows, 1) if it has but two values."""
    if values.size == 0 or np.all((values == values.min()) | (values == values.max())):
        return values[:, None]
    scores = normal_scores(values)
    return np.column_stack([scores, values, np.abs(scores)])


def build_basis(candidates: list[np.ndarray], centring: GroupCentring) -> Basis:
    """Build the bases of all candidates.

    Parameters
    ----------
    candidates : list of ndarray
        A numeric column of shape (n_rows,), or the indicators of a category of shape (n_rows, n_levels - 1); finite.
    centring : GroupCentring
        Fixed effects and weights of the rows.

    Returns
    -------
    Basis
        A candidate without any variance within its groups has no column.
    """
    blocks, owners = [], []
    for number, values in enumerate(candidates):
        functions = numeric_functions(values) if values.ndim == 1 else values
        columns = centring.weighted(functions.astype(float))
        lengths = np.sqrt((columns**2).sum(axis=0))
        scale = np.sqrt((functions.astype(float) ** 2).sum(axis=0))
        columns = columns[:, lengths > 1e-6 * np.maximum(scale, 1e-300)]
        if columns.shape[1]:
            columns = columns / np.sqrt((columns**2).sum(axis=0))
            columns = columns[:, independent_columns(columns)]
            blocks.append(columns.astype(np.float32))
            owners += [number] * columns.shape[1]
    nothing = np.zeros((centring.groups.size, 0), np.float32)
    return Basis(np.hstack(blocks) if blocks else nothing, np.asarray(owners, dtype=np.int64))
