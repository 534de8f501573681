"""The sheets of exports (sample sheet) and of telemetry: rows with checked values, resolved sources and names.

They are read whenever the workflow is parsed, in every job, so this module uses the standard library alone: pandas
would take a second to import.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError

LONGEST_LINE = 1 << 16
"""Characters of a line of a sheet."""
COLUMNS = ("dataset", "rank", "source", "format", "node", "series", "run")
REQUIRED = ("dataset", "source")
SIMULATED = "simulated:"
TRACE_FEATURES = ("duration_ns", "queue_ns")
"""Columns of a trace's launches whose statistics may stand in `bins.parquet`."""


@dataclass(frozen=True)
class Export:
    """One row of the sheet.

    Attributes
    ----------
    dataset : str
    export : str
        Name of its folder of tables: the sheet's rank, else e0, e1 ... in the sheet's order among the dataset's rows
        without a rank.
    rank : int or None
        The sheet's rank, from 0; None where the sheet has none.
    position : int
        Index of the row among those of its dataset, from 0.
    source, format, node : str
        As in the sheet; `auto` for an empty format.
    path : Path
        The resolved source; for a simulated export the file's name inside the run's folder.
    simulated_run : str or None
        The simulated run that writes it; None for other exports.
    series : str
        As in the sheet.
    run : str
        As in the sheet: which repeat of the job it was recorded in; empty where the sheet does not say.
    """

    dataset: str
    export: str
    rank: int | None
    position: int
    source: str
    format: str
    node: str
    path: Path
    simulated_run: str | None
    series: str = ""
    run: str = ""


MOST_VALUES = 1_000_000
"""Values of a configuration: more is no configuration, but aliases of YAML that stand for each other."""
LARGEST_NUMBER = 1 << 53
"""Of a configuration: what a float keeps exactly, and JSON with it."""
LONGEST_QUOTED = 60
"""Characters of a value that an error quotes."""


def check_values(settings: object) -> None:
    """Check that a configuration is of a size that can be looked at, and its numbers are of one that can be meant.

    Raises
    ------
    CausewayError
        If it has more than `MOST_VALUES` values, counting each as often as an alias repeats it, or a number that is
        infinite, not a number, or a whole one beyond `LARGEST_NUMBER`; with its place.
    """
    left = MOST_VALUES
    waiting = [("", settings)]
    while waiting:
        key_path, value = waiting.pop()
        left -= 1
        if left < 0:
            raise CausewayError(f"more than {MOST_VALUES:,} values; do its YAML aliases repeat each other?")
        if isinstance(value, float) and not math.isfinite(value):
            raise CausewayError(f"{key_path}: {value} is no finite number")
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise CausewayError(f"{key_path}: {str(value)[:24]}... is too large; expected at most {LARGEST_NUMBER:,}")
        if isinstance(value, Mapping):
            waiting += [(f"{key_path}: {key}" if key_path else str(key), part) for key, part in value.items()]
        elif isinstance(value, list):
            waiting += [(key_path, part) for part in value]


def check_bin_features(features: Sequence[str], has_counters: bool) -> None:
    """Check `bins.features`, one list for all exports: each name belongs to a trace's launches, or may be a counter.

    Parameters
    ----------
    features : sequence of str
    has_counters : bool
        Whether the sheet has exports of counters, or tables; what columns they have is not known before they are read.

    Raises
    ------
    CausewayError
        If there are traces alone, and their launches have no such column.
    """
    unknown = [name for name in features if name not in TRACE_FEATURES]
    if unknown and not has_counters:
        raise CausewayError(
            f"bins: features: {', '.join(unknown)}: the sheet has traces alone, whose launches have"
            f" {' and '.join(TRACE_FEATURES)}"
        )


def row_violation(error: Any) -> str:
    """Return the violation of a row's schema as one sentence: the column, its value, and what the column holds.

    Parameters
    ----------
    error : jsonschema.ValidationError
        A pattern, or a list of names that are taken, would say little to a reader; the column's description does.
    """
    column = "".join(f"{part}: " for part in error.absolute_path)
    if error.validator in ("pattern", "not", "maxLength") and "description" in error.schema:
        value = error.instance if len(error.instance) <= LONGEST_QUOTED else f"{error.instance[:LONGEST_QUOTED]}..."
        return f"{column}{value!r} cannot stand there; expected: {error.schema['description']}"
    return f"{column}{error.message}"


RESERVED = re.compile(r"[{}<>\x00-\x1f\x7f\x85\u2028\u2029]")
"""Wildcards and path variables of Snakemake, and what ends a line."""


