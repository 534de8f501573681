"""Which format a file or folder has, by its content, never by its name alone. Standard library only: runs at workflow
start.

Names of columns, tables and files stand with each format in `registry`; patterns of other content stand here.
"""

import re
import stat
from pathlib import Path

from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.readers.common.files import HEAD_BYTES, PRINTED_BYTES, are_json_lines, first_bytes, json_rows, text_of
from causeway.readers.containers.perfetto_head import begins_like_perfetto
from causeway.readers.containers.sqlite_names import SQLITE, is_database, sqlite_tables
from causeway.readers.registry import DETECTION_ORDER, FORMATS

LONGEST_HEADING = 100
"""Characters beyond which a cell of a CSV file is no column's name."""

NCU_HEADER = re.compile(
    rb'^(?:\xef\xbb\xbf)?"?ID"?([,;\t])"?(?:Process ID"?\1|Kernel Name"?\1[^\n]*(?:Metric Name|[a-z0-9]__[a-z]))',
    re.MULTILINE,
)
"""How a header of Nsight Compute begins: in full, or without the columns of processes and hosts."""
_NCU_PAGE = re.compile(rb"^[ \t]*Section: [^\n]+\n[ \t]*-{9,}", re.MULTILINE)
NCU_MESSAGE = re.compile(rb"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)
_NCU_PIVOT = re.compile(rb'"?Metric Name"?[,;\t][^\n]*[a-z0-9]__[a-z]')
_COLUMN = re.compile(rb'"?[A-Za-z_]\S*\r?\n(?:[+-]?\d[\d.eE+-]*(?:\r?\n|\Z)){2}')
"""A table of one column: its name, and numbers below."""
_NVPROF_BANNER = re.compile(rb"==\d+== |=======+ (?:Profiling|Warning|NVPROF)")
_NVPROF_LINE = re.compile(rb"^==\d+== (?:NVPROF is profiling|Profiling (?:application|result))", re.MULTILINE)
_UNIT = rb" ?\((?:[num]|\xc2\xb5|\xce\xbc)?s(?:ec)?\)"
_NSYS_STATS = re.compile(
    rb"^([ \t]*(?:API )?Start" + _UNIT + rb"[ \t]{2,}(?:API )?Dur[^\n]*\n)[ \t]*-+[ \t]+-"
    rb'|[{,]\s*"(?:API )?Start' + _UNIT + rb'"\s*:',
    re.MULTILINE,
)
"""A report of `nsys stats` in columns or as JSON: the names of its first columns."""
_NVPROF_TRACE = re.compile(rb"^ *Start {2,}Duration {2,}Grid Size  ", re.MULTILINE)
_ROCPROFV3_JSON = re.compile(rb'\{\s*"rocprofiler-sdk-tool"')
_ROCPROF_JSON = re.compile(rb'\{\s*"traceEvents"\s*:\s*\[\s*\{\s*\}|,\{"args"')
"""rocprof v1 writes an empty event first; where it recorded nothing, what would follow that, alone."""
_NSYS_JSON = re.compile(rb'\{\s*"data"\s*:\s*\[|\{"(?:Type|\w+Event)"\s*:')
_CHROME_TRACE_KEY = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo|traceName|ph|displayTimeUnit)"'
)


def detect(path: str | Path) -> str | None:
    """Return the format of an export, or None if nothing known is recognised, also for an empty, absent or unreadable
    file, and for what is neither a file nor a folder: a pipe would be waited for.

    Parameters
    ----------
    path : str or Path
        A file or folder.

    Returns
    -------
    str or None
        A word of `registry.FORMATS`.
    """
    path = Path(path)
    head = b""
    with suppress_unless_of_the_machine(OSError, what=f"reading {path}"):
        if path.is_dir():
            return _detect_folder(path)
        if stat.S_ISREG(path.stat().st_mode):
            head = first_bytes(path)
    if not head:
        return None
    if head.startswith(SQLITE):
        return _detect_sqlite(path)
    if head.startswith(b"PAR1"):  # the column names stand in the footer
        return "nsys" if b"Projected Start" in _last_bytes(path) else "table"
    if head.startswith((b"\xff\xff\xff\xff", b"ARROW1", b"\x89HDF\r\n")):
        return "nsys"
    if begins_like_perfetto(head):
        return "rocprofv3"
    text = text_of(head)
    if _NVPROF_BANNER.match(text):
        # also with a damaged header: the banner holds the command line, which no other reader must see
        return "cupti"
    is_json = text.startswith((b"{", b"[", b",{"))  # or what a program prints: `[INFO] start`
    if is_json and (word := _detect_json(text)):
        return word
    if is_json and are_json_lines(head):
        return "table"
    if word := _detect_printed(head):
        return word
    word = _detect_csv(text)
    if word in (None, "table") and len(head) == HEAD_BYTES and b"\x00" not in head:
        word = _detect_printed(first_bytes(path, PRINTED_BYTES)) or word
    if is_json and word in (None, "table"):
        return "table" if json_rows(path) else None
    return word


