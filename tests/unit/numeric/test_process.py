import subprocess
import sys

import pytest

MEASURE = """
import sys
import numpy as np
from causeway.numeric.process import keep_freed_memory
def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1])
if sys.argv[1] == "kept":
    keep_freed_memory()
large = np.ones(8_000_000)
held = resident()
del large
print(held - resident())
"""
PAGES = 8_000_000 * 8 // 4096


@pytest.mark.skipif(sys.platform != "linux", reason="the parameters are those of glibc")
def test_pages_that_were_freed_are_kept():
    given_back = {}
    for how in ("kept", "returned"):
        command = [sys.executable, "-c", MEASURE, how]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
        )
        given_back[how] = int(done.stdout)
    assert given_back["kept"] < PAGES / 2 < given_back["returned"]
