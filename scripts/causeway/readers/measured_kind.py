"""What an export measures, by a look at its first rows: times of launches, counters alone, or a table's column.

Standard library only: runs at workflow start, where the targets are planned; `capabilities.json` tells later what was really read.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from causeway.readers.detect import KINDS, first_bytes

MOST_FILES, ROWS = 64, 32
"""Files of a folder, and rows of each, that are looked at."""

_TIMES = (("beginns", "endns"), ("start_timestamp", "end_timestamp"))
_NAMES = {"kernelname", "kernel_name"}
_RANGES = re.compile(rb'"cat"\s*:\s*"cuda_profiler_range"')
_KERNELS = re.compile(rb'"cat"\s*:\s*"kernel"', re.IGNORECASE)


def kind_of(family: str, path: Path | None = None) -> str:
    """Return what a family, or one export of it, measures: `trace`, `counters` or `table`.

    Parameters
    ----------
    family : str
        One of `detect.FORMATS`.
    path : Path or None
        The file or folder; None, an absent or an unreadable one: what the family usually measures.
    """
    kind = KINDS[family]
    if path is None or kind != "trace":
        return kind
    try:
        if family == "kineto":
            return "counters" if _only_ranges(path) else kind
        if family in ("rocprof", "rocprofv3"):
            return "counters" if _only_counters(path) else kind
    except (OSError, EOFError, zlib.error, csv.Error):
        pass
    return kind


def _only_ranges(path: Path) -> bool:
    """Return whether a trace holds CUPTI's ranges with counters in its first and last kilobytes, and no kernel there."""
    with open(path, "rb") as handle:
        handle.seek(max(0, path.stat().st_size - (1 << 16)))
        text = first_bytes(path, 1 << 20) + handle.read()
    return bool(_RANGES.search(text)) and not _KERNELS.search(text)


def _only_counters(path: Path) -> bool:
    """Return whether there are launches in AMD's CSV files, and none of them has times."""
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*.csv*"))[:MOST_FILES] if file.is_file()]
    if any(file.suffix not in (".csv", ".gz") for file in files) or not files:
        return False
    timed = [_timed(file) for file in files]
    return any(found is False for found in timed) and not any(timed)


def _timed(file: Path) -> bool | None:
    """Return whether launches of a CSV file have times that were not saved rounded, None if it lists no launches."""
    rows = _rows(file)
    header = [cell.strip().lower() for cell in next(rows, [])]
    if not _NAMES & set(header):
        return None
    places = [(header.index(start), header.index(end)) for start, end in _TIMES if start in header and end in header]
    return any(len(row) > max(place) and all(row[at].strip().isdecimal() for at in place) for row in rows for place in places)


def _rows(file: Path) -> Iterator[list[str]]:
    with open(file, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(file) if packed else open(file, "rb") as raw, io.TextIOWrapper(raw, "utf-8-sig", "replace", newline="") as text:
        for row, _ in zip(csv.reader(iter(lambda: text.readline(1 << 16), "")), range(ROWS + 1), strict=False):
            yield row
