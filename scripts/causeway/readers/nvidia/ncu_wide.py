"""Nsight Compute's wide raw page (`ncu --csv --page raw`): one row per launch, one column per metric, units in the row
below the header; and a pivot of the long page, as pandas writes it: its header begins with `Metric Name`, and the units
are lost.

A file is read twice, row by row, so that memory does not grow with it: once to learn the notation of its numbers (one
for the whole file), which columns are numbers and which rows are launches; once to hand the values over.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import ALL_LAUNCHES, GPU_TIME
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import PRINTED_BYTES, head_of
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import (
    base_unit,
    integer,
    is_missing,
    notation,
    number,
    scaled,
    scaled_integer,
    size_columns,
    with_null,
    without_instances,
)
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_lines import CsvLines, delimiter_of
from causeway.readers.nvidia.ncu_long import other_page, unit_by_name
from causeway.readers.sink.counter_table import duration_ns, name_metrics, with_duration
from causeway.readers.sink.records import CounterRows
from causeway.readers.sink.sink import Sink

BLOCK_VALUES = 1 << 20
HEADERS = (["ID", "Process ID"], ["ID", "Kernel Name"])
"""How a page's header begins: in full, or without the columns of processes and hosts."""

ADVICE = "Capture again with `ncu --csv --page raw` and check that kernels run."
_METRIC = re.compile(r"[a-z0-9]+__[\w.\[\]]+$")


def probe(path: Path) -> bool:
    """Return whether the file has the header of a wide page or of a pivot."""
    head = head_of(path, PRINTED_BYTES)
    return _find_header(CsvLines(io.StringIO(head.decode("utf-8-sig", "replace"), newline=""))) is not None


@dataclass(kw_only=True)
class Page:
    """A page's header.

    Parameters
    ----------
    header : list of str
    position : dict of str to int
        Index of each known column, by our names.
    metrics : list of (int, str)
        Index and name of each metric's column.
    pivot : bool
        Whether it is a pivot of the long page.
    units : dict of int to str
        Unit of each metric, by its column's index.
    """

    header: list[str]
    position: dict[str, int]
    metrics: list[tuple[int, str]]
    pivot: bool
    units: dict[int, str] = field(default_factory=dict)


