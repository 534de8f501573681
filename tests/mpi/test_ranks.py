"""One clear sentence, and an end of all ranks, when something is wrong."""

import os
import re
import sys

import numpy as np
import pytest

from progress import run_by_progress
from support import ROOT
from variability_tables import command, launcher, run_ranks, write_clocks, write_export


def program_lines(stderr):
    """Return the lines of standard error but those of Open MPI's launcher: its notices stand between lines of hyphens."""
    return re.sub(r"^-{20,}\n.*?^-{20,}\n", "", stderr, flags=re.M | re.S).splitlines()


def test_an_error_on_one_rank_ends_all_with_one_sentence(tmp_path):
    n = 400
    durations = np.full(n, 5)
    durations[390] = -1
    launches = {"start_ns": np.arange(n) * 1000, "duration_ns": durations, "configuration": [0] * n, "rank": [0] * n}
    write_export(tmp_path / "tables" / "a", launches, row_group=20)
    write_clocks(tmp_path / "clocks.json", {"a": 0})
    for ranks in (1, 4):
        done = run_ranks(
            tmp_path, ["kernel_variability"], ["a"], ranks, ["--width-us", "10", "--log", tmp_path / "log"]
        )
        assert done.returncode == 1
        assert "row 390 has duration -1 ns" in done.stderr
        assert len(program_lines(done.stderr)) == 1
        assert "row 390 has duration -1 ns" in (tmp_path / "log").read_text()
        assert not (tmp_path / f"out{ranks}").exists()


def test_a_wrong_number_of_ranks_is_refused_with_what_to_set(tmp_path):
    done = run_ranks(tmp_path, ["kernel_variability"], ["a"], 2, asked=3)
    assert done.returncode == 1
    assert "3 ranks were asked for, but this program was started as one of 2" in done.stderr
    assert "srun --mpi=pmi2" in done.stderr
    assert len(program_lines(done.stderr)) <= 2  # the log goes to standard error, too


def test_a_launcher_of_another_library_starts_single_ranks_and_each_stops(tmp_path):
    """Such a launcher starts N programs that each see one rank; here one of them, without any launcher."""
    line = [
        sys.executable,
        "-m",
        "mpi4py",
        ROOT / "scripts" / "variability" / "bin_launches.py",
        *command(tmp_path, ["y"], ["a"], ranks=2),
    ]
    done = run_by_progress(line)
    assert done.returncode == 1
    assert "2 ranks were asked for, but this program was started as one of 1" in done.stderr
    assert "Abort" not in done.stderr


def test_a_crash_on_one_rank_ends_all(tmp_path):
    """An error that the other ranks cannot know of: they wait in a reduction, and must not wait for ever."""
    script = tmp_path / "crash.py"
    script.write_text(
        "from causeway.numeric.mpi import ending_together\n"
        "import numpy as np\n"
        "with ending_together(3, None) as ranks:\n"
        "    if ranks.rank == 1:\n"
        "        raise ValueError('lost')\n"
        "    ranks.total(np.zeros(1, np.int64))\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"))
    line = [launcher(), "-n", "3", sys.executable, "-m", "mpi4py", str(script)]
    done = run_by_progress(line, env=environment)
    assert done.returncode != 0
    assert "ValueError: lost" in done.stderr


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "size = int(open('/proc/self/statm').read().split()[0]) * 4096 + 50_000_000\n"
            "        resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
            "        np.ones(100_000_000)\n",
            "too little memory",
        ),
        ("os.kill(os.getpid(), signal.SIGKILL)\n", ""),
    ],
    ids=["out of memory", "killed"],
)
def test_one_rank_that_runs_out_of_memory_or_is_killed_ends_all(tmp_path, fault, said):
    script = tmp_path / "fault.py"
    script.write_text(
        "from causeway.core.files.whole_files import write_whole\n"
        "from causeway.numeric.mpi import ending_together\n"
        "import os, resource, signal, sys\n"
        "import numpy as np\n"
        "with ending_together(3, None) as ranks:\n"
        "    if ranks.rank == 1:\n"
        f"        {fault}"
        "    ranks.total(np.zeros(1, np.int64))\n"
        "    write_whole(sys.argv[1], b'whole')\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"), OMP_NUM_THREADS="1")
    line = [launcher(), "-n", "3", sys.executable, "-m", "mpi4py", str(script), str(tmp_path / "out")]
    done = run_by_progress(line, env=environment)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "out").exists()
