"""How the rows of a table of measurements differ: which node or other place stands apart, and by which columns they
differ, as those of a sweep do.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.core.files.yaml_files import column_map
from causeway.core.queries import bounded_database, file_source
from causeway.findings.first_screen.run_facts import ALIKE, LEAST_CLOCK, MOST_ROWS, NOTICEABLE, RunTables, files_of

LEAST_APART = 0.5
"""Share of a table's variance within configurations from which one place stands for it."""
LOCATIONS = re.compile(
    r"^(node|host|hostname|machine|gpu|device|card|slot|socket|rank)(_?(id|name|index|number))?$", re.I
)
"""Columns that say where a row was measured, also as numbers."""
MOST_LEVELS = 20
"""Values of a column of numbers up to which its rows are compared by them, as a sweep's are."""
MOST_PAIRED = 6
"""Columns of a table of whose pairs the levels are compared: those that differ most by themselves."""
BY_CHANCE = 1e-3
"""Chance of differences between levels, times their number, up to which they are told."""
MOST_LARGEST = 3
"""Largest rows of a table that are told."""
LEAST_LARGEST = 0.25
"""Share of all that these are at least."""
CLOCKS = re.compile(r"clock|freq|[mg]hz", re.IGNORECASE)
"""Columns of clocks."""
RATES = re.compile(r"flop|throughput|bandwidth|speed_?up|(?:per_?|/ ?)s(?:ec\w*)?(?:_|\b)|[kmgt]i?bps\b", re.IGNORECASE)
"""Columns of rates, which were measured or follow from the time."""


@dataclass(frozen=True, kw_only=True)
class ApartFact:
    """A place, or level of other text columns, whose rows of a table stand apart from all others: each column and its
    level, one, or two that only together stand apart; its rows; the mean of the measured value there and
    elsewhere; the share of the variance within configurations that lies between the two, 0 to 1; and the column of a
    clock that differs most, with its means there and elsewhere.
    """

    levels: Sequence[tuple[str, str]]
    rows: int
    mean: float
    others: float
    share: float
    clock: tuple[str, float, float] | None


def apart_fact(tables: RunTables, target: str, numbers: bool = False) -> ApartFact | None:
    """Return the level of a text column, or column of places, between whose rows and all others most of a table's
    variance within configurations lies, or of two columns where that explains more, also of `numbers`; None without
    one.
    """
    facts = [fact for path in files_of(tables.folders, "counters") for fact in _apart(path, target, numbers)]
    best = max((fact.share for fact in facts), default=0.0)
    alike = [fact for fact in facts if fact.share >= ALIKE * best]
    return min(alike, key=lambda fact: (len(fact.levels), -round(fact.share, 9), -fact.mean, fact.levels), default=None)


def _apart(path: Path, target: str, numbers: bool) -> list[ApartFact]:
    """Return the levels, of one column and of two, that stand apart in a table."""
    schema = pq.read_schema(path)
    columns = _level_columns(path, target, numbers and pq.read_metadata(path).num_rows <= MOST_ROWS)
    texts = [number for number, is_number in enumerate(columns.values()) if not is_number]
    if not columns:
        return []
    clocks = [field.name for field in schema if CLOCKS.search(field.name) and pa.types.is_floating(field.type)]
    value = _quoted(target)
    named = [f"{_quoted(name)}::VARCHAR AS level_{number}" for number, name in enumerate(columns)]
    named += [f"{_quoted(name)} AS clock_{number}" for number, name in enumerate(clocks)]
    facts = []
    with closing(bounded_database()) as connection:
        connection.execute(
            f"CREATE TABLE rows AS SELECT {', '.join(named)}, {value} AS measured,"  # noqa: S608
            f" {value} - avg({value}) OVER (PARTITION BY configuration) AS beyond"
            f" FROM {file_source(path)} WHERE {value} IS NOT NULL"
        )
        sums = "SELECT count(*), sum(measured), sum(beyond ** 2) FROM rows"
        of, whole, squares = connection.execute(sums).fetchall()[0]
        squares = squares or 1.0  # of equal values every share is 0
        single = [_level_shares(connection, (number,), of, squares) for number in range(len(columns))]
        most = sorted(range(len(columns)), key=lambda number: -max((row[0] for row in single[number]), default=0.0))
        groups: list[tuple[int, ...]] = [*((text,) for text in texts), *combinations(sorted(most[:MOST_PAIRED]), 2)]
        tested = len(texts) + math.comb(len(columns), 2)
        for group in groups:
            shares = _level_shares(connection, group, of, squares) if len(group) > 1 else single[group[0]]
            for share, level, rows, mean in shares:
                if share >= LEAST_APART and _chance(share, 1, of) * tested * of <= BY_CHANCE:
                    names = [_raw_name(schema, list(columns)[number]) for number in group]
                    where = " AND ".join(f"level_{number} = ?" for number in group)
                    facts.append(
                        ApartFact(
                            levels=tuple(zip(names, map(_level, level), strict=True)),
                            rows=rows,
                            mean=mean,
                            others=(whole - rows * mean) / (of - rows),
                            share=share,
                            clock=_clock_there(connection, clocks, where, level),
                        )
                    )
    return facts


