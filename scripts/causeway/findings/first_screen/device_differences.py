"""How the devices of a run differ where they should be alike: which take turns or have less to do, which copy or
communicate more slowly, and of a table of measurements which node or other place stands apart.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.core.codes import COPY_KINDS, MIGRATIONS, WITHIN_DEVICE
from causeway.core.queries import bounded_database, file_source, in_document, within
from causeway.core.schemas import Row
from causeway.events.event_blocks import Block, chunks, merged, times
from causeway.findings.first_screen.losses import host_memory
from causeway.findings.first_screen.run_facts import (
    ALIKE,
    IDLE,
    LEAST_CLOCK,
    MOST_ROWS,
    NOTICEABLE,
    RunFact,
    RunTables,
    files_of,
    inside,
)

FEW_AT_ONCE = 0.1
"""Share of the time in which a device of a rank works that a second one works up to, for them to take turns."""
LEAST_PART = 0.1
"""Share of that time that each device works at least: one that waits for all of the run takes no turn."""
TIMES_SLOWER = 1.5
"""Times by which copies are slower on some devices than on the fastest, to be said."""
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
CLOCKS = re.compile(r"clock|freq|[mg]hz", re.IGNORECASE)
"""Columns of clocks."""
ALIKE_SIZES = 2.0
"""Times by which the mean sizes of copies on two devices differ at most, for their speeds to be compared."""


@dataclass(frozen=True, kw_only=True)
class TurnsFact:
    """Devices of one process of which one at most works at a time: how many, how long one works, and two, ns."""

    devices: int
    working_ns: int
    together_ns: int


@dataclass(frozen=True, kw_only=True)
class SlowCopiesFact:
    """Copies of one direction that are slower on some devices: which, both speeds in GB/s, what the slowest
    one loses by it, ns, and the host's memory of the slow ones and of the others, where it differs.
    """

    direction: str
    slow: tuple[tuple[int, int], ...]
    gb_per_s: float
    others_gb_per_s: float
    lost_ns: int
    memory: tuple[str, str] | None = None
    query: str

    @property
    def ranks(self) -> list[int]:
        """The ranks of the slow devices, ascending."""
        return sorted({rank for rank, _ in self.slow})


def turns_facts(tables: RunTables, run: RunFact) -> list[TurnsFact]:
    """Return that the devices of a process take turns, where that leaves them idle: of the process with most time."""
    if run.devices <= run.ranks or run.share(run.parts.get(IDLE, 0)) < NOTICEABLE:
        return []
    facts = [fact for folder in tables.folders for fact in _turns(folder)]
    return sorted(facts, key=lambda fact: (-fact.working_ns, fact.devices))[:1]


def _turns(folder: Path) -> list[TurnsFact]:
    """Return the ranks of an export whose devices take turns, from the time that each and all of them cover."""
    covered: Counter[tuple[int, ...]] = Counter()
    reached: dict[tuple[int, ...], int] = {}
    for block in merged([_events(folder, table) for table in ("launches", "transfers", "graphs")]):
        for rank in np.unique(block["rank"]).tolist():
            of_rank = block["rank"] == rank
            devices = np.unique(block["device"][of_rank]).tolist()
            groups = {(rank, device): of_rank & (block["device"] == device) for device in devices}
            for group, chosen in {(rank,): of_rank, **groups}.items():
                start = block["start"][chosen]
                end = block["end"][chosen]
                ends = np.maximum.accumulate(np.append(reached.get(group, start[0]), end))
                covered[group] += int(np.maximum(end - np.maximum(start, ends[:-1]), 0).sum())
                reached[group] = int(ends[-1])
    facts = []
    for rank, working in ((group[0], ns) for group, ns in covered.items() if len(group) == 1):
        each = [ns for group, ns in covered.items() if len(group) > 1 and group[0] == rank]
        together = sum(each) - working
        if len(each) > 1 and together <= FEW_AT_ONCE * working and min(each) >= LEAST_PART * working:
            facts.append(TurnsFact(devices=len(each), working_ns=working, together_ns=together))
    return facts


def _events(folder: Path, table: str) -> Iterator[Block]:
    """Give what devices do, by start, with rank and device."""
    kind = ["copy_kind"] if table == "transfers" else []
    for batch in chunks(folder, table, ["start_ns", "duration_ns", "rank", "device", *kind]):
        if kind:
            batch = batch.filter(pc.invert(pc.is_in(batch.column("copy_kind"), pa.array(MIGRATIONS, pa.uint8()))))
        if batch.num_rows:
            yield times(batch) | {name: batch.column(name).to_numpy() for name in ("rank", "device")}


@dataclass(frozen=True, kw_only=True)
class UnevenFact:
    """Devices of one process of which the busiest limits the run: the ns that each computes, by device, and the busiest
    one if it runs the same launches as the others; the query gives its ns.
    """

    compute_ns: Mapping[int, int]
    slower: int | None = None
    query: str

    @property
    def saved_ns(self) -> int:
        """What an even split wins of the run at most."""
        return max(self.compute_ns.values()) - sum(self.compute_ns.values()) // len(self.compute_ns)


def uneven_facts(tables: RunTables, run: RunFact) -> list[UnevenFact]:
    """Return the process of whose devices one computes for most of the run and the others less, where an even split
    wins a hundredth of the run or more; the one that wins most.
    """
    of_rank: dict[str, dict[int, int]] = {}
    for key, device in tables.efficiency.get("breakdown", {}).items():
        rank, _, number = key.partition("/")
        of_rank.setdefault(rank, {})[int(number)] = device["compute_ns"]
    facts = []
    for rank, each in of_rank.items():
        busiest = max(each, key=lambda number: (each[number], -number))
        value = f"json_extract(content, '$.breakdown.\"{rank}/{busiest}\".compute_ns')::BIGINT"
        slower = busiest if len(each) > 1 and _run_the_same(tables.folders, int(rank), len(each)) else None
        fact = UnevenFact(compute_ns=each, slower=slower, query=within(f"{tables.dataset}/efficiency.json", value))
        if 2 * each[busiest] >= run.elapsed_ns and fact.saved_ns >= NOTICEABLE * run.elapsed_ns:
            facts.append(fact)
    return sorted(facts, key=lambda fact: (-fact.saved_ns, fact.query))[:1]


def _run_the_same(folders: Sequence[Path], rank: int, devices: int) -> bool:
    """Return whether all devices of a rank run as many launches of each kernel with each grid, and no whole graphs."""
    import duckdb

    launches = [str(path) for path in files_of(folders, "launches")]
    if not launches or files_of(folders, "graphs"):
        return False
    alike = (
        "SELECT count(*) > 0 AND bool_and(devices = ? AND least = most) FROM (SELECT count(*) AS devices,"
        " min(n) AS least, max(n) AS most FROM (SELECT filename, configuration, count(*) AS n"
        " FROM read_parquet(?, filename = true) WHERE rank = ? GROUP BY filename, configuration, device)"
        " GROUP BY filename, configuration)"
    )
    return bool(duckdb.execute(alike, [devices, launches, rank]).fetchall()[0][0])


@dataclass(frozen=True, kw_only=True)
class UnusedFact:
    """A GPU that works in a part of the run alone: its rank and number, how long it has nothing before its first work
    or behind its last, ns, and which of both is longer.
    """

    rank: int
    device: int
    ns: int
    is_behind: bool
    query: str


USED = (
    "WITH work AS ({work}), used AS (SELECT rank, device, min(start_ns) AS first, max(start_ns + duration_ns) AS last"
    " FROM work GROUP BY ALL) SELECT rank, device, first - min(first) OVER () AS before, max(last) OVER () - last"
    " AS behind FROM used ORDER BY greatest(before, behind) DESC, rank, device"
)
"""How long each device of an export has no work yet, and none any more, while others have; the longest first."""


def _union(sources: Iterable[str]) -> str:
    """Return the query of the work of all sources."""
    columns = "rank, device, start_ns, duration_ns"
    return " UNION ALL ".join(f"SELECT {columns} FROM {source}" for source in sources)  # noqa: S608 - names of ours


def unused_facts(tables: RunTables, run: RunFact) -> list[UnusedFact]:
    """Return the GPU that is without work for longest before its first or behind its last, of the devices of one
    recording, where such time is half of the idle time or more.
    """
    import duckdb

    if len(tables.folders) != 1 or run.devices < 2 or not tables.is_timed:
        return []
    files = files_of(tables.folders, "launches", "transfers", "graphs")
    if not files:
        return []
    stable = [file_source(inside(file)) for file in files]
    rows = duckdb.execute(USED.format(work=_union(map(file_source, files)))).fetchall()
    unused = sum(before + behind for *_, before, behind in rows)
    if unused < NOTICEABLE * run.elapsed_ns or 2 * unused < run.parts.get(IDLE, 0):
        return []
    rank, device, before, behind = rows[0]
    value = f"SELECT max(greatest(before, behind))::BIGINT FROM ({USED.format(work=_union(stable))})"  # noqa: S608 - names of ours alone
    return [UnusedFact(rank=rank, device=device, ns=max(before, behind), is_behind=behind >= before, query=value)]


@dataclass(frozen=True, kw_only=True)
class SlowGroupFact:
    """A communicator in which the same collectives take longer than in others of its size: its name, how long each of
    them transfers there and elsewhere, mean, and what all of them take longer, ns.
    """

    communicator: str
    transfer_ns: float
    others_ns: float
    lost_ns: int
    query: str


def slow_group_facts(tables: RunTables, run: RunFact) -> list[SlowGroupFact]:
    """Return the communicator whose collectives, as many of the same bytes as in others, are slower than theirs, where
    that costs a hundredth of the run or more.
    """
    moved = _moved(tables.folders)
    alike: dict[tuple[int, int, int], list[tuple[int, Row]]] = {}
    for index, group in enumerate(tables.stragglers["groups"] if tables.stragglers else ()):
        if group["collectives"] and (size := moved.get(group["communicator"])):
            alike.setdefault((group["n_ranks"], group["collectives"], size), []).append((index, group))
    facts = []
    for (_, count, _), groups in alike.items():
        index, slowest = max(groups, key=lambda group: group[1]["transfer_ns"])
        others = [group["transfer_ns"] for number, group in groups if number != index]
        usual = sum(others) / len(others) if others else 0.0
        lost = slowest["transfer_ns"] - usual
        if usual and slowest["transfer_ns"] >= TIMES_SLOWER * max(others) and lost >= NOTICEABLE * run.elapsed_ns:
            facts.append(
                SlowGroupFact(
                    communicator=slowest["communicator"],
                    transfer_ns=slowest["transfer_ns"] / count,
                    others_ns=usual / count,
                    lost_ns=round(lost),
                    query=in_document(
                        f"{tables.dataset}/stragglers.json", "groups", index, "transfer_ns", kind="integer"
                    ),
                )
            )
    return sorted(facts, key=lambda fact: (-fact.lost_ns, fact.communicator))[:1]


def _moved(folders: Sequence[Path]) -> Counter[str]:
    """Return the bytes of the collectives of each communicator, of those whose sizes are all known."""
    sums: Counter[str] = Counter()
    for path in files_of(folders, "collectives"):
        with closing(bounded_database()) as base:
            query = (
                f"SELECT communicator, sum(bytes)::BIGINT FROM {file_source(path)}"  # noqa: S608
                " GROUP BY ALL HAVING count(bytes) = count(*) AND communicator IS NOT NULL"
            )
            sums.update(dict(base.execute(query).fetchall()))
    return sums


def slow_copies_facts(tables: RunTables, run: RunFact) -> list[SlowCopiesFact]:
    """Return the direction in which copies of about the same size are slower on some devices, where that costs one of
    them a hundredth of the run or more, and most of all directions.
    """
    by_kind: dict[int, dict[int, Row]] = {}
    for index, row in enumerate(tables.efficiency.get("copies", ())):
        if row["sized_ns"] and row["bytes"] and row["kind"] not in WITHIN_DEVICE and row["kind"] not in MIGRATIONS:
            by_kind.setdefault(row["kind"], {})[index] = row
    path = f"{tables.dataset}/efficiency.json"
    memory = host_memory(tables.folders)
    facts = [fact for kind, rows in by_kind.items() for fact in _slow_copies(path, kind, rows, memory)]
    facts = [fact for fact in facts if fact.lost_ns >= NOTICEABLE * run.elapsed_ns]
    return sorted(facts, key=lambda fact: (-fact.lost_ns, fact.direction))[:1]


def _slow_copies(
    path: str, kind: int, copies: Mapping[int, Row], memory: Mapping[tuple[int, str, int, int], int]
) -> list[SlowCopiesFact]:
    """Return the slow copies of a direction, from the rows of devices by their index in a document."""
    rows = list(copies.values())
    sizes = [row["bytes"] / row["copies"] for row in rows]
    if len(rows) < 2 or max(sizes) > ALIKE_SIZES * min(sizes):
        return []
    best = max(_speed([row]) for row in rows)
    slow = [row for row in rows if TIMES_SLOWER * _speed([row]) <= best]
    others = [row for row in rows if TIMES_SLOWER * _speed([row]) > best]
    if not slow:
        return []
    index = min(copies, key=lambda position: _speed([copies[position]]))
    kinds = [
        {words for (of, words, *key) in memory if of == kind and tuple(key) in side}
        for side in (_keys(slow), _keys(others))
    ]
    return [
        SlowCopiesFact(
            direction=COPY_KINDS.get(kind, "unknown"),
            slow=tuple(sorted(_keys(slow))),
            gb_per_s=_speed(slow),
            others_gb_per_s=_speed(others),
            lost_ns=max(round(row["sized_ns"] - row["bytes"] / _speed(others)) for row in slow),
            memory=(min(kinds[0]), min(kinds[1]))
            if all(len(of) == 1 for of in kinds) and kinds[0] != kinds[1]
            else None,
            query=in_document(path, "copies", index, "gb_per_s"),
        )
    ]


def _keys(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """Return rank and device of each row."""
    return {(row["rank"], row["device"]) for row in rows}


def _speed(rows: Sequence[Row]) -> float:
    return sum(row["bytes"] for row in rows) / sum(row["sized_ns"] for row in rows)


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


def _level_columns(path: Path, target: str, numbers: bool) -> dict[str, bool]:
    """Return the columns of a table by whose levels its rows may be compared: texts and places; of `numbers`, for which
    it is true, those of few values.
    """
    schema = pq.read_schema(path)
    if target not in schema.names:
        return {}
    texts = {
        field.name
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type) or LOCATIONS.match(field.name)
    }
    names = [
        field.name
        for field in schema
        if field.name != target and (field.name in texts or (numbers and pa.types.is_floating(field.type)))
    ]
    with closing(bounded_database()) as base:
        distinct = [f"count(DISTINCT {_quoted(name)})" for name in names]
        query = f"SELECT {', '.join(['count(*)', *distinct])} FROM {file_source(path)}"  # noqa: S608
        rows, *counts = base.execute(query).fetchall()[0]
    return {
        name: name not in texts
        for name, count in zip(names, counts, strict=True)
        if count > 1 and (name in texts or count <= min(MOST_LEVELS, rows / 2))
    }


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
    after the ones before it, none of those `left_out`; None without one, or of more than `MOST_ROWS` rows, or of
    several configurations, whose rows are of different work.
    """
    path = tables.folders[0] / "counters.parquet" if len(tables.folders) == 1 else Path()
    if not path.is_file() or pq.read_metadata(path).num_rows > MOST_ROWS:
        return None
    if not (names := [name for name in _level_columns(path, target, numbers=True) if name not in left_out]):
        return None
    table = pq.read_table(path, columns=[target, "configuration", *names]).filter(pc.is_finite(pc.field(target)))
    if pc.count_distinct(table["configuration"]).as_py() != 1:
        return None
    values = table[target].to_numpy()
    is_log = bool(values.size and values.min() > 0)
    # where a value is missing says how a row was written, not what was set
    names = [name for name in names if not pc.any(pc.is_null(table[name], nan_is_null=True)).as_py()]
    levels = {name: of for name in names if len((of := _levels(table[name]))[0]) <= MOST_LEVELS}
    tested = len(levels) + math.comb(len(levels), 2)  # each column and each pair
    left = np.log(values) if is_log else values
    left = left - left.mean()
    room = left.size - 1
    whole = float(left @ left)
    settings: list[SettingFact] = []
    while whole and levels:
        rest = float(left @ left) or 1.0
        parts = {name: (_means(left, codes), len(texts) - 1) for name, (texts, codes) in levels.items()}
        shares = {name: float(means @ means) / rest for name, (means, _) in parts.items()}
        told = [name for name, (_, apart) in parts.items() if _is_told(shares[name], apart, room, tested)]
        told = told or [  # what one column does may hide what another does
            name
            for first, other in combinations(parts, 2)
            for beside in [_means(left - parts[first][0], levels[other][1])]
            if _is_told(shares[first] + beside @ beside / rest, parts[first][1] + parts[other][1], room, tested)
            for name in (first, other)
        ]
        ranks = {name: round((shares[name] - 1) * room / (room - parts[name][1]), 9) for name in told}
        # of two columns with equal parts the one in round numbers was set
        digits = {name: sum(len(level.rstrip("0")) for level in levels[name][0]) for name in told}
        name = max(told, key=lambda name: (ranks[name], -digits[name]), default="")
        if not name or (share := shares[name] * rest / whole) < NOTICEABLE:
            break
        means = parts[name][0]
        texts, codes = levels.pop(name)
        medians = [float(np.median(values[codes == code])) for code in range(len(texts))]
        of_level = [float(means[codes == code][0]) for code in range(len(texts))]
        order = of_level if settings else medians  # which tell of what came before, too
        ends = int(np.argmin(order)), int(np.argmax(order))
        above = of_level[ends[1]] - of_level[ends[0]]
        settings.append(
            SettingFact(
                column=_raw_name(table.schema, name),
                ends=(texts[ends[0]], texts[ends[1]]),
                medians=(medians[ends[0]], medians[ends[1]]),
                above=math.exp(above) if is_log else above,
                share=share,
            )
        )
        left = left - means
        room -= len(texts) - 1
    return SettingsFact(settings=settings, is_log=is_log) if settings else None


def _is_told(share: float, apart: int, room: int, tested: int) -> bool:
    return 0 < apart < room - 1 and _chance(float(share), apart, room + 1) * tested <= BY_CHANCE


def _levels(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """Return the levels of a column as texts, and which of them each row has."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return [_level(text) for text in coded.dictionary.to_pylist()], coded.indices.to_numpy()


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
