"""The context graph on published networks whose edges and parameters are known, with fixed seeds."""

import json
from pathlib import Path

import numpy as np
import pytest

from causeway.causal.examination.context_graph import learn

NETWORKS = Path(__file__).resolve().parents[3] / "data" / "networks"


def sample(network, rows, seed):
    """Draw rows of a linear Gaussian network; nodes in the file's order, whatever the order of the arcs."""
    rng = np.random.default_rng(seed)
    drawn = {}
    while len(drawn) < len(network):
        for node, law in network.items():
            if node not in drawn and all(parent in drawn for parent in law["parents"]):
                drawn[node] = law["intercept"] + np.sqrt(law["variance"]) * rng.standard_normal(rows)
                for parent, weight in law["parents"].items():
                    drawn[node] = drawn[node] + weight * drawn[parent]
    return np.column_stack([drawn[node] for node in network])


def skeleton(network, rows, seed):
    """Return precision and F1 of the skeleton of the learnt graph."""
    true = {frozenset((node, parent)) for node, law in network.items() for parent in law["parents"]}
    found = {
        frozenset((edge.source, edge.target)) for edge in learn(sample(network, rows, seed), list(network), seed=seed)
    }
    return len(true & found) / len(found), 2 * len(true & found) / (len(true) + len(found))


@pytest.mark.parametrize(
    ("name", "nodes", "arcs", "seeds"),
    [
        ("ecoli70", 46, 70, [31]),
        pytest.param("ecoli70", 46, 70, [32, 33], marks=pytest.mark.slow),
        pytest.param("arth150", 107, 150, [31, 32], marks=pytest.mark.slow),
    ],
)
def test_skeleton_of_a_published_network(name, nodes, arcs, seeds):
    network = json.loads((NETWORKS / f"{name}.json").read_text())
    assert (len(network), sum(len(law["parents"]) for law in network.values())) == (nodes, arcs)
    marks = [skeleton(network, 1642, seed) for seed in seeds]
    assert np.mean([f1 for _, f1 in marks]) >= 0.9
    assert min(precision for precision, _ in marks) >= 0.9
