import json
import os
import sys
from pathlib import Path

import pytest
from ranks_of_many_sizes import DIVISIONS

from progress import run_by_progress
from variability_tables import launcher


@pytest.fixture(autouse=True)
def mpi():
    """Skip where no MPI launcher is at hand."""
    if launcher() is None:
        pytest.skip("no mpiexec beside this Python or on PATH: install mpich from the lock")


@pytest.fixture(scope="session", params=[3, pytest.param(7, marks=pytest.mark.slow)], ids="up to {} ranks".format)
def most_ranks(request):
    """Return the most ranks on which something is made: up to seven where time does not matter."""
    return request.param


@pytest.fixture(scope="session")
def sizes(most_ranks):
    """Return the numbers of ranks on which something is made, in order."""
    return sorted(size for division in DIVISIONS[most_ranks] for size in division)


@pytest.fixture(scope="session")
def on_ranks(most_ranks):
    """Return a function that makes calls (`ranks_of_many_sizes.py`) on every number of ranks, in one session."""

    def make(folder, calls):
        (folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
        program = Path(__file__).with_name("ranks_of_many_sizes.py")
        line = [launcher(), "-n", most_ranks, sys.executable, "-m", "mpi4py", program, folder / "calls.json"]
        done = run_by_progress(line, [folder], env=dict(os.environ, OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1"))
        assert done.returncode == 0, done.stderr

    return make
