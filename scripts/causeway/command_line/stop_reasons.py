"""Why Snakemake stopped, from the lines that it prints: the workflow's own sentences, without the calls around them."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from causeway.core.errors import CausewayError

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
    known = [sentence for sentence in said if sentence is not None and not sentence.startswith(INTERNAL)]
    return list(dict.fromkeys(known)) if len(known) == len(said) else []


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
