import pytest

from variability_tables import launcher


@pytest.fixture(autouse=True)
def mpi():
    """Skip where no MPI launcher is at hand."""
    if launcher() is None:
        pytest.skip("no mpiexec beside this Python or on PATH: install mpich from the lock")
