"""Reports of Nsight Systems and Nsight Compute to exports, by the profiler's own command line tool.

Their content is documented by nobody, so that only the tool reads it. It is run without a shell, on a path that is
absolute; what it makes is kept by the report's SHA-256, the tool's version and its arguments.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from causeway.core.errors import ExportError
from causeway.core.tables import read_json, sha256_of, write_json
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.report_kinds import REPORTS, ReportKind, tool_for

LONGEST_MESSAGE = 400
"""Characters of a tool's own error that are shown: its last lines; the whole may hold a stack of calls."""

_VERSION = re.compile(r"\b(\d{4}\.\d+(?:\.\d+)*)\b")
_WANTED = ("--include-blobs=true", "--lazy=false")
"""Of `nsys export`: payloads of NVTX ranges (message sizes of NCCL), and every table although it is empty; older
releases know neither: the tool's help names those that it takes.
"""


def convert_report(
    report: Path, folder: Path, cache: Path, *, source: str, tools: Mapping[str, str | None]
) -> dict[str, Any]:
    """Convert a report, or say why not; write `conversion.json` and, if it could be converted, the export beside it.

    Parameters
    ----------
    report : Path
        The report, absolute or relative.
    folder : Path
        Where the result goes; made if absent.
    cache : Path
        Where conversions are kept by content; the same report is not converted again.
    source : str
        The report as the sheet names it, for messages.
    tools : mapping of str to str
        See `tool_for`.

    Returns
    -------
    dict
        The document, as written: tool, version, the report's SHA-256, the name of the export, and the tool's error;
        all but the tool are null where there is no tool.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kind = REPORTS[report.suffix.lower()]
    document: dict[str, Any] = {"tool": kind.tool, "version": None, "sha256": None, "export": None, "error": None}
    if program := tool_for(report, tools):
        try:
            document["version"] = _version(program, kind, source)
            document["sha256"] = sha256_of(report)
            made = _converted(program, kind, report, document, cache, source)
            document["export"] = f"report{kind.ending}"
            _link(made, folder / document["export"])
        except ExportError as error:
            document["error"] = error.as_dict()
    write_json(document, folder / "conversion.json", schema="conversion")
    return document


def converted_export(report: Path, folder: Path) -> tuple[Path, ExportError | None]:
    """Return the file to read for a report, and the error of a tool that could not convert it.

    The file is the report itself where there was no tool, for the reader's refusal.

    Parameters
    ----------
    report : Path
    folder : Path
        As `convert_report` wrote it.
    """
    document = read_json(folder / "conversion.json")
    error = document["error"]
    path = folder / document["export"] if document["export"] else report
    return path, ExportError(**error) if error else None


def _version(program: str, kind: ReportKind, source: str) -> str:
    """Return the version that a program prints, for example 2024.6.2.25."""
    answer = _run([program, "--version"], kind, source)
    if not (match := _VERSION.search(answer.stdout)):
        raise _failed(kind, source, f"{kind.tool} --version names no version")
    return match[1]


def _converted(
    program: str, kind: ReportKind, report: Path, document: Mapping[str, Any], cache: Path, source: str
) -> Path:
    """Return the converted file in the cache, made now if it is not there."""
    arguments = _arguments(program, kind, source)
    key = hashlib.sha256("\0".join([document["sha256"], document["version"], *arguments]).encode()).hexdigest()[:32]
    made = cache / f"{key}{kind.ending}"
    if made.is_file():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    partial = cache / f"partial_{os.getpid()}_{made.name}"
    try:
        if kind.tool == "nsys":
            where = [f"--output={os.path.abspath(partial)}", os.path.abspath(report)]
            _run([program, "export", *arguments, *where], kind, source)
        else:
            with open(partial, "wb") as handle:
                _run([program, "--import", os.path.abspath(report), *arguments], kind, source, handle)
        if not partial.is_file() or not partial.stat().st_size:
            raise _failed(kind, source, f"{kind.tool} ended without an error and wrote nothing")
        partial.replace(made)
    finally:
        partial.unlink(missing_ok=True)
    return made


def _arguments(program: str, kind: ReportKind, source: str) -> list[str]:
    """Return the arguments that do not depend on the report."""
    if kind.tool == "ncu":
        return ["--csv", "--page", "raw"]
    answer = _run([program, "export", "--help"], kind, source)
    supported = [argument for argument in _WANTED if argument.partition("=")[0] in answer.stdout + answer.stderr]
    return ["--type=sqlite", "--force-overwrite=true", *supported]


def _run(
    command: list[str], kind: ReportKind, source: str, output: IO[bytes] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run a tool; its own words are the error if it fails.

    Raises
    ------
    ExportError
        If it cannot be started or ends with an error.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, check=False
        )
    except OSError as error:
        raise _failed(kind, source, f"{kind.tool} cannot be started ({error.strerror})") from None
    said, complaint = ((text or b"").decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    if done.returncode:
        words = " ".join(clean_text(_without_folders(f"{complaint}\n{said}", command)).split()) or "without a word"
        raise _failed(kind, source, f"{kind.tool} ended with code {done.returncode}: {words[-LONGEST_MESSAGE:]}")
    return subprocess.CompletedProcess(command, 0, said, complaint)


def _without_folders(text: str, command: list[str]) -> str:
    """Return what a tool printed with the paths that it was called with cut to their files' names: folders name the
    machine and its user, and the text stands on pages.
    """
    named = [part.partition("=")[2] if part.startswith("--") else part for part in command]
    paths = {spelt for path in named if os.path.isabs(path) for spelt in (path, os.path.realpath(path))}
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, os.path.basename(path))
    return text


def _failed(kind: ReportKind, source: str, problem: str) -> ExportError:
    advice = f"Use the {kind.tool} of the release that wrote it, on the PATH or under `tools` in the configuration."
    return ExportError(source, problem, f"a report that this version of {kind.tool} reads", advice)


def _link(made: Path, target: Path) -> None:
    """Give a file of the cache a second name; a copy where the file system has no links."""
    target.unlink(missing_ok=True)
    try:
        os.link(made, target)
    except OSError:
        shutil.copyfile(made, target)
