"""Counters gathered value by value, turned into one column per metric: names, units, gaps and duplicates, the same for
all formats.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from causeway.core.codes import GPU_TIME
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.tables import SCHEMAS
from causeway.readers.common.constants import MOST_COLUMNS
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import base_unit, is_missing, number, scaled
from causeway.readers.sink.records import CounterRows
from causeway.readers.sink.sink import Sink

BLOCK_VALUES = 1 << 19
"""Values per block that is handed to the writer."""

TAKEN = frozenset([*SCHEMAS["counters"].names, *SCHEMAS["kept"].names])
"""Column names that a metric cannot have, because our tables use them themselves."""

_CONVERTED = frozenset({"ns", "bytes", "bytes/s", "Hz", "ratio"})
"""Units that a value must have to bear a simplified name; counts may be printed as instructions, warps or nothing."""

_CYCLES = ("sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second")

Key = tuple[str, str, str]
"""A metric: its section ('' if none), its raw name and its base unit."""


class CounterTable:
    """Values of (launch, metric) in any order.

    Parameters
    ----------
    source : str
        How the sheet names the export, for messages.
    european : bool
        Whether its numbers have a decimal comma.
    """

    def __init__(self, source: str, european: bool = False) -> None:
        self.source = source
        self.european = european
        self.keys: dict[Key, int] = {}
        self.launch = array("i")
        self.metric = array("i")
        self.value = array("d")
        self.texts: dict[int, dict[int, str]] = {}  # metric -> launch -> text that is no number
        self.missing: dict[Key, int] = {}  # metric -> values printed as absent
        self.numeric: set[int] = set()
        self.unknown_units: set[str] = set()

    def parse(self, text: str, european: bool | None = None) -> float | None:
        """Return a number's value in the file's notation, or in the one it can only be read in."""
        return number(text, self.european if european is None else european)

    def add(self, launch: int, section: str, metric: str, unit: str, text: str, european: bool | None = None) -> None:
        """Take one value as printed; values in different base units are different metrics. A metric that is absent
        (n/a) in all launches is none.

        Raises
        ------
        ExportError
            If there are more than `MOST_COLUMNS`.
        """
        base, factor, is_known = base_unit(unit)
        if not is_known:
            self.unknown_units.add(unit)
        value = self.parse(text, european)
        if value is None and is_missing(text.strip()):
            key = section, metric, base
            self.missing[key] = self.missing.get(key, 0) + bool(text.strip())
            check_metrics(len(self.missing), self.source)
            return
        column = self.keys.setdefault((section, metric, base), len(self.keys))
        check_metrics(len(self.keys), self.source)
        if value is None:
            self.texts.setdefault(column, {}).setdefault(launch, clean_text(text))
            return
        self.numeric.add(column)
        self.launch.append(launch)
        self.metric.append(column)
        self.value.append(scaled(value, factor))

    def add_number(self, launch: int, metric: str, value: float, unit: str = "") -> None:
        """Take one value that is a number already; raises as `add`."""
        column = self.keys.setdefault(("", metric, unit), len(self.keys))
        check_metrics(len(self.keys), self.source)
        self.numeric.add(column)
        self.launch.append(launch)
        self.metric.append(column)
        self.value.append(value)

    def hand_over(self, sink: Sink, launches: CounterRows) -> None:
        """Give the table to the sink: launches 0, 1, ... with their columns and all metrics."""
        text_only = {column for column in self.texts if column not in self.numeric}
        units = [base for _, _, base in self.keys]
        not_numbers = sum(
            len(values) for column, values in self.texts.items() if column in self.numeric or units[column]
        )
        not_numbers += sum(count for key, count in self.missing.items() if self.keys.get(key) in self.numeric or key[2])
        sink.issues.add("not_a_number", not_numbers)
        sink.issues.add(
            "unknown_units", len(self.unknown_units), clean_text(", ".join(sorted(self.unknown_units)))[:200]
        )
        fields = name_metrics(list(self.keys), text_only, sink)
        fields, cycles = with_duration(fields, sink)
        sink.counters(fields, self._rows(sink, fields, text_only, cycles, launches))

    def _rows(
        self,
        sink: Sink,
        fields: list[pa.Field],
        text_only: set[int],
        cycles: tuple[str, str] | None,
        launches: CounterRows,
    ) -> Iterator[CounterRows]:
        launch, metric, value = (
            np.frombuffer(part, part.typecode) if len(part) else np.empty(0)
            for part in (self.launch, self.metric, self.value)
        )
        if len(launch) and (launch[1:] < launch[:-1]).any():
            order = np.argsort(launch, kind="stable")
            launch = launch[order]
            metric = metric[order]
            value = value[order]
        width = len(self.keys)
        step = max(1, BLOCK_VALUES // max(1, width))
        for first in range(0, len(launches.kernel), step):
            last = min(first + step, len(launches.kernel))
            begin, end = np.searchsorted(launch, [first, last])
            matrix = np.full((width, last - first), np.nan)
            cell = metric[begin:end].astype(np.int64) * (last - first) + launch[begin:end].astype(np.int64) - first
            filled, earliest = np.unique(cell, return_index=True)  # the first value of a duplicate stays
            matrix.ravel()[filled] = value[begin:end][earliest]
            sink.issues.add("duplicate_values", len(cell) - len(filled))
            values = {}
            for metric_, column in enumerate(fields[:width]):
                if metric_ in text_only:
                    texts = self.texts[metric_]
                    values[column.name] = pa.array([texts.get(row) for row in range(first, last)], pa.string())
                else:
                    values[column.name] = matrix[metric_]
            if cycles:
                values[GPU_TIME] = duration_ns(*(values[name] for name in cycles))
            yield replace(launches.where(slice(first, last)), values=values)


def check_metrics(metrics: int, source: str) -> None:
    """Check how many metrics an export has.

    Raises
    ------
    ExportError
        If they are more than `MOST_COLUMNS`.
    """
    if metrics > MOST_COLUMNS:
        problem = f"it has more than {MOST_COLUMNS:,} different metrics"
        advice = "Profile fewer metrics, or check that its columns hold what their names say."
        raise ExportError(source, problem, f"at most {MOST_COLUMNS:,} metrics", advice)


def with_duration(fields: list[pa.Field], sink: Sink) -> tuple[list[pa.Field], tuple[str, str] | None]:
    """Return the columns, with one more for the duration if none was measured and it can be computed: elapsed cycles /
    cycles per second.

    Returns
    -------
    fields : list of Field
    cycles : tuple of str, or None
        The columns of cycles and of cycles per second, if the duration is computed from them.
    """
    cycles = _cycle_columns(fields)
    if cycles is None:
        return fields, None
    sink.issues.add("derived_duration")
    return [*fields, metric_field(GPU_TIME, " / ".join(_CYCLES), "ns")], cycles


def duration_ns(cycles: np.ndarray, per_second: np.ndarray) -> np.ndarray:
    """Return durations in ns, float64 of shape (n,), NaN where the cycles per second are unknown or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(per_second > 0, cycles / per_second * 1e9, np.nan)


