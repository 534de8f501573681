"""Nsight Compute CSV, long form: one row per launch and metric, to one row per launch with one column per metric; and
the details page as `ncu` prints it without `--csv`, which is made into that form.

The text before the header is the program's own output. Rows are ragged: metric rows have one trailing empty field
instead of the fields of the rule columns, rule rows have no metric: those are kept that estimate what a kernel's whole
run time gains. Everything is found by column name; names of processes and hosts are not read.
"""

import csv
import io
import math
import re
from array import array
from itertools import chain
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import PRINTED_BYTES, first_bytes, head_of
from causeway.readers.common.kernel_names import clean_text, short_name
from causeway.readers.common.numbers import base_unit, integer, notation, scaled_integer, sizes_of, without_instances
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_lines import MendedLines
from causeway.readers.detect import NCU_HEADER, NCU_MESSAGE
from causeway.readers.sink.counter_table import CounterTable
from causeway.readers.sink.records import CounterRows
from causeway.readers.sink.sink import Sink

FIELD_BYTES = 64 << 20
"""Longest field accepted; the csv module's own limit, 128 kB, is shorter than some kernel names."""

TAIL_BYTES = 4 << 20
"""How much of the file's end is looked at for an unfinished last line."""

MOST_RULES = 1000
"""Rules that are kept, each of one kernel."""
LONGEST_RULE = 1000
"""Characters of a rule's name, and of its text, that are kept."""

_LAUNCH = re.compile(
    r"\s*(?P<kernel>\S.*?)(?:,? (?P<grid>\([\d, ]+\))x(?P<block>\([\d, ]+\))|, \d{4}-\w{3}-\d\d [\d:]+), Context \w+,"
    r" Stream \w+(?:, Device (?P<device>\d+), CC (?P<compute_capability>[\d.]+))?\s*"
)
"""The line with which a printed page begins a launch."""
_PROCESS = re.compile(r"\[(\d+)\] \S+@\S+\s*")
_ESTIMATE = re.compile(r"\s*OPT\s+Est\. (Local )?Speedup: ([\d.,]+)%\s*")
_UNITS = (  # Nsight Compute's base unit by parts of a metric's name
    (re.compile(r"\.pct|\.ratio_pct|pct_of_peak|Speed Of Light[^/]*/.*Throughput$|\bOccupancy$|\bHit Rate$"), "%"),
    (re.compile(r"cycles_elapsed\.\w+\.per_second$"), "hz"),
    (re.compile(r"bytes.*\.per_second$"), "byte/second"),
    (re.compile(r"time_duration"), "nsecond"),
    (re.compile(r"__t?_?bytes(?:_\w+)?\.(?:sum|avg|max|min)$"), "byte"),
    (re.compile(r"cycles_elapsed\.\w+$"), "cycle"),
)
ADVICE = (
    "Capture again with `ncu --csv --page details` (or raw) and check that kernels run; the messages in the file say"
    " what went wrong."
)


class _Restart(Exception):  # noqa: N818 - not an error
    """The numbers turned out to be in the other notation."""


