"""Telemetry in delimited text with a header: nvidia-smi's query, rocm-smi, amd-smi, LDMS's store_csv, the long form."""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.telemetry.metric_names import TelemetryFormat, TelemetryMetric, format_of, own_metric, raw_name
from causeway.telemetry.readings import MOST_METRICS, Readings, frames

FIRST_LINES = 64
"""Lines by which a format is recognised, and before which its header stands."""
LONGEST_LINE = 1 << 20
"""Characters of a line; a longer one is no row."""
ADVICE = {
    "nvidia-smi": "Record with --query-gpu=timestamp,index,uuid,... --format=csv, not noheader.",
    "rocm-smi": "rocm-smi writes no time: put one before each row, in a column named timestamp.",
    "amd-smi": "Record with amd-smi metric --csv --watch 1, which writes the column timestamp.",
    "ldms": "Keep the header of store_csv, in the file or in the file beside it that ends with .HEADER.",
    "long": "Name the columns time, node, device, metric and value.",
}
PER_DEVICE = re.compile(r"^(?:gpu(?P<before>\d{1,3})[._:])?(?P<metric>.+?)(?:[#:](?:gpu)?(?P<after>\d{1,3}))?$")
"""LDMS gives a metric of a device as gpu0.sm_clock, sm_clock#0 or sm_clock:gpu0."""


def rows_of(lines: Iterator[str], delimiter: str, readings: Readings) -> Iterator[list[str]]:
    """Yield the fields of lines that are not empty; lines that are no rows are counted."""
    csv.field_size_limit(LONGEST_LINE)
    for line in lines:
        if line.count('"') % 2:  # a cell of telemetry has one line: a quotation that is not closed costs its row
            readings.note("no_row", 1, line)
        elif line.strip():
            try:
                yield next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
            except csv.Error as error:
                readings.note("no_row", 1, error)


def header_of(path: Path, text: str) -> list[str] | None:
    """Return the fields of a header line, without the # that LDMS puts before it; None for a line of data."""
    fields = next(csv.reader([text.strip().removeprefix("#").lstrip()], skipinitialspace=True), [])
    names = [raw_name(field) for field in fields]
    return names if names and not any(re.fullmatch(r"[\d./: T+-]+", name) for name in names) else None


def _header(path: Path, rows: Iterator[list[str]], form: TelemetryFormat) -> tuple[list[str], list[str] | None]:
    """Return the first row that is a header with times or a row of data, and its fields as `header_of` has them; what
    the tool says before its header (`'CTRL' + 'C' to stop watching output:`, `WARNING: ...`) is passed over.
    """
    first: list[str] = []
    columns = None
    for first in islice(rows, FIRST_LINES):
        columns = header_of(path, ",".join(first))
        if columns is None or set(form.time) & set(columns):
            break
    return first, columns


def read_delimited(path: Path, lines: Iterator[str], name: str, readings: Readings) -> None:
    """Read a file of a format with a header; a header that comes again is left out.

    Parameters
    ----------
    path : Path
        For messages, and for LDMS's file of the header.
    lines : iterator of str
    name : str
        nvidia-smi, rocm-smi, amd-smi, ldms or long.
    readings : Readings
        Takes what is read.

    Raises
    ------
    ExportError
        Without a header, without a column of times, or where several devices take turns and no column names them.
    """
    form = format_of(name)
    rows = rows_of(lines, ",", readings)
    first, columns = _header(path, rows, form)
    beside = path.with_name(path.name + ".HEADER")
    pending = [first] if columns is None and first else []
    if columns is None and name == "ldms" and beside.is_file():
        with open(beside, encoding="utf-8", errors="replace") as file:
            columns = header_of(path, file.readline(LONGEST_LINE))
    if columns is None or not set(form.time) & set(columns):
        raise ExportError(
            str(path),
            f"no header with a column of times ({', '.join(form.time)})",
            f"telemetry of the format {name}",
            ADVICE[name],
        )
    columns = [
        column if columns.index(column) == index else f"{column}\0{index}" for index, column in enumerate(columns)
    ]

    def data() -> Iterator[list[str]]:
        yield from pending
        for row in rows:
            if [raw_name(field.removeprefix("#").lstrip()) for field in row[:2]] != columns[:2]:
                yield row

    (_read_long if name == "long" else _read_wide)(path, data(), columns, form, readings)
    told_apart = {*form.device, *form.uuid, *(() if readings.device else form.bus)}
    if not told_apart & set(columns) and readings.take_turns():
        raise ExportError(
            str(path),
            "several devices take turns in its rows, and no column says which",
            "a column that names the device, or the rows of one device",
            ADVICE[name],
        )


def _read_wide(
    path: Path, rows: Iterator[list[str]], columns: list[str], form: TelemetryFormat, readings: Readings
) -> None:
    """Read rows that have one column per metric."""
    keys = {*form.time, *form.node, *form.device, *form.bus, *form.uuid}
    metrics: dict[str, dict[str, TelemetryMetric]] = {}  # by device that the column names, empty: that of the row
    for column in columns:
        if column in keys:
            continue
        parts = PER_DEVICE.match(column)
        direct = form.metrics.get(column)
        metric = direct or (form.metrics.get(parts["metric"]) if parts else None)
        if metric is None:
            readings.ignore(column.partition("\0")[0])
        else:
            device = "" if direct or parts is None else parts["before"] or parts["after"] or ""
            metrics.setdefault(device, {})[column] = metric
    for frame in frames(rows, columns, readings, path):
        for device, own in metrics.items():
            readings.add(frame.assign(**{form.device[0]: device}) if device else frame, form, own)


def _read_long(
    path: Path, rows: Iterator[list[str]], columns: list[str], form: TelemetryFormat, readings: Readings
) -> None:
    """Read rows of one reading each, with the columns metric and value.

    Raises
    ------
    ExportError
        Without these columns.
    """
    if missing := sorted({"metric", "value"} - set(columns)):
        raise ExportError(str(path), f"no column {' and '.join(missing)}", "the plain long form", ADVICE["long"])
    metrics: dict[str, TelemetryMetric | None] = {}

    def metric_of(raw: str) -> TelemetryMetric | None:
        if raw not in metrics and len(metrics) < 2 * MOST_METRICS:
            metrics[raw] = own_metric(raw)
        return metrics.get(raw)

    for frame in frames(rows, columns, readings, path):
        readings.add_long(frame, form, metric_of)
