"""Fixtures of the tests of causes."""

import importlib

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Run linear algebra and trees on one thread, as the programs do: between two processes of tests, the threads of
    OpenMP mostly wait for one another, and a tree takes ten times as long.

    Libraries must be loaded to be limited; tests of other things need not wait until they are.
    """
    importlib.import_module("sklearn.ensemble")
    with threadpool_limits(limits=1):
        yield
