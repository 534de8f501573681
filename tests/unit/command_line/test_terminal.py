"""A run seen through a real terminal: progress on one line, an interrupt that leaves no process, and going on."""

import os
import sys
import time

from support import ROOT
from terminal import in_terminal

WORKFLOW = """
rule all:
    input: "b.txt"

rule first:
    output: "a.txt"
    shell: "touch {output}"

rule second:
    input: "a.txt"
    output: "b.txt"
    shell: "sleep $(cat seconds) && touch {output}"
"""
PROGRAM = """
import sys
from causeway.command_line.run_workflow import run_workflow
sys.exit(run_workflow([sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "host"]))
"""


def run_here(folder, stop_at=None):
    """Run the program in a terminal; return what was shown, and the exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "COLUMNS": "100"}
    return in_terminal([sys.executable, "-c", PROGRAM], folder, environment, stop_at, still_s=60)


def test_progress_interrupt_and_going_on(tmp_path):
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "seconds").write_text("47")
    began = time.monotonic()
    shown, code = run_here(tmp_path, stop_at=r"1 of 3 steps, about .*second")
    assert code == 130, shown
    assert time.monotonic() - began < 40, "the job that sleeps was not ended"
    assert "\r\x1b[K1 of 3 steps, about" in shown
    assert "the same command goes on from there" in shown
    assert "Traceback" not in shown
    assert (tmp_path / "a.txt").exists()
    first = (tmp_path / "a.txt").stat().st_mtime_ns
    (tmp_path / "seconds").write_text("0")
    shown, code = run_here(tmp_path)
    assert code == 0, shown
    assert "2 of 2 steps" in shown, "the first step is not done again, and no lock is left"
    assert (tmp_path / "a.txt").stat().st_mtime_ns == first
    assert (tmp_path / "b.txt").exists()
