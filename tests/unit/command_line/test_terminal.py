"""A run seen through a real terminal: progress on one line, an interrupt that leaves no process, and going on."""

import os
import pty
import re
import select
import signal
import sys
import time

from support import ROOT

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


def in_terminal(folder, stop_at=None):
    """Run the program in a terminal, press Ctrl-C when `stop_at` was shown, as a user would again after ten seconds (a
    busy machine may be starting a job just then); return what was shown, and the exit code.
    """
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job, as the tests may be, ignores it
        os.chdir(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "COLUMNS": "100"}
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM], environment)  # noqa: S606 - no shell
    shown = ""
    pressed = None
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if pressed and time.monotonic() > pressed + 10:
            pressed = time.monotonic()
            os.write(terminal, b"\x03")
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part.decode("utf-8", "replace")
        if stop_at and not pressed and re.search(stop_at, shown):
            time.sleep(0.5)
            pressed = time.monotonic()
            os.write(terminal, b"\x03")
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_progress_interrupt_and_going_on(tmp_path):
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "seconds").write_text("47")
    began = time.monotonic()
    shown, code = in_terminal(tmp_path, stop_at=r"1 of 3 steps, about .*second")
    assert code == 130, shown
    assert time.monotonic() - began < 40, "the job that sleeps was not ended"
    assert "\r\x1b[K1 of 3 steps, about" in shown
    assert "the same command goes on from there" in shown
    assert "Traceback" not in shown
    assert (tmp_path / "a.txt").exists()
    first = (tmp_path / "a.txt").stat().st_mtime_ns
    (tmp_path / "seconds").write_text("0")
    shown, code = in_terminal(tmp_path)
    assert code == 0, shown
    assert "2 of 2 steps" in shown, "the first step is not done again, and no lock is left"
    assert (tmp_path / "a.txt").stat().st_mtime_ns == first
    assert (tmp_path / "b.txt").exists()
