import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from ranks_in_threads import on_threads
from ranks_of_many_sizes import DIVISIONS, make

from causeway.levels.pyramid import build as building
from progress import run_by_progress
from variability_tables import launcher


@pytest.fixture(autouse=True)
def mpi():
    """Skip where no MPI launcher is at hand."""
    if launcher() is None:
        pytest.skip("no mpiexec beside this Python or on PATH: install mpich from the lock")


@pytest.fixture(scope="session", params=[3, pytest.param(7, marks=pytest.mark.slow)], ids="up to {} ranks".format)
def most_ranks(request):
    """Return the most ranks on which something is made: three threads of this process in every run of the tests, seven
    processes under MPI in the slow one and on a pull request.
    """
    return request.param


@pytest.fixture(scope="session")
def sizes(most_ranks):
    """Return the numbers of ranks on which something is made, in order."""
    return sorted(size for division in DIVISIONS[most_ranks] for size in division)


@pytest.fixture(scope="session")
def on_ranks(most_ranks):
    """Return a function that makes calls (`ranks_of_many_sizes.py`) on every number of ranks."""

    def in_threads(_, calls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "LEAST_BYTES", building.LEAST_BYTES)  # a call may set it
            for size in range(1, most_ranks + 1):
                for call in calls:
                    (Path(call["out"]) / str(size)).mkdir(parents=True, exist_ok=True)
                    on_threads(size, partial(make, call))

    def in_processes(folder, calls):
        (folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
        program = Path(__file__).with_name("ranks_of_many_sizes.py")
        line = [launcher(), "-n", most_ranks, sys.executable, "-m", "mpi4py", program, folder / "calls.json"]
        done = run_by_progress(line, [folder], env=dict(os.environ, OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1"))
        assert done.returncode == 0, done.stderr

    return in_threads if most_ranks == 3 else in_processes
