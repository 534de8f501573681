"""What an export measures, by a look at its first rows: times of launches, counters alone, or a table's column.

Standard library only: runs at workflow start, where the targets are planned; `capabilities.json` names later what was
really read.
"""

import csv
import itertools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.readers.common.files import first_bytes, open_text
from causeway.readers.containers.csv_lines import delimiter_of
from causeway.readers.registry import FORMATS

MOST_FILES = 64
ROWS = 32
"""Files of a folder, and rows of each, that are looked at."""

_TIMES = (("beginns", "endns"), ("start_timestamp", "end_timestamp"))
_NAMES = {"kernelname", "kernel_name"}
_RANGES = re.compile(rb'"cat"\s*:\s*"cuda_profiler_range"')
_KERNELS = re.compile(rb'"cat"\s*:\s*"kernel"', re.IGNORECASE)


def kind_of(word: str, path: Path | None = None) -> str:
    """Return what a format, or one export of it, measures: `trace`, `counters` or `table`.

    Parameters
    ----------
    word : str
        A word of `registry.FORMATS`.
    path : Path or None
        The file or folder; None, an absent or an unreadable one: what the format usually measures.

    Raises
    ------
    KeyError
        If there is no such format.
    """
    kind = FORMATS[word].kind
    if path is None or kind != "trace":
        return kind
    with suppress_unless_of_the_machine(OSError, EOFError, zlib.error, csv.Error):
        if word == "kineto":
            return "counters" if _only_ranges(path) else kind
        if word in ("rocprof", "rocprofv3"):
            return "counters" if _only_counters(path) else kind
    return kind


def _only_ranges(path: Path) -> bool:
    """Return whether a trace holds CUPTI's ranges with counters in its first and last kilobytes, and no kernel
    there.
    """
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
    return any(has_times is False for has_times in timed) and not any(timed)


def _timed(file: Path) -> bool | None:
    """Return whether launches of a CSV file have times that were not saved rounded, None if it lists no launches."""
    rows = _rows(file)
    header = [cell.strip().lower() for cell in next(rows, [])]
    if not _NAMES & set(header):
        return None
    pairs = [(header.index(start), header.index(end)) for start, end in _TIMES if start in header and end in header]
    return any(
        len(row) > max(pair) and all(row[column].strip().isdecimal() for column in pair)
        for row in rows
        for pair in pairs
    )


def _rows(file: Path) -> Iterator[list[str]]:
    raw, text = open_text(file)
    with raw, text:
        header = text.readline(1 << 16)
        lines = itertools.chain([header], iter(lambda: text.readline(1 << 16), ""))
        yield from itertools.islice(csv.reader(lines, delimiter=delimiter_of(header)), ROWS + 1)
