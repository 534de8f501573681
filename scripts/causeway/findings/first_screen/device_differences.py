"""How the devices of a run differ where they should be alike: which take turns or have less to do, which copy or
communicate more slowly.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.codes import COPY_KINDS, MIGRATIONS, WITHIN_DEVICE
from causeway.core.queries import bounded_database, file_source, in_document, within
from causeway.core.schemas import Row
from causeway.events.event_blocks import Block, chunks, merged, times
from causeway.findings.first_screen.losses import host_memory
from causeway.findings.first_screen.run_facts import IDLE, NOTICEABLE, RunFact, RunTables, files_of, inside

FEW_AT_ONCE = 0.1
"""Share of the time in which a device of a rank works that a second one works up to, for them to take turns."""
LEAST_PART = 0.1
"""Share of that time that each device works at least: one that waits for all of the run takes no turn."""
TIMES_SLOWER = 1.5
"""Times by which copies are slower on some devices than on the fastest, to be said."""
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
