"""How the devices of a run differ where they should be alike: which take turns, and which copy more slowly."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.codes import COPY_KINDS, MIGRATIONS, WITHIN_DEVICE
from causeway.core.queries import in_document
from causeway.core.schemas import Row
from causeway.events.event_blocks import Block, chunks, merged, times
from causeway.findings.first_screen.run_facts import IDLE, NOTICEABLE, RunFact, RunTables

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
    """Copies of one direction that are slower on some devices: which of how many, both speeds in GB/s, and what the
    slowest one loses by it, ns.
    """

    direction: str
    slow: tuple[tuple[int, int], ...]
    devices: int
    gb_per_s: float
    others_gb_per_s: float
    lost_ns: int
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


def slow_copies_facts(tables: RunTables, run: RunFact) -> list[SlowCopiesFact]:
    """Return the direction in which copies of about the same size are slower on some devices, where that costs one of
    them a hundredth of the run or more, and most of all directions.
    """
    by_kind: dict[int, dict[int, Row]] = {}
    for index, row in enumerate(tables.efficiency.get("copies", ())):
        if row["sized_ns"] and row["bytes"] and row["kind"] not in WITHIN_DEVICE and row["kind"] not in MIGRATIONS:
            by_kind.setdefault(row["kind"], {})[index] = row
    path = f"{tables.dataset}/efficiency.json"
    facts = [fact for kind, rows in by_kind.items() for fact in _slow_copies(path, kind, rows)]
    facts = [fact for fact in facts if fact.lost_ns >= NOTICEABLE * run.elapsed_ns]
    return sorted(facts, key=lambda fact: (-fact.lost_ns, fact.direction))[:1]


def _slow_copies(path: str, kind: int, copies: Mapping[int, Row]) -> list[SlowCopiesFact]:
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
    return [
        SlowCopiesFact(
            direction=COPY_KINDS.get(kind, "unknown"),
            slow=tuple(sorted((row["rank"], row["device"]) for row in slow)),
            devices=len(rows),
            gb_per_s=_speed(slow),
            others_gb_per_s=_speed(others),
            lost_ns=max(round(row["sized_ns"] - row["bytes"] / _speed(others)) for row in slow),
            query=in_document(path, "copies", index, "gb_per_s"),
        )
    ]


def _speed(rows: Sequence[Row]) -> float:
    return sum(row["bytes"] for row in rows) / sum(row["sized_ns"] for row in rows)
