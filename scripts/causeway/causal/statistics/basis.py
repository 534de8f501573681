"""Basis of a candidate: what a column may do to the target without assuming a linear effect.

A numeric column gives its normal score (any monotone effect), itself in standard deviations (a linear effect and
heavy tails) and the absolute normal score (both ends against the middle). A category gives one indicator per level but
the most frequent. Columns that add nothing to those before them are left out.

Columns that carry the same information form a cluster: one stands for all, and an arrow from it means the cluster.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg.lapack import dtrtrs
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

NEW_SHARE = 0.02
"""A basis column whose variance is explained up to this share by those before it adds nothing."""
ALIVE_LENGTH = 1e-6
"""A function whose length after centring is at most this share of what it was is constant but for rounding."""
KNOTS = (0.02, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.98)
"""Quantiles at which a piecewise linear function of a number may bend or step: denser in the tails, where effects
saturate.
"""
AT_ONCE = 50_000
"""So many values, of several candidates, are centred and weighted in one call: few calls, and they stay cached."""


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Return the rank-based inverse normal transform of values, `Phi^-1((rank - 1/2) / n)`: rankit scores.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Finite; ties get their average rank.

    Returns
    -------
    ndarray of float, shape (n,)
        In the order of `values`, standard normal but for ties.

    References
    ----------
    C. I. Bliss, Statistics in Biology, McGraw-Hill 1967 (rankits). Of the family `(rank - c) / (n - 2 c + 1)` they have
    c = 1/2; van der Waerden's scores have 0, Blom's 3/8 (T. M. Beasley, S. Erickson, D. B. Allison, Rank-based inverse
    normal transformations are increasingly used, but are they merited?, Behav. Genet. 39 (2009) 580).
    """
    return ndtri((average_ranks(values) - 0.5) / values.size)


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of numbers, from 1 on; ties get their average rank.

    pandas, which is loaded in any case: scipy's `rankdata` gives the same bits, and half a second of CPU time goes into
    loading it.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Finite.

    Returns
    -------
    ndarray of float, shape (n,)
    """
    return pd.Series(values).rank().to_numpy()


def two_valued(values: np.ndarray) -> bool:
    """Return whether there are at most two different numbers in `values`, shape (n,); True for none."""
    return values.size == 0 or bool(np.all((values == values.min()) | (values == values.max())))


def unit_length(columns: np.ndarray) -> np.ndarray:
    """Return columns divided by their length, those of zeros as they are.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, k)

    Returns
    -------
    ndarray of float, shape (n_rows, k)
    """
    lengths = np.sqrt((columns**2).sum(axis=0))
    return columns / np.where(lengths > 0, lengths, 1.0)


def group_means(values: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean of each group, 0 where nothing weighs, float, shape (n_groups,).

    Parameters
    ----------
    values, weights : ndarray of float, shape (n_rows,)
    groups : ndarray of int, shape (n_rows,)
        Codes 0, 1, ...
    """
    totals = np.bincount(groups, weights)
    return np.bincount(groups, weights * values) / np.where(totals > 0, totals, 1.0)


@dataclass(frozen=True)
class Basis:
    """The bases of all candidates, side by side.

    Attributes
    ----------
    columns : ndarray of float32, shape (n_rows, n_columns)
        Column after column in memory. Unit length each, centred within groups, multiplied by the roots of the rows'
        weights.
    owner : ndarray of int64, shape (n_columns,), ascending
        The candidate that a column belongs to.
    """

    columns: np.ndarray
    owner: np.ndarray

    def of(self, candidate: int) -> np.ndarray:
        """Return the positions of a candidate's columns: ndarray of int, shape (k,), ascending; empty for none."""
        return np.arange(*np.searchsorted(self.owner, [candidate, candidate + 1]))


