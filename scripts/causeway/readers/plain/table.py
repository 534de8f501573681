"""Plain tables, CSV or Parquet: one row per launch, one column measured, optional kernel, configuration and order,
every other column a feature.

A file is read block by block, so that memory does not grow with its rows; only rows that are out of order are needed
all at once.
"""

import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.codes import ALL_LAUNCHES
from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.core.files.yaml_files import column_map
from causeway.core.formatting import NANOSECONDS
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import first_bytes, head_of, text_of
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.known_contents import known_content
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_and_parquet import (
    PlainCsv,
    PlainJsonLines,
    PlainParquet,
    columns_called,
    csv_header,
    target_name,
)
from causeway.readers.detect import detect
from causeway.readers.sink.counter_table import TAKEN, metric_field
from causeway.readers.sink.distinct import mapped_texts
from causeway.readers.sink.records import CounterRows
from causeway.readers.sink.sink import Sink

TELEMETRY_ADVICE = "Name it in a sheet of telemetry (docs/telemetry.md), beside the export of a run."

MOST_TARGETS = 3
"""Columns that are measured in a table where no setting names them: each is explained by jobs of its own."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|[^A-Za-z0-9.]+")
"""What stands between the words of a column's name: `TimeMs`, `Run1 (ms)` and `time_ms` hold a unit each."""
_NAMES = {kind: re.compile(pattern, re.ASCII) for kind, pattern in column_map("table")["names"].items()}
"""Kinds of names of columns, by their words (`_words`): what may have been measured, and what was not."""
CLOCK_FALLS = 0.3
"""Share of steps in which a column falls, as at the begin of another device, up to which it is a clock."""
LEAST_EVEN = 20
"""Values of a column of times that grow in even steps, from which it is a clock whatever its unit."""
LONGEST_NAME = 1000
"""Characters of a column's name that may say what was timed."""
UNITS = {"sec": "s", "seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

RENAME = "Rename them."
WRITE_HEADER = "Write a header above it, with duration_ms (or another unit) over what was measured."
ORDERED_ROWS = 1 << 15
"""Rows per block that are handed over when the file's order is not the rows' order."""


def probe(path: Path) -> bool:
    """Return whether the file is Parquet, or text that is no JSON without rows."""
    head = head_of(path)
    line = head.lstrip(b"\r\n").split(b"\n", 1)[0]
    if text_of(head).startswith((b"PAR1", b"{", b"[")):
        return detect(path) == "table"
    return bool(head) and b"\x00" not in line and not head.startswith((b"SQLite", b"\x89HDF"))


def _plain(path: Path) -> type[PlainCsv | PlainParquet]:
    """Return what reads a table."""
    head = text_of(first_bytes(path))
    if head.startswith(b"PAR1"):
        return PlainParquet
    return PlainJsonLines if head.startswith((b"{", b"[")) else PlainCsv


def duration_columns(path: Path, targets: Sequence[str]) -> list[str]:
    """Return the columns of a table that are named as durations, with what was timed and its unit, else with either,
    the longest mean first, those of the host last, as targets are called; of several statistics means, medians and
    wholes, and none of text beside one of numbers. None where one of `targets` is there, or where the file cannot be
    read: the reader says why.
    """
    columns: list[str] = []
    held: dict[str, list[float]] = {}
    with suppress_unless_of_the_machine(OSError, pa.ArrowInvalid, csv.Error, ExportError):
        if (reader := _plain(path)) is PlainCsv:
            columns, delimiter, above = csv_header(path, path.name)
            first = head_of(path).decode("utf-8", "replace").splitlines()[above:]
            rows = csv.reader(first, delimiter=delimiter)  # enough to see what a column holds
            for cells in rows:
                for name, cell in zip(columns, cells, strict=False):
                    if (value := _float(cell)) is not None and math.isfinite(value):
                        held.setdefault(name, []).append(value)
        else:
            table = reader(path, path.name, (), ())
            columns = table.columns
            block = next(table.blocks(), (0, {}))[1]
            held = {name: numbers(cells).drop_null().to_pylist() for name, cells in block.items() if _durations([name])}
    if columns_called(columns, targets):
        return []
    columns = [name for name in columns if not _is_clock(_words(name), held.get(name, []))]
    columns.sort(key=lambda name: -np.mean(held.get(name) or 0.0) * NANOSECONDS.get(_unit(name), 1.0))
    measured = _durations([name for name in columns if held.get(name)]) or _durations(columns)
    # columns of one value in all of several rows were set where none beside them varies
    varied = _durations([name for name in columns if len(set(of := held.get(name, []))) > (len(of) > 1)])
    return measured if set(varied) & set(measured) else varied or measured


def _is_clock(words: str, values: list[float]) -> bool:
    """Return whether a column of such a name that holds such values is a clock, by how rarely they fall; the last
    value may be cut.
    """
    may_be = _NAMES["clock"].fullmatch(words) is not None
    if words.startswith("time_") and len(values) > LEAST_EVEN:
        steps = np.diff(values[:-1])
        if steps.min() > 0 and np.ptp(steps) <= steps.max() / 1000:
            return True
    if not may_be and (_in_unit(words) or _NAMES["no_clock"].fullmatch(words)):
        return False
    falls = sum(later < earlier for earlier, later in itertools.pairwise(values[:-1]))
    return (words == "time" or len(values) > 2) and falls <= may_be * CLOCK_FALLS * max(0, len(values) - 2)


def _words(name: str) -> str:
    """Return the words of a column's name; none of a long one, in other letters, in per cent, or internal (`_x`).

    >>> _words("TimeMs"), _words("kernel time (µs)"), _words("GPUTime"), _words("SMs"), _words("Time (%)")
    ('time_ms', 'kernel_time_us', 'gpu_time', 'sms', '')
    >>> _words("GPU(s)"), _words("Total (s)"), _words("Bytes/ns"), _words("ns/iter"), _words("_runtime")
    ('gpus', 'total_s', 'bytes_per_ns', 'ns_per_iter', '')
    """
    name = re.sub("[\u00b5\u03bc]", "u", name)
    if len(name) > LONGEST_NAME or not name.isascii() or "%" in name or name.startswith("_"):
        return ""
    name = re.sub(r"(?<=[A-Za-z])\(s\)", "s", name).replace("/", " per ")
    return _WORDS.sub("_", name).strip("_").lower()


def _durations(columns: Sequence[str]) -> list[str]:
    """Return those columns that are named as durations, by the strictest form that one has, as targets are called."""
    words = {name: _NAMES["each"].sub(r"\1\2", _words(name)).partition("_per_")[0] for name in columns}
    timed = [name for name in columns if not _NAMES["not_measured"].search(words[name])]
    forms = (_NAMES[form] for form in ("duration", "in_unit", "timed"))
    named = ([name for name in timed if form.fullmatch(words[name])] for form in forms)
    durations = next(filter(None, named), [])
    durations = [name for name in durations if not _NAMES["statistic"].search(words[name])] or durations
    durations.sort(key=lambda name: bool(_NAMES["of_host"].search(words[name])))
    return list(dict.fromkeys(map(target_name, durations)))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one table.

    Raises
    ------
    ExportError
        If it has no column that may be the target, no number in it, or cannot be parsed.
    """
    rules = column_map("table")
    table = _plain(path)(path, options.source, rules["missing"], {*options.targets, "kernel", "configuration"})
    others = [name for name in table.columns if _words(name) != "time"]
    is_measured = bool(columns_called(table.columns, options.targets) or _durations(others))
    if not is_measured and (content := known_content("contents", head_of(path))):
        raise ExportError(options.source, content["found"], "a measured value per row", content["advice"])
    TableReader(table, sink, options).read()


class TableReader:
    """The reader of one table."""

    def __init__(self, table: PlainCsv | PlainParquet, sink: Sink, options: Options) -> None:
        self.table = table
        self.sink = sink
        self.options = options
        self.targets = columns_called(table.columns, options.targets)
        names = column_map("table")["columns"]
        self.raw_name = {ours: raw for raw, ours in names.items() if raw in table.columns and raw not in self.targets}
        self.rows = self.invalid = 0
        self.first_invalid: dict[str, int] = {}

    def read(self) -> None:
        """Check the columns, then hand the rows over.

        Raises
        ------
        ExportError
            As of `read` of this module.
        """
        columns = self.table.columns
        n_values = sum(re.match(r"[+-]?\.?\d", name) is not None for name in columns)
        if not self.targets and isinstance(self.table, PlainCsv) and 2 * n_values > len(columns):
            raise self._error("its first line holds values, no names of columns", "a header", WRITE_HEADER)
        twice = sorted(name for name, count in Counter(columns).items() if count > 1)
        if twice:
            names = ", ".join(name or "one without a name" for name in twice[:5])
            raise self._error(f"columns occur twice: {names}", "a header with distinct names", RENAME)
        alike = [name for name, count in Counter(map(target_name, self.targets)).items() if count > 1]
        if alike:
            names = ", ".join(columns_called(columns, alike[:1]))
            raise self._error(f"columns {names} are both called {alike[0]}", "names that stay apart", RENAME)
        if not self.targets:
            wanted = " or ".join(self.options.targets)
            have = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
            measured = [
                target_name(name) for name in columns if name in self.table.numeric and _NAMES["may_be"].match(name)
            ]
            name = next((name for name in measured if name and len(columns_called(columns, [name])) == 1), "COLUMN")
            advice = f"Rename the column, or name it: `causeway run FILE --set targets.tables=[{name}]`."
            if tool := _telemetry(columns):
                advice += f" Is it telemetry of {tool}? {TELEMETRY_ADVICE}"
            raise self._error(
                f"there is no column {wanted}; it has {have}", f"a column {wanted} with the measured value", advice
            )
        order = self._survey()
        self.sink.count_in("rows", self.rows + self.table.bad)
        self.sink.issues.add("unfinished_line", int(self.table.unfinished))
        if not self.measured:
            which, have = ("columns", "have") if len(self.targets) > 1 else ("column", "has")
            problem = f"{which} {', '.join(self.targets)} {have} no number in {self.rows} rows"
            advice = "Check the column."
            if not self.rows:
                problem = "it has no row below its header"
            if self.with_commas:
                problem = f"{problem}: {self.with_commas:,} cells have a decimal comma"
                advice = "Write the table again with decimal points."
            raise self._error(problem, "a measured value per row", advice)
        self.sink.processes.note(np.array([self.sink.processes.code(0)]), np.zeros(1, np.int64), launches=True)
        self.sink.counters(self._fields(), self._batches(order))
        if self.table.failure:
            raise self.table.failure

    def _error(self, problem: str, expected: str, advice: str) -> ExportError:
        return ExportError(self.options.source, problem, expected, advice)

    def _survey(self) -> np.ndarray | None:
        """Count rows and measured values; return the order of the rows if it is not that of the file."""
        progress = self.options.progress()
        self.measured = self.with_commas = 0
        order = []
        for done, block in self.table.blocks():
            self.rows += len(block[self.targets[0]])
            self.measured += sum(
                len(column) - numbers(column).null_count for column in (block[name] for name in self.targets)
            )
            self.with_commas += sum(_with_commas(block[name]) for name in self.targets)
            if "order" in self.raw_name:
                order.append(block[self.raw_name["order"]])
            progress.at(done // 2)
        if not order:
            return None
        # stable, absent values last
        indices = pc.sort_indices(pa.chunked_array(self._sortable(order))).to_numpy()
        return None if (indices[1:] > indices[:-1]).all() else indices

    def _sortable(self, order: list[pa.Array]) -> list[pa.Array]:
        """Return the column of orders as it is to be sorted: text of which most are numbers as numbers, null for the
        others, which are counted.
        """
        if not pa.types.is_string(order[0].type):
            return order
        parsed = [numbers(block) for block in order]
        written = pa.chunked_array(order).is_valid()
        odd = pc.and_not(written, pa.chunked_array(parsed).is_valid()).to_numpy()
        if 2 * np.count_nonzero(odd) >= pc.sum(written).as_py():
            return order
        self._count_invalid(self.raw_name["order"], odd, 0, None)
        return parsed

    def _fields(self) -> list[pa.Field]:
        """Return the columns; names that our tables use themselves get an ending."""
        special = set(self.raw_name.values())
        taken = set(TAKEN)
        renamed = []
        self.columns: dict[str, str] = {}
        for name in self.table.columns:
            if name not in special:
                column = (target_name(name) if name in self.targets else name) or "unnamed"
                while column in taken:
                    column += "_2"
                if column != name:
                    renamed.append(f"{name} -> {column}")
                taken.add(column)
                self.columns[name] = column
        self.sink.issues.add("renamed_columns", len(renamed), ", ".join(renamed)[:200])
        unusable = getattr(self.table, "unusable", [])
        self.sink.issues.add("unusable_columns", len(unusable), ", ".join(unusable)[:200])
        numeric = {*self.table.numeric, *self.targets}
        return [
            metric_field(column, name, _unit(name) if name in self.targets else "", text=name not in numeric)
            for name, column in self.columns.items()
            if name not in unusable
        ]

    def _batches(self, order: np.ndarray | None) -> Iterator[CounterRows]:
        progress = self.options.progress()
        blocks = self._blocks(progress)
        if order is not None:
            parts = list(blocks)
            whole = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
            parts_of_order = [
                pa.array(order[begin : begin + ORDERED_ROWS]) for begin in range(0, self.rows, ORDERED_ROWS)
            ]
            blocks = ({name: column.take(part) for name, column in whole.items()} for part in parts_of_order)
        first = 0
        for block in blocks:
            yield self._rows(block, first, order)
            first += len(block[self.targets[0]])
        issues = self.sink.issues
        issues.add("unreadable_rows", self.table.bad, self.table.first_bad)
        issues.add(
            "not_a_number",
            self.invalid,
            ", ".join(f"column {name}, row {row}" for name, row in list(self.first_invalid.items())[:3]),
        )

    def _blocks(self, progress) -> Iterator[dict[str, pa.Array]]:
        for done, block in self.table.blocks():
            progress.at(self.table.size // 2 + done // 2)
            yield block

    def _rows(self, block: dict[str, pa.Array], first: int, order: np.ndarray | None) -> CounterRows:
        """Return a block's rows: numbers, NaN where invalid, and codes of kernels and configurations."""
        sink = self.sink
        raw_name = self.raw_name
        n = len(block[self.targets[0]])
        kernel = np.full(n, sink.kernel(ALL_LAUNCHES)) if "kernel" not in raw_name else None
        if kernel is None:
            kernel = mapped_texts(block[raw_name["kernel"]].cast(pa.string()), sink.kernel)
            sink.issues.add("missing_name", int((kernel == sink.kernel(None)).sum()))
        label = mapped_texts(block[raw_name["label"]].cast(pa.string()), self._label) if "label" in raw_name else None
        values = {}
        for name, column in self.columns.items():
            if name in self.targets:
                cells = numbers(block[name]).to_numpy(zero_copy_only=False)
                absent = ~np.isfinite(cells)
                sink.issues.add("no_target", int(absent.sum()), f"column {name}")
                self._count_invalid(name, absent & block[name].is_valid().to_numpy(zero_copy_only=False), first, order)
            elif name in self.table.numeric:
                cells = block[name].to_numpy(zero_copy_only=False)
                if np.isinf(cells).any():
                    self._count_invalid(name, np.isinf(cells), first, order)
            else:
                cells = block[name]
            values[column] = cells
        return CounterRows(kernel=kernel, process=0, values=values, label=label)

    def _label(self, text: str | bytes | None) -> int:
        return NULL if text is None else self.sink.labels.code(clean_text(text))

    def _count_invalid(self, name: str, invalid: np.ndarray, first: int, order: np.ndarray | None) -> None:
        if invalid.any():
            self.invalid += int(invalid.sum())
            row = first + int(np.flatnonzero(invalid)[0])
            self.first_invalid.setdefault(name, 1 + int(row if order is None else order[row]))


def _unit(name: str) -> str:
    """Return the unit of time that the name of a column ends in.

    >>> _unit("duration_ns"), _unit("latency_us"), _unit("Time_SEC"), _unit("y"), _unit("tokens_per_sec")
    ('ns', 'us', 's', '', '')
    >>> _unit("seconds"), _unit("mean_microseconds"), _unit("ns_per_iter"), _unit("ms_median"), _unit("Run1 (ms)")
    ('s', 'us', 'ns', 'ms', 'ms')
    """
    unit = _in_unit(_words(name))
    return UNITS.get(unit, unit)


def _in_unit(words: str) -> str:
    ending = _NAMES["unit"].search(words)
    return ending[1] if ending else ""


def numbers(column: pa.Array) -> pa.Array:
    """Return a column, shape (n,), as float64, null where it is no finite number."""
    if pa.types.is_string(column.type):
        try:
            column = column.cast(pa.float64())
        except pa.ArrowInvalid:
            column = pa.array([_float(cell) for cell in column.to_pylist()], pa.float64())
    return pc.if_else(pc.fill_null(pc.is_finite(column), False), column, pa.scalar(None, pa.float64()))


def _with_commas(column: pa.Array) -> int:
    """Return how many cells of a column are numbers with a decimal comma."""
    if not pa.types.is_string(column.type):
        return 0
    return pc.sum(pc.match_substring_regex(column, r"^[+-]?\d+,\d+$")).as_py() or 0


def _float(cell: str | None) -> float | None:
    try:
        return float(cell) if cell is not None and "_" not in cell else None
    except ValueError:
        return None


def _telemetry(columns: list[str]) -> str | None:
    """Return the format of telemetry whose time or device are among columns, that with most metrics among them; None if
    there is none.
    """
    names = {column.partition("[")[0].strip().lower() for column in columns}
    metrics = {
        word: len(names & {key.lower() for key in entry.get("metrics", ())})
        for word, entry in column_map("telemetry")["formats"].items()
        if names & {key.lower() for key in (*entry.get("time", ()), *entry.get("device", ()))}
    }
    word = max(metrics, key=metrics.__getitem__, default=None)
    return word if word and metrics[word] else None
