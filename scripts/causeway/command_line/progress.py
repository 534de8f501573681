"""What a run of Snakemake is doing, from the lines that it prints, as one line of the terminal."""

import re
import shutil
import sys
import time
from typing import TextIO

from causeway.command_line.output import remark

_DONE = re.compile(r"^(\d+) of (\d+) steps \(\d+%\) done")
_RULE = re.compile(r"^(?:local)?rule (\w+):|^\[.*\] (?:Job \d+: )?(?:local)?rule (\w+)")
_WAITS_FOR_EVER = re.compile(r"^Slurm job \S+ \(.*\) will not start: ")
"""What rules/functions/scheduling.smk says of a job that Slurm keeps pending: shown, as nothing else happens."""
_PLANNED = "Job stats:"
"""What Snakemake prints once it knows its steps, before it starts the first."""
MOST_KEPT_LINES = 200
"""Last lines of Snakemake's output that are shown where a run fails: the end of a failed job's log is among them."""


def seconds_in_words(seconds: float) -> str:
    """Return a time as minutes and seconds, or hours and minutes, cut to whole ones."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    )


class WorkflowProgress:
    """Follows Snakemake's output and shows steps done, time left, and the rule that was started last.

    On a terminal one line is written over itself; elsewhere a line is written whenever a step ends. The time left
    supposes that the steps to come take as long as those done, on average; what was planned before them is no step.

    Parameters
    ----------
    stream : text stream, optional
        Where the line goes; standard error if None.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.on_terminal = self.stream is not None and self.stream.isatty()
        self.began = time.monotonic()
        self.done = 0
        self.total = 0
        self.rule = ""
        self.kept: list[str] = []

    def follow(self, line: str) -> bool:
        """Take one line of Snakemake's output; return whether it says that a step is done."""
        self.kept = [*self.kept[1 - MOST_KEPT_LINES :], line]
        if match := _RULE.match(line):
            self.rule = match[1] or match[2]
            if self.on_terminal:
                self._show()
        elif match := _DONE.match(line):
            self.done = int(match[1])
            self.total = int(match[2])
            self._show()
            return True
        elif line == _PLANNED:
            self.began = time.monotonic()
        elif _WAITS_FOR_EVER.match(line):
            self.end()
            remark(f"{line}\n", self.stream)
        return False

    def text(self) -> str:
        """Return the line."""
        elapsed = time.monotonic() - self.began
        if not self.total:
            return f"planning, then {self.rule}" if self.rule else "planning"
        left = elapsed / max(self.done, 1) * (self.total - self.done)
        words = [f"{self.done} of {self.total} steps", f"about {seconds_in_words(left)} left"]
        return ", ".join([*words, *([self.rule] if self.rule else [])])

    def _show(self) -> None:
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            remark(f"\r\x1b[K{self.text()[:width]}", self.stream)
        else:
            remark(f"{self.text()}\n", self.stream)

    def end(self) -> None:
        """Remove the line from a terminal."""
        if self.on_terminal:
            remark("\r\x1b[K", self.stream)
