"""Settings of plain tables: columns that say what a row launched, as grid and block do in a trace.

A setting is text, or whole numbers, of few values that all compared tables have. Columns of few values that hardly
occur on both sides, such as registers after a change of the kernel, are no settings: nothing could be compared then.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.formatting import NANOSECONDS
from causeway.core.tables import SCHEMAS, open_table, read_json, unit_of

MOST_VALUES = 12
"""Values of a setting, as of a category that the causes tell apart."""
COVERED = 0.8
"""Share of each table's rows with values that all have, and of a group's time in common configurations, below which
nothing is claimed.
"""
ROWS_EACH = 4
"""Rows for each combination of settings, on average, in the shortest table: means of fewer are too uncertain."""
TIME_WORD = re.compile(r"(?<![^_])(?:[num]?s|sec|(?:nano|micro|milli)?seconds)(?![^_])")
"""A unit of time in the name of a column."""


@dataclass(frozen=True)
class Settings:
    """Columns of tables by which rows are compared, in the tables' order; how often each value of the columns of few
    values occurs, by dataset and column; and what the tables themselves call the columns.
    """

    columns: Sequence[str]
    counts: Mapping[str, Mapping[str, Counter]]
    raw_names: Mapping[str, str]


def time_columns(folder: str | Path) -> list[str]:
    """Return the columns of a plain table's export that were measured and have a unit of time; none of others."""
    path = Path(folder, "counters.parquet")
    if read_json(path.with_name("capabilities.json")).get("kind") != "table" or not path.is_file():
        return []
    with open_table(path, "counters") as file:
        fields = [field for field in file.schema_arrow if field.name not in SCHEMAS["counters"].names]
    return [field.name for field in fields if unit_of(field) in NANOSECONDS]


def common_time(runs: Iterable[Iterable[str | Path]]) -> str:
    """Return the first such column that all plain tables of some runs have; else, of the first that each has once, in
    whatever unit, what `any_unit` gives; "" where none is.
    """
    times = [columns for folders in runs for folder in folders if (columns := time_columns(folder))]
    for called in (str, any_unit):
        names = [list(map(called, columns)) for columns in times]
        for name in chain(*names[:1]):
            if all(own.count(name) == 1 for own in names):
                return name
    return ""


def any_unit(name: str) -> str:
    """Return the name of a measured column with a star for its unit of time.

    >>> any_unit("latency_ms"), any_unit("median_seconds"), any_unit("ns")
    ('latency_*', 'median_*', '*')
    """
    return TIME_WORD.sub("*", name)


def common_causes(causes: Sequence[Mapping[str, str]]) -> list[dict[str, Path]]:
    """Return the contributions of two runs by target, of those that both measured: a column in two units (`any_unit`)
    by its name in the second run; none where several columns may be it.
    """
    sides = [{target: Path(path) for target, path in side.items() if _is_measured(path)} for side in causes]
    names = {target: target for target in sides[0] if target in sides[1]}
    for target in sides[0]:
        same = [[other for other in side if any_unit(other) == any_unit(target)] for side in sides]
        if target not in names and len(same[0]) == len(same[1]) == 1:
            names[target] = same[1][0]
    return [{name: sides[0][own] for own, name in names.items()}, {name: sides[1][name] for name in names.values()}]


def _is_measured(contributions: str | Path) -> bool:
    with open_table(Path(contributions).parents[2] / "kernels.parquet", "kernel_summary") as file:
        return file.metadata.num_rows > 0


def common_settings(folders: Mapping[str, Sequence[str | Path]]) -> Settings:
    """Return the settings that the tables of all datasets have; none where one dataset is no table with times."""
    tables = {name: [Path(folder) for folder in own if time_columns(folder)] for name, own in folders.items()}
    if not all(tables.values()):
        return Settings((), {}, {})
    counts = {name: _counts(own) for name, own in tables.items()}
    by_column = {
        column: [own[column] for own in counts.values()]
        for column in next(iter(counts.values()))
        if all(column in own for own in counts.values())
    }
    kept: list[str] = []
    groups = 1
    for column, counters in by_column.items():
        common = set(counters[0]).intersection(*counters[1:])
        rows = [counter.total() for counter in counters]
        is_shared = all(
            sum(counter[value] for value in common) >= COVERED * whole
            for counter, whole in zip(counters, rows, strict=True)
        )
        if len(common) > 1 and is_shared and groups * len(common) * ROWS_EACH <= min(rows):
            kept.append(column)
            groups *= len(common)
    return Settings(kept, counts, _raw_names(next(iter(tables.values()))[0]))


def _counts(folders: Sequence[Path]) -> dict[str, Counter]:
    """Return how often each value occurs, by column of few values."""
    counts: dict[str, Counter] = {}
    many: set[str] = set()
    for folder in folders:
        measured = time_columns(folder)
        for batch in _batches(folder):
            for name in (name for name in batch.schema.names if name not in measured and name not in many):
                counter = counts.setdefault(name, Counter())
                for met in batch[name].value_counts().to_pylist():
                    counter[value_words(met["values"])] += met["counts"]
                whole = batch[name].type == pa.string() or pc.all(pc.equal(batch[name], pc.round(batch[name]))).as_py()
                if len(counter) > MOST_VALUES or whole is False:
                    many.add(name)
    return {name: counter for name, counter in counts.items() if name not in many}


def _raw_names(folder: Path) -> dict[str, str]:
    with open_table(folder / "counters.parquet", "counters") as file:
        return {field.name: (field.metadata or {}).get(b"raw", b"").decode() for field in file.schema_arrow}


def _batches(folder: Path) -> Iterator[pa.RecordBatch]:
    with open_table(folder / "counters.parquet", "counters") as file:
        names = [name for name in file.schema_arrow.names if name not in SCHEMAS["counters"].names]
        yield from file.iter_batches(columns=names)


def value_words(value: str | float | None) -> str:
    """Return a value as text, a whole number without a fraction.

    >>> value_words(4096.0), value_words("bf16"), value_words(None)
    ('4096', 'bf16', 'absent')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "absent"
    return f"{value:.0f}" if isinstance(value, float) else value