def _level_shares(
    connection: Any, group: Sequence[int], of: int, squares: float
) -> list[tuple[float, list[str], int, float]]:
    """Return for each level of a group of columns, by number, the share of the variance that lies between its rows and
    all others, the level, its rows and their mean; levels of one row, or of all, are left out.
    """
    levels = connection.execute(
        f"SELECT {', '.join(f'level_{number}' for number in group)}, count(*), avg(measured), sum(beyond) FROM rows"  # noqa: S608
        f" GROUP BY ALL HAVING count(*) > 1 AND count(*) < {of} ORDER BY ALL"
    ).fetchall()
    return [
        (beyond**2 * of / (rows * (of - rows) * squares), level, rows, mean)
        for *level, rows, mean, beyond in levels
        if len(levels) > 1 and None not in level
    ]


def _level_columns(path: Path, target: str, numbers: bool, many: bool = False) -> dict[str, bool]:
    """Return the columns of a table by whose levels its rows may be compared: texts and places; of `numbers`, for which
    it is true, those of few values, in a table of few rows also whole ones of `many`.
    """
    schema = pq.read_schema(path)
    if target not in schema.names:
        return {}
    texts = {field.name for field in schema if LOCATIONS.match(field.name) or not pa.types.is_primitive(field.type)}
    floats = {
        field.name for field in schema if pa.types.is_floating(field.type) and numbers and _may_be_set(field.name)
    }
    names = [name for name in schema.names if name in texts | floats and name != target]
    with closing(bounded_database()) as base:  # a column at a time: distinct values of a hundred take all its memory
        rows = pq.read_metadata(path).num_rows
        queries = [
            f"SELECT count(DISTINCT {_quoted(name)}), count_if(try_cast({_quoted(name)} AS DOUBLE) % 1 <> 0)"  # noqa: S608
            f" FROM {file_source(path)}"
            for name in names
        ]
        counts = [base.execute(query).fetchall()[0] for query in queries]
    few = _most_levels(rows)
    return {
        name: name not in texts
        for name, (count, parts) in zip(names, counts, strict=True)
        if count > 1 and (name in texts or count <= few or (many and rows <= MOST_LEVELS**2 and not parts))
    }


def _may_be_set(name: str) -> bool:
    """Return whether a column of numbers is named neither as a rate nor as a duration."""
    names = column_map("table")["names"]
    words = re.sub(r"\W+", "_", name[:100]).strip("_").lower()
    is_timed = any(re.fullmatch(names[form], words) for form in ("duration", "in_unit"))
    return not RATES.search(name) and not (is_timed and not re.search(names["not_measured"], words))


def _raw_name(schema: pa.Schema, name: str) -> str:
    """Return what the table itself calls a column."""
    return (schema.field(name).metadata or {}).get(b"raw", name.encode()).decode()


def _chance(share: float, between: int, rows: float) -> float:
    """Return the chance of as large a share of the variance between groups of equal values, with so many degrees of
    freedom, as of an F test.
    """
    from scipy.special import betainc

    return float(betainc(max(rows - 1 - between, 0) / 2 or 1e-9, between / 2, 1 - min(share, 1.0)))


@dataclass(frozen=True, kw_only=True)
class SettingFact:
    """A column by whose levels a table's rows differ: the levels with least and most, the medians there, what the mean
    at the latter is above that at the former beside the columns before it (logarithms: times), and the share of the
    variance within configurations that lies between its levels and none before, 0 to 1.
    """

    column: str
    ends: tuple[str, str]
    medians: tuple[float, float]
    above: float
    share: float


@dataclass(frozen=True, kw_only=True)
class SettingsFact:
    """The columns by whose levels a table's rows differ, largest share first, and if shares are those of logarithms."""

    settings: Sequence[SettingFact]
    is_log: bool

    @property
    def share(self) -> float:
        """What lies between the levels of all."""
        return math.fsum(setting.share for setting in self.settings)


