import pytest
from cluster import Cluster


@pytest.fixture(scope="session")
def cluster():
    """Return a running cluster of three nodes with two CPUs each, or skip."""
    reason = Cluster.lacks()
    if reason:
        pytest.skip(reason)
    with Cluster(nodes=3, cpus=2) as running:
        yield running
