"""Which family of format a file or folder is, by its first bytes, never by its name alone. Standard library only: runs at workflow
start.
"""

import gzip
import re
import sqlite3
import zlib
from pathlib import Path

KINDS = {
    "nsys": "trace",
    "ncu": "counters",
    "rocprof": "trace",
    "rocprofv3": "trace",
    "rocpd": "trace",
    "kineto": "trace",
    "cupti": "trace",
    "table": "table",
}
"""What a family usually measures; `capabilities.json` tells what one export really holds."""

FORMATS = tuple(KINDS)
"""The families that the sheet's `format` may name, beside `auto`."""

HEAD_BYTES = 64 * 1024
"""Enough for the longest preamble seen before a CSV header (204 lines) and for Kineto's device list before its events."""

LONGEST_HEADING = 100
"""Characters beyond which a cell of a CSV file is no column's name."""

_SQLITE = b"SQLite format 3\x00"
_NCU_HEADER = re.compile(rb'^(?:\xef\xbb\xbf)?"?ID"?,"?Process ID"?,', re.MULTILINE)
_NCU_MESSAGE = re.compile(rb"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)
_NCU_PIVOT = re.compile(rb'"?Metric Name"?,[^\n]*[a-z0-9]__[a-z]')
_NVPROF_BANNER = re.compile(rb"==\d+== |=======+ (?:Profiling|Warning|NVPROF)")
_SQLITE_FAMILIES = (
    # (family, names of tables of which one is enough), in this order: nvprof's tables also start with CUPTI_ACTIVITY_KIND
    ("cupti", ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable")),
    ("nsys", ("StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "CUPTI_ACTIVITY_KIND_KERNEL", "TARGET_INFO_SESSION_START_TIME")),
    ("rocpd", ("rocpd_", "rocpd_kernel_dispatch", "rocpd_op", "rocpd_string")),
    ("rocprof", ("KERN", "compute_kernel", "compute_workload")),
)
_HEADERS = (
    # (family, columns of which all must be in the header line)
    ("rocprofv3", ("Agent_Id", "Kernel_Name", "Correlation_Id")),
    ("rocprofv3", ("Domain", "Function", "Correlation_Id")),
    ("rocprofv3", ("Direction", "Source_Agent_Id")),
    ("rocprof", ("KernelName", "gpu-id")),
    ("rocprof", ("Dispatch_ID", "Kernel_Name")),
    ("rocprof", ("Name", "Calls", "TotalDurationNs")),
    ("cupti", ("Start", "Duration", "Grid X", "Device")),
    ("cupti", ("start", "end", "deviceId", "correlationId")),
)
_FOLDERS = (
    ("nsys", ("CUPTI_ACTIVITY_KIND_*.parquet", "CUPTI_ACTIVITY_KIND_*.arrow", "StringIds.*", "META_DATA_EXPORT.*", "EXPORT_META_DATA.*")),
    ("nsys", ("trace.parquet", "nvtx_gpu_proj_trace")),
    ("rocprofv3", ("*kernel_trace.csv", "*counter_collection.csv", "*_results.json", "*_results.json.gz")),
    ("rocprof", ("pmc_perf.csv", "results.csv", "timestamps.csv")),
    ("rocpd", ("*_results.db", "*.rpd")),
    (
        "rocprofv3",
        tuple(f"{deep}*_{what}" for deep in ("*/", "*/*/") for what in ("kernel_trace.csv", "counter_collection.csv", "results.json*")),
    ),
    ("rocpd", ("*/*_results.db", "*/*/*_results.db")),
)
_CSV_FOLDERS = ("cupti", "rocprof", "rocprofv3")
"""Families whose CSV files may lie together in a folder under any names."""


def detect(path: str | Path) -> str | None:
    """Return the family of an export, or None if nothing known is recognised, also for an empty, absent or unreadable file.

    Parameters
    ----------
    path : str or Path
        A file or folder.

    Returns
    -------
    str or None
        One of `FORMATS`.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _detect_folder(path)
        head = first_bytes(path)
    except OSError:
        return None
    if not head:
        return None
    if head.startswith(_SQLITE):
        return _detect_sqlite(path)
    if head.startswith(b"PAR1"):  # the column names stand in the footer
        return "nsys" if b"Projected Start" in _last_bytes(path) else "table"
    if head.startswith((b"\xff\xff\xff\xff", b"ARROW1", b"\x89HDF\r\n")):
        return "nsys"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _NVPROF_BANNER.match(text):  # also with a damaged header: the banner holds the command line, which no other reader must see
        return "cupti"
    if text.startswith((b"{", b"[")):
        return _detect_json(text)
    if _NCU_HEADER.search(head) or _NCU_MESSAGE.search(head) or _NCU_PIVOT.match(text):
        return "ncu"
    return _detect_csv(text)


def first_bytes(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first `size` bytes of a file, uncompressed if it is a gzip file (as many as a cut one gives).

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    with open(path, "rb") as handle:
        head = handle.read(size)
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        with gzip.open(path, "rb") as handle:
            return handle.read(size)
    except (OSError, EOFError, zlib.error):
        # a file of which even the first kilobytes are cut: a bare decompressor gives what there is
        try:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, size)
        except zlib.error:
            return b""


def _last_bytes(path: Path, size: int = HEAD_BYTES) -> bytes:
    with open(path, "rb") as handle:
        handle.seek(max(0, path.stat().st_size - size))
        return handle.read(size)


def sqlite_tables(path: str | Path) -> list[str]:
    """Return the names of a database's tables and views, without changing the file; [] if it cannot be read."""
    try:
        connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    except (sqlite3.Error, ValueError):
        return []
    try:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")]
    except (sqlite3.Error, UnicodeDecodeError):  # a message may quote undecodable bytes of a damaged schema
        return []
    finally:
        connection.close()


def _detect_sqlite(path: Path) -> str | None:
    names = sqlite_tables(path)
    if not names:  # damaged: the text of CREATE TABLE often stands in the pages that are left
        with open(path, "rb") as handle:
            names = [match.decode() for match in re.findall(rb"CREATE (?:TABLE|VIEW) [\"'`]?(\w+)", handle.read(1 << 20))]
    for family, marks in _SQLITE_FAMILIES:
        if any(name in marks or (mark.endswith("_") and name.startswith(mark)) for name in names for mark in marks):
            return family
    return None


def _detect_json(text: bytes) -> str | None:
    if re.match(rb'\{\s*"rocprofiler-sdk-tool"', text):
        return "rocprofv3"
    if re.match(rb'\{\s*"data"\s*:\s*\[', text) or re.match(rb'\{"(?:Type|\w+Event)"\s*:', text):
        return "nsys"
    marks = (
        b'"traceEvents"',
        b'"schemaVersion"',
        b'"deviceProperties"',
        b'"distributedInfo"',
        b'"traceName"',
        b'"ph"',
        b'"displayTimeUnit"',
    )
    return "kineto" if any(mark in text for mark in marks) else None


def _detect_csv(text: bytes) -> str | None:
    if b"\x00" in text.split(b"\n", 1)[0]:
        return None
    lines = text.decode("utf-8", "replace").splitlines()
    for line in lines[:256]:
        cells = {cell.strip().strip('"') for cell in line.split(",")}
        for family, columns in _HEADERS:
            if cells.issuperset(columns):
                return family
        if _are_activities(re.split(r"[,;\t]", line)):
            return "cupti"
    return "table" if lines and ("," in lines[0] or "\t" in lines[0] or ";" in lines[0]) else None


def _are_activities(cells: list[str]) -> bool:
    """Return whether a header's columns are those of GPU activity records: times, and where on a device or by which call."""
    plain = {
        re.sub(r"[^a-z0-9]", "", re.sub(r"_(?:ns|us|ms|s)$|\s*[(\[].*", "", cell.lower())) for cell in cells if len(cell) < LONGEST_HEADING
    }
    timed = "start" in plain and plain & {"end", "duration"}
    placed = plain & {"device", "deviceid"} and plain & {"stream", "streamid", "strm", "ctx", "context", "contextid"}
    named = plain & {"name", "kernel", "kernelname", "copykind", "gridx", "grdx"}
    return bool(timed and named and "y" not in plain and (placed or plain & {"correlationid", "corrid"}))


def _detect_folder(path: Path) -> str | None:
    for family, patterns in _FOLDERS:
        if any(next(path.glob(pattern), None) is not None for pattern in patterns):
            return family
    for file in sorted(path.glob("*.csv")):
        if file.is_file() and (family := _detect_csv(first_bytes(file).removeprefix(b"\xef\xbb\xbf").lstrip())) in _CSV_FOLDERS:
            return family
    families = (_detect_sqlite(file) for file in sorted(path.glob("*.db")) if file.is_file() and first_bytes(file, 16) == _SQLITE)
    return next((family for family in families if family in ("rocprof", "rocpd")), None)
