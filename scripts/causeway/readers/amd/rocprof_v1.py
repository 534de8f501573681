"""rocprof v1: results.csv, its counter passes, results.db (table KERN), or a folder of them."""

from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.amd.dispatch_tables import KERN, PassReader
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import header_of
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.sink.sink import Sink

MARKS = {"Index", "KernelName"}
SUMMARY = {"Name", "Calls", "TotalDurationNs"}


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has rocprof's columns or table."""
    return bool(_files(path)) if path.is_dir() else _is_mine(path) or set(header_of(path)) >= SUMMARY


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or a folder: its timing run and its counter passes.

    Raises
    ------
    ExportError
        If nothing was measured, or a file is cut; what stands before the cut is kept.
    """
    if path.is_file() and not _is_mine(path):
        raise ExportError(
            options.source,
            "it is a summary (columns Name, Calls, TotalDurationNs): one row per kernel or call, none per launch",
            "one row for each launch",
            "Name the trace that lies beside it: results.csv of rocprof, *_kernel_trace.csv of rocprofv3.",
        )
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
