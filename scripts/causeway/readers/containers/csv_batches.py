"""CSV files with a header line, batch by batch: columns are found by name, damaged rows are left out and counted, a cut
file is noticed.

The csv module parses lines in which no quotation swallows others, so that one damaged row costs one row.
"""

import csv
import gzip
import io
import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import open_text
from causeway.readers.common.issues import Issues
from causeway.readers.common.numbers import integers, is_rounded, number
from causeway.readers.containers.csv_lines import MendedLines, delimiter_of

FIELD_CHARS = 4 << 20
"""Longest field; kernel names of 100 kB exist, and a quote that is never closed must not swallow the file."""

LINE_CHARS = 8 << 20
BATCH_CELLS = 1 << 18
ROUNDED_NS = 1_000_000
"""A start equal to its end and a multiple of this is a rounded time: no kernel lasts 0 ns, few start on a full
millisecond.
"""

_ADVICE = "Export it again, or copy it again: a copy that was cut short is the usual cause."


def header_of(path: Path) -> list[str]:
    """Return the columns of a CSV file, [] if it cannot be read or its first line is no header."""
    with suppress_unless_of_the_machine(OSError, EOFError, zlib.error):
        raw, text = open_text(path)
        with raw, text:
            header = text.readline(LINE_CHARS)
            return _cells(header, delimiter_of(header))
    return []


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