def settings_fact(tables: RunTables, target: str, left_out: Collection[str]) -> SettingsFact | None:
    """Return the columns by whose levels the rows of an only table differ beyond chance, as those of a sweep do, each
    after the ones before it, none of those `left_out`; whole numbers of more levels count by a line through them, both
    in logarithms. None without one, or of more than `MOST_ROWS` rows, or of several configurations, whose rows are of
    different work.
    """
    rows = _only_table(tables, target, left_out, MOST_ROWS)
    if rows is None or pc.count_distinct(rows[0]["configuration"]).as_py() != 1:
        return None
    table, names = rows
    values = table[target].to_numpy()
    is_log = bool(values.size and values.min() > 0)
    # where a value is missing says how a row was written, not what was set
    names = [name for name in names if not pc.any(pc.is_null(table[name], nan_is_null=True)).as_py()]
    levels = {name: _levels(table[name]) for name in names}
    lines = {name: _line(table[name]) for name in names if len(levels[name][0]) > _most_levels(table.num_rows)}
    lines = {name: line for name, line in lines.items() if line is not None}
    levels = {name: of for name, of in levels.items() if name in lines or len(of[0]) <= MOST_LEVELS}
    numbers = {name for name in levels if pa.types.is_floating(table.schema.field(name).type)}
    levels = {name: of for name, of in levels.items() if name in numbers or not _is_made_of(name, levels)}
    tested = len(levels) + math.comb(len(levels), 2)  # those that are left were chosen of all
    left = np.log(values) if is_log else values
    left = left - left.mean()
    room = left.size - 1
    whole = float(left @ left)
    fitted: list[tuple[SettingFact, float, int]] = []
    while whole and levels:
        parts = {
            name: (lines[name] * (left @ lines[name]), 1) if name in lines else (_means(left, codes), len(texts) - 1)
            for name, (texts, codes) in levels.items()
        }
        shares = {name: float(means @ means) / (float(left @ left) or 1.0) for name, (means, _) in parts.items()}
        # what is left per degree of freedom; of columns with equal parts a text was set, or the one in round numbers
        ranks = {
            name: (round((1 - shares[name]) * room / (room - apart), 9), name in numbers, _digits(levels[name][0]))
            for name, (_, apart) in parts.items()
            if apart < room and shares[name] >= LEAST_APART * (name in lines)
        }
        name = min(ranks, key=lambda name: ranks[name], default="")
        if not name or ranks[name][0] >= 1:
            break
        means, apart = parts[name]
        texts, codes = levels.pop(name)
        medians = [float(np.median(values[codes == code])) for code in range(len(texts))]
        of_level = [float(means[codes == code][0]) for code in range(len(texts))]
        order = of_level if fitted or name in lines else medians  # which tell of what came before, too
        ends = int(np.argmin(order)), int(np.argmax(order))
        above = of_level[ends[1]] - of_level[ends[0]]
        setting = SettingFact(
            column=_raw_name(table.schema, name),
            ends=(texts[ends[0]], texts[ends[1]]),
            medians=(medians[ends[0]], medians[ends[1]]),
            above=math.exp(above) if is_log else above,
            share=float(means @ means) / whole,
        )
        fitted.append((setting, float(means @ means), apart))
        left = left - means
        room -= apart
    rest = float(left @ left)  # beside all columns but noise: what one does may hide what another does
    chances: list[float] = []
    while fitted:
        chances = [_chance(part / (part + rest), apart, room + apart + 1) if room else 1 for _, part, apart in fitted]
        if max(chances) * tested <= 1:
            break
        _, part, apart = fitted.pop(int(np.argmax(chances)))
        rest += part
        room += apart
    told = [
        setting
        for (setting, *_), chance in zip(fitted, chances, strict=False)
        if chance * tested <= BY_CHANCE
        if setting.share >= NOTICEABLE or (is_log and ALIKE * setting.above >= 1)
    ]
    return SettingsFact(settings=told, is_log=is_log) if told else None


@dataclass(frozen=True, kw_only=True)
class LargestFact:
    """The rows of a table with the largest values: the column that tells them apart, each value with its level there,
    the largest first, of how many rows they are, and their share of the sum of all.
    """

    column: str
    rows: Sequence[tuple[float, str]]
    of: int
    share: float


