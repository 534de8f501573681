"""Memory that a search frees goes back to the system, wherever it lay."""

import subprocess
import sys

import pytest

from causeway.numeric.process import MALLOPT
from support import ROOT

FREED = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[2])
from causeway.numeric.process import share_one_heap

def resident_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

if sys.argv[1] == "shared":
    share_one_heap()
for _ in range(2):
    np.ones(4_000_000)  # 32 MB, made and freed: glibc takes the next ones from its heap
arrays = [np.ones(2_000_000) for _ in range(4)]  # 16 MB each
before = resident_mb()
arrays[0] = arrays[1] = arrays[2] = None  # the last one lies behind them
print(before - resident_mb())
"""


@pytest.mark.skipif(MALLOPT is None, reason="without glibc nothing is set")
@pytest.mark.parametrize(("how", "least", "most"), [("shared", 44, 52), ("as it is", -1, 4)])
def test_large_arrays_leave_no_gaps_in_the_heap(how, least, most):
    """Three arrays of 16 million bytes, 45.8 MB; without the setting they stay with the process."""
    done = subprocess.run(
        [sys.executable, "-c", FREED, how, str(ROOT / "scripts")], capture_output=True, text=True, check=True
    )
    assert least < float(done.stdout) < most
