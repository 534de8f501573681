"""Which files are a profiler's own reports, which program converts them, and which files are forms of one recording.
Standard library only: runs at workflow start.
"""

import re
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


FORMS: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = (
    (
        ("nsys", (".sqlite", ".db", "_pqtdir", ".parquet", "_arwdir", "/", ".arrow", ".jsonl", ".json")),
        ("auto", (".nsys-rep", ".qdrep")),
        ("cupti", ("_cuda_gpu_trace.csv", "_gputrace.csv", "_cuda_kern_exec_trace.csv", "_kernexectrace.csv")),
        ("nsys", (".h5", ".hdf")),
    ),
    (("ncu", (".csv", ".txt", ".log")), ("auto", (".ncu-rep",))),
    (
        ("rocpd", ("_results.db", ".db", "/")),
        ("rocprofv3", ("_results.json", ".json", "_results.pftrace", ".pftrace", "/")),
        ("rocprofv3", ("_kernel_trace.csv", "_counter_collection.csv")),
    ),
    (("rocpd", (".rpd",)), ("rocprof", (".json",))),  # rpd2tracing.py begins its JSON as rocprof v1 does
    (("rocprof", (".csv", ".db", ".json")),),
    (("cupti", (".nvvp", ".nvprof", ".sqlite", ".db", ".csv")),),
    (("kineto", (".json",)),),
    (("table", (".parquet", ".csv", ".tsv")),),
)
"""The forms that one tool, or its exporter, gives to one recording: words of `registry.FORMATS` (`auto` for reports)
with the endings of names in lower case, `/` for a folder without one. Those that hold most stand first. A file is one
of the first forms that its format and name fit.
"""
_COMPRESSION = re.compile(r"\.(?:gz|xz|bz2|zst)$", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """Which recording a file is a form of, by its name, and which form.

    Attributes
    ----------
    recording : (int, str)
        Equal for all forms of one recording in one folder: position in `FORMS`, and the name without the ending.
    order : (bool, int, int, bool)
        The best to read comes first: whether a tool is missing that converts it; position of the word, and of the
        ending; whether it is compressed.
    """

    recording: tuple[int, str]
    order: tuple[bool, int, int, bool]


def form_of(path: Path, word: str) -> Form | None:
    """Return which form of a recording an export is, None where its name fits none.

    Parameters
    ----------
    path : Path
        A file or folder.
    word : str
        Its format, `auto` for a report.
    """
    plain = _COMPRESSION.sub("", path.name)
    kind = report_kind(path)
    lacks_tool = kind is not None and tool_for(path, {}) is None
    for number, forms in enumerate(FORMS):
        for word_index, (form_word, endings) in enumerate(forms):
            for ending_index, ending in enumerate(endings if form_word == word else ()):
                length = 0 if ending == "/" else len(ending)
                if (path.is_dir() if ending == "/" else plain.lower().endswith(ending)) and len(plain) > length:
                    stem = plain[: len(plain) - length]
                    return Form((number, stem), (lacks_tool, word_index, ending_index, plain != path.name))
    return None