def probe(path: Path) -> bool:
    """Return whether the file is text with Nsight Compute's header or messages."""
    head = head_of(path, PRINTED_BYTES)
    return bool(NCU_HEADER.search(head) or NCU_MESSAGE.search(head) or _is_printed(head))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one CSV file.

    Raises
    ------
    ExportError
        If the capture failed, no launch has a metric, or the file is cut; what stands before the cut is kept.
    """
    head = first_bytes(path, PRINTED_BYTES)
    made = sink.folder / ".printed.csv"
    if not NCU_HEADER.search(head) and _is_printed(head):
        _write_rows(path, made)
        path = made
    try:
        reader = NcuReader(path, sink, options, european=False)
        failure = reader.read()
    except _Restart:
        reader = NcuReader(path, sink, options, european=True)
        failure = reader.read()
    made.unlink(missing_ok=True)
    reader.hand_over()
    if failure:
        raise failure


def _is_printed(head: bytes) -> bool:
    """Return whether a text begins with a page that is printed for people."""
    lines = head.decode("utf-8", "replace").splitlines()
    return any("Context " in line and _LAUNCH.fullmatch(line) for line in lines)


def _write_rows(path: Path, made: Path) -> None:
    """Write a printed page as rows of the long form: metrics stand under dashes as wide as their columns, what a rule
    says after its estimate, to an empty line or dashes.
    """
    header = ["ID", "Process ID", "Kernel Name", "Grid Size", "Block Size", "Device", "CC", "Section Name"]
    header += ["Metric Name", "Metric Unit", "Metric Value", *column_map("ncu")["rules"].values()]
    with (
        open(path, encoding="utf-8-sig", errors="replace") as text,
        open(made, "w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.writer(file)
        rows.writerow(header)
        launch = -1
        process = "0"
        section = ""
        of_launch: list[str] = []
        spans: list[tuple[int, int]] = []
        says: list[str] = []
        estimate = None
        for line in chain(text, ["\n"]):
            bare = line.rstrip()
            dashes = [match.span() for match in re.finditer("-+", bare)] if not bare.strip(" -") else []
            if estimate and (dashes or not bare):
                kind = "local" if estimate[1] else "global"
                rule = [section, " ".join(says), kind, estimate[2]]
                rows.writerow([launch, process, *of_launch, section, "", "", "", *rule])
                estimate = None
                says = []
            if match := _PROCESS.fullmatch(line):
                process = match[1]
            elif match := _LAUNCH.fullmatch(line):
                launch += 1
                of_launch = [match[name] or "" for name in ("kernel", "grid", "block", "device", "compute_capability")]
                spans = []
            elif launch >= 0 and bare.lstrip().startswith("Section: "):
                section = bare.partition("Section: ")[2]
                spans = []
            elif len(dashes) == 3:
                spans = dashes
            elif match := _ESTIMATE.fullmatch(line):
                estimate = match
            elif estimate:
                says.append(bare.strip())
            elif spans and bare:
                cells = [bare[begin:end].strip() for begin, end in spans]
                if cells[2] and cells[0] != "Metric Name" and not bare[: spans[0][0]].strip():
                    rows.writerow([launch, process, *of_launch, section, *cells, "", "", "", ""])
            else:
                spans = []


def unit_by_name(metric: str) -> str:
    """Return the base unit of a metric of which the page has no unit, empty where its name, with its section before it
    if there is one, does not tell it.

    >>> unit_by_name("gpu__time_duration.sum"), unit_by_name("sm__throughput.avg.pct_of_peak_sustained_elapsed")
    ('nsecond', '%')
    >>> unit_by_name("GPU Speed Of Light Throughput/Memory Throughput"), unit_by_name("Memory Throughput")
    ('%', '')
    """
    return next((unit for pattern, unit in _UNITS if pattern.search(metric)), "")


def other_page(source: str, line: int) -> ExportError:
    """Return the error for a file in which a page with other columns or units begins, in that line."""
    problem = f"another page, with other columns or units, begins in line {line}; it is not read"
    advice = "Split the file there, and give each page a row of its own in the sheet."
    return ExportError(source, problem, "one page", advice)


class RuleEstimates:
    """What a rule estimates for the launches of a kernel, 0 to 1: the largest of each, and what it says of the best."""

    def __init__(self) -> None:
        self.largest = array("d")
        self.text = ""
        self._launch = -1
        self._best = 0.0

    def add(self, launch: int, speedup: float, text: str) -> None:
        """Take an estimate for a launch; rows of a launch follow each other."""
        if launch != self._launch:
            self.largest.append(0.0)
        self._launch = launch
        self.largest[-1] = max(self.largest[-1], speedup)
        if speedup > self._best:
            self._best = speedup
            self.text = text[:LONGEST_RULE]


class NcuReader:
    """One pass over a file.

    Parameters
    ----------
    path : Path
    sink : Sink
    options : Options
    european : bool
        Whether numbers have decimal commas.
    """

    def __init__(self, path: Path, sink: Sink, options: Options, european: bool) -> None:
        self.path = path
        self.sink = sink
        self.options = options
        self.european = european
        self.map = column_map("ncu")
        self.table = CounterTable(options.source, european)
        self.launches: dict[tuple, int] = {}
        self.kernel = array("q")
        self.process = array("q")
        self.device = array("q")
        self.shape: dict[str, array] = {}
        self.metrics_of = array("q")
        self.lengths: set[int] = set()
        self.rules: dict[tuple[int, str], RuleEstimates] = {}  # by kernel and rule
        self.segment = self.rows = self.bad = self.mixed = self.other_page = 0
        self.first_bad = ""
        self.delimiter = ","

    def read(self) -> ExportError | None:
        """Read the file; return the error for a cut one."""
        csv.field_size_limit(FIELD_BYTES)
        source = self.options.source
        progress = self.options.progress()
        with open(self.path, "rb") as raw, io.TextIOWrapper(raw, "utf-8", errors="replace", newline="") as text:
            header, before = self._find_header(text)
            self._begin(header)
            lines = MendedLines(text, self.delimiter, self.width)
            rows = csv.reader(lines, delimiter=self.delimiter)
            held = None  # one row behind, since the last row of a cut file is not whole
            for row in rows:
                if held is not None:
                    self._row(held)
                if self.other_page:
                    break
                held = (row, before + lines.number)
                if not rows.line_num & 0x3FFF:
                    progress.at(raw.tell())
            failure = None
            last = self._last_line()
            if self.other_page:
                failure = other_page(source, self.other_page)
            elif held is not None:
                if last and (last.count(b'"') % 2 or self._is_cut(held[0])):
                    self.sink.issues.add("truncated", 1, f"line {held[1]}")
                    problem = f"the file ends in the middle of line {held[1]}"
                    failure = ExportError(source, problem, "complete lines", "Copy it again, or capture again.")
                else:
                    self.sink.issues.add("unfinished_line", int(bool(last)), f"line {held[1]}")
                    self._row(held)
        self.rows += lines.left_out
        self.bad += lines.left_out
        if lines.left_out:
            self.first_bad = self.first_bad or lines.detail(before)
            failure = failure or lines.error(source, line=before)
        self.sink.count_in("rows", self.rows)
        if not self.launches:
            problem = "there is a header but no metric of any launch"
            raise failure or ExportError(source, problem, "one row per launch and metric", ADVICE)
        return failure

    def _find_header(self, text: io.TextIOWrapper) -> tuple[list[str], int]:
        """Return the header's columns and the number of lines up to it."""
        counts = {"ERROR": 0, "WARNING": 0}
        none_profiled = False
        number = 0
        for number, line in enumerate(iter(text.readline, ""), 1):
            if header := NCU_HEADER.match(line.encode()):
                self.delimiter = header[1].decode()
                return next(csv.reader([line.removeprefix("\ufeff")], delimiter=self.delimiter)), number
            if match := re.match(r"==(ERROR|WARNING)==", line):
                counts[match[1]] += 1
                none_profiled |= "No kernels were profiled" in line
        problem = (
            f"there is no header line in its {number} lines, only messages ({counts['ERROR']} errors,"
            f" {counts['WARNING']} warnings)"
        )
        if none_profiled:
            problem += "; Nsight Compute says that no kernels were profiled"
        raise ExportError(self.options.source, problem, 'a header that begins with "ID","Process ID"', ADVICE)

    def _begin(self, header: list[str]) -> None:
        """Begin a capture with these columns: find the index of each known one, by our names."""
        position = {ours: header.index(raw) for raw, ours in self.map["columns"].items() if raw in header}
        if lacking := self._lacking(header):
            problem = f"the header has no column {', '.join(lacking)}"
            raise ExportError(self.options.source, problem, "the columns of `ncu --csv`", ADVICE)
        self.columns = position
        self.begins = header[:2]
        rules = {ours: header.index(raw) for ours, raw in self.map["rules"].items() if raw in header}
        self.rule_columns = rules if len(rules) == len(self.map["rules"]) else {}
        self.width = len(header)
        self.needed = 1 + max(position.values())

    @staticmethod
    def _lacking(header: list[str]) -> list[str]:
        """Return the columns of the long form that a header has not."""
        return [raw for raw in ("Kernel Name", "Metric Name", "Metric Value") if raw not in header]

    def _last_line(self) -> bytes:
        """Return what stands after the last line end (its last megabytes), b"" if that is a message or nothing."""
        with open(self.path, "rb") as handle:
            handle.seek(max(0, self.path.stat().st_size - TAIL_BYTES))
            tail = handle.read()
        last = tail.replace(b"\r", b"\n").rsplit(b"\n", 1)[-1]
        return b"" if last.startswith(b"==") else last

    def _is_cut(self, row: list[str]) -> bool:
        """Return whether the last row, which has no line end, is not whole: too few fields, or its launch lacks metrics
        that others have.
        """
        if len(row) not in self.lengths:
            return True
        if len(self.launches) < 2:
            return False
        launch = self.launches.get(self._key(row))
        return launch is None or self.metrics_of[launch] + 1 < max(self.metrics_of)

    def _key(self, row: list[str]) -> tuple:
        process = row[self.columns["process"]] if "process" in self.columns else "0"
        return self.segment, process, row[self.columns["launch"]], row[self.columns["kernel"]]

    def _row(self, held: tuple[list[str], int]) -> None:
        row, line = held
        if not row:
            return
        if row[:2] == self.begins:  # several captures, one after the other, perhaps with other columns
            if self._lacking(row):
                self.other_page = line
                return
            self._begin(row)
            self.segment += 1
            return
        self.rows += 1
        if len(row) < self.needed:
            if row[0].startswith("==") or len(row) == 1:  # a message between the rows
                self.rows -= 1
                return
            self.bad += 1
            self.first_bad = self.first_bad or f"line {line} has {len(row)} fields, the header {self.width}"
            return
        if not row[self.columns["launch"]]:
            self.bad += 1
            self.first_bad = self.first_bad or f"line {line} names no launch"
            return
        self.lengths.add(len(row))
        columns = self.columns
        metric = row[columns["metric"]]
        if metric:
            launch = self._launch(row)
            section = row[columns["section"]] if "section" in columns else ""
            unit = row[columns["unit"]] if "unit" in columns else unit_by_name(f"{section}/{metric}")
            self._value(launch, section, metric, unit, row[columns["value"]])
        elif self.rule_columns and len(row) == self.width:
            self._rule(row)

    def _rule(self, row: list[str]) -> None:
        """Remember what a rule estimates for a launch, its largest estimate; one of a part of the kernel's work is none
        of its run time.
        """
        columns = self.rule_columns
        speedup = self.table.parse(row[columns["speedup"]])
        if row[columns["type"]] == "global" and speedup is not None and 0 < speedup <= 100:
            launch = self._launch(row)
            key = (self.kernel[launch], clean_text(row[columns["rule"]][:LONGEST_RULE]))
            rule = self.rules.setdefault(key, RuleEstimates()) if len(self.rules) < MOST_RULES else self.rules.get(key)
            if rule is not None:
                rule.add(launch, speedup / 100, row[columns["text"]])

    def _launch(self, row: list[str]) -> int:
        """Return the number of a row's launch."""
        columns = self.columns
        key = self._key(row)
        launch = self.launches.get(key)
        if launch is None:
            launch = self.launches[key] = len(self.launches)
            self.kernel.append(self.sink.kernel(row[columns["kernel"]]))
            self.process.append(self.sink.processes.code(integer(key[1]) or 0))
            device = integer(row[columns["device"]]) if "device" in columns else None
            self.device.append(NULL if device is None else device)
            if device is not None and "compute_capability" in columns:
                self.sink.device(self.process[-1], device, compute_capability=row[columns["compute_capability"]])
            self.metrics_of.append(0)
            for column in ("grid", "block"):
                if column in columns:
                    for axis, size in zip("xyz", sizes_of(row[columns[column]]), strict=False):
                        self._shape(f"{column}_{axis}", launch, size)
        return launch

    def _value(self, launch: int, section: str, metric: str, unit: str, text: str) -> None:
        self.metrics_of[launch] += 1
        name = f"{section}/{metric}" if section else metric
        shape = self.map["shape"].get(name) or self.map["shape"].get(metric)
        if text.endswith(")") and self.table.parse(plain := without_instances(text)) is not None:
            text = plain
        seen = notation(text)
        if seen and (seen == "european") != self.european:
            if not self.european:
                raise _Restart
            self.mixed += 1
        if shape:
            value = self.table.parse(text)
            size = None if value is None else scaled_integer(value, base_unit(unit)[1])
            self._shape(shape, launch, size)
            return
        self.table.add(launch, section, metric, unit, text, european=seen == "european" if seen else None)

    def _shape(self, name: str, launch: int, size: int | None) -> None:
        """Remember a part of a launch's configuration; the first that is reported counts."""
        column = self.shape.setdefault(name, array("q"))
        column.extend([NULL] * (launch + 1 - len(column)))
        if column[launch] == NULL and size is not None:
            column[launch] = size

    def hand_over(self) -> None:
        """Give the launches and their metrics to the sink."""
        sink = self.sink
        sink.issues.add("unreadable_rows", self.bad, self.first_bad)
        sink.issues.add("mixed_locales", self.mixed)
        counts = np.array(self.metrics_of)
        most = int(counts.max())
        sink.issues.add("incomplete_launches", int((counts < most).sum()), f"fewer than {most} metrics")
        sink.count_unnamed(np.array(self.kernel))
        sink.facts.rules = [
            {
                "kernel": short_name(sink.kernels.texts[kernel]),
                "rule": name,
                "speedup": math.fsum(rule.largest) / self.kernel.count(kernel),
                "text": clean_text(rule.text),
            }
            for (kernel, name), rule in sorted(self.rules.items())
        ]
        process = np.array(self.process)
        sink.processes.note(process, np.zeros(len(process), np.int64), launches=True)
        launches = CounterRows(
            kernel=np.array(self.kernel),
            process=process,
            device=np.array(self.device),
            shape={name: self._dense(values, len(process)) for name, values in self.shape.items()},
        )
        self.table.hand_over(sink, launches)

    @staticmethod
    def _dense(values: array, n: int) -> np.ndarray:
        return np.append(np.array(values, np.int64), np.full(n - len(values), NULL))
