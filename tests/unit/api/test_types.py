"""Declared types are consistent: everywhere as mypy checks by default; of the public modules, the command, the ground
floor, the readers' sink and the findings as it checks in its strict mode.
"""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from support import ROOT

SCRIPTS = ROOT / "scripts"
SINK = SCRIPTS / "causeway" / "readers" / "sink"
STRICT = ("__init__.py", "api", "command_line", "findings", "readers/report_kinds.py", "readers/report_conversion.py")
COMPILED = ("numeric", "readers/sink/compiled_loops.py")
OF_ARRAYS = ("core", *(f"readers/sink/{path.name}" for path in SINK.glob("*.py") if path.stem != "compiled_loops"))
OPTIONS = ("--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary")
UNTYPED = ("--no-warn-return-any", "--allow-subclassing-any")
"""What NumPy computes and pyarrow gives is of no declared type."""
IN_DECORATORS = ("--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls", "--no-check-untyped-defs")
"""The types of compiled functions stand in their decorators, and numba checks them."""


def check(*arguments, folder):
    command = [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is absent; it comes with requirements-types.lock")
@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--explicit-package-bases"], ["."]),
        (["--strict"], [f"causeway/{name}" for name in STRICT]),
        (["--strict", *UNTYPED], [f"causeway/{name}" for name in OF_ARRAYS]),
        (["--strict", *UNTYPED, *IN_DECORATORS], [f"causeway/{name}" for name in COMPILED]),
    ],
    ids=["everywhere", "strict", "of_arrays", "compiled"],
)
def test_the_types_are_consistent(options, names, tmp_path):
    done = check(*options, *names, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is absent; it comes with requirements-types.lock")
def test_an_error_is_seen(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import causeway\n\nrows: str = causeway.open('results').findings\n")
    done = check("--strict", str(wrong), folder=tmp_path)
    assert "Incompatible types in assignment" in done.stdout
