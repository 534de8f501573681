"""CSV row by row, each row one line: an unclosed quotation costs its line alone. Tables in columns of text, and lists
of JSON objects, become lines of CSV.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence

LINE_CHARS = 4 << 20
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


class CsvLines:
    """The rows of a text file, a line each; a quotation ends with its line.

    Parameters
    ----------
    text : TextIOBase
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

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self.delimiter = ","
        self.number = self.unclosed = self.lost = 0

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


class PrintedTables:
    """A text in which tables are printed for people, as lines of CSV; other lines stay as they are.

    A table in columns has a line of dashes below the names of its columns, as wide as each, and ends with an empty
    line. A list of JSON objects may have several objects in a line, and several lines in an object.

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
        while line := self._text.readline(LINE_CHARS):
            bare = line.rstrip("\r\n")
            if spans and bare.startswith(" ") and bare.strip():
                yield _cut(line, spans)
                continue
            spans = []
            names = re.split(r" {2,}|\t", waiting.strip())
            found = [match.span() for match in re.finditer("-+", bare)] if _RULE.fullmatch(bare) else []
            if len(found) == len(names) > 1:
                spans = found
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
        at = 0
        while True:
            at = _NEXT.match(text, at).end()
            if text[at : at + 1] == "]":
                return
            try:
                record, at = _JSON.raw_decode(text, at)
            except (ValueError, RecursionError):
                more = self._text.readline(LINE_CHARS)
                if more and len(text) - at < LINE_CHARS:
                    text = text[at:] + more
                    at = 0
                    continue
                yield text[at : at + 1] + "\n" * bool(more)
                return
            if isinstance(record, dict) and not names:
                names = list(record)
                yield _csv(names)
            fits = isinstance(record, dict) and record.keys() <= set(names)
            yield _csv(["" if (one := record.get(name)) is None else str(one) for name in names]) if fits else "?\n"


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
