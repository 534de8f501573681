"""CSV of CUPTI activity: nvprof's `--print-gpu-trace --csv`, `nsys stats`' cuda_gpu_trace, plain dumps of records, or a folder of these.

No two writers name their columns alike, so each column has a list of names (`config/columns/cupti_csv.yaml`) and its unit is looked for in
the name, in a row of units below the header and behind the value; without any, times are nanoseconds, as CUPTI counts. The lines before the
header (nvprof's banner holds the command line) are passed over. nvprof's KB and MB are powers of 1024: 1.003906 KB in 1.888 us are its
0.507097 GB/s. Sources: public parsers of such files (rlscope, nvprof_parser); no real file was at hand.
"""

import gzip
import io
import re
import zlib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from causeway.errors import ExportError
from causeway.readers.activity_rows import LONGEST, CsvLines, RowKinds, copy_kind, device_number, memory_kind
from causeway.readers.columns import column_map
from causeway.readers.events import NO_KIND, NULL, integer
from causeway.readers.names import clean_text
from causeway.readers.options import Options
from causeway.readers.sink import Sink
from causeway.tables import LAUNCH_SHAPE

HEADER_LINES = 4096
BATCH_ROWS = 1 << 14
MEMSET_KIND = 255
ADVICE = "Profile again with `nvprof --print-gpu-trace --csv --log-file FILE`, or write the records with their names, starts and ends."

TIME_POWERS = {"ns": 0, "nsec": 0, "us": 3, "usec": 3, "µs": 3, "ms": 6, "msec": 6, "s": 9, "sec": 9}
"""Power of ten from a unit to nanoseconds."""

SIZE_POWERS = {"b": 0, "byte": 0, "bytes": 0, "kb": 1, "kib": 1, "mb": 2, "mib": 2, "gb": 3, "gib": 3, "tb": 4, "tib": 4}
TIMES, SIZES = ("start", "end", "duration"), ("bytes", "static_shared_bytes", "dynamic_shared_bytes", "local_bytes")
_LOST = re.compile(r"^=+.*?\bWarning:\s*(?:(\d{1,18})\s+)?.*?\b(?:invalid timestamps|dropped|lost|insufficient|exceed)", re.IGNORECASE)
"""nvprof's warnings of records that are not there, some with their number."""

_NUMBER = re.compile(r"\s*([+-]?)(\d+)(?:\.(\d*))?\s*([A-Za-zµ]*)\s*")
_IN_NAME = re.compile(r"(.*?)\s*(?:[(\[]\s*([^)\]]*?)\s*[)\]]|_(ns|us|ms|s|nsec|usec|msec|sec|bytes|kb|mb))?$", re.IGNORECASE | re.DOTALL)


@dataclass
class Columns:
    """Where a file's columns are and in which units: `place` and `unit` by our names; `binary` whether a KB is 1024 bytes."""

    place: dict[str, int]
    unit: dict[str, str]
    binary: bool = False

    @property
    def usable(self) -> bool:
        """Whether rows can be events: times, and something that says what they are."""
        has = self.place.keys()
        return "start" in has and bool({"end", "duration"} & has) and bool({"name", "copy_kind", "grid_x", "grid", "bytes", "call"} & has)


def columns_of(header: list[str]) -> Columns:
    """Return which of a header's columns are known."""
    ours_of = {name: ours for ours, names in column_map("cupti_csv")["columns"].items() for name in names}
    found = Columns({}, {})
    for at, cell in enumerate(header):
        whole = re.sub(r"[^a-z0-9]", "", cell.lower())
        match = _IN_NAME.fullmatch(cell.strip()[:LONGEST])
        bare = re.sub(r"[^a-z0-9]", "", match[1].lower())
        ours = ours_of.get(bare) or ours_of.get(whole)
        if ours and ours not in found.place:
            found.place[ours] = at
            found.unit[ours] = (match[2] or match[3] or "").lower()
    return found


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has a header of activity records."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of the folder, that have a usable header."""
    candidates = sorted(path.glob("*.csv")) + sorted(path.glob("*.csv.gz")) if path.is_dir() else [path]
    found = []
    for file in candidates:
        try:
            with _opened(file) as (_, text):
                if file.is_file() and _find_header(CsvLines(text)) is not None:
                    found.append(file)
        except (OSError, EOFError, zlib.error):
            continue
    return found


