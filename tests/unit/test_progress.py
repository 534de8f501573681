"""A program may take long as long as it moves; one that is still is ended with all that it started."""

import subprocess
import sys
import time

import psutil
import pytest

from progress import run_by_progress

SAYS = "import time\nfor k in range(8):\n    print(k, flush=True)\n    time.sleep(0.25)\n"
WRITES = "import sys, time\nfor k in range(8):\n    open(sys.argv[1], 'a').write('x')\n    time.sleep(0.25)\n"
HANGS = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"


@pytest.mark.parametrize("program", [SAYS, WRITES])
def test_what_moves_may_take_longer_than_the_limit(tmp_path, program):
    began = time.monotonic()
    done = run_by_progress([sys.executable, "-c", program, tmp_path / "a"], watched=[tmp_path], still_s=1.5)
    assert done.returncode == 0
    assert time.monotonic() - began > 1.5


def test_what_is_still_is_killed_with_all_that_it_started(tmp_path):
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(subprocess.TimeoutExpired):
        run_by_progress([sys.executable, "-c", HANGS], watched=[tmp_path], still_s=1)
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]


def test_output_status_and_errors_are_returned():
    done = run_by_progress([sys.executable, "-c", "import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "a\n", "b\n")