def find_file(name: str, folders: Iterable[Path], what: str) -> Path:
    """Return the first existing file `name`, absolute or under one of `folders`.

    Parameters
    ----------
    name : str
        Absolute or relative path.
    folders : iterable of Path
        Searched in this order.
    what : str
        What the file is, for the message.

    Raises
    ------
    CausewayError
        If there is none; the message lists the paths that were tried.
    """
    candidates = [folder / name for folder in dict.fromkeys(Path(folder) for folder in folders)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise CausewayError(
        f"{what} {name} does not exist; looked for it as {', '.join(str(c) for c in dict.fromkeys(candidates))}"
    )


def sheet_rows(
    sheet: Path, columns: Sequence[str] = COLUMNS, required: Sequence[str] = REQUIRED
) -> list[tuple[int, dict[str, str]]]:
    """Return (line number from 1, row) pairs of a sheet without lines that are empty or start with #.

    Parameters
    ----------
    sheet : Path
        Tab-separated text with a header.
    columns, required : sequence of str
        Columns that it may have, in the order of messages, and those that it must have; others are empty.

    Raises
    ------
    CausewayError
        For a file that is no UTF-8 text or has no row, unknown, missing or repeated columns, or a row that is too long.
    """
    try:
        # not splitlines: a vertical tab or U+2028 in a field does not end the row
        lines = sheet.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CausewayError(f"{sheet}: cannot be read as UTF-8 text ({error})") from None
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not kept:
        raise CausewayError(f"{sheet}: is empty; expected a header line with the columns {' '.join(columns)}")
    delimiter = "\t" if "\t" in kept[0][1] else ","
    header = [name.strip() for name in kept[0][1].split(delimiter)]
    unknown = [name for name in header if name not in columns]
    missing = [name for name in required if name not in header]
    if unknown or missing or len(set(header)) != len(header):
        raise CausewayError(
            f"{sheet}: line {kept[0][0]}: unknown columns {unknown}, missing columns {missing}; expected"
            f" {' '.join(columns)}, each once, separated by tabs or by commas; all but {' and '.join(required)} may be"
            " left out"
        )
    rows = []
    for number, line in kept[1:]:
        values = _fields(line, delimiter)
        if values is None:
            raise CausewayError(
                f"{sheet}: line {number}: is no row of separated fields; a field that opens a quotation mark closes it"
                f" on the same line, of at most {LONGEST_LINE:,} characters"
            )
        if len(values) > len(header):
            raise CausewayError(
                f"{sheet}: line {number}: {len(values)} fields, the header has {len(header)}; separate fields by"
                f" one {'tab' if delimiter != ',' else 'comma'}"
            )
        rows.append((number, dict.fromkeys(columns, "") | {k: v.strip() for k, v in zip(header, values, strict=False)}))
    if not rows:
        raise CausewayError(f"{sheet}: has a header but no row; add one line per export")
    return rows


def _fields(line: str, delimiter: str) -> list[str] | None:
    """Return the fields of a line, None if it is too long or a quotation is left open."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True)) if len(line) <= LONGEST_LINE else None
    except csv.Error:
        return None


def read_sheet(sheet: Path, check_row: Callable[[Any], object], simulated: Iterable[str] = ()) -> list[Export]:
    """Read and check the sheet.

    Parameters
    ----------
    sheet : Path
        Text with a header, separated by tabs, or by commas where the header has no tab; only `dataset` and `source`
        must be there.
    check_row : callable
        Called with each row (a dict of str); raises for a value that the schema forbids.
    simulated : iterable of str
        Names of the configured simulated runs.

    Returns
    -------
    list of Export
        In the sheet's order.

    Raises
    ------
    CausewayError
        For a malformed sheet, an absent source, a simulated run that is not configured, two rows with the same dataset
        and rank, or a dataset in two series; the message names the sheet, the line and the value.
    """
    exports: list[Export] = []
    seen: dict[tuple[str, str], int] = {}
    series: dict[str, tuple[str, int]] = {}  # of each dataset, with its line
    rows: Counter[str] = Counter()  # of each dataset so far
    unranked: Counter[str] = Counter()
    for number, row in sheet_rows(sheet):
        where = f"{sheet}: line {number}"
        try:
            check_row(row)
        except Exception as error:
            raise CausewayError(f"{where}: {error}") from None
        dataset = row["dataset"]
        rank = str(int(row["rank"])) if row["rank"] else ""
        export = rank or f"e{unranked[dataset]}"
        if (dataset, export) in seen:
            raise CausewayError(
                f"{where}: dataset {dataset} already has rank {rank} on line {seen[dataset, export]}; give each export"
                " its own"
            )
        seen[dataset, export] = number
        if row["series"]:
            previous, line = series.setdefault(dataset, (row["series"], number))
            if previous != row["series"]:
                raise CausewayError(
                    f"{where}: dataset {dataset} is part of series {previous} on line {line}, of {row['series']} here;"
                    " a dataset is part of one series"
                )
        run = None
        path = sheet.parent / row["source"]
        if row["source"].startswith(SIMULATED):
            run, _, name = row["source"].removeprefix(SIMULATED).partition("/")
            path = Path(name)
            if run not in simulated:
                raise CausewayError(
                    f"{where}: simulated run {run!r} is not configured; `simulated` in the configuration has"
                    f" {sorted(simulated)}"
                )
            if not name or path.is_absolute() or ".." in path.parts:
                raise CausewayError(
                    f"{where}: {row['source']!r} does not name a file inside the run; write simulated:<run>/<file>"
                )
            if row["format"] in ("", "auto"):
                raise CausewayError(f"{where}: a simulated export needs its format in the sheet, it does not exist yet")
        elif not path.exists():
            raise CausewayError(
                f"{where}: source {row['source']} does not exist (looked for {path}); sources are relative to the sheet"
            )
        elif not (path.is_file() or path.is_dir()):
            raise CausewayError(f"{where}: source {row['source']} is a pipe or a device; expected a file or a folder")
        if reserved := RESERVED.search(str(path)):
            raise CausewayError(
                f"{where}: the path {str(path)!r} holds {reserved[0]!r}, which means something else to Snakemake;"
                " rename it, or name a link to it"
            )
        exports.append(
            Export(
                dataset=dataset,
                export=export,
                rank=int(rank) if rank else None,
                position=rows[dataset],
                source=row["source"],
                format=row["format"] or "auto",
                node=row["node"],
                path=path,
                simulated_run=run,
                series=row["series"],
                run=row["run"],
            )
        )
        rows[dataset] += 1
        unranked[dataset] += not rank
    return exports


def with_reduced(exports: list[Export], filters: Mapping[str, Mapping[str, Any]]) -> list[Export]:
    """Return the sheet's exports, followed by those of the reduced datasets, which are part of no series.

    Parameters
    ----------
    exports : list of Export
    filters : mapping of str to mapping
        The configuration's `filters`: settings by the name of the reduced dataset, with the key `dataset`.

    Raises
    ------
    CausewayError
        If a filter has a dataset's name, or reduces one that the sheet does not have.
    """
    datasets = {export.dataset for export in exports}
    all_exports = list(exports)
    for name, settings in filters.items():
        if name in datasets:
            raise CausewayError(f"filters: {name}: the sheet has a dataset of that name; give the reduced one another")
        if settings["dataset"] not in datasets:
            raise CausewayError(
                f"filters: {name}: there is no dataset {settings['dataset']} in the sheet; it has {sorted(datasets)}"
            )
        whole = [export for export in exports if export.dataset == settings["dataset"]]
        all_exports += [replace(export, dataset=name, series="") for export in whole]
    return all_exports


TELEMETRY_COLUMNS = ("dataset", "node", "device", "source", "format", "time_zone")


@dataclass(frozen=True, kw_only=True)
class TelemetryFile:
    """One row of the sheet of telemetry.

    Attributes
    ----------
    dataset : str
        Empty: for every traced dataset.
    source, node, device, format, time_zone : str
        As in the sheet; `auto` for an empty format.
    path : Path
        The resolved source.
    """

    dataset: str
    source: str
    node: str
    device: str
    format: str
    time_zone: str
    path: Path


def read_telemetry_sheet(
    sheet: Path, check_row: Callable[[Any], object], datasets: Iterable[str]
) -> list[TelemetryFile]:
    """Read and check the sheet of telemetry.

    Parameters
    ----------
    sheet : Path
        Tab-separated text with a header; only `source` must be there.
    check_row : callable
        Called with each row (a dict of str); raises for a value that the schema forbids.
    datasets : iterable of str
        Datasets that a row may name.

    Raises
    ------
    CausewayError
        For a malformed sheet, a dataset that is not there, or an absent source; the message names the sheet, the line
        and the value.
    """
    names = sorted(datasets)
    files = []
    for number, row in sheet_rows(sheet, TELEMETRY_COLUMNS, ("source",)):
        where = f"{sheet}: line {number}"
        try:
            check_row(row)
        except Exception as error:
            raise CausewayError(f"{where}: {error}") from None
        if row["dataset"] and row["dataset"] not in names:
            raise CausewayError(
                f"{where}: there is no dataset {row['dataset']} with traces in the sheet of exports; it has {names}"
            )
        path = sheet.parent / row["source"]
        if not path.is_file():
            raise CausewayError(
                f"{where}: source {row['source']} does not exist (looked for {path}); sources are relative to the sheet"
            )
        values = {name: row[name] for name in ("dataset", "source", "node", "device", "time_zone")}
        files.append(TelemetryFile(**values, format=row["format"] or "auto", path=path))
    return files
