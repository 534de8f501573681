"""Rows of profilers' CSV that a damaged quotation cannot swallow, and what kind of event a row of activity records is."""

import csv
import io
import re
from collections.abc import Iterator

from causeway.readers.columns import column_map
from causeway.readers.events import NO_KIND, integer

LINE_CHARS = 4 << 20

COPY_KINDS = {
    "htod": 1, "h2d": 1, "hosttodevice": 1, "dtoh": 2, "d2h": 2, "devicetohost": 2, "htoa": 3, "hosttoarray": 3, "atoh": 4,
    "arraytohost": 4, "atoa": 5, "arraytoarray": 5, "atod": 6, "arraytodevice": 6, "dtoa": 7, "devicetoarray": 7, "dtod": 8, "d2d": 8,
    "devicetodevice": 8, "htoh": 9, "h2h": 9, "hosttohost": 9, "ptop": 10, "p2p": 10, "peertopeer": 10,
}  # fmt: skip
"""Spellings of CUPTI's copy kinds; unified memory's are 11 to 13."""

MEMORY_KINDS = {"pageable": 0, "pinned": 1, "device": 2, "array": 3, "managed": 4, "devicestatic": 5, "managedstatic": 6, "unknown": 7}
"""Spellings of memory kinds, numbered as in `tables.MEMORY_KINDS`."""

LONGEST = 300
"""Characters of a cell that are looked at for what kind of row or device it names."""

_COPY_NAME = re.compile(r"\[?\s*(?:cuda|unified memory)?\s*memcpy\b\s*(?:\(?([\w-]+)\)?)?(?:\s*\([^)]*\))?\s*\]?", re.IGNORECASE)
_SET_NAME = re.compile(r"\[?\s*(?:cuda\s+)?memset\b[^(<]*(?:\([^)]*\))?\s*\]?", re.IGNORECASE)
_API_NAME = re.compile(r"cu(?:da)?[A-Z]\w*")
_UNIFIED = re.compile(r"\[\s*unified memory", re.IGNORECASE)


class CsvLines:
    """Rows of a text file, a line each; one damaged row costs one row, since a quotation ends with its line.

    `number` is the number of the latest line, `unclosed` how many lines had a quotation without an end, `lost` how
    many records the lines above the header say are missing.
    """

    def __init__(self, text: io.TextIOBase) -> None:
        self._text, self.delimiter = text, ","
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


class RowKinds:
    """What kind of event each row of a file is: as its kind column says, else by its name, else by which columns it fills.

    Parameters
    ----------
    place : dict of str to int
        Columns by our names.
    file_name : str
        A hint where nothing else tells: `memset.csv`.
    """

    LAUNCHES, COPIES, MEMSETS, CALLS, OTHER = range(5)
    NAMES = ("kernels", "memory copies", "memory sets", "calls", "other records")

    def __init__(self, place: dict[str, int], file_name: str) -> None:
        self.place, self.hint = place, file_name.lower()
        kinds = column_map("cupti_csv")["kinds"]
        numbers = {"launches": self.LAUNCHES, "memcpy": self.COPIES, "memset": self.MEMSETS, "calls": self.CALLS, "other": self.OTHER}
        self._kinds = {spelling: numbers[kind] for kind, spellings in kinds.items() for spelling in spellings}
        self._by_name: dict[str, int | None] = {}

    def _cell(self, row: list[str], ours: str) -> str:
        at = self.place.get(ours)
        return row[at] if at is not None and at < len(row) else ""

    def of(self, row: list[str]) -> int:
        """Return the kind of one row."""
        if stated := self._cell(row, "kind"):
            plain = re.sub(r"[^a-z0-9]", "", stated.lower()).removeprefix("cuptiactivitykind")
            if plain in self._kinds:
                return self._kinds[plain]
        name = self._cell(row, "name")
        if name not in self._by_name:
            if len(self._by_name) > 1 << 16:
                self._by_name.clear()
            self._by_name[name] = self._from_name(name)
        known = self._by_name[name]
        return self._from_columns(row, name) if known is None else known

    def _from_name(self, name: str) -> int | None:
        if _COPY_NAME.fullmatch(name[:LONGEST]):
            return self.COPIES
        if _SET_NAME.fullmatch(name[:LONGEST]):
            return self.MEMSETS
        return self.OTHER if _UNIFIED.match(name[:LONGEST]) else None

    def _from_columns(self, row: list[str], name: str) -> int:
        if self._cell(row, "grid_x") or self._cell(row, "grid"):
            return self.LAUNCHES
        if self._cell(row, "copy_kind"):
            return self.COPIES
        if _API_NAME.fullmatch(name):
            return self.CALLS
        could_tell = self.place.keys() & {"device", "stream", "grid_x", "grid", "thread", "call"}
        if could_tell and not (self._cell(row, "device") or self._cell(row, "stream")):
            return self.CALLS
        if self._cell(row, "bytes") and not name:
            return self.COPIES if "memcpy" in self.hint or "memset" not in self.hint else self.MEMSETS
        return self.LAUNCHES


def copy_kind(text: str) -> int:
    """Return a copy kind in CUPTI's numbers from a number or a spelling, also within a name; 0 if it is unknown.

    >>> copy_kind("[CUDA memcpy HtoD]"), copy_kind("CUPTI_ACTIVITY_MEMCPY_KIND_DTOH"), copy_kind("[Unified Memory Memcpy DtoH]")
    (1, 2, 12)
    """
    number = integer(text.strip())
    if number is not None:
        return number if 0 <= number <= 13 else 0
    plain = re.sub(r"[^a-z0-9]", "", text.lower().partition("(")[0])
    for prefix in ("cudamemcpykind", "cuptiactivitymemcpykind", "cudamemcpy", "unifiedmemorymemcpy", "memcpy"):
        plain = plain.removeprefix(prefix)
    kind = COPY_KINDS.get(plain, 0)
    return {1: 11, 2: 12, 8: 13}.get(kind, kind) if _UNIFIED.match(text[:LONGEST]) else kind


def memory_kind(text: str) -> int:
    """Return a memory kind as in `tables.MEMORY_KINDS` from CUPTI's number or a spelling; `NO_KIND` if there is none.

    >>> memory_kind("Pageable"), memory_kind("3"), memory_kind("")
    (0, 2, 255)
    """
    number = integer(text.strip())
    if number is not None:
        return column_map("nvprof")["memory_kinds"].get(number, NO_KIND)
    plain = re.sub(r"[^a-z]", "", text.lower()).removeprefix("cuptiactivitymemorykind")
    return MEMORY_KINDS.get(plain, NO_KIND)


def device_number(text: str) -> tuple[int | None, str | None]:
    """Return a device's number and name.

    >>> device_number("GeForce RTX 2080 Ti (0)"), device_number("1"), device_number("")
    ((0, 'GeForce RTX 2080 Ti'), (1, None), (None, None))
    """
    number = integer(text.strip())
    if number is not None:
        return (number, None) if number >= 0 else (None, None)
    match = re.fullmatch(r"(.*?)\s*[(\[](\d{1,5})[)\]]\s*", text[:LONGEST], re.DOTALL)
    return (int(match[2]), match[1].strip() or None) if match else (None, text.strip() or None)