def _cycle_columns(fields: list[pa.Field]) -> tuple[str, str] | None:
    if any(column.name == GPU_TIME for column in fields):
        return None
    numbers = [column for column in fields if not pa.types.is_string(column.type)]
    names = {(column.metadata or {}).get(b"raw", b"").decode().rsplit("/", 1)[-1]: column.name for column in numbers}
    return (names[_CYCLES[0]], names[_CYCLES[1]]) if all(name in names for name in _CYCLES) else None


def plain_name(raw: str) -> str:
    """Return a counter's raw name as a column name: runs of anything but letters, digits and underscores become one
    underscore.

    `sm__cycles_elapsed.avg.per_second` gives `sm__cycles_elapsed_avg_per_second`, `TCC_EA_WRREQ[0]` gives
    `TCC_EA_WRREQ_0`. A name that would start with a digit gets a leading underscore.
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "_", raw).strip("_")
    return f"_{name}" if name[:1].isdigit() else name or "unnamed"


def metric_field(name: str, raw: str, unit: str, text: bool = False) -> pa.Field:
    """Return a column of the counters table, with its raw name and unit in the metadata."""
    metadata = {"raw": raw} | ({"unit": unit} if unit else {})
    return pa.field(name, pa.string() if text else pa.float64(), nullable=True, metadata=metadata)


def simplified() -> dict[str, tuple[str, int, str, str]]:
    """Return raw name -> (our name, index among the raw names for it, unit, group)."""
    by_raw = {}
    for name, entry in column_map("counters")["counters"].items():
        for index, raw in enumerate(entry["raw"]):
            by_raw[raw] = (name, index, entry["unit"], entry["group"])
    return by_raw


def name_metrics(keys: list[Key], text_only: set[int], sink: Sink) -> list[pa.Field]:
    """Return the columns of metrics, with names that are unique and independent of the order of rows.

    The simplified name goes to the best raw name that is there. Other metrics keep their own name; where it occurs in
    several sections, the section goes before it, and where in several units, the unit after it.

    Parameters
    ----------
    keys : list of Key
    text_only : set of int
        Indices of the metrics that are text.
    sink : Sink
    """
    by_raw = simplified()
    claims: dict[str, list[tuple[int, int]]] = {}
    for index, (section, metric, base) in enumerate(keys):
        entry = by_raw.get(f"{section}/{metric}" if section else metric) or by_raw.get(metric)
        if entry and index not in text_only and (base in (entry[2], "") or {base, entry[2]}.isdisjoint(_CONVERTED)):
            claims.setdefault(entry[0], []).append((entry[1], index))
    named = {min(candidates)[1]: name for name, candidates in claims.items()}
    groups = {name: entry["group"] for name, entry in column_map("counters")["counters"].items()}
    known_units = {name: entry["unit"] for name, entry in column_map("counters")["counters"].items()}
    sections: dict[str, set[str]] = {}
    units: dict[tuple[str, str], set[str]] = {}
    for section, metric, base in keys:
        sections.setdefault(metric, set()).add(section)
        units.setdefault((section, metric), set()).add(base)
    taken = set(named.values()) | TAKEN
    fields = []
    renamed = 0
    for index, (section, metric, base) in enumerate(keys):
        name = named.get(index)
        if name is None:
            raw = f"{section} {metric}" if len(sections[metric]) > 1 and section else metric
            raw += f" {base}" if len(units[section, metric]) > 1 else ""
            wish = name = plain_name(clean_text(raw))
            suffix = 2
            while name in taken:
                name = f"{wish}_{suffix}"
                suffix += 1
            renamed += name != wish
            taken.add(name)
        base = base or (known_units[name] if index in named else "")
        column = metric_field(
            name, clean_text(f"{section}/{metric}" if section else metric), base, text=index in text_only
        )
        if name in groups:
            column = column.with_metadata({**column.metadata, b"group": groups[name].encode()})
        fields.append(column)
    sink.issues.add("renamed_columns", renamed)
    return fields
