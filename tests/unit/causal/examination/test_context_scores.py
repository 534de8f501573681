"""The compiled score of the context graph, beside causal-learn's own and a regression by least squares."""

import numpy as np
import pytest
from causallearn.score.LocalScoreFunction import local_score_BIC_from_cov
from causallearn.search.PermutationBased import BOSS

from causeway.causal.examination import context_graph
from causeway.causal.examination.context_scores import CompiledScores, residual_variance

PARAMETERS = {"lambda_value": 1.0}


@pytest.mark.parametrize("seed", range(20))
def test_the_score_is_the_librarys(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12))
    scores = CompiledScores(rows, local_score_BIC_from_cov, PARAMETERS)
    covariance = np.cov(rows.T, ddof=0)
    for size in range(12):
        node, *parents = rng.permutation(12)[: size + 1].tolist()
        theirs = local_score_BIC_from_cov((covariance, 200), node, parents, PARAMETERS)
        assert scores.score_nocache(node, parents) == pytest.approx(theirs, rel=1e-9)
        fitted = np.linalg.lstsq(rows[:, parents] - rows[:, parents].mean(0), rows[:, node] - rows[:, node].mean())[0]
        left = rows[:, node] - rows[:, node].mean() - (rows[:, parents] - rows[:, parents].mean(0)) @ fitted
        assert residual_variance(covariance, node, np.array(parents, np.int64)) == pytest.approx(left.var(), rel=1e-7)


def test_a_column_that_follows_from_others_is_left_out():
    rng = np.random.default_rng(1)
    a, b, noise = rng.normal(size=(3, 300))
    rows = np.stack([a, b, a + b, a - 2 * b + noise], axis=1)
    covariance = np.cov(rows.T, ddof=0)
    two, three = (residual_variance(covariance, 3, np.array(parents)) for parents in ([0, 1], [0, 1, 2]))
    assert three == pytest.approx(two, rel=1e-9)
    assert two == pytest.approx(noise.var(), rel=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_the_graph_is_that_of_the_librarys_score_and_the_library_is_left_as_it_was(seed, monkeypatch):
    rng = np.random.default_rng(100 + seed)
    rows = rng.normal(size=(400, 15))
    for child in range(1, 15):
        for parent in rng.choice(child, size=min(child, 2), replace=False):
            rows[:, child] += rng.uniform(0.3, 1.0) * rows[:, parent]
    names = [f"x{number}" for number in range(15)]
    theirs = BOSS.LocalScoreClass
    ours = context_graph.learn(rows, names, seed=seed)
    assert BOSS.LocalScoreClass is theirs
    monkeypatch.setattr(context_graph, "CompiledScores", theirs)
    assert [(one.source, one.target, one.kind) for one in context_graph.learn(rows, names, seed=seed)] == [
        (one.source, one.target, one.kind) for one in ours
    ]
