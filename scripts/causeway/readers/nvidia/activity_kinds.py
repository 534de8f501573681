"""What kind of event a row of CUPTI activity records is."""

import re

from causeway.core.files.yaml_files import column_map
from causeway.readers.common.copy_kinds import LONGEST, UNIFIED_MEMORY
from causeway.readers.common.numbers import integer

_COPY_NAME = re.compile(
    r"\[?\s*(?:cuda\s+)?(?:unified memory\s+)?memcpy\b\s*(?:unified\s+)?"
    r"(?:\(?([\w-]+)\)?)?(?:\s*\([^)]*\))?\s*(?:\]|\[a?sync\])?",
    re.IGNORECASE,
)
"""Names of copies: `[CUDA memcpy HtoD]`; of unified memory `[Unified Memory Memcpy HtoD]` (nvprof), `[CUDA Unified
Memory memcpy HtoD]` (nsys stats until 2022), `[CUDA memcpy Unified Host-to-Device]` (since); `Memcpy HtoD [sync]`
(Visual Profiler).
"""
_SET_NAME = re.compile(r"\[?\s*(?:cuda\s+)?memset\b[^(<]*(?:\([^)]*\))?\s*\]?", re.IGNORECASE)
_SIZED = re.compile(r"[1-9]")
"""What a grid's size has where there is one: `0`, `-` and `nan` stand for none."""
_API_NAME = re.compile(r"cu(?:da)?[A-Z]\w*")
_LAUNCHING = re.compile(r"(cu(?:da)?[A-Z]\w*) \(")
"""How nvprof names a call that launches, with the kernel and the number behind it: `cudaLaunch (add(int) [94])`."""
_MARK = re.compile(r"\[(?:Range start|Range end|Marker)\]")
"""How nvprof names moments of NVTX ranges, which have no duration."""


class RowKinds:
    """The kind of event of each row of a file: as its kind column reports, else by its name, else by which columns it
    fills. A row with a grid is a launch, also of a kernel called `memset`; names in brackets are those of profilers.

    Parameters
    ----------
    position : dict of str to int
        Index of each column, by our names.
    file_name : str
        A hint where nothing else identifies a row: `memset.csv`.
    source : str
        The process or database that a profiler names above the rows, "" if none: its traces of launches have devices
        and grids, so that a trace without them holds none, but OpenACC's constructs beside CUDA's calls.
    """

    LAUNCHES, COPIES, MEMSETS, CALLS, OTHER = range(5)
    NAMES = ("kernels", "memory copies", "memory sets", "calls", "other records")

    def __init__(self, position: dict[str, int], file_name: str, source: str = "") -> None:
        self.position = position
        placed = position.keys() & {"device", "stream", "grid_x", "grid"}
        self._unknown = self.OTHER if source and not placed else self.LAUNCHES
        self.hint = file_name.lower()
        kinds = column_map("cupti_csv")["kinds"]
        numbers = {
            "launches": self.LAUNCHES,
            "memcpy": self.COPIES,
            "memset": self.MEMSETS,
            "calls": self.CALLS,
            "other": self.OTHER,
        }
        self._kinds = {spelling: numbers[kind] for kind, spellings in kinds.items() for spelling in spellings}
        self._by_name: dict[str, int | None] = {}

    def _cell(self, row: list[str], ours: str) -> str:
        position = self.position.get(ours)
        return row[position] if position is not None and position < len(row) else ""

    def of(self, row: list[str]) -> int:
        """Return the kind of one row."""
        if reported := self._cell(row, "kind"):
            plain = re.sub(r"[^a-z0-9]", "", reported.lower()).removeprefix("cuptiactivitykind")
            if plain in self._kinds:
                return self._kinds[plain]
        name = self._cell(row, "name")
        grid = self._cell(row, "grid_x") or self._cell(row, "grid")
        if grid and not name.startswith("[") and _SIZED.search(grid):
            return self.LAUNCHES
        if name not in self._by_name:
            if len(self._by_name) > 1 << 16:
                self._by_name.clear()
            self._by_name[name] = self._from_name(name)
        kind = self._by_name[name]
        return self._from_columns(row, name) if kind is None else kind

    def _from_name(self, name: str) -> int | None:
        if _COPY_NAME.fullmatch(name[:LONGEST]):
            return self.COPIES
        if _SET_NAME.fullmatch(name[:LONGEST]):
            return self.MEMSETS
        if UNIFIED_MEMORY.match(name[:LONGEST]) or _MARK.match(name):
            return self.OTHER
        return self.CALLS if launching_call(name) else None

    def _from_columns(self, row: list[str], name: str) -> int:
        if self._cell(row, "grid_x") or self._cell(row, "grid"):
            return self.LAUNCHES
        if self._cell(row, "copy_kind"):
            return self.COPIES
        if _API_NAME.fullmatch(name):
            return self.CALLS
        identifying = self.position.keys() & {"device", "stream", "grid_x", "grid", "thread", "call"}
        if identifying and not (self._cell(row, "device") or self._cell(row, "stream")):
            return self.CALLS
        if self._cell(row, "bytes") and not name:
            return self.COPIES if "memcpy" in self.hint or "memset" not in self.hint else self.MEMSETS
        return self._unknown


def launching_call(name: str) -> tuple[str, int] | None:
    """Return the call and its number of a row that names the kernel behind it, None for any other name.

    >>> launching_call("cudaLaunch (add(int) [94])"), launching_call("add(int) [94]"), launching_call("cudaMalloc")
    (('cudaLaunch', 94), None, None)
    """
    match = _LAUNCHING.match(name) if name.endswith("])") else None
    number = integer(name[name.rfind("[") + 1 : -2])
    return None if match is None or number is None else (match[1], number)


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
