"""Fixtures of the tests of causes."""

import importlib

import pytest
from threadpoolctl import threadpool_limits

from causeway.causal.effects import scope_times


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


@pytest.fixture
def rough_shares(request, monkeypatch):
    """Estimate the shares and slopes of causes by the same steps, of which each is repeated as little as can be: they
    take half of a search, and tests of which causes are found do not look at them.
    """
    if "exact_shares" in request.fixturenames:
        return
    monkeypatch.setattr(scope_times, "PICKS", 1)
