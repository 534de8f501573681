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
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NO_KIND, NULL
from causeway.readers.common.copy_kinds import copy_kind, memory_kind
from causeway.readers.common.files import open_text
from causeway.readers.common.kernel_names import is_unnamed, unnamed
from causeway.readers.common.numbers import with_null
from causeway.readers.common.options import Options
from causeway.readers.nvidia.activity_columns import (
    SIZE_POWERS,
    TIME_POWERS,
    TIMES,
    Columns,
    RowValues,
    without_correlations,
)
from causeway.readers.nvidia.activity_kinds import RowKinds, device_number, launching_call
from causeway.readers.nvidia.activity_processes import (
    MESSAGES,
    ActivityFile,
    Messages,
    ReportProcesses,
    activity_files,
    by_run,
    find_header,
    lines_of,
    next_report,
)
from causeway.readers.sink.sink import Sink

BATCH_ROWS = 1 << 14
CUT = ("\u2026", "...")
"""How a name ends that `nsys stats` has cut: in columns it prints 100 characters."""
ADVICE = (
    "Profile again with `nvprof --print-gpu-trace --csv --log-file FILE`, or write the records with their names, starts"
    " and ends."
)


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has a header of activity records."""
    return bool(activity_files(path))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read a file, or the activity files of a folder.

    Raises
    ------
    ExportError
        If there is no launch and no transfer, or a file is cut; what stands before the cut is kept.
    """
    files = activity_files(path)
    if not files:
        expected = "columns with start, end or duration, and name"
        raise ExportError(options.source, "no header of activity records was found in it", expected, ADVICE)
    failure = None
    before = 0
    sink.format_version = "CSV"
    reports = ReportProcesses()
    for file in by_run(files) if path.is_dir() else [ActivityFile(path=path)]:
        reader = CsvReader(sink, options, file, before, f"{file.path.name}: " if path.is_dir() else "", reports)
        failure = reader.read() or failure
        before += file.path.stat().st_size
    if not sink.n_launches:
        if failure or not sink.n_transfers:
            problem = "there is a header but no kernel launch"
            if rounded := sink.issues.count("rounded_times"):
                problem = f"the times of {rounded:,} launches were saved rounded, as 1.2E+18: their durations are lost"
                advice = "Export again, and do not save the file with a spreadsheet."
                raise failure or ExportError(options.source, problem, "times with all their digits", advice)
            if untimed := sink.issues.count("no_time"):
                problem += f"; {untimed:,} events have no start or end that can be read (times need a decimal point)"
            raise failure or ExportError(options.source, problem, "at least one launch", ADVICE)
        sink.issues.add("no_launches")
    if failure:
        raise failure


