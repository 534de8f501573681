"""Clusters of columns that carry the same information: one stands for all, and an arrow from it means the cluster."""

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

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
    found: dict[int, list[int]] = {}
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        mean = similarity[np.ix_(members, members)].mean(axis=1)
        ranked = sorted(
            range(members.size), key=lambda i: (-round(float(mean[i]), 4), len(names[members[i]]), names[members[i]])
        )
        found[int(labels[members[0]])] = [int(members[i]) for i in ranked]
    return found
