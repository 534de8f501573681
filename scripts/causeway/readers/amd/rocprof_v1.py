"""rocprof v1: results.csv, counter passes, results.db (table KERN), or a folder of them; results.json, for viewers."""

import re
from pathlib import Path

import msgspec
import numpy as np

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.amd.dispatch_tables import PassReader
from causeway.readers.amd.kern_table import KERN
from causeway.readers.amd.trace_events import AmdReader
from causeway.readers.common.constants import NULL, TIMES
from causeway.readers.common.files import first_bytes
from causeway.readers.common.numbers import integer
from causeway.readers.common.options import Options
from causeway.readers.containers.chrome_json import TraceText
from causeway.readers.containers.csv_batches import header_of
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.sink.sink import Sink

MARKS = {"Index", "KernelName"}
SUMMARY = {"Name", "Calls", "TotalDurationNs"}
V2_TRACE = {"Domain", "Correlation_ID"}
"""Columns of rocprofv2's traces of calls and of operations; rocprofv3 writes Correlation_Id."""
_FOR_A_VIEWER = re.compile(rb'\s*(?:\{\s*"traceEvents"|,\{"args")')
GPUS = 6
"""The process of the trace for a viewer that is the first GPU (tblextr.py)."""
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
        return (
            "it is the trace for a viewer of rocprof --hip-trace or --hsa-trace, in which no launch was found",
            ADVICE,
        )
    return None


class ViewerReader(AmdReader):
    """The reader of results.json: an event's arguments are a row of the profiler's tables, its process is the table."""

    def read(self, path: Path, nothing: ExportError) -> None:
        """Read the file; raise `nothing` where it holds neither a launch nor a copy."""
        text = TraceText(path, set(), self.progress.at)
        self.sink.at_close.callback(text.close)
        for events in text.events():
            rows = [(integer(event.pid), _row(event.args)) for event in events if event.ph == "X" and event.args]
            self._take([(process, row) for process, row in rows if process is not None and "BeginNs" in row])
        text.note_issues(self.sink.issues)
        if text.cut:
            self.failure = ExportError(self.options.source, text.cut, "a complete trace", ADVICE)
        self.events.finish(self.failure, nothing)

    def _take(self, rows: list[tuple[int, dict]]) -> None:
        # markers, copies, calls of HIP and of HSA, kernels, by their process
        takes = {
            0: self.events.ranges,
            1: self._copies,
            2: self.events.calls,
            3: self.events.calls,
            GPUS: self._kernels,
        }
        for table in {min(number, GPUS) for number, _ in rows}:
            own = [row for number, row in rows if min(number, GPUS) == table]
            self.sink.count_in(f"process {table}", len(own))
            columns = {
                ours: self.sink.integers((row.get(raw) for row in own), of_times=ours in TIMES)
                for raw, ours in self.rules["viewer_columns"].items()
            }
            columns["process"] = np.array(
                [self.sink.processes.code(max(pid, -1)) for pid in columns["process"].tolist()]
            )
            columns["device"] = np.where(columns["device"] == NULL, columns.pop("agent"), columns["device"])
            if take := takes.get(table):
                take(columns, [str(row.get("Name", row.get("KernelName", ""))) for row in own])

    def _kernels(self, columns: dict[str, np.ndarray], names: list[str]) -> None:
        columns |= self.events.stream_or_queue(columns["stream"], columns["queue_id"])
        self.events.launches(columns | {"kernel": self.events.kernels(names)})

    def _copies(self, columns: dict[str, np.ndarray], names: list[str]) -> None:
        words = column_map("rpd")["copy_kinds"] | dict.fromkeys(column_map("rpd")["operations"]["set"], MEMSET_KIND)
        kinds = [next((kind for word, kind in words.items() if word in name), 0) for name in names]
        times = {"start_ns": columns["start"], "end_ns": columns["stop"], "copy_kind": np.array(kinds)}
        device_and_stream = {name: np.where(columns[name] == NULL, 0, columns[name]) for name in ("device", "stream")}
        self.sink.transfers(columns | times | device_and_stream)


def _row(args: object) -> dict:
    try:
        row = msgspec.json.decode(args) if isinstance(args, msgspec.Raw) else args
    except (ValueError, RecursionError):
        row = None
    return row if isinstance(row, dict) else {}


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or a folder: its timing run and its counter passes.

    Raises
    ------
    ExportError
        If nothing was measured, or a file is cut; what stands before the cut is kept.
    """
    if path.is_file() and not _is_mine(path) and (beside := _beside(path)):
        problem, advice = beside
        nothing = ExportError(options.source, problem, "one row for each launch", advice)
        if not _FOR_A_VIEWER.match(first_bytes(path)):
            raise nothing
        sink.format_version = "rocprof v1 json"
        ViewerReader(sink, options, "rocprof").read(path, nothing)
        return
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
