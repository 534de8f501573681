"""CSV of CUPTI activity: nvprof's `--print-gpu-trace --csv`, `nsys stats`' cuda_gpu_trace, plain dumps of records, or a
folder of these.

No two writers name their columns alike, so each column has a list of names (`config/columns/cupti_csv.yaml`) and its
unit is looked for in the name, in a row of units below the header and after the value; without any, times are
nanoseconds, as CUPTI counts. The lines before the header (nvprof's banner holds the command line) are passed over.
nvprof's KB and MB are powers of 1024: 1.003906 KB in 1.888 us are its 0.507097 GB/s. Sources: public parsers of such
files (rlscope, nvprof_parser), and traces that users of nvprof and `nsys stats` have published.
"""

import gzip
import zlib
from pathlib import Path

import numpy as np

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.common.column_maps import column_map
from causeway.readers.common.constants import NO_KIND, NULL, UNNAMED_CALL
from causeway.readers.common.copy_kinds import copy_kind, memory_kind
from causeway.readers.common.files import open_text
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer, size_columns, with_null
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_lines import CsvLines
from causeway.readers.nvidia.activity_columns import (
    SIZE_POWERS,
    SIZES,
    TIME_POWERS,
    TIMES,
    Columns,
    columns_of,
    exact_ns,
    find_header,
    is_header,
    is_rounded_to_zero,
    size_in_bytes,
    without_correlations,
)
from causeway.readers.nvidia.activity_kinds import RowKinds, device_number
from causeway.readers.sink.sink import Sink

BATCH_ROWS = 1 << 14
MESSAGES = ("==", "Processing [", "SKIPPED: ")
"""How lines of nvprof and of `nsys stats` between the rows begin."""
ADVICE = (
    "Profile again with `nvprof --print-gpu-trace --csv --log-file FILE`, or write the records with their names, starts"
    " and ends."
)


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has a header of activity records."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of the folder, that have a usable header."""
    candidates = sorted(path.glob("*.csv")) + sorted(path.glob("*.csv.gz")) if path.is_dir() else [path]
    found = []
    last = []
    for file in candidates:
        try:
            raw, text = open_text(file)
            with raw, text:
                columns = find_header(CsvLines(text)) if file.is_file() else None
                if columns is not None:
                    (last if "call_start" in columns.position else found).append(file)
        except (OSError, EOFError, zlib.error) as error:
            fail_if_of_the_machine(error)
            continue
    return found + last


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
    failure = None
    before = 0
    sink.format_version = "CSV"
    one_report = OneReport()
    for file in files:
        reader = CsvReader(sink, options, file, before, f"{file.name}: " if path.is_dir() else "", one_report)
        failure = reader.read() or failure
        before += file.stat().st_size
    if not sink.n_launches:
        if failure or not sink.n_transfers:
            found = "there is a header but no kernel launch"
            if untimed := sink.issues.count("no_time"):
                found += f"; {untimed:,} events have no start or end that can be read (times need a decimal point)"
            raise failure or ExportError(options.source, found, "at least one launch", ADVICE)
        sink.issues.add("no_launches")
    if failure:
        raise failure


class OneReport:
    """Launches are taken from one kind of report: `nsys stats` has them in cuda_gpu_trace and in cuda_kern_exec_trace,
    which has no streams.
    """

    def __init__(self) -> None:
        self._with_calls: bool | None = None

    def takes(self, with_calls: bool) -> bool:
        """Return whether launches of a report, with or without the times of their calls, are of the kind that came
        first.
        """
        if self._with_calls is None:
            self._with_calls = with_calls
        return self._with_calls == with_calls


