"""Fixtures of the tests of causes."""

import importlib

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from causeway.causal.discovery import arrows
from causeway.causal.effects import kernel_times, scope_times, time_model


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Run linear algebra and trees on one thread, as the programs do: between two processes of tests, the threads of
    OpenMP mostly wait for one another, and a tree takes ten times as long.

    Libraries must be loaded to be limited; tests of other things need not wait until they are.
    """
    importlib.import_module("sklearn.ensemble")
    with threadpool_limits(limits=1):
        yield


@pytest.fixture
def exact_shares():
    """Let a test have the shares and slopes of causes as users get them, in a file with `rough_shares`."""


FEW_DRAWS = 12
"""Draws of a model of the time in which the causes that are found, and their verdicts, are those of sixty."""


@pytest.fixture
def few_picks(request, monkeypatch):
    """Estimate the shares and slopes of causes by the same steps, of which each is repeated as little as can be: they
    take half of a search, and tests of which causes are found do not look at them.
    """
    if "exact_shares" not in request.fixturenames:
        monkeypatch.setattr(scope_times, "PICKS", 1)


@pytest.fixture
def rough_shares(few_picks, request, monkeypatch):
    """Do so, and draw the intervals of what causes do from few fits of the model of the time: for tests that do not look
    at these either. Slow ones draw as many as users get.
    """
    if "exact_shares" in request.fixturenames or request.node.get_closest_marker("slow"):
        return
    for module in (time_model, kernel_times, scope_times, arrows):
        monkeypatch.setattr(module, "DRAWS", FEW_DRAWS)
    monkeypatch.setattr(time_model, "AS_NEAREST", time_model.AS_NEAREST[: 1 + FEW_DRAWS])
    multiplied = np.append(0.5, (np.arange(FEW_DRAWS) + 0.5) / FEW_DRAWS)
    monkeypatch.setattr(kernel_times, "TAKEN_OUT_MULTIPLIED", multiplied)
