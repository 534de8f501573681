"""What a run of Snakemake is doing, from the lines that it prints, as one line of the terminal; and why it stopped, in
the workflow's own sentences, without the calls around them.
"""

import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TextIO

from causeway.command_line.output import remark
from causeway.core.errors import CausewayError

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


_REFUSED = re.compile(r'^WorkflowError in file ".*", line \d+:$')
"""A configuration or a sheet that the rule files refuse, before any step runs."""
_REFUSED_INPUT = ("Error:", "  WorkflowError:")
"""What follows the head of a configuration that a step's input refuses: `InputFunctionException in rule ...`."""
_CALL = re.compile(r'^  File ".*", line \d+, in ')
_FAILED = re.compile(r"^Error in (?:local)?rule (\w+)(?:, jobid: .*)?:$")
_LOG = re.compile(r"^Logfile .+:$")
_RULER = re.compile(r"^={10,}$")
_SENTENCE = re.compile(r"^\d\d:\d\d:\d\d ERROR (.+)$")
_NO_STEP = re.compile(r"^No rule to produce (\S+) \(")
INTERNAL = "internal error: "
"""How the sentence begins of an error that no code expected: all that is known of it belongs in a report."""


class NoStepError(CausewayError):
    """A file was asked for that no step of the workflow makes."""


def asked_for_no_step(lines: Sequence[str]) -> bool:
    """Return whether Snakemake stopped because no step makes a file; `lines` are the end of its output."""
    return any(_NO_STEP.match(line) for line in lines)


def stop_reasons(lines: Sequence[str]) -> list[str]:
    """Return the sentences that say why Snakemake stopped, each once; none where they do not say it all.

    Parameters
    ----------
    lines : sequence of str
        The end of its output, without line ends.

    Returns
    -------
    list of str
        What the rule files refuse; the file that no rule makes; else the last sentence of the log of each step that
        failed. Empty if a step failed whose log does not end with a sentence, or with that of an internal error.
    """
    for index, line in enumerate(lines):
        if _REFUSED.match(line):
            return [" ".join(_until_calls(lines[index + 1 :]))]
        if line.startswith("InputFunctionException in rule ") and tuple(lines[index + 1 : index + 3]) == _REFUSED_INPUT:
            return [" ".join(takewhile(lambda said: said != "Wildcards:", map(str.strip, lines[index + 3 :])))]
        if match := _NO_STEP.match(line):
            return [f"no step of the workflow makes {match[1]}"]
    starts = [index for index, line in enumerate(lines) if _FAILED.match(line)]
    ends = [*starts[1:], len(lines)] if starts else []
    said = [_last_sentence(lines[begin:end]) for begin, end in zip(starts, ends, strict=True)]
    sentences = [sentence for sentence in said if sentence is not None and not sentence.startswith(INTERNAL)]
    return list(dict.fromkeys(sentences)) if len(sentences) == len(said) else []


def _until_calls(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines up to the first that names a call."""
    for line in lines:
        if _CALL.match(line):
            return
        yield line.strip()


def _last_sentence(lines: Sequence[str]) -> str | None:
    """Return the sentence with which the log in a failed step's lines ends; None if it ends otherwise."""
    start = next((index for index, line in enumerate(lines) if _LOG.match(line)), None)
    if start is None or not _RULER.match("".join(lines[start + 1 : start + 2])):
        return None
    log: list[str] = []
    for line in lines[start + 2 :]:
        if _RULER.match(line):
            break
        log += [line] if line.strip() else []
    match = _SENTENCE.match(log[-1]) if log else None
    return match[1] if match else None
