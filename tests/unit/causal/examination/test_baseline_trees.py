"""The baseline of boosted trees, and the baselines where its package, which comes with an extra, is not installed."""

import sys

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination import baselines as module
from causeway.numeric.process import single_threaded


def test_without_the_trees_the_other_baselines_are_as_with_it(monkeypatch):
    pytest.importorskip("xgboost", reason="the extra that is left out here is not installed")
    rng = np.random.default_rng(8)
    cause = rng.standard_normal(600)
    y = 1000 + 20 * np.exp(0.7 * cause) * rng.standard_normal(600)
    _, evidence = discover([Feature("cause", cause)], rows_of(y), Scope("d", "y", "k", resamples=0))
    with single_threaded():
        whole = module.baselines(evidence, 1)
        monkeypatch.setitem(sys.modules, "xgboost", None)
        monkeypatch.setattr(module, "find_spec", lambda _: None)
        less = module.baselines(evidence, 1)
    assert {one.method for one in whole} == {"rank_correlation", "lasso", "boosted_trees"}
    assert less == [one for one in whole if one.method != "boosted_trees"]


def test_the_values_of_trees_of_a_sum_are_its_terms():
    pytest.importorskip("xgboost", reason="the extra is not installed")
    x = np.random.default_rng(3).standard_normal((3000, 5))
    y = 3 * x[:, 1] - 2 * x[:, 4]
    strength = module._tree_shap(x, y, 7)
    term = np.sqrt(2 / np.pi)  # the mean absolute value of a standard normal variable
    assert strength == pytest.approx([0, 3 * term, 0, 0, -2 * term], abs=0.15)