def largest_fact(tables: RunTables, target: str, left_out: Collection[str]) -> LargestFact | None:
    """Return the few largest rows of an only table of few rows, each at least twice the mean and together a quarter
    of all, by the column of most levels of those that no other row shares, none of those `left_out`; None without one.
    """
    rows = _only_table(tables, target, left_out, MOST_LEVELS**2)
    if rows is None or not rows[0].num_rows or pc.min(rows[0][target]).as_py() < 0:
        return None
    table, names = rows
    total = pc.sum(table[target]).as_py()
    mean = total / table.num_rows
    largest = table.sort_by([(target, "descending")])[: min(MOST_LARGEST, table.num_rows // 2)]
    largest = largest.filter((pc.field(target) >= 2 * mean) & (pc.field(target) > 0))
    share = pc.sum(largest[target]).as_py() / total if largest.num_rows else 0.0
    shared = {name: pc.sum(pc.is_in(table[name], largest[name].combine_chunks())).as_py() for name in names}
    names = [name for name in names if shared[name] == largest.num_rows]
    if share < LEAST_LARGEST or not names:
        return None
    name = max(names, key=lambda name: (pc.count_distinct(table[name]).as_py(), name))
    levels = [_level(text or "no value") for text in largest[name].cast(pa.string()).to_pylist()]
    told = list(zip(largest[target].to_pylist(), levels, strict=True))
    return LargestFact(column=_raw_name(table.schema, name), rows=told, of=table.num_rows, share=share)


def _only_table(
    tables: RunTables, target: str, left_out: Collection[str], most: int
) -> tuple[pa.Table, list[str]] | None:
    """Return the rows with a value of an only table of so many rows at most, and the columns by which they may differ,
    none of those `left_out`; None without one.
    """
    path = tables.folders[0] / "counters.parquet" if len(tables.folders) == 1 else Path()
    if not path.is_file() or pq.read_metadata(path).num_rows > most:
        return None
    names = [name for name in _level_columns(path, target, True, many=True) if name not in left_out]
    table = pq.read_table(path, columns=[target, "configuration", *names]).filter(pc.is_finite(pc.field(target)))
    return (table, names) if names else None


def _most_levels(rows: int) -> float:
    """Return how many values a column of numbers may have for its rows to be compared by them."""
    return min(MOST_LEVELS, rows / 2)


def _line(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the direction, of length 1 and mean 0, in which numbers change from row to row, by their logarithms where
    all are above 0; None of texts, and of those that come in no order, which were not set.
    """
    if not pa.types.is_floating(column.type):
        return None
    values = column.to_numpy()
    steps = np.diff(values)
    if 2 * len(np.unique(values)) > len(values) and (steps > 0).any() and (steps < 0).any():
        return None
    line = np.log(values) if values.min() > 0 else values
    line = line - line.mean()
    return line / np.sqrt(line @ line)


def _is_made_of(name: str, levels: Mapping[str, tuple[list[str], np.ndarray]]) -> bool:
    """Return whether each text of a column holds what the row has in two others: a name that is made of settings."""
    texts, codes = levels[name]
    words = [{*re.findall(r"[^\W\d_]+|\d+(?:\.\d+)?", text)} - {text} for text in texts]
    held = [
        all(others[pair % len(others)] in words[pair // len(others)] for pair in np.unique(codes * len(others) + of))
        for others, of in levels.values()
    ]
    return sum(held) > 1


def _levels(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """Return the levels of a column as texts, and which of them each row has."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return [_level(text) for text in coded.dictionary.to_pylist()], coded.indices.to_numpy()


def _digits(texts: Sequence[str]) -> int:
    """Return how many digits levels have, without zeros at the end."""
    return sum(len(text.rstrip("0")) for text in texts)


def _means(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each row the mean of the values with its code."""
    return (np.bincount(codes, values) / np.maximum(np.bincount(codes), 1))[codes]


def _level(text: str) -> str:
    """Return a level as it was written: places that are numbers are kept with a decimal point."""
    return text.removesuffix(".0")


def _clock_there(
    connection: Any, clocks: Sequence[str], where: str, level: Sequence[str]
) -> tuple[str, float, float] | None:
    """Return the clock that differs most between the rows of a level and all others, with its means."""
    changed = []
    for number, clock in enumerate(clocks):
        name = f"clock_{number}"
        query = f"SELECT avg({name}) FILTER ({where}), avg({name}) FILTER (NOT ({where})) FROM rows"  # noqa: S608
        there, elsewhere = connection.execute(query, [*level, *level]).fetchall()[0]
        if there and elsewhere and abs(there / elsewhere - 1) >= LEAST_CLOCK:
            changed.append((clock, there, elsewhere))
    return max(changed, key=lambda clock: abs(clock[1] / clock[2] - 1), default=None)


def _quoted(name: str) -> str:
    """Return the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'