class GroupCentring:
    """Subtract the weighted mean of each group, and multiply by the roots of the weights: what fixed effects amount to.

    Parameters
    ----------
    groups : ndarray of int, shape (n_rows,)
        The number of each row's group, 0 .. n_groups - 1, none of them empty.
    weights : ndarray of float, shape (n_rows,), positive
    """

    def __init__(self, groups: np.ndarray, weights: np.ndarray) -> None:
        self.groups = groups
        self.weights = weights
        self.n_groups = int(groups.max()) + 1 if groups.size else 0
        self.order = np.argsort(groups, kind="stable")
        self.ordered = bool(np.all(groups[:-1] <= groups[1:]))
        self.starts = np.searchsorted(groups[self.order], np.arange(self.n_groups))
        self.totals = np.add.reduceat(weights[self.order], self.starts) if groups.size else np.zeros(0)
        self.roots = np.sqrt(weights / weights.mean()) if groups.size else weights

    def centred(self, columns: np.ndarray) -> np.ndarray:
        """Return columns minus the weighted mean of their group.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows,) or (n_rows, n_columns)

        Returns
        -------
        ndarray of float, shape (n_rows,) or (n_rows, n_columns)
        """
        weights = self.weights if columns.ndim == 1 else self.weights[:, None]
        parts = columns * weights if self.ordered else (columns * weights)[self.order]
        sums = np.add.reduceat(parts, self.starts, axis=0)
        del parts  # as large as the columns
        means = sums / (self.totals if columns.ndim == 1 else self.totals[:, None])
        return columns - means[self.groups]

    def varies(self, values: np.ndarray) -> bool:
        """Tell whether a column varies within a group: exactly, by minima and maxima; missing values count for none.

        Parameters
        ----------
        values : ndarray of float or int, shape (n_rows,)
            NaN where missing.
        """
        ordered = values[self.order]
        return bool(np.any(np.fmin.reduceat(ordered, self.starts) < np.fmax.reduceat(ordered, self.starts)))

    def weighted_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the same as `weighted` for transposed columns: quicker for many of them.

        Parameters
        ----------
        rows : ndarray of float, shape (n_columns, n_rows)

        Returns
        -------
        ndarray of float, shape (n_columns, n_rows)
        """
        parts = rows * self.weights if self.ordered else (rows * self.weights)[:, self.order]
        means = np.add.reduceat(parts, self.starts, axis=1) / self.totals
        weighted = rows - (means if self.n_groups == 1 else means.take(self.groups, axis=1))
        weighted *= self.roots
        return weighted

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Return the centred columns times the roots of the weights (mean 1): ordinary least squares on them is the
        weighted one with fixed effects.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows,) or (n_rows, n_columns)

        Returns
        -------
        ndarray of float, shape (n_rows,) or (n_rows, n_columns)
        """
        weighted = self.centred(columns)
        weighted *= self.roots if columns.ndim == 1 else self.roots[:, None]
        return weighted


def independent_columns(grams: np.ndarray, share: float = NEW_SHARE) -> np.ndarray:
    """Return which of a few columns of unit length add more than `share` of their variance to those kept before them.

    Parameters
    ----------
    grams : ndarray of float, shape (..., k, k)
        Gram matrices, the products of the columns; many sets of columns at once.
    share : float, 0 to 1

    Returns
    -------
    ndarray of bool, shape (..., k)
    """
    residual = np.array(grams, dtype=float)
    kept = np.zeros(residual.shape[:-1], dtype=bool)
    for index in range(residual.shape[-1]):
        new = residual[..., index, index]
        kept[..., index] = new > share
        column = residual[..., index] / np.sqrt(np.where(kept[..., index], new, np.inf))[..., None]
        residual = residual - column[..., :, None] * column[..., None, :]
    return kept


