"""rocprof v1: results.csv, its counter passes, results.db (table KERN), or a folder of them."""

import re
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.amd.dispatch_tables import PassReader
from causeway.readers.amd.kern_table import KERN
from causeway.readers.common.files import first_bytes
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import header_of
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.sink.sink import Sink

MARKS = {"Index", "KernelName"}
SUMMARY = {"Name", "Calls", "TotalDurationNs"}
V2_TRACE = {"Domain", "Correlation_ID"}
"""Columns of rocprofv2's traces of calls and of operations; rocprofv3 writes Correlation_Id."""
_FOR_A_VIEWER = re.compile(rb'\s*\{\s*"traceEvents"')
ADVICE = (
    "Name results.csv, which `rocprof --timestamp on` writes, or profile with"
    " `rocprofv3 --kernel-trace --memory-copy-trace --hip-trace`."
)


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has rocprof's columns or table; or is one of those beside them that
    have none.
    """
    return bool(_files(path)) if path.is_dir() else _is_mine(path) or _beside(path) is not None


def _beside(path: Path) -> tuple[str, str] | None:
    """Return what a file is that the profiler writes beside its tables of launches, and what to do; None for others."""
    header = set(header_of(path))
    if header >= SUMMARY:
        problem = "it is a summary (columns Name, Calls, TotalDurationNs): one row per kernel or call, none per launch"
        advice = "Name the trace that lies beside it: results.csv of rocprof, *_kernel_trace.csv of rocprofv3."
        return problem, advice
    if header >= V2_TRACE:
        return "it is a trace of calls or operations of rocprofv2, which is not read", ADVICE
    if path.is_file() and _FOR_A_VIEWER.match(first_bytes(path)):
        return "it is the trace for a viewer that rocprof --hip-trace or --hsa-trace writes, which is not read", ADVICE
    return None


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or a folder: its timing run and its counter passes.

    Raises
    ------
    ExportError
        If nothing was measured, or a file is cut; what stands before the cut is kept.
    """
    if path.is_file() and not _is_mine(path) and (beside := _beside(path)):
        problem, advice = beside
        raise ExportError(options.source, problem, "one row for each launch", advice)
    sink.format_version = "rocprof v1"
    PassReader("rocprof", sink, options).read(_files(path) if path.is_dir() else [(path, path.name)])


def _is_mine(path: Path) -> bool:
    return KERN in sqlite_tables(path) if is_database(path) else set(header_of(path)) >= MARKS


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Return the folder's files, results.csv first; the database, which holds the same rows, only if there is no
    such file.
    """
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix.lower() in (".csv", ".db") and _is_mine(path)
    ]
    files.sort(key=lambda path: (path.suffix.lower() == ".db", path.name != "results.csv"))
    if any(path.name == "results.csv" for path in files):
        files = [path for path in files if path.name != "results.db"]
    return [(path, path.name) for path in files]
