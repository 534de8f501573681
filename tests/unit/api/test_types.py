"""Declared types are consistent: of the public modules and the command as mypy checks in its strict mode, of the ground
floor and further packages as it checks by default.
"""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from support import ROOT

CHECKED = ("__init__.py", "api", "command_line", "readers/report_kinds.py", "readers/report_conversion.py")
CONSISTENT = (
    "core",
    "numeric",
    "events",
    "inputs",
    "telemetry",
    "variability",
    "levels",
    "simulate",
    "waiting",
    "fleet",
    "findings",
    "efficiency",
    "comparison",
)
OPTIONS = ("--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary")


def check(*arguments, folder):
    command = [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is absent; it comes with requirements-types.lock")
def test_the_types_are_consistent_and_an_error_is_seen(tmp_path):
    done = check("--strict", *(f"causeway/{name}" for name in CHECKED), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    done = check(*(f"causeway/{name}" for name in CONSISTENT), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import causeway\n\nrows: str = causeway.open('results').findings\n")
    done = check("--strict", str(wrong), folder=tmp_path)
    assert "Incompatible types in assignment" in done.stdout
