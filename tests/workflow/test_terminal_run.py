"""`causeway run` on a real export, in a real terminal: progress, Ctrl-C while jobs run, and the same command again."""

import os
import re
import sys

import pytest

from support import OF_THE_CLONE, ROOT
from terminal import in_terminal

EXPORT = OF_THE_CLONE / "ncu_csv" / "operators-a100" / "nsight_virtual.csv"
STEPS = re.compile(r"(\d+) of (\d+) steps")


def run(folder, stop_at=None):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT / "scripts"), "COLUMNS": "100"}
    command = [sys.executable, "-m", "causeway.command_line", "run", str(EXPORT), "--out", str(folder / "out")]
    return in_terminal([*command, "--cores", "2"], folder, environment, stop_at)


@pytest.mark.slow  # in every run of the tests a small workflow is interrupted: tests/unit/command_line/test_terminal.py
def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    shown, code = run(tmp_path, stop_at=r"(?<!\d)[5-9] of \d+ steps")
    assert code == 130, shown
    assert "the same command goes on from there" in shown
    assert "Traceback" not in shown
    done, of_all = map(int, STEPS.findall(shown)[-1])
    assert 5 <= done < of_all
    results = tmp_path / "out" / "results"
    assert not (results / "overview.html").exists()
    made = {path: path.stat().st_mtime_ns for path in results.rglob("tables/*/*.parquet")}
    assert made
    shown, code = run(tmp_path)
    assert code == 0, shown
    assert "Traceback" not in shown
    assert int(STEPS.search(shown)[2]) <= of_all - done, "what was finished is not done again"
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert (results / "overview.html").is_file()
    assert (results / "report.zip").is_file()