class CsvReader:
    """The reader of one file.

    Parameters
    ----------
    sink : Sink
    options : Options
    path : Path
    before : int
        Bytes of the export's files that were read before.
    label : str
        How messages begin: the file's name in a folder of several.
    one_report : OneReport
        The export's.
    """

    def __init__(
        self, sink: Sink, options: Options, path: Path, before: int, label: str, one_report: OneReport
    ) -> None:
        self.sink = sink
        self.options = options
        self.path = path
        self.before = before
        self.label = label
        self.one_report = one_report
        self.bad = 0
        self.first_bad = ""
        self.columns: Columns | None = None

    def read(self) -> ExportError | None:
        """Read the file; return the error of a cut one."""
        progress = self.options.progress()
        cut = None
        raw, text = open_text(self.path)
        with raw, text:
            lines = CsvLines(text)
            try:
                rows: list[list[str]] = []
                self._begin(find_header(lines))
                self.sink.issues.add(
                    "dropped_events", lines.lost, f"{self.label}the profiler's warnings above the header"
                )
                width = 0
                for row, whole in lines.rows():
                    if is_header(row):
                        self._take(rows)
                        rows = []
                        width = 0
                        self._begin(columns_of(row))
                        continue
                    if not self.columns.usable:
                        if len(row) > 1:
                            self.sink.count_in(RowKinds.NAMES[RowKinds.OTHER], 1)
                        continue
                    if len(row) < (self.needed if whole else max(self.needed, width)):
                        if not whole:
                            cut = f"{self.label}the file ends in the middle of line {lines.number}"
                        elif row and not row[0].startswith(MESSAGES):
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

    def _begin(self, columns: Columns) -> None:
        """Begin a report with these columns. `nsys stats` writes several to one text; one that is not of events, such
        as a summary, is passed over. The processes of its calls do not count, since its GPU's trace names none.
        """
        if columns.report and not {"device", "stream"} & columns.position.keys():
            columns.position.pop("process", None)
        self.columns = columns
        self.kinds = RowKinds(columns.position, self.path.name)
        self.needed = 1 + max([columns.position[name] for name in TIMES if name in columns.position], default=0)

    def _bad(self, what: str, count: int = 1) -> None:
        self.bad += count
        self.first_bad = self.first_bad or what

    def _is_units(self, row: list[str]) -> bool:
        """Take nvprof's row of units below the header; return whether this is one."""
        units = [cell.strip().lower() for cell in row]
        known = {*TIME_POWERS, *SIZE_POWERS, ""}
        if units[self.columns.position["start"]] not in TIME_POWERS or not all(
            unit in known or "/s" in unit for unit in units
        ):
            return False
        self.columns.unit |= {
            ours: units[at] for ours, at in self.columns.position.items() if at < len(units) and units[at]
        }
        self.columns.binary = True
        return True

    def _cells(self, rows: list[list[str]], ours: str) -> list[str] | None:
        at = self.columns.position.get(ours)
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
        return with_null(values)

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
        sink = self.sink
        n = len(rows)
        start = self._numbers(rows, "start")
        end = self._numbers(rows, "end")
        if end is None or self._has_finer_durations():
            duration = self._numbers(rows, "duration")
            known = (start != NULL) & (duration != NULL)
            end = np.where(known, start + np.where(known, duration, 0), NULL if end is None else end)
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
        where = {
            "device": self._devices(rows, process),
            "stream": 0 if stream is None else stream,
            "correlation": correlation,
        }
        if kind == RowKinds.LAUNCHES:
            with_calls = "call_start" in self.columns.position
            if not self.one_report.takes(with_calls):
                return
            if stream is None:
                sink.issues.add("stream_assumed", n, self.path.name)
            if names and self.columns.binary:
                names, numbers = without_correlations(names)
                where["correlation"] = np.where(correlation == NULL, numbers, correlation)
            kernel = np.array([sink.kernel(text.strip() or None) for text in names or [""] * n])
            if missing := sum(not text.strip() for text in names or [""] * n):
                sink.issues.add("missing_name", missing)
            queue = self._queue(rows, start) if with_calls else NULL
            sink.launches(start, end, kernel, process, queue_ns=queue, shape=self._shape(rows), **where)
            return
        if kind == RowKinds.MEMSETS:
            kinds = np.full(n, MEMSET_KIND)
        else:
            directions = self._cells(rows, "copy_kind") or [""] * n
            pairs = zip(directions, names or [""] * n, strict=True)
            kinds = np.array([copy_kind(direction) or copy_kind(name) for direction, name in pairs])
        ends = {}
        for side in ("src_kind", "dst_kind"):
            cells = self._cells(rows, side)
            ends[side] = NO_KIND if cells is None else np.array([memory_kind(cell) for cell in cells])
        if kind == RowKinds.MEMSETS and (ends["dst_kind"] == np.array(NO_KIND)).all():
            # nvprof writes a memset's memory as its source
            ends = {"src_kind": NO_KIND, "dst_kind": ends["src_kind"]}
        sink.transfers(start, end, process, kinds, size=self._sizes(rows), **where, **ends)

    def _queue(self, rows: list[list[str]], start: np.ndarray) -> np.ndarray:
        """Return how long launches wait after their call has returned, `NULL` where they begin before or it is unknown;
        int64, shape (n,), ns.
        """
        begin = self._numbers(rows, "call_start")
        length = self._numbers(rows, "call_duration")
        if length is None:
            return np.full(len(rows), NULL)
        known = (begin != NULL) & (length != NULL) & (start != NULL)
        queue = np.where(known, start - begin - length, -1)
        return np.where(queue < 0, NULL, queue)

    def _has_finer_durations(self) -> bool:
        """Return whether durations stand beside the ends in a smaller unit: ends in s are printed to 1 us."""
        units = self.columns.unit
        if "duration" not in units:
            return False
        powers = [TIME_POWERS.get(units[ours] or "ns", 0) for ours in ("duration", "end")]
        return powers[0] < powers[1]

    def _sizes(self, rows: list[list[str]]) -> np.ndarray | int:
        """Return the sizes of transfers in bytes, `NULL` where there is none, or where it was rounded to zero."""
        size = self._numbers(rows, "bytes")
        if size is None:
            return NULL
        unified = self._numbers(rows, "unified_bytes")
        if unified is not None:
            size = np.where(size == NULL, unified, size)
        unit = self.columns.unit["bytes"]
        zero = np.flatnonzero(size == 0).tolist()
        cells = self._cells(rows, "bytes")
        rounded = [at for at in zero if is_rounded_to_zero(cells[at], unit, self.columns.binary)]
        self.sink.issues.add("rounded_sizes", len(rounded))
        size[rounded] = NULL
        return size

    def _call_names(self, rows: list[list[str]], names: list[str] | None) -> list[str]:
        if names is not None:
            return [clean_text(text) or UNNAMED_CALL for text in names]
        known = column_map("nvprof")["runtime_calls"]
        numbers = self._numbers(rows, "call")
        if numbers is None:
            return [UNNAMED_CALL] * len(rows)
        return [
            known.get(number) or f"CUDA runtime call {number if number != NULL else '?'}" for number in numbers.tolist()
        ]

    def _process(self, rows: list[list[str]]) -> np.ndarray:
        """Return process codes: by process id and, where the file has such a column, rank."""
        pids = self._numbers(rows, "process")
        ranks = self._numbers(rows, "rank")
        if pids is None and ranks is None:
            return np.full(len(rows), self.sink.processes.code(0))
        pids = np.full(len(rows), NULL) if pids is None else pids
        ranks = np.full(len(rows), NULL) if ranks is None else ranks
        used, inverse = np.unique(np.stack([pids, ranks]), axis=1, return_inverse=True)
        codes = [
            self.sink.processes.code((pid, rank), rank if 0 <= rank < 1 << 32 else None)
            for pid, rank in used.T.tolist()
        ]
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
        return with_null(known[cell][0] for cell in cells)

    def _shape(self, rows: list[list[str]]) -> dict[str, np.ndarray]:
        shape = {ours: values for ours in LAUNCH_SHAPE if (values := self._numbers(rows, ours)) is not None}
        for ours in ("grid", "block"):  # three sizes in one cell: "(64 1 1)", "64x1x1", "[64, 1, 1]"
            cells = self._cells(rows, ours)
            if cells is not None and f"{ours}_x" not in shape:
                shape |= size_columns(ours, cells)
        return shape