def _find_header(lines: CsvLines) -> Page | None:
    rules = column_map("ncu")
    skipped = {*rules["columns"], *rules["not_metrics"]}
    while (line := lines.next_line()) is not None:
        if line.startswith("=="):
            continue
        lines.delimiter = delimiter_of(line)
        cells = lines.cells(line.strip(), lines.delimiter)
        if cells[:2] in HEADERS:
            if "Metric Name" in cells or "Kernel Name" not in cells:
                return None
            position = {ours: cells.index(raw) for raw, ours in rules["columns"].items() if raw in cells}
            metrics = [(index, name) for index, name in enumerate(cells) if name and name not in skipped]
            return Page(header=cells, position=position, metrics=metrics, pivot=False)
        if cells[:1] == ["Metric Name"]:
            first = next((index for index, cell in enumerate(cells) if index and cell), len(cells))
            metrics = [(index, name) for index, name in enumerate(cells) if index >= first and name]
            if any(_METRIC.match(name) for _, name in metrics):
                return Page(header=cells, position={}, metrics=metrics, pivot=True)
            return None
    return None


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one page.

    Raises
    ------
    ExportError
        If there is no launch in it, or it is cut; what stands before the cut is kept.
    """
    reader = WideReader(path, sink, options)
    failure = reader.survey()
    if not reader.launches:
        raise failure or ExportError(options.source, "there is a header but no launch", "one row per launch", ADVICE)
    reader.hand_over()
    if failure:
        raise failure


class WideReader:
    """The reader of one page, which it reads twice: `survey`, then `hand_over`."""

    def __init__(self, path: Path, sink: Sink, options: Options) -> None:
        self.path = path
        self.sink = sink
        self.options = options
        self.shapes = column_map("ncu")["shape"]
        self.launches = self.bad = 0
        self.first_bad = ""
        self.european = False

    def _rows(self) -> Iterator[tuple[int, list[str], bool]]:
        """Give the rows of launches: line, cells, whether the line is whole. Sets `page` at each header, and its
        units; ends where a page with other columns or units begins, whose line becomes `other_page`.
        """
        self.other_page = 0
        progress = self.options.progress()
        with open(self.path, "rb") as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as text:
            lines = CsvLines(text)
            self.page = _find_header(lines) or Page(header=[], position={}, metrics=[], pivot=False)
            first = True
            for row, whole in lines.rows():
                if not lines.number & 0xFF:
                    progress.at(raw.tell())
                if row == self.page.header or (row and row[0].startswith("==")):
                    first = True
                    continue
                units = self.page.units
                if first and self._is_second_header(row):
                    first = False
                    if units in ({}, self.page.units):
                        continue
                    self.page.units = units
                    self.other_page = lines.number
                if row[:2] in HEADERS:
                    self.other_page = lines.number
                if self.other_page:
                    break
                first = False
                yield lines.number, row, whole
            self.unclosed = lines.unclosed

    def _is_second_header(self, row: list[str]) -> bool:
        """Take the row of units, or a pivot's row of index names; return whether this is one."""
        page = self.page
        if page.pivot:
            for index, name in enumerate(row[: page.metrics[0][0]]):
                ours = column_map("ncu")["columns"].get(name)
                if ours:
                    page.position[ours] = index
            return not any(row[index] for index, _ in page.metrics if index < len(row))
        launch = page.position.get("launch", 0)
        if launch < len(row) and row[launch] == "":
            page.units = {index: row[index] for index, _ in page.metrics if index < len(row)}
            return True
        return False

    def survey(self) -> ExportError | None:
        """Learn the notation, the columns' types and the launches; return the error of a file that is cut, or of which
        only the first page is read.
        """
        usual = european = 0
        self.numeric = set()
        self.texts = set()
        self.processes = set()
        cut = None
        for line, row, whole in self._rows():
            if not self._usable(row, whole):
                if not whole:
                    cut = f"the file ends in the middle of line {line}"
                else:
                    self.bad += 1
                    self.first_bad = (
                        self.first_bad or f"line {line} has {len(row)} fields, the header {len(self.page.header)}"
                    )
                continue
            self.launches += 1
            self.sink.issues.add("unfinished_line", int(not whole), f"line {line}")
            self.processes.add(row[self.page.position["process"]] if "process" in self.page.position else "")
            for index, _ in self.page.metrics:
                cell = row[index] if index < len(row) else ""
                seen = notation(cell)
                usual += seen == "usual"
                european += seen == "european"
                if number(without_instances(cell)) is not None or seen:
                    self.numeric.add(index)
                elif not is_missing(cell):
                    self.texts.add(index)
        self.european = european > usual
        self.sink.issues.add("mixed_locales", min(usual, european))
        self.bad += self.unclosed
        self.sink.issues.add("unreadable_rows", self.bad, self.first_bad or "a quotation that is never closed")
        self.sink.count_in("rows", self.launches + self.bad)
        if self.other_page:
            return other_page(self.options.source, self.other_page)
        if cut is None:
            return None
        self.sink.issues.add("truncated", 1, cut)
        return ExportError(self.options.source, cut, "complete lines", "Copy it again, or capture again.")

    def _usable(self, row: list[str], whole: bool) -> bool:
        if not whole and len(row) < len(self.page.header):
            return False
        return len(row) > max([self.page.metrics[0][0] if self.page.metrics else 0, *self.page.position.values()])

    def _unit(self, index: int, name: str) -> str:
        if self.page.units and not self.page.pivot:
            return self.page.units.get(index, "")
        return unit_by_name(name)

    def hand_over(self) -> None:
        """Describe the columns and give the rows to the sink, which takes them when it writes."""
        sink = self.sink
        page = self.page
        units = {column: base_unit(self._unit(column, name)) for column, name in page.metrics}
        unknown = sorted({self._unit(column, name) for column, name in page.metrics if not units[column][2]})
        sink.issues.add("unknown_units", len(unknown), clean_text(", ".join(unknown))[:200])
        if page.pivot or not page.units:
            what = "a pivot" if page.pivot else "a page"
            sink.issues.add(
                "unknown_units", 1, f"{what} without units: the base units of the metrics' names were taken"
            )
        columns: dict[tuple, int] = {}
        for column, name in page.metrics:
            if name not in self.shapes and (column in self.numeric or column in self.texts):
                columns.setdefault(("", name, units[column][0]), column)
        self.columns = list(columns.values())
        text_only = {index for index, column in enumerate(self.columns) if column not in self.numeric}
        fields = name_metrics(list(columns), text_only, sink)
        fields, cycles = with_duration(fields, sink)
        ordered = sorted(self.processes, key=lambda text: (integer(text) or 0, text))
        codes = {text: sink.processes.code(integer(text) or 0) for text in ordered}
        sink.processes.note(
            np.array(sorted(set(codes.values()))), np.zeros(len(set(codes.values())), np.int64), launches=True
        )
        if "kernel" not in page.position:
            sink.issues.add("missing_name", self.launches)
        sink.counters(fields, self._blocks(fields, text_only, cycles, units, codes))

    def _blocks(self, fields, text_only, cycles, units, codes) -> Iterator[CounterRows]:
        step = max(1, BLOCK_VALUES // max(1, len(self.page.header)))
        usable = (row for _, row, whole in self._rows() if self._usable(row, whole))
        not_numbers = incomplete = 0
        while held := list(islice(usable, step)):
            block, more, gaps = self._block(held, fields, text_only, cycles, units, codes)
            not_numbers += more
            incomplete += gaps
            yield block
        self.sink.issues.add("not_a_number", not_numbers)
        self.sink.issues.add("incomplete_launches", incomplete)

    def _block(self, rows, fields, text_only, cycles, units, codes) -> tuple[CounterRows, int, int]:
        """Return a block of launches, its values that are no numbers, and its launches with gaps."""
        n = len(rows)
        position = self.page.position
        not_numbers = 0
        values: dict[str, np.ndarray | pa.Array] = {}
        gaps = np.zeros(n, bool)
        for column, (index, described) in enumerate(zip(self.columns, fields, strict=False)):
            cells = [row[index] if index < len(row) else "" for row in rows]
            if column in text_only:
                texts = [None if is_missing(cell) else clean_text(cell) for cell in cells]
                values[described.name] = pa.array(texts, pa.string())
                not_numbers += sum(text is not None for text in texts) if units[index][0] else 0
                continue
            parsed = [number(without_instances(cell), self.european) for cell in cells]
            factor = units[index][1]
            numbers = np.array([np.nan if value is None else scaled(value, factor) for value in parsed])
            not_numbers += sum(value is None and cell != "" for value, cell in zip(parsed, cells, strict=True))
            gaps |= np.isnan(numbers)
            values[described.name] = numbers
        if cycles:
            elapsed, per_second = cycles
            values[GPU_TIME] = duration_ns(values[elapsed], values[per_second])
        kernels = [row[position["kernel"]] if "kernel" in position else ALL_LAUNCHES for row in rows]
        device = with_null(integer(row[position["device"]]) for row in rows) if "device" in position else None
        process = np.array([codes[row[position["process"]] if "process" in position else ""] for row in rows])
        kernel = np.array([self.sink.kernel(name) for name in kernels])
        if device is not None and "compute_capability" in position:
            capability = [row[position["compute_capability"]] for row in rows]
            for code, number_of, text in dict.fromkeys(zip(process.tolist(), device.tolist(), capability, strict=True)):
                if number_of != NULL:
                    self.sink.device(code, number_of, compute_capability=text)
        return (
            CounterRows(kernel=kernel, process=process, values=values, device=device, shape=self._shape(rows, units)),
            not_numbers,
            int(gaps.sum()),
        )

    def _shape(self, rows: list[list[str]], units: dict) -> dict[str, np.ndarray]:
        """Return the launch configuration: from the columns Grid Size and Block Size, else from the metrics of it."""
        shape: dict[str, np.ndarray] = {}
        for ours in ("grid", "block"):
            if ours in self.page.position:
                shape |= size_columns(ours, [row[self.page.position[ours]] for row in rows])
        for index, name in self.page.metrics:
            ours = self.shapes.get(name)
            if ours and ours not in shape:
                parsed = [number(row[index], self.european) if index < len(row) else None for row in rows]
                shape[ours] = with_null(
                    None if value is None else scaled_integer(value, units[index][1]) for value in parsed
                )
        return shape
