"""CSV row by row, each row one line: an unclosed quotation costs its line alone. Where cells may hold line ends, a
quotation of many lines is one that was never closed. Tables in columns of text, and lists of JSON objects, become lines
of CSV.
"""

import csv
import io
import json
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.errors import ExportError

if TYPE_CHECKING:
    import pyarrow as pa

LINE_CHARS = 4 << 20
BLOCK_BYTES = 8 << 20
LONGEST_LINE = 1 << 24
MOST_LINES = 16
"""Lines of a quotation that is taken for one: names of kernels and labels have one line, and notes of people some; an
unclosed one goes on to the next quotation mark, however far that is.
"""
DELIMITERS = ",;\t"
"""As profilers write them, and as spreadsheets save them again."""

_RULE = re.compile(r" *-+(?: +-+)+ *")
"""The line between the names of columns and the rows."""
_LIST = re.compile(r"\s*\[\s*(?=\{|$)")
_NEXT = re.compile(r"[\s,]*")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
"""A number with a comma before every three digits."""
_JSON = json.JSONDecoder(parse_float=str, parse_int=str)


def delimiter_of(header: str) -> str:
    r"""Return what separates the cells of a header: the most frequent delimiter outside quotations, the first of some.

    >>> delimiter_of('"ID","Process ID"'), delimiter_of('ID;"Size, bytes";Name'), delimiter_of("Kind\tAgent_Id")
    (',', ';', '\t')
    """
    bare = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=bare.count)


_OPEN = "open"
_CLOSED = "closed"
_BROKEN = "broken"


class CsvLines:
    """The rows of a text file, a line each; a quotation ends with its line.

    Parameters
    ----------
    text : TextIOBase or PrintedTables
        Opened with `newline=""`.

    Attributes
    ----------
    delimiter : str
    number : int
        Number of the latest line, from 1.
    unclosed : int
        Lines with a quotation without an end, so far.
    lost : int
        Records that lines above the header report as missing; set by whoever reads these lines.
    """

    def __init__(self, text: "io.TextIOBase | PrintedTables") -> None:
        self._text = text
        self.delimiter = ","
        self.number = self.unclosed = 0

    def next_line(self) -> str | None:
        """Return the next line with its end, None after the last one; a line that is too long is cut into several."""
        line = self._text.readline(LINE_CHARS)
        self.number += bool(line)
        return line or None

    @staticmethod
    def cells(line: str, delimiter: str) -> list[str]:
        """Return the cells of one line, stripped of blanks."""
        if '"' not in line:
            return [cell.strip() for cell in line.split(delimiter)]
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
        except csv.Error:
            return []

    def rows(self) -> Iterator[tuple[list[str], bool]]:
        """Give the cells of each row, and whether it is whole: only the file's last one may lack its line end."""
        csv.field_size_limit(LINE_CHARS)
        while (line := self.next_line()) is not None:
            stripped = line.rstrip("\r\n")
            whole = len(stripped) < len(line)
            if line.count('"') % 2:
                self.unclosed += whole
                if not whole:
                    yield [], False
            elif stripped.strip():
                yield self.cells(stripped, self.delimiter), whole


