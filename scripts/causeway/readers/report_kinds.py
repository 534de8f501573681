"""Which files are a profiler's own reports, and which program converts them. Standard library only: runs at workflow
start.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReportKind:
    """What one kind of report is and becomes.

    Attributes
    ----------
    tool : str
        Name of the program, and key under `tools` in the configuration.
    format : str
        Word of `registry.FORMATS` of what the tool makes.
    ending : str
        Of the file that the tool makes.
    """

    tool: str
    format: str
    ending: str


REPORTS = {
    ".nsys-rep": ReportKind("nsys", "nsys", ".sqlite"),
    ".qdrep": ReportKind("nsys", "nsys", ".sqlite"),
    ".ncu-rep": ReportKind("ncu", "ncu", ".csv"),
}
"""Kinds of reports by the ending of their name, in lower case."""


def report_kind(path: str | Path) -> ReportKind | None:
    """Return what kind of report a file's name says that it is, None for every other file."""
    return REPORTS.get(Path(path).suffix.lower())


def tool_for(path: str | Path, tools: Mapping[str, str | None]) -> str | None:
    """Return the program that converts a report: that of the configuration, else that on the PATH, else None.

    Parameters
    ----------
    path : str or Path
        The report.
    tools : mapping of str to str
        Programs by name, `nsys` and `ncu`; a missing or null one is looked for.
    """
    kind = report_kind(path)
    return (tools.get(kind.tool) or shutil.which(kind.tool)) if kind else None
