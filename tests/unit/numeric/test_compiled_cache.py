"""Jobs that start at once on a machine where nothing was compiled yet: each compiles or loads, and none disturbs
another.
"""

import importlib
import os
import subprocess
import sys
import time

import pytest

import causeway
from causeway.numeric.compiled import CompiledFunction
from support import COMPILE_ALL, ROOT

COMPILED = "from causeway.numeric import compiled as functions\nfunctions.FEW_ROWS = 0  # few rows are compiled, too\n"
PROGRAM = f"""
{COMPILED}
import sys, time
import numpy as np
start = float(sys.argv[1])
import numba
time.sleep(max(0.0, start - time.time()))  # all begin to compile at the same moment
from causeway.events.few_values import _code
from causeway.readers.sink.compiled_loops import latest_open
values = np.arange(50_000) % 777
known, codes = np.empty(1000, np.int64), np.empty(50_000, np.int32)
found = _code(values, known, codes, np.zeros(4096, np.int32))
held = np.empty(2, np.int64)
latest_open(np.array([0, 2]), np.array([9, 4]), np.array([1, 3]), np.arange(2), held)
print(found, int((codes == values).all()), *held)
"""


def run(cache, how_many, start=0.0):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"), NUMBA_CACHE_DIR=str(cache))
    line = [sys.executable, "-c", PROGRAM, str(start)]
    jobs = [
        subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(how_many)
    ]
    return [(*job.communicate(timeout=300), job.returncode) for job in jobs]


@pytest.mark.slow
def test_jobs_that_compile_at_once_do_no_harm(tmp_path):
    begun = run(tmp_path, 4, time.time() + 2)
    assert begun == [("777 1 0 1\n", "", 0)] * 4
    kept = {file.name for file in tmp_path.rglob("*.nb*")}
    assert len([name for name in kept if name.endswith(".nbi")]) == 2  # _code, latest_open
    assert run(tmp_path, 1) == begun[:1]
    assert {file.name for file in tmp_path.rglob("*.nb*")} == kept  # loaded, not compiled again
    assert not [file for file in tmp_path.rglob("*") if "tmp" in file.name]


def test_every_function_compiles():
    """Tests and small exports run many of them as they are written, which shows nothing of what numba refuses."""
    package = ROOT / "scripts" / "causeway"
    paths = [path for path in package.rglob("*.py") if "@compiled" in path.read_text(encoding="utf-8")]
    assert len(paths) > 20
    for path in paths:
        parts = path.relative_to(package).with_suffix("").parts
        module = importlib.import_module(".".join((causeway.__name__, *parts)))
        for function in vars(module).values():
            if isinstance(function, CompiledFunction):
                function.dispatcher()


NOWHERE = (
    """
import os, sys
import numba.core.caching as caching

def only_among_temporary_files(locator, made=caching._CacheLocator.ensure_cache_path):
    if not locator.get_cache_path().startswith(sys.argv[2]):
        raise PermissionError(13, "Permission denied")
    made(locator)

caching._CacheLocator.ensure_cache_path = only_among_temporary_files
os.access = lambda *_: False
"""
    + PROGRAM
)
"""As where neither the installation nor the home can be written: numba finds no place to keep code."""


@pytest.mark.slow
def test_code_is_kept_among_temporary_files_where_nothing_else_can_be_written(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(ROOT / "scripts"), "TMPDIR": str(tmp_path), "HOME": "/nonexistent"}
    environment.pop("XDG_CACHE_HOME", None)
    line = [sys.executable, "-c", NOWHERE, "0", str(tmp_path)]
    for _ in range(2):
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert (done.stdout, done.returncode) == ("777 1 0 1\n", 0), done.stderr
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len({file.name for file in folder.rglob("*.nbi")}) == 2
    folder.chmod(0o777)  # others could write code there: it is not run
    subprocess.run(line, env=environment, check=True, timeout=300)
    assert len(list(tmp_path.iterdir())) == 2


STARTED = f"""
import sys
sys.path.insert(0, sys.argv[1])
import causeway.variability.bin_launches

print("numba" in sys.modules)
{COMPILE_ALL}
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
    *loaded, product, determinant = done.stdout.splitlines()
    assert loaded == ["False", "False"]
    assert product == "[[19.0, 22.0], [43.0, 50.0]]"
    assert abs(float(determinant) + 2) < 1e-12


MODULE = '''
from typing import Annotated, NamedTuple

import numpy as np

from causeway.numeric.compiled import I8, Record, compiled, int64


class {record}(NamedTuple):
    """Values."""

    value: Annotated[np.ndarray, I8]
    factor: Annotated[int, int64]


RECORD = Record({record})


@compiled(int64(RECORD))
def total(record):
    return record.factor * record.value.sum()
'''
TOTAL = f"{COMPILED}import numpy as np, records\nprint(records.total(records.RECORD.of(value=np.arange(5), factor=3)))"


def test_code_that_was_kept_for_a_record_of_an_older_version_is_compiled_anew(tmp_path):
    cache = tmp_path / "cache"
    environment = dict(os.environ, PYTHONPATH=f"{ROOT / 'scripts'}:{tmp_path}", NUMBA_CACHE_DIR=str(cache))
    for record in ("Older", "Newer", "Newer"):
        (tmp_path / "records.py").write_text(MODULE.format(record=record), encoding="utf-8")
        line = [sys.executable, "-B", "-c", TOTAL]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert (done.stdout, done.returncode) == ("30\n", 0), done.stderr
    assert len(list(cache.rglob("*.nbi"))) == 1, "in its place"
