"""The baselines where the package shap, which comes with an extra, is not installed."""

import sys

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination import baselines as module
from causeway.numeric.process import single_threaded


def test_without_shap_the_other_baselines_are_as_with_it(monkeypatch):
    pytest.importorskip("shap", reason="the extra that is left out here is not installed")
    rng = np.random.default_rng(8)
    cause = rng.standard_normal(600)
    y = 1000 + 20 * np.exp(0.7 * cause) * rng.standard_normal(600)
    _, evidence = discover([Feature("cause", cause)], rows_of(y), Scope("d", "y", "k", resamples=0))
    with single_threaded():
        whole = module.baselines(evidence, 1)
        monkeypatch.setitem(sys.modules, "shap", None)
        monkeypatch.setattr(module, "find_spec", lambda _: None)
        less = module.baselines(evidence, 1)
    assert {one.method for one in whole} == {"rank_correlation", "lasso", "boosted_trees"}
    assert less == [one for one in whole if one.method != "boosted_trees"]