class MendedLines:
    """Lines of CSV in which no quotation swallows rows.

    Where a quotation goes on for `MOST_LINES`, or to the text's end, and most of the lines behind its first are rows by
    themselves, or where it ends within a cell, and one of them is, it was never closed: the first line is left out, and
    the others are rows.

    Parameters
    ----------
    lines : iterator of str
        With their ends.
    delimiter : str
    width : int
        Cells of a row.

    Attributes
    ----------
    number : int
        Lines gone through.
    left_out : int
        Lines left out.
    first : int
        Number of the first of them, from 1.
    first_long : int
        Of the first in which a quotation of more than `MOST_LINES` lines opens; 0 if there is none.
    """

    def __init__(self, lines: Iterator[str], delimiter: str, width: int) -> None:
        self.number = self.left_out = self.first = self.first_long = 0
        self._lines = lines
        self._given_back: deque[str] = deque()
        self._delimiter = delimiter
        self._width = width

    def __iter__(self) -> Iterator[str]:
        while line := self._given_back.popleft() if self._given_back else next(self._lines, ""):
            self.number += 1
            if line.count('"') % 2 == 0:  # as in nearly every line
                yield line
                continue
            held = [line]
            state = self._state(held)
            while state == _OPEN and len(held) < MOST_LINES and (more := self._next()):
                held.append(more)
                state = self._state(held)
            if state == _CLOSED or not self._are_rows(held[1:], 0 if state == _BROKEN else 0.5):
                yield from held
                self.number += len(held) - 1
                if state == _OPEN:
                    yield from self._rest_of_text()
                continue
            self.left_out += 1
            self.first = self.first or self.number
            if state == _OPEN and len(held) == MOST_LINES:
                self.first_long = self.first_long or self.number
            self._given_back.extendleft(reversed(held[1:]))

    def _next(self) -> str:
        """Return the next line, "" after the last."""
        return self._given_back.popleft() if self._given_back else next(self._lines, "")

    def _rest_of_text(self) -> Iterator[str]:
        """Give the other lines of a cell that holds a long text, up to the one in which it ends."""
        while line := self._next():
            self.number += 1
            yield line
            if line.replace('""', "").count('"') % 2:
                return

    def _state(self, lines: list[str]) -> str:
        """Return whether the last quotation of some lines is open or closed, or ends within a cell."""
        try:
            for _ in csv.reader(lines, delimiter=self._delimiter, strict=True):
                pass
        except csv.Error as error:
            return _OPEN if "unexpected end" in str(error) else _BROKEN
        return _CLOSED

    def _are_rows(self, lines: list[str], share: float) -> bool:
        """Return whether more than a share of some lines are rows by themselves; False for none."""
        rows = sum(len(CsvLines.cells(line, self._delimiter)) == self._width for line in lines)
        return rows > share * len(lines)

    def detail(self, line: int = 0) -> str:
        """Return where the first line that was left out stands, and why it was; `line` lines stand before the text."""
        return f"line {line + self.first}: a quotation opens that does not end"

    def error(self, source: str, label: str = "", line: int = 0) -> ExportError | None:
        """Return the error of a text with a quotation of more than `MOST_LINES` lines, None for others.

        Which of its lines are rows is a guess, however few they are: the text is read in part.
        """
        if not self.first_long:
            return None
        return ExportError(
            source,
            f"{label}a quotation opens in line {line + self.first_long} and has no end within {MOST_LINES} lines; that"
            " line was left out, those behind it were read as rows",
            "cells whose quotations are closed",
            "Close it, or export again.",
        )


def has_odd_quotations(path: Path) -> bool:
    """Return whether a line of a file has an odd number of quotation marks: one that holds a line end, or is not
    closed.
    """
    with open(path, "rb") as handle:
        if not any(b'"' in block for block in iter(lambda: handle.read(BLOCK_BYTES), b"")):
            return False
        handle.seek(0)
        return any(line.count(b'"') % 2 for line in iter(lambda: handle.readline(LONGEST_LINE), b""))


