"""CSV row by row, each row one line: an unclosed quotation costs its line alone."""

import csv
import io
from collections.abc import Iterator

LINE_CHARS = 4 << 20
DELIMITERS = ",;\t"
"""As profilers write them, and as spreadsheets save them again."""


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