class _opened:  # noqa: N801 - used as a function
    """Open a text file, perhaps compressed; gives the raw file, for its position, and the text."""

    def __init__(self, path: Path) -> None:
        self.raw = open(path, "rb")  # noqa: SIM115 - closed on exit
        packed = self.raw.read(2) == b"\x1f\x8b"
        self.raw.seek(0)
        stream = gzip.GzipFile(fileobj=self.raw) if packed else self.raw
        self.text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")

    def __enter__(self) -> tuple[io.BufferedReader, io.TextIOWrapper]:
        return self.raw, self.text

    def __exit__(self, *_: object) -> None:
        self.text.close()
        self.raw.close()


def _find_header(lines: CsvLines) -> Columns | None:
    for _ in range(HEADER_LINES):
        line = lines.next_line()
        if line and (match := _LOST.search(line[:LONGEST])):
            lines.lost += int(match[1] or 1)
        if line is None:
            return None
        if line.startswith("==") or len(line) > 1 << 16:
            continue
        for delimiter in ",;\t":
            if delimiter in line:
                columns = columns_of(lines.cells(line, delimiter))
                if columns.usable:
                    lines.delimiter = delimiter
                    return columns
    return None


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read a file, or the activity files of a folder.

    Raises
    ------
    ExportError
        If there is no launch and no transfer, or a file is cut; what stands before the cut is kept.
    """
    files = _files(path)
    if not files:
        expected = "columns with start, end or duration, and name"
        raise ExportError(options.source, "no header of activity records was found in it", expected, ADVICE)
    failure, before = None, 0
    sink.format_version = "CSV"
    for file in files:
        reader = CsvReader(sink, options, file, before, f"{file.name}: " if path.is_dir() else "")
        failure = reader.read() or failure
        before += file.stat().st_size
    if not sink.n_launches:
        if failure or not sink.n_transfers:
            raise failure or ExportError(options.source, "there is a header but no kernel launch", "at least one launch", ADVICE)
        sink.issues.add("no_launches")
    if failure:
        raise failure


class CsvReader:
    """One file on its way to the sink."""

    def __init__(self, sink: Sink, options: Options, path: Path, before: int, label: str) -> None:
        self.sink, self.options, self.path, self.before, self.label = sink, options, path, before, label
        self.bad, self.first_bad = 0, ""

    def read(self) -> ExportError | None:
        """Read the file; return the error of a cut one."""
        progress, cut = self.options.progress(), None
        with _opened(self.path) as (raw, text):
            lines = CsvLines(text)
            try:
                self.columns = _find_header(lines)
                self.sink.issues.add("dropped_events", lines.lost, f"{self.label}the profiler's warnings above the header")
                self.kinds = RowKinds(self.columns.place, self.path.name)
                rows: list[list[str]] = []
                needed = 1 + max(self.columns.place[name] for name in ("start", "end", "duration") if name in self.columns.place)
                width = 0
                for row, whole in lines.rows():
                    if len(row) < (needed if whole else max(needed, width)):
                        if not whole:
                            cut = f"{self.label}the file ends in the middle of line {lines.number}"
                        elif row and not row[0].startswith("=="):
                            self._bad(f"{self.label}line {lines.number} has {len(row)} fields")
                        continue
                    if not rows and not self.columns.binary and self._is_units(row):
                        continue
                    self.sink.issues.add("unfinished_line", int(not whole), f"{self.label}line {lines.number}")
                    rows.append(row)
                    width = len(row)
                    if len(rows) == BATCH_ROWS:
                        self._take(rows)
                        rows = []
                        progress.at(self.before + raw.tell())
                if lines.unclosed:
                    self._bad(f"{self.label}a quotation that is never closed", lines.unclosed)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                cut = f"{self.label}the compressed file is cut or damaged after line {lines.number}"
            self._take(rows)
        self.sink.issues.add("unreadable_rows", self.bad, self.first_bad)
        if cut is None:
            return None
        self.sink.issues.add("truncated", 1, cut)
        return ExportError(self.options.source, cut, "complete lines", "Copy it again, or profile again.")

    def _bad(self, what: str, count: int = 1) -> None:
        self.bad += count
        self.first_bad = self.first_bad or what

    def _is_units(self, row: list[str]) -> bool:
        """Take nvprof's row of units below the header; return whether this is one."""
        units = [cell.strip().lower() for cell in row]
        known = {*TIME_POWERS, *SIZE_POWERS, ""}
        if units[self.columns.place["start"]] not in TIME_POWERS or not all(unit in known or "/s" in unit for unit in units):
            return False
        self.columns.unit |= {ours: units[at] for ours, at in self.columns.place.items() if at < len(units) and units[at]}
        self.columns.binary = True
        return True

    def _cells(self, rows: list[list[str]], ours: str) -> list[str] | None:
        at = self.columns.place.get(ours)
        return None if at is None else [row[at] if at < len(row) else "" for row in rows]

    def _numbers(self, rows: list[list[str]], ours: str) -> np.ndarray | None:
        """Return a column as int64 with `NULL`: times in ns, sizes in bytes, other numbers as they are."""
        cells = self._cells(rows, ours)
        if cells is None:
            return None
        unit = self.columns.unit[ours]
        if ours in TIMES:
            values = [exact_ns(cell, unit or "ns") for cell in cells]
        elif ours in SIZES:
            values = [size_in_bytes(cell, unit or "b", self.columns.binary) for cell in cells]
        else:
            values = [integer(cell.strip()) for cell in cells]
        return np.array([NULL if value is None else value for value in values], np.int64)

    def _take(self, rows: list[list[str]]) -> None:
        """Hand a batch of rows to the sink, each kind of event by itself."""
        if not rows:
            return
        kinds = np.array([self.kinds.of(row) for row in rows])
        for kind in np.unique(kinds).tolist():
            mine = [row for row, other in zip(rows, kinds.tolist(), strict=True) if other == kind]
            self.sink.count_in(RowKinds.NAMES[kind], len(mine))
            if kind != RowKinds.OTHER:
                self._hand_over(kind, mine)

    def _hand_over(self, kind: int, rows: list[list[str]]) -> None:
        sink, n = self.sink, len(rows)
        start = self._numbers(rows, "start")
        end = self._numbers(rows, "end")
        if end is None:
            duration = self._numbers(rows, "duration")
            end = np.where((start == NULL) | (duration == NULL), NULL, start + np.where(duration == NULL, 0, duration))
        untimed = (start == 0) & (end == 0)
        start = np.where(untimed, NULL, start)
        process = self._process(rows)
        correlation = self._numbers(rows, "correlation")
        correlation = np.full(n, NULL) if correlation is None else correlation
        names = self._cells(rows, "name")
        if kind == RowKinds.CALLS:
            thread = self._numbers(rows, "thread")
            codes = np.array([sink.call_names.code(text) for text in self._call_names(rows, names)])
            sink.calls(start, end, process, np.full(n, NULL) if thread is None else thread, codes, correlation)
            return
        stream = self._numbers(rows, "stream")
        where = {"device": self._devices(rows, process), "stream": 0 if stream is None else stream, "correlation": correlation}
        if kind == RowKinds.LAUNCHES:
            kernel = np.array([sink.kernel(text.strip() or None) for text in names or [""] * n])
            if missing := sum(not text.strip() for text in names or [""] * n):
                sink.issues.add("missing_name", missing)
            sink.launches(start, end, kernel, process, shape=self._shape(rows), **where)
            return
        if kind == RowKinds.MEMSETS:
            kinds = np.full(n, MEMSET_KIND)
        else:
            stated = self._cells(rows, "copy_kind")
            kinds = np.array([copy_kind(stated[at] if stated else "") or copy_kind(names[at] if names else "") for at in range(n)])
        ends = {}
        for side in ("src_kind", "dst_kind"):
            cells = self._cells(rows, side)
            ends[side] = NO_KIND if cells is None else np.array([memory_kind(cell) for cell in cells])
        if kind == RowKinds.MEMSETS and (ends["dst_kind"] == np.array(NO_KIND)).all():  # nvprof writes a memset's memory as its source
            ends = {"src_kind": NO_KIND, "dst_kind": ends["src_kind"]}
        size = self._numbers(rows, "bytes")
        sink.transfers(start, end, process, kinds, size=NULL if size is None else size, **where, **ends)

    def _call_names(self, rows: list[list[str]], names: list[str] | None) -> list[str]:
        if names is not None:
            return [clean_text(text) or "(unnamed call)" for text in names]
        known, numbers = column_map("nvprof")["runtime_calls"], self._numbers(rows, "call")
        if numbers is None:
            return ["(unnamed call)"] * len(rows)
        return [known.get(number) or f"CUDA runtime call {number if number != NULL else '?'}" for number in numbers.tolist()]

    def _process(self, rows: list[list[str]]) -> np.ndarray:
        """Return process codes: by process id and, where the file has such a column, rank."""
        pids, ranks = self._numbers(rows, "process"), self._numbers(rows, "rank")
        if pids is None and ranks is None:
            return np.full(len(rows), self.sink.processes.code(0))
        pids = np.full(len(rows), NULL) if pids is None else pids
        ranks = np.full(len(rows), NULL) if ranks is None else ranks
        used, inverse = np.unique(np.stack([pids, ranks]), axis=1, return_inverse=True)
        codes = [self.sink.processes.code((pid, rank), rank if 0 <= rank < 1 << 32 else None) for pid, rank in used.T.tolist()]
        return np.array(codes)[inverse.reshape(-1)]

    def _devices(self, rows: list[list[str]], process: np.ndarray) -> np.ndarray:
        cells = self._cells(rows, "device")
        if cells is None:
            self.sink.issues.add("device_assumed", 1, self.path.name)
            return np.zeros(len(rows), np.int64)
        known = {cell: device_number(cell) for cell in dict.fromkeys(cells)}
        for cell, code in dict.fromkeys(zip(cells, process.tolist(), strict=True)):
            number, name = known[cell]
            if name and number is not None:
                self.sink.device(code, number, name=name)
        return np.array([NULL if known[cell][0] is None else known[cell][0] for cell in cells], np.int64)

    def _shape(self, rows: list[list[str]]) -> dict[str, np.ndarray]:
        shape = {ours: values for ours in LAUNCH_SHAPE if (values := self._numbers(rows, ours)) is not None}
        for ours in ("grid", "block"):  # three sizes in one cell: "(64 1 1)", "64x1x1", "[64, 1, 1]"
            cells = self._cells(rows, ours)
            if cells is not None and f"{ours}_x" not in shape:
                sizes = [re.findall(r"\d+", cell)[:3] for cell in cells]
                for at, axis in enumerate("xyz"):
                    values = [integer(three[at]) if len(three) > at else None for three in sizes]
                    shape[f"{ours}_{axis}"] = np.array([NULL if value is None else value for value in values], np.int64)
        return shape