def orthonormal_transform(gram: np.ndarray, share: float) -> np.ndarray:
    """Return the matrix that turns columns into an orthonormal basis, the longest first, without those that add no more
    than `share` to the ones before.

    Parameters
    ----------
    gram : ndarray of float, shape (m, m)
        Products of the columns, whose length is about 1.
    share : float
        Squared length, well above rounding.

    Returns
    -------
    ndarray of float, shape (m, k)
        k at most m; the columns, shape (n_rows, m), times it are the basis.

    Notes
    -----
    Pivoted Cholesky factorisation: for few columns and many rows much quicker than a QR factorisation, and as exact as
    long as `share` bounds the condition (L. N. Trefethen, D. Bau, Numerical Linear Algebra, SIAM 1997, lecture 23).
    """
    residual = gram.copy()
    chosen: list[int] = []
    for _ in range(len(gram)):
        best = int(residual.diagonal().argmax())
        pivot = residual[best, best]
        if pivot <= share:
            break
        column = residual[:, best] / np.sqrt(pivot)
        residual -= column[:, None] * column
        residual[best] = residual[:, best] = 0.0
        chosen.append(best)
    transform = np.zeros((len(gram), len(chosen)))
    if chosen:  # called so often, for so few columns, that LAPACK's own routine is a third of `solve_triangular`
        triangle = np.linalg.cholesky(gram[np.ix_(chosen, chosen)])
        inverse, _ = dtrtrs(triangle.T, np.eye(len(chosen)), lower=0, trans=1)
        transform[chosen] = inverse.T
    return transform