class MendedCsv(io.RawIOBase):
    """The bytes of a CSV file in UTF-8, in which no quotation goes on for ever: what cannot be decoded becomes
    U+FFFD.

    Attributes
    ----------
    lines : MendedLines
    """

    def __init__(self, path: Path, delimiter: str, width: int) -> None:
        self._text = open(path, encoding="utf-8", errors="replace", newline="")  # noqa: SIM115 - closed by close()
        self.lines = MendedLines(iter(lambda: self._text.readline(LONGEST_LINE), ""), delimiter, width)
        self._given = iter(self.lines)
        self._rest = b""
        self._reading = threading.Lock()
        self._is_over = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, all that are left if it is negative; none after `end`."""
        with self._reading:
            return b"" if self._is_over else self._read(size)

    def end(self) -> None:
        """Wait for the read of another thread, and let no further one give anything."""
        with self._reading:
            self._is_over = True

    def _read(self, size: int) -> bytes:
        parts = [self._rest]
        length = len(self._rest)
        while size < 0 or length < size:
            line = next(self._given, "")
            if not line:
                break
            parts.append(line.encode("utf-8", "replace"))
            length += len(parts[-1])
        content = b"".join(parts)
        size = len(content) if size < 0 else size
        self._rest = content[size:]
        return content[:size]

    def close(self) -> None:
        """Close the file."""
        self._text.close()
        super().close()


def arrow_batches(source: Path | MendedCsv, *options: object) -> Iterator["pa.RecordBatch"]:
    """Give the rows of a CSV file in batches, with columns as Arrow's options ask for them.

    Arrow reads ahead in a thread of its own. One that still runs Python when the process ends aborts it, so a mended
    file is read no further than its batches are taken.

    Parameters
    ----------
    source : Path or MendedCsv
    options : ReadOptions, ParseOptions, ConvertOptions
        Of `pyarrow.csv`.

    Raises
    ------
    ArrowInvalid
        If the file cannot be split into rows and columns.
    """
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    if isinstance(source, Path):
        yield from pa_csv.open_csv(source, *options)
        return
    reader: Iterable[pa.RecordBatch] = ()
    try:
        reader = pa_csv.open_csv(pa.PythonFile(source, "r"), *options)
        yield from reader
    finally:
        source.end()
        with suppress(pa.ArrowInvalid):
            deque(reader, maxlen=0)  # what was read ahead


class PrintedTables:
    """A text in which tables are printed for people, as lines of CSV; other lines stay as they are.

    A table in columns has a line of dashes below the names of its columns, as wide as each, and ends with an empty
    line; that of nvprof has none, and two blanks or more between the cells. A list of JSON objects may have several
    objects in a line, and several lines in an object.

    Parameters
    ----------
    text : TextIOBase
    """

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._lines = self._made()

    def readline(self, _size: int = -1) -> str:
        """Return the next line, "" after the last."""
        return next(self._lines, "")

    def _made(self) -> Iterator[str]:
        waiting = ""  # the names of columns, if dashes follow
        spans: list[tuple[int, int]] = []
        width = 0  # columns of nvprof's trace
        while line := self._text.readline(LINE_CHARS):
            bare = line.rstrip("\r\n")
            cells = re.split(" {2,}", bare.strip(), maxsplit=max(width - 1, 0))
            if cells[:3] == ["Start", "Duration", "Grid Size"]:
                width = len(cells)
            elif not bare.strip() or bare.startswith("=="):
                width = 0
            if width:
                yield _csv(["" if cell == "-" else cell for cell in cells], line[len(bare) :])
                continue
            if spans and bare.startswith(" ") and bare.strip():
                yield _cut(line, spans)
                continue
            spans = []
            names = re.split(r" {2,}|\t", waiting.strip())
            dashes = [match.span() for match in re.finditer("-+", bare)] if _RULE.fullmatch(bare) else []
            if len(dashes) == len(names) > 1:
                spans = dashes
                waiting = ""
                yield _csv(names)
                continue
            if waiting:
                yield waiting
            waiting = line
            if match := _LIST.match(line):
                waiting = ""
                yield from self._objects(line[match.end() :])
        if waiting:
            yield waiting

    def _objects(self, text: str) -> Iterator[str]:
        """Give the names of the first of some objects, then the values of each; one with other names, or that cannot be
        parsed, is a line of one cell; one that the text's end cuts has no line end.
        """
        names: list[str] = []
        position = 0
        while True:
            position = match.end() if (match := _NEXT.match(text, position)) else position
            if text[position : position + 1] == "]":
                return
            try:
                record, position = _JSON.raw_decode(text, position)
            except (ValueError, RecursionError):
                more = self._text.readline(LINE_CHARS)
                if more and len(text) - position < LINE_CHARS:
                    text = text[position:] + more
                    position = 0
                    continue
                yield text[position : position + 1] + "\n" * bool(more)
                return
            if isinstance(record, dict) and not names:
                names = list(record)
                yield _csv(names)
            fits = isinstance(record, dict) and record.keys() <= set(names)
            yield _csv(["" if (cell := record.get(name)) is None else str(cell) for name in names]) if fits else "?\n"


def _csv(cells: Sequence[str], end: str = "\n") -> str:
    """Return cells as a line of CSV."""
    joined = ",".join(cells)
    if '"' in joined or "\n" in joined or "\r" in joined or joined.count(",") >= len(cells):
        quoted = ['"' + re.sub(r"[\r\n]+", " ", cell).replace('"', '""') + '"' for cell in cells]
        joined = ",".join(quoted)
    return joined + end


def _cut(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a row in columns as a line of CSV; of a line without an end only the cells that are whole, the last column
    apart; as one cell if it does not fit.

    Parameters
    ----------
    line : str
    spans : sequence of (int, int)
        Where each column begins and ends, in characters.
    """
    bare = line.rstrip("\r\n")
    end = line[len(bare) :]
    ends = [0, *(stop for _, stop in spans[:-1])]
    if any(bare[before:begin].strip() for before, (begin, _) in zip(ends, spans, strict=True)):
        return _csv([bare.strip()], end)
    cells = [bare[begin:stop].strip() for begin, stop in spans[:-1] if end or stop < len(bare)]
    if end or len(bare) > spans[-1][0]:
        cells.append(bare[spans[-1][0] :].strip())
    numbered = [cell.replace(",", "") if _GROUPED.fullmatch(cell) else cell for cell in cells]
    return _csv(numbered or [bare.strip()], end)
