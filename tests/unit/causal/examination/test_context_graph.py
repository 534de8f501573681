"""The context graph against networks whose edges are known."""

import numpy as np
import pytest

from causeway.causal.examination.context_graph import learn, rows_like


def network(p, n_edges, n_rows, seed):
    """Random sparse Gaussian network: adjacency (bool, [parent, child]), columns, and the depth of each node."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(p)
    adjacency = np.zeros((p, p), dtype=bool)
    while adjacency.sum() < n_edges:
        a, b = sorted(rng.integers(0, p, 2))
        if a != b:
            adjacency[order[a], order[b]] = True
    columns = np.zeros((n_rows, p))
    for node in order:
        parents = np.flatnonzero(adjacency[:, node])
        weights = rng.uniform(0.4, 1.0, parents.size) * rng.choice([-1, 1], parents.size)
        columns[:, node] = columns[:, parents] @ weights + rng.normal(size=n_rows)
    return adjacency, columns


def skeleton_f1(adjacency, edges, names):
    true = {frozenset((names[a], names[b])) for a, b in np.argwhere(adjacency)}
    found = {frozenset((edge.source, edge.target)) for edge in edges}
    return 2 * len(true & found) / (len(true) + len(found))


def test_skeleton_of_a_sparse_network():
    adjacency, columns = network(25, 35, 1500, seed=5)
    names = [f"v{i}" for i in range(25)]
    assert skeleton_f1(adjacency, learn(columns, names, seed=3), names) >= 0.95


def test_edges_point_from_rank_to_rank_against_what_the_data_suggest():
    """The collider's arms point into c by the data; with c in an earlier rank they must point out of it. Within a rank
    no direction is said.
    """
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 2000))
    c = a + b + rng.normal(size=2000)
    edges = learn(np.column_stack([a, b, c]), list("abc"), ranks=[1, 2, 0])
    assert {(one.source, one.target, one.kind) for one in edges} >= {("c", "a", "directed"), ("c", "b", "directed")}
    assert {one.kind for one in learn(np.column_stack([a, b, c]), list("abc"))} == {"undirected"}


def test_the_effect_of_an_edge_is_the_partial_slope():
    """By hand: c = a + b + noise, all of one variance but c's: slopes of 1 / sqrt(3) in standard deviations."""
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 20000))
    edges = learn(np.column_stack([a, b, a + b + rng.normal(size=20000)]), list("abc"), ranks=[0, 0, 1])
    into = [one.effect for one in edges if one.target == "c"]
    assert into == pytest.approx([1 / np.sqrt(3)] * 2, abs=0.02)


def test_degenerate_columns_get_no_edge_and_do_not_disturb():
    rng = np.random.default_rng(2)
    a = rng.normal(size=500)
    b = a + rng.normal(size=500)
    noise = rng.normal(size=500)
    columns = np.column_stack([a, b, np.ones(500), a + b, noise])
    edges = learn(columns, ["a", "b", "constant", "sum", "noise"])
    assert [(one.source, one.target) for one in edges] == [("a", "b")]
    assert learn(columns[:, :1], ["a"]) == []
    assert learn(columns[:5], ["a", "b", "constant", "sum", "noise"]) == []


def test_weights_and_effective_size_count():
    """An edge that 2,000 rows show is not shown by the 30 that they are worth; weights of zero-one rows equal the
    rows left out.
    """
    rng = np.random.default_rng(3)
    a = rng.normal(size=2000)
    b = 0.25 * a + rng.normal(size=2000)
    columns = np.column_stack([a, b])
    assert learn(columns, ["a", "b"])
    assert not learn(columns, ["a", "b"], n_effective=30)
    weights = np.where(np.arange(2000) < 1000, 1.0, 1e-12)
    weighted = learn(columns, ["a", "b"], weights=weights, n_effective=1000)
    left = learn(columns[:1000], ["a", "b"])
    assert weighted[0].effect == pytest.approx(left[0].effect, abs=1e-6)


def test_same_seed_same_edges_and_the_global_generator_untouched():
    import random

    _, columns = network(12, 16, 400, seed=9)
    names = [f"v{i}" for i in range(12)]
    random.seed(4)
    expected = random.random()
    random.seed(4)
    first = learn(columns, names, seed=11)
    assert random.random() == expected
    assert learn(columns, names, seed=11) == first


def test_rows_like_have_exactly_the_correlations():
    correlations = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]])
    assert np.allclose(np.corrcoef(rows_like(correlations, 50).T), correlations, atol=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="finite"):
        learn(np.array([[1.0, np.nan]] * 50), ["a", "b"])
    with pytest.raises(ValueError, match="unique"):
        learn(np.zeros((50, 2)), ["a", "a"])
