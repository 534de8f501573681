import subprocess
import sys

import pytest

MEASURE = """
import resource, sys
import numpy as np
from causeway.numeric.process import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    np.ones(3_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parameters are those of glibc")
def test_pages_that_were_freed_are_used_again():
    pages = {}
    for how in ("kept", "returned"):
        command = [sys.executable, "-c", MEASURE, how]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
        )
        pages[how] = int(done.stdout)
    assert pages["kept"] < pages["returned"]