class CsvFile:
    """One file with a header line.

    Parameters
    ----------
    path : Path
    label : str
        How messages name the file: its path in the export.
    source : str
        How the sheet names the export.
    issues : Issues
    on_progress : callable
        Called with the number of bytes of this file read so far.
    without : sequence of str
        Columns that may be named in the header and stand in no row, all of them or none: the first two rows show it.
    of_launches : bool
        Whether its rows are launches, or counters of launches that no other file has.

    Raises
    ------
    ExportError
        If there is no header.
    """

    def __init__(
        self,
        path: Path,
        label: str,
        source: str,
        issues: Issues,
        on_progress: Callable[[int], None] = lambda _: None,
        without: Sequence[str] = (),
        of_launches: bool = True,
    ) -> None:
        self.path = path
        self.label = label
        self.source = source
        self.issues = issues
        self.of_launches = of_launches
        self._on_progress = on_progress
        self.rows = 0
        self.failure: ExportError | None = None
        self._raw, self._text = open_text(path)
        self._line = 1
        header = next(self._lines(), "")
        self._delimiter = delimiter_of(header)
        self.columns = _cells(header, self._delimiter)
        if len(self.columns) < 2:
            self.close()
            raise ExportError(source, f"{label} has no header line", "a CSV file as the profiler wrote it", _ADVICE)
        self._ahead: list[str] = []
        if without and set(without) <= set(self.columns):
            self._ahead = self._first_lines()
            widths = {len(_cells(line, self._delimiter)) for line in self._ahead if line.strip()}
            if widths == {len(self.columns) - len(without)}:
                self.columns = [name for name in self.columns if name not in without]
        self.position: dict[str, int] = {}
        for index, name in enumerate(self.columns):
            self.position.setdefault(name, index)

    def _first_lines(self) -> list[str]:
        """Return the lines below the header, up to the second that is not blank."""
        ahead = []
        for line in self._lines():
            ahead.append(line)
            if sum(bool(line.strip()) for line in ahead) == 2:
                break
        return ahead

    def close(self) -> None:
        """Close the file."""
        self._text.close()
        self._raw.close()

    def __enter__(self) -> "CsvFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lines(self) -> Iterator[str]:
        try:
            while line := self._text.readline(LINE_CHARS):
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._cut("the compressed data ends early or is damaged")

    def _cut(self, problem: str) -> None:
        self.issues.add("truncated", 1, f"{self.label}, line {self._line}")
        self.failure = self.failure or ExportError(
            self.source, f"{self.label}: {problem} at line {self._line}", "complete lines", _ADVICE
        )

    def _parsed(self) -> Iterator[tuple[int, list[str], bool]]:
        """Give rows with their line's number and whether they have the header's number of cells; count lines that were
        left out.
        """
        csv.field_size_limit(FIELD_CHARS)
        width = len(self.columns)
        lines = MendedLines(itertools.chain(self._ahead, self._lines()), self._delimiter, width)
        reader = csv.reader(lines, delimiter=self._delimiter)
        while True:
            try:
                row = next(reader, None)
            except csv.Error:  # a cell that is too long
                row = [""]
            if row is None:
                break
            self._line = 1 + lines.number
            if row:
                yield self._line, row, len(row) == width
        if lines.left_out:
            self.rows += lines.left_out
            detail = f"{self.label}, {lines.detail(1)}"
            self.issues.add("unreadable_rows", lines.left_out, detail, of_launches=self.of_launches)
            self.failure = self.failure or lines.error(self.source, f"{self.label}: ", 1)

    def batches(self) -> Iterator["CsvBatch"]:
        """Give the rows, in batches; afterwards, `failure` is the error of a file that is cut, or in which a quotation
        is not closed, or None.
        """
        size = max(1, BATCH_CELLS // len(self.columns))
        kept: list[list[str]] = []
        held = None  # one row behind, since the last row of a cut file is not whole
        for item in self._parsed():
            if held is not None:
                self._keep(held, kept)
            held = item
            if len(kept) >= size:
                self._on_progress(self._raw.tell())
                yield CsvBatch(kept, self)
                kept = []
        if held is not None:
            if self._is_cut(held, kept):
                self.rows += 1
                self._line = held[0]
                self._cut("the file ends in the middle of a row")
            else:
                self.issues.add(
                    "unfinished_line", int(self._last_byte() not in b"\r\n"), f"{self.label}, line {held[0]}"
                )
                self._keep(held, kept)
        self._on_progress(self._raw.tell())
        if kept:
            yield CsvBatch(kept, self)

    def _keep(self, item: tuple[int, list[str], bool], kept: list[list[str]]) -> None:
        line, row, whole = item
        self.rows += 1
        if whole:
            kept.append(row)
        elif row != self.columns:
            detail = f"{self.label}, line {line}: {len(row)} cells, the header has {len(self.columns)}"
            self.issues.add("unreadable_rows", 1, detail, of_launches=self.of_launches)

    def _is_cut(self, item: tuple[int, list[str], bool], kept: list[list[str]]) -> bool:
        """Return whether the last row is not whole: no line end after it, and cells missing or its last number
        shorter than before.
        """
        _, row, whole = item
        last = self._last_byte()
        if last in b"\r\n":
            return False
        if not whole or self.failure is not None:
            return True
        before = kept[-1][-1] if kept else ""
        return last != b'"' and len(row[-1]) < len(before) and row[-1].isdecimal() and before.isdecimal()

    def _last_byte(self) -> bytes:
        """Return the file's last byte; of a compressed one, whose checksum shows a cut, a line end."""
        if self._text.buffer is not self._raw:
            return b"\n" if self.failure is None else b""
        self._raw.seek(-1, io.SEEK_END)
        return self._raw.read(1)


class RowSource(Protocol):
    """What a batch needs to know of its file: where each column stands, how messages name it, who counts its issues."""

    position: dict[str, int]
    label: str
    issues: Issues


class CsvBatch:
    """Some rows of a file, as columns."""

    def __init__(self, rows: list[list[str]], file: RowSource) -> None:
        self.rows = rows
        self.file = file

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, column: str) -> list[str]:
        """Return a column as printed; '' everywhere if there is no such column."""
        position = self.file.position.get(column)
        return [""] * len(self.rows) if position is None else [row[position] for row in self.rows]

    def integers(self, column: str) -> np.ndarray:
        """Return a column as int64, `NULL` where empty, or if there is no such column; values that are no integers
        are counted.
        """
        return self._numbers(column, of_times=False)

    def nanoseconds(self, column: str) -> np.ndarray:
        """Return a column of times in ns as `integers` does, int64 of shape (n,), those with a fraction rounded."""
        return self._numbers(column, of_times=True)

    def _numbers(self, column: str, of_times: bool) -> np.ndarray:
        if column not in self.file.position:
            return np.full(len(self.rows), NULL)
        texts = self.texts(column)
        try:
            return np.array(list(map(int, texts)), np.int64)
        except (ValueError, OverflowError):
            values, misfits = integers(texts, of_times)
        self.file.issues.add_all(misfits, f"{self.file.label}, column {column}")
        return values

    def times(self, start: str, end: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return starts and ends in ns, `NULL` where unknown, and which rows have rounded times (now `NULL`)."""
        begin = self.nanoseconds(start)
        stop = self.nanoseconds(end)
        pairs = zip(self.texts(start), self.texts(end), strict=True)
        saved = np.array([is_rounded(first) or is_rounded(last) for first, last in pairs], bool)
        return without_rounded(begin, stop, saved)

    def floats(self, columns: list[str]) -> np.ndarray:
        """Return columns as float64, shape (rows, columns); NaN where empty. What is no finite number is counted."""
        positions = [self.file.position[name] for name in columns]
        return numbers(
            [[row[index] for index in positions] for row in self.rows], len(columns), self.file.issues, self.file.label
        )


def numbers(cells: list[list[str]], width: int, issues: Issues, label: str) -> np.ndarray:
    """Return cells as float64, shape (rows, width); NaN where empty. What is no finite number is NaN too, and
    counted.
    """
    try:
        matrix = np.array([[float(cell) for cell in row] for row in cells])
        empty = 0
    except (ValueError, OverflowError):
        matrix = np.array([[math.nan if (value := number(cell)) is None else value for cell in row] for row in cells])
        empty = sum(cell.strip() == "" for row in cells for cell in row)
    matrix = matrix.reshape(len(cells), width)
    finite = np.isfinite(matrix)
    issues.add("not_a_number", int((~finite).sum()) - empty, label)
    return np.where(finite, matrix, np.nan)


def without_rounded(
    start: np.ndarray, stop: np.ndarray, saved: np.ndarray | bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts and stops with `NULL` where they are rounded (as `saved` says, or by their values), and which
    are.
    """
    rounded = saved | ((start == stop) & (start != NULL) & (start != 0) & (start % ROUNDED_NS == 0))
    return np.where(rounded, NULL, start), np.where(rounded, NULL, stop), rounded