def functions_of(values: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
    """Return the functions of a number (normal scores, values, absolute normal scores), or the indicators of a
    category, row after row.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,), or (n_rows, n_levels - 1)
        Finite.
    scores : ndarray of float, shape (n_rows,), optional
        The normal scores of a number if they are known.

    Returns
    -------
    ndarray of float, shape (3, n_rows); (1, n_rows) if there are but two values, (n_levels - 1, n_rows) of a category
    """
    if values.ndim > 1:
        return values.T
    if two_valued(values):
        return values[None, :]
    functions = np.empty((3, values.size))
    functions[0] = normal_scores(values) if scores is None else scores
    functions[1] = values
    np.abs(functions[0], out=functions[2])
    return functions


def build_basis(candidates: list[np.ndarray], centring: GroupCentring, scores: list[np.ndarray] | None = None) -> Basis:
    """Build the bases of all candidates.

    Parameters
    ----------
    candidates : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        A numeric column, or the indicators of a category; finite.
    centring : GroupCentring
        Fixed effects and weights of the rows.
    scores : list of ndarray of float, shape (n_rows,), optional
        The candidates' normal scores if they are known (nothing is read from that of a category).

    Returns
    -------
    Basis
        A candidate without any variance within its groups has no column.
    """
    room = sum(3 if values.ndim == 1 else values.shape[1] for values in candidates)
    columns = np.zeros((room, centring.groups.size), np.float32)  # what stays unused lies beside what BLAS reads
    owners = [np.zeros(0, np.int64)]
    filled = 0
    step = max(1, AT_ONCE // max(centring.groups.size, 1))
    for first in range(0, len(candidates), step):
        numbers = range(first, min(first + step, len(candidates)))
        parts = [functions_of(candidates[i], scores[i] if scores else None) for i in numbers]
        block, widths = _independent_part(parts, centring)
        columns[filled : filled + len(block)] = block
        filled += len(block)
        owners.append(np.repeat(np.asarray(numbers, dtype=np.int64), widths))
    return Basis(columns[:filled].T, np.concatenate(owners))


def updated_basis(basis: Basis, positions: np.ndarray, new: Basis) -> Basis:
    """Return the basis of candidates of which most have one already.

    Parameters
    ----------
    basis : Basis
    positions : ndarray of int, shape (n_candidates,)
        Each candidate's number in `basis`, -1 for those without one.
    new : Basis
        Of those without one, in their order.
    """
    # -2, -3, ... are the first, second, ... new one
    numbers = np.where(positions >= 0, positions, -1 - np.cumsum(positions < 0))
    spans = [basis.of(number) if number >= 0 else -1 - new.of(-2 - number) for number in numbers]
    where = np.concatenate([np.zeros(0, np.int64), *spans])
    columns = (basis if basis.owner.size else new).columns.T[np.maximum(where, 0)]
    columns[where < 0] = new.columns.T[-1 - where[where < 0]]
    return Basis(columns.T, np.repeat(np.arange(len(spans)), [span.size for span in spans]))


def _independent_part(parts: list[np.ndarray], centring: GroupCentring) -> tuple[np.ndarray, np.ndarray]:
    """Return the independent columns of some candidates, row after row, shape (n_columns, n_rows), and how many each
    has.
    """
    functions = np.concatenate(parts, dtype=float)
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    columns = centring.weighted_rows(functions)
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    alive = lengths > ALIVE_LENGTH * np.maximum(np.sqrt(np.einsum("ij,ij->i", functions, functions)), 1e-300)
    columns /= np.where(alive, lengths, 1.0)[:, None]
    if not alive.all():
        columns = columns[alive]
        owner = owner[alive]
    kept = np.zeros(owner.size, dtype=bool)
    counts = np.bincount(owner, minlength=len(parts))
    starts = np.concatenate(([0], np.cumsum(counts)))
    for width in np.unique(counts[counts > 0]):
        positions = starts[:-1][counts == width][:, None] + np.arange(width)
        sets = columns[positions]
        kept[positions] = independent_columns(sets @ sets.transpose(0, 2, 1))
    return columns[kept], np.bincount(owner[kept], minlength=len(parts))


SIMILARITY = 0.95
"""Absolute correlation, of values or normal scores, from which columns on average belong together."""


def cluster_columns(similarity: np.ndarray, threshold: float = SIMILARITY) -> np.ndarray:
    """Return cluster numbers by average linkage of `1 - similarity`, cut at `1 - threshold`.

    Parameters
    ----------
    similarity : ndarray of float, shape (p, p), in [0, 1]
        max(|Pearson|, |correlation of normal scores|); p at least 1.
    threshold : float

    Returns
    -------
    ndarray of int, shape (p,)
        0 .. n_clusters - 1, numbered by first member.

    Notes
    -----
    Average linkage never joins two sets without a pair above the threshold, so each connected component of the graph of
    such pairs is clustered alone: memory and time stay those of the components instead of p^2.
    """
    p = similarity.shape[0]
    pairs = np.argwhere(similarity > threshold)
    graph = csr_matrix((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(p, p))
    _, component = connected_components(graph, directed=False)
    labels = np.zeros(p, dtype=np.int64)
    offset = 0
    order = np.argsort(component, kind="stable")
    bounds = np.flatnonzero(np.diff(component[order])) + 1
    for members in np.split(order, bounds):
        within = np.zeros(members.size, dtype=np.int64)
        if members.size > 2:
            from scipy.cluster.hierarchy import fcluster, linkage  # few datasets have such a cluster
            from scipy.spatial.distance import squareform

            distance = 1.0 - similarity[np.ix_(members, members)].astype(float)
            np.fill_diagonal(distance, 0.0)
            tree = linkage(squareform(np.clip(distance, 0.0, 1.0), checks=False), "average")
            within = fcluster(tree, 1.0 - threshold, "distance") - 1
        labels[members] = within + offset
        offset += int(within.max()) + 1
    return pd.factorize(labels)[0]


def medoids(similarity: np.ndarray, labels: np.ndarray, names: list[str]) -> dict[int, list[int]]:
    """Return for each cluster its members, the medoid (highest mean similarity; ties: shorter, then earlier name)
    first.

    Parameters
    ----------
    similarity : ndarray of float, shape (p, p), in [0, 1]
    labels : ndarray of int, shape (p,)
        The cluster of each column.
    names : list of str
        Of the columns.
    """
    clusters: dict[int, list[int]] = {}
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        mean = similarity[np.ix_(members, members)].mean(axis=1)
        ranked = sorted(
            range(members.size), key=lambda i: (-round(float(mean[i]), 4), len(names[members[i]]), names[members[i]])
        )
        clusters[int(labels[members[0]])] = [int(members[i]) for i in ranked]
    return clusters
