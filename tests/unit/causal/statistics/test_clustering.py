import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from causeway.causal.statistics.basis import cluster_columns, medoids


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def test_clusters_by_component_equal_the_whole_linkage():
    rng = np.random.default_rng(1)
    for _ in range(20):
        base = rng.standard_normal((60, 8))
        columns = np.repeat(base, 4, axis=1) + rng.uniform(0.05, 0.5, 32) * rng.standard_normal((60, 32))
        similarity = np.abs(np.corrcoef(columns.T))
        distance = np.clip(1 - similarity, 0, 1)
        np.fill_diagonal(distance, 0)
        whole = fcluster(linkage(squareform(distance, checks=False), "average"), 0.05, "distance")
        assert partition(cluster_columns(similarity)) == partition(whole)


def test_the_medoid_is_nearest_to_the_others_and_ties_go_to_the_shorter_name():
    similarity = np.array([[1, 0.99, 0.96, 0.1], [0.99, 1, 0.99, 0.1], [0.96, 0.99, 1, 0.1], [0.1, 0.1, 0.1, 1]])
    assert medoids(similarity, np.array([0, 0, 0, 1]), list("abcd")) == {0: [1, 0, 2], 1: [3]}
    assert medoids(np.ones((2, 2)), np.array([0, 0]), ["longer", "short"]) == {0: [1, 0]}