class CsvReader:
    """The reader of one file.

    Parameters
    ----------
    sink : Sink
    options : Options
    file : ActivityFile
    before : int
        Bytes of the export's files that were read before.
    label : str
        How messages begin: the file's name in a folder of several.
    reports : ReportProcesses
        The export's.
    """

    def __init__(
        self, sink: Sink, options: Options, file: ActivityFile, before: int, label: str, reports: ReportProcesses
    ) -> None:
        self.sink = sink
        self.options = options
        self.file = file
        self.path = file.path
        self.before = before
        self.label = label
        self.reports = reports
        self.messages = Messages()
        self.bad = 0
        self.first_bad = ""
        self.columns = Columns({}, {})

    def read(self) -> ExportError | None:
        """Read the file; return the error of a cut one."""
        progress = self.options.progress()
        cut = None
        raw, text = open_text(self.path)
        with raw, text:
            lines = lines_of(self.path, text)
            try:
                rows: list[list[str]] = []
                self._begin(find_header(lines, self.messages) or self.columns)
                width = 0
                for row, whole in lines.rows():
                    if whole and row and row[0].startswith(MESSAGES):
                        self.messages.take(lines.delimiter.join(row))
                        continue
                    if (further := next_report(row, self.columns)) is not None:
                        self._take(rows)
                        rows = []
                        width = 0
                        self._begin(further)
                        continue
                    if not self.columns.usable:
                        if len(row) > 1:
                            self.sink.count_in(RowKinds.NAMES[RowKinds.OTHER], 1)
                        continue
                    if len(row) < (self.needed if whole else max(self.needed, width)):
                        if not whole:
                            cut = f"{self.label}the file ends in the middle of line {lines.number}"
                        elif row:
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
        self.sink.issues.add("dropped_events", self.messages.lost, f"{self.label}the profiler's warnings")
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
        self.kinds = RowKinds(columns.position, self.path.name, self.messages.source)
        self.begun: set[int] | None = None
        self.again = False
        self.reports.begin(self.file, self.messages.source)
        self.needed = 1 + max([columns.position[name] for name in TIMES if name in columns.position], default=0)

    def _bad(self, what: str, count: int = 1) -> None:
        self.bad += count
        self.first_bad = self.first_bad or what

    def _is_units(self, row: list[str]) -> bool:
        """Take nvprof's row of units below the header; return whether this is one."""
        units = [cell.strip().lower() for cell in row]
        accepted = {*TIME_POWERS, *SIZE_POWERS, ""}
        if units[self.columns.position["start"]] not in TIME_POWERS or not all(
            unit in accepted or "/s" in unit for unit in units
        ):
            return False
        self.columns.unit |= {
            ours: units[index] for ours, index in self.columns.position.items() if index < len(units) and units[index]
        }
        self.columns.binary = True
        return True

    def _take(self, rows: list[list[str]]) -> None:
        """Hand a batch of rows to the sink, each kind of event by itself."""
        if not rows:
            return
        kinds = np.array([self.kinds.of(row) for row in rows])
        batches = {
            kind: RowValues(
                self.columns, [row for row, other in zip(rows, kinds.tolist(), strict=True) if other == kind]
            )
            for kind in np.unique(kinds).tolist()
        }
        self._compare({kind: values for kind, values in batches.items() if kind != RowKinds.OTHER})
        for kind, values in batches.items():
            self.sink.count_in(RowKinds.NAMES[RowKinds.OTHER if self.again else kind], len(values.rows))
            if kind != RowKinds.OTHER and not self.again:
                self._hand_over(kind, values)
                self.sink.issues.add_all(values.misfits, self.path.name)

    def _compare(self, batches: dict[int, RowValues]) -> None:
        """Find out whether the report says again what another has said, by the first event of each kind."""
        new = batches.keys() - (self.begun or set())
        if not new:
            return
        firsts = []
        for kind in sorted(new):
            start, end, _, _ = RowValues(self.columns, batches[kind].rows[:1]).times()
            if start[0] != NULL:
                firsts.append((kind, int(start[0]), int(end[0])))
        if self.begun is None:
            self.again = self.reports.says_it_again(self.columns, firsts)
        elif not self.again:
            self.reports.also_has(self.columns, firsts)
        self.begun = new | (self.begun or set())

    def _hand_over(self, kind: int, values: RowValues) -> None:
        sink = self.sink
        start, end, lost, coarse = values.times()
        if kind == RowKinds.LAUNCHES:
            if not self.reports.takes_launches(self.columns):
                return
            for issue, rounded in (("rounded_times", lost), ("coarse_starts", coarse)):
                example = values.rounded_time(int(rounded.argmax()))
                sink.issues.add(issue, int(rounded.sum()), f"{self.label}{example}")
            if lost.any():
                kept = [row for row, gone in zip(values.rows, lost.tolist(), strict=True) if not gone]
                values = RowValues(self.columns, kept)
                start, end, _, _ = values.times()
        n = len(values.rows)
        process = self._process(values)
        correlation = values.filled("correlation")
        names = values.cells("name")
        if kind == RowKinds.CALLS:
            if names and self.columns.binary:
                launching = [launching_call(name.strip()) for name in names]
                names = [call[0] if call else name for call, name in zip(launching, names, strict=True)]
                numbers = with_null(call[1] if call else None for call in launching)
                correlation = np.where(correlation == NULL, numbers, correlation)
            codes = sink.call_names.codes_of(names or self._call_names(values))
            columns = {"thread": values.filled("thread"), "name": codes, "correlation": correlation}
            sink.take("calls", start, end, process, **columns)
            return
        stream = values.numbers("stream")
        where: dict[str, np.ndarray | int] = {
            "start_ns": start,
            "end_ns": end,
            "process": process,
            "device": self._devices(values, process),
            "stream": NULL if stream is None else stream,
            "correlation": correlation,
        }
        if kind == RowKinds.LAUNCHES:
            if names and self.columns.binary:
                names, numbers = without_correlations(names)
                where["correlation"] = np.where(correlation == NULL, numbers, correlation)
            names = [self._kernel_name(text) for text in names or [""] * n]
            if self.columns.report:
                sink.issues.add("cut_names", sum(name.endswith(CUT) for name in names), self.path.name)
            kernel = np.array([sink.kernel(text or None) for text in names], np.int64)
            if missing := sum(not text or is_unnamed(text) for text in names):
                sink.issues.add("missing_name", missing)
            sink.launches(where | values.shape() | {"kernel": kernel, "queue_ns": values.queue(start)})
            return
        if kind == RowKinds.MEMSETS:
            kinds = np.full(n, MEMSET_KIND)
        else:
            directions = values.cells("copy_kind") or [""] * n
            pairs = zip(directions, names or [""] * n, strict=True)
            kinds = np.array([copy_kind(direction) or copy_kind(name) for direction, name in pairs])
        ends: dict[str, np.ndarray | int] = {}
        for side in ("src_kind", "dst_kind"):
            cells = values.cells(side)
            of_nsys = self.columns.of_nsys
            ends[side] = NO_KIND if cells is None else np.array([memory_kind(cell, of_nsys) for cell in cells])
        if kind == RowKinds.MEMSETS and np.all(ends["dst_kind"] == np.array(NO_KIND)):
            # nvprof writes a memset's memory as its source
            ends = {"src_kind": NO_KIND, "dst_kind": ends["src_kind"]}
        size, zeros = values.sizes()
        sink.issues.add("rounded_sizes", zeros)
        sink.transfers(where | ends | {"copy_kind": kinds, "bytes": size})

    def _kernel_name(self, text: str) -> str:
        """Return a kernel's name; a number of a string that stands in another table names none."""
        text = text.strip()
        return unnamed(int(text)) if self.columns.of_nsys and text.isdecimal() and len(text) < 19 else text

    @staticmethod
    def _call_names(values: RowValues) -> list[str]:
        documented = column_map("nvprof")["runtime_calls"]
        numbers = values.numbers("call")
        if numbers is None:
            return [""] * len(values.rows)
        return [
            documented.get(number) or f"CUDA runtime call {number if number != NULL else '?'}"
            for number in numbers.tolist()
        ]

    def _process(self, values: RowValues) -> np.ndarray:
        """Return process codes: by process id and, where the file has such a column, rank; else by report."""
        pids, ranks = (
            np.full(len(values.rows), NULL) if numbers is None else numbers
            for numbers in (values.numbers("process"), values.numbers("rank"))
        )
        keys, which = self.reports.keys(pids, ranks)
        return np.array([self.sink.processes.code(key, rank) for key, rank in keys], np.int64)[which]

    def _devices(self, values: RowValues, process: np.ndarray) -> np.ndarray:
        cells = values.cells("device")
        if cells is None:
            self.sink.issues.add("device_assumed", 1, self.path.name)
            return np.zeros(len(values.rows), np.int64)
        parsed = {cell: device_number(cell) for cell in dict.fromkeys(cells)}
        for cell, code in dict.fromkeys(zip(cells, process.tolist(), strict=True)):
            number, name = parsed[cell]
            if name and number is not None:
                self.sink.device(code, number, name=name)
        return with_null(parsed[cell][0] for cell in cells)
