"""Telemetry in columns between blanks, one row per device: `nvidia-smi dmon` and `dcgmi dmon`."""

from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.telemetry.metric_names import TelemetryFormat, TelemetryMetric, format_of
from causeway.telemetry.readings import CHUNK_ROWS, Readings, frames

ENTITY = "entity"


def read_nvidia_dmon(path: Path, lines: Iterator[str], readings: Readings) -> None:
    """Read what `nvidia-smi dmon -o DT` writes, also with `--format csv`; headers come again every some rows.

    Raises
    ------
    ExportError
        Where rows have no date and time, or are of processes, as `nvidia-smi pmon` writes them.
    """
    form = format_of("nvidia-smi-dmon")
    for columns, rows in _blocks(lines, "gpu"):
        if "pid" in columns:
            raise ExportError(
                str(path),
                "its rows are of processes, as nvidia-smi pmon writes them, not of devices",
                "nvidia-smi dmon with both date and time",
                "Record with nvidia-smi dmon -o DT.",
            )
        if "date" not in columns or "time" not in columns:
            raise ExportError(
                str(path),
                "no date and time in its rows",
                "nvidia-smi dmon with both",
                "Record with nvidia-smi dmon -o DT.",
            )
        metrics = _metrics(columns, ("date", "time", "gpu"), form, readings)
        for frame in frames(iter(rows), columns, readings, path):
            readings.add(frame.assign(time=frame["date"] + " " + frame["time"]), form, metrics)


def read_dcgmi(path: Path, lines: Iterator[str], readings: Readings) -> None:
    """Read what `dcgmi dmon` writes where a time stands before each of its rows (`dcgmi dmon ... | ts '%FT%T%z'`).

    Raises
    ------
    ExportError
        Where no time stands before the rows.
    """
    form = format_of("dcgmi")
    for columns, rows in _blocks(lines, ENTITY):
        names = columns[columns.index(ENTITY) + 1 :]
        metrics = _metrics(names, (), form, readings)
        whole = (row for row in (_of_gpu(path, row, readings) for row in rows) if row)
        for frame in frames(whole, ["time", "device", *names], readings, path):
            readings.add(frame, form, metrics)


def _of_gpu(path: Path, row: list[str], readings: Readings) -> list[str] | None:
    """Return time, index and values of the row of a whole GPU; None for others."""
    position = next((index for index, word in enumerate(row) if word.upper().startswith("GPU")), None)
    if position is None or position + 1 >= len(row):
        readings.note("no_row", 1, " ".join(row))
        return None
    if row[position].upper() != "GPU":  # an instance of a divided GPU
        readings.note("part_of_a_gpu", 1, " ".join(row[position : position + 2]))
        return None
    if position == 0:
        raise ExportError(
            str(path),
            "no time before its rows",
            "dcgmi dmon with a time before each row",
            "dcgmi writes none: record with dcgmi dmon ... | ts '%FT%T%z', or take the dumps of the DCGM exporter.",
        )
    return [" ".join(row[:position]), *row[position + 1 :]]


def _metrics(
    columns: list[str], keys: tuple[str, ...], form: TelemetryFormat, readings: Readings
) -> dict[str, TelemetryMetric]:
    """Return the metrics among columns; others but the keys are noted as ignored."""
    for name in columns:
        if name not in form.metrics and name not in keys:
            readings.ignore(name.partition("\0")[0])
    return {name: form.metrics[name] for name in columns if name in form.metrics}


def _blocks(lines: Iterator[str], mark: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the columns of the header before some rows, in small letters, and these rows: of bounded number, and all
    below one header. A header has a # and the word `mark`; rows of units have a # or begin with ID, Id in
    older versions.
    """
    columns: list[str] = []
    rows: list[list[str]] = []
    for line in lines:
        words = line.replace(",", " ").split()
        if "#" in line:
            names = [word.lower() for word in line.replace("#", " ").replace(",", " ").split()]
            names = [name if names.index(name) == index else f"{name}\0{index}" for index, name in enumerate(names)]
            if mark in names and names != columns:
                if rows:
                    yield columns, rows
                columns = names
                rows = []
        elif words and columns and not any(word.upper() == "ID" for word in words[:4]):
            rows.append(words)
            if len(rows) == CHUNK_ROWS:
                yield columns, rows
                rows = []
    if rows:
        yield columns, rows