def is_printed(path: Path) -> bool:
    """Return whether a text, perhaps compressed, has a report of `nsys stats` in columns or as JSON, or nvprof's trace
    in columns.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    return _has_printed_activities(first_bytes(path, PRINTED_BYTES))


def _has_printed_activities(text: bytes) -> bool:
    for match in _NSYS_STATS.finditer(text):
        if match[1]:
            cells = re.split(r"\s{2,}", match[1].decode("utf-8", "replace").strip())
        else:
            first = text[match.start() : match.start() + HEAD_BYTES].split(b"}", 1)[0]
            cells = re.findall(r'"([^"]*)"\s*:', first.decode("utf-8", "replace"))
        if _are_activities(cells):
            return True
    return _NVPROF_TRACE.search(text) is not None


def _detect_printed(text: bytes) -> str | None:
    """Return the format of a profiler that writes below what a program prints, by a line of its own."""
    if any(pattern.search(text) for pattern in (NCU_HEADER, NCU_MESSAGE, _NCU_PAGE)):
        return "ncu"
    if _NCU_PIVOT.match(text_of(text)):
        return "ncu"
    return "cupti" if _NVPROF_LINE.search(text) or _has_printed_activities(text) else None


def _last_bytes(path: Path, size: int = HEAD_BYTES) -> bytes:
    with open(path, "rb") as handle:
        handle.seek(max(0, path.stat().st_size - size))
        return handle.read(size)


def _detect_sqlite(path: Path) -> str | None:
    names = sqlite_tables(path)
    if not names:  # damaged or compressed: the text of CREATE TABLE often stands in the pages that are left
        text = first_bytes(path, 1 << 20)
        names = [match.decode() for match in re.findall(rb"CREATE (?:TABLE|VIEW) [\"'`]?(\w+)", text)]
    for record in DETECTION_ORDER:
        for sign in record.signs.tables:
            if any(name == sign or (sign.endswith("_") and name.startswith(sign)) for name in names):
                return record.word
    return None


def _detect_json(text: bytes) -> str | None:
    if _ROCPROFV3_JSON.match(text):
        return "rocprofv3"
    if _ROCPROF_JSON.match(text):
        return "rocprof"
    if _NSYS_JSON.match(text):
        return "nsys"
    return "kineto" if _CHROME_TRACE_KEY.search(text) else None


def _detect_csv(text: bytes) -> str | None:
    if b"\x00" in text.split(b"\n", 1)[0]:
        return None
    lines = text.decode("utf-8", "replace").splitlines()
    least = None
    for line in lines:
        if line[:1].isdigit():  # as rows of numbers do, and no header
            continue
        for delimiter in {",", *(other for other in ";\t" if other in line)}:
            cells = {cell.strip().strip('"') for cell in line.split(delimiter)}
            for record in DETECTION_ORDER:
                if any(cells.issuperset(columns) for columns in record.signs.headers):
                    return record.word
                if "y" not in cells and any(cells.issuperset(columns) for columns in record.signs.least):
                    least = least or record.word
        if _are_activities(re.split(r"[,;\t]", line)):
            return "cupti"
    below = [line for line in lines if not line.startswith("#")][:2]  # of comments
    heads = [head for head in (lines[:1], below) if head]
    is_table = any(all(delimiter in line for line in head) for head in heads for delimiter in ",;\t")
    is_table = is_table or _COLUMN.match(text) is not None
    return least or ("table" if is_table else None)


_LOCATIONS = ({"device", "deviceid"}, {"stream", "streamid", "strm"}, {"ctx", "context", "contextid"})
"""Columns that say where on a GPU something ran: two of these are found together in its records alone."""


def _are_activities(cells: list[str]) -> bool:
    """Return whether a header's columns are those of GPU activity records: times, and where on a device, by which
    call or in which grid.
    """
    plain = {
        re.sub(r"[^a-z0-9]", "", re.sub(r"_(?:ns|us|ms|s)$|\s*[(\[].*", "", cell.lower()))
        for cell in cells
        if len(cell) < LONGEST_HEADING
    }
    if plain >= {"kernelstart", "kerneldur", "kernelname"}:  # cuda_kern_exec_trace of `nsys stats`
        return True
    timed = plain & {"start", "starttime"} and plain & {"end", "duration"}
    located = sum(not plain.isdisjoint(names) for names in _LOCATIONS) > 1
    shaped = plain >= {"gridx", "blockx"} or plain >= {"grdx", "blkx"}
    named = plain & {"name", "kernel", "kernelname", "copykind", "gridx", "grdx"}
    return bool(timed and named and "y" not in plain and (located or shaped or plain & {"correlationid", "corrid"}))


def _detect_folder(path: Path) -> str | None:
    """Return the format of a folder: by its files' names, by those of folders below, else by what its files hold."""
    for record in DETECTION_ORDER:
        if _has_file(path, record.signs.files):
            return record.word
    for record in DETECTION_ORDER:
        if _has_file(path, [f"{below}{name}" for below in ("*/", "*/*/") for name in record.signs.files_below]):
            return record.word
    for file in sorted([*path.glob("*.csv"), *path.glob("*.csv.gz")]):
        if file.is_file() and (word := _detect_csv(text_of(first_bytes(file)))) and FORMATS[word].signs.csv_folder:
            return word
    for file in sorted(path.glob("*.db")):
        if is_database(file) and (word := _detect_sqlite(file)) and FORMATS[word].signs.database_folder:
            return word
    return None


def _has_file(folder: Path, patterns: list[str] | tuple[str, ...]) -> bool:
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)
