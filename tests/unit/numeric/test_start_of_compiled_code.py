"""What a process loads for compiled code."""

import subprocess
import sys

from support import ROOT

STARTED = """
import sys
sys.path.insert(0, sys.argv[1])
import causeway.variability.bin_launches

print("scipy.linalg" in sys.modules)
import numba
import numpy as np
import scipy.linalg

first = np.array([[1.0, 2.0], [3.0, 4.0]])
print(numba.njit(lambda a, b: a @ b)(first, np.array([[5.0, 6.0], [7.0, 8.0]])).tolist())
print(float(scipy.linalg.det(first)))
"""


def test_compiled_code_starts_without_scipys_linear_algebra_which_still_works_for_who_asks():
    """Nineteen and twenty-two are 1 * 5 + 2 * 7 and 1 * 6 + 2 * 8; the determinant is 1 * 4 - 2 * 3."""
    line = [sys.executable, "-c", STARTED, str(ROOT / "scripts")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    loaded, product, determinant = done.stdout.splitlines()
    assert loaded == "False"
    assert product == "[[19.0, 22.0], [43.0, 50.0]]"
    assert abs(float(determinant) + 2) < 1e-12