def exact_ns(text: str, unit: str) -> int | None:
    """Return a time in whole nanoseconds, exact but for the rounding of what is below one; None if it is no time.

    >>> exact_ns("4643.346000", "us"), exact_ns("1.2850us", "ms"), exact_ns("1e-6", "s")
    (4643346, 1285, 1000)
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _decimal_ns(text, unit)
    power = TIME_POWERS.get(match[4].lower() or unit)
    if power is None or len(match[2]) > 20:
        return None
    fraction = (match[3] or "")[:20]
    value = int(match[2] + fraction.ljust(power, "0")[:power]) + (fraction[power : power + 1] >= "5")
    return integer(-value if match[1] == "-" else value)


def _decimal_ns(text: str, unit: str) -> int | None:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if unit not in TIME_POWERS or not value.is_finite() or abs(value.adjusted()) > 30:
        return None
    return integer(int((value * 10 ** TIME_POWERS[unit]).to_integral_value()))


def size_in_bytes(text: str, unit: str, binary: bool) -> int | None:
    """Return a size in bytes, rounded to a whole one; None if it is none.

    >>> size_in_bytes("1.003906", "kb", True), size_in_bytes("0.101", "mb", False), size_in_bytes("128", "b", True)
    (1028, 101000, 128)
    """
    match = _NUMBER.fullmatch(text)
    power = SIZE_POWERS.get(match[4].lower() or unit) if match else None
    if power is None or len(match[2]) > 20:
        return None
    base = 1024 if binary or (match[4] or unit).lower().endswith("ib") else 1000
    exact = Decimal(f"{match[2]}.{(match[3] or '0')[:20]}") * base**power
    return integer(int(exact.to_integral_value()) * (-1 if match[1] == "-" else 1))
