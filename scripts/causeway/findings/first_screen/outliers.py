"""What stands out in the time line of a dataset: gaps of its devices, single copies and launches, slow steps."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.codes import COPY_KINDS, MEMORY_KINDS, MIGRATIONS
from causeway.core.queries import bounded_database, file_source
from causeway.core.schemas import Row
from causeway.core.tables import open_table, read_table
from causeway.events.event_blocks import kernel_columns
from causeway.findings.first_screen.first_steps import FirstStepFact
from causeway.findings.first_screen.run_facts import (
    FENCE,
    LAUNCHING_NS,
    MOST_LAUNCHES,
    MOST_OF_RUN,
    NOTICEABLE,
    UNKNOWN,
    RunFact,
    RunTables,
    files_of,
)
from causeway.findings.first_screen.step_edges import innermost

SHORTEST = 5e-4
"""Share of the run from which a gap is looked at: shorter ones are told by the reasons of idle time alone."""
MUCH_SHORTER = 10
"""Times by which gaps between the same work are shorter than the longest that are not told with it."""
FEWEST_USUAL = 5
"""Launches or copies of a kind that must be there for one to stand out among them."""
WAITS = "exposed_communication"
"""The cause of a slow step in which a rank waits for another one."""
MOST_RANGES = 100_000
"""Ranges of a name up to which gaps between them are looked for: gaps that are told are a few thousand at most."""
STANDS_OUT = 3.0
"""Times as long as the median of its kind that a launch or copy is, to stand out."""


@dataclass(frozen=True, kw_only=True)
class GapFact:
    """Gaps of devices between the same two pieces of work: how many and how long, ns, over `devices` devices; of what
    ranges each stands `between` one and the next, and what the host does in most of the longest one, where calls do
    not tell why they are there.
    """

    after: str
    before: str
    count: int
    devices: int
    total_ns: int
    median_ns: int
    longest_ns: int
    start_ns: int
    per_step: bool
    between: str | None = None
    meanwhile: str | None = None


@dataclass(frozen=True, kw_only=True)
class EventFact:
    """Single launches or copies that are far longer than others of their kind.

    Attributes
    ----------
    what : str
        Name of the kernel or direction of the copy.
    is_copy, is_collective : bool
    count, devices : int
    longest_ns, total_ns, usual_ns, start_ns : int
        Time of the longest one and of all, the median of the kind; when the longest begins after the first work.
    bytes, usual_bytes : int or None
        Of the longest copy, and of that of its direction whose time is `usual_ns`, the lower of two in the middle.
    memory : str or None
        Kind of the host's memory of a copy.
    """

    what: str
    is_copy: bool
    is_collective: bool = False
    count: int
    devices: int
    longest_ns: int
    total_ns: int
    usual_ns: int
    start_ns: int
    bytes: int | None = None
    usual_bytes: int | None = None
    memory: str | None = None


@dataclass(frozen=True, kw_only=True)
class SlowStepsFact:
    """Slow steps with one cause: ranks and steps, what the slowest rank of each step takes longer, what of the excess
    of all is the cause's, ns, the usual time of a step, the kernel that has most of it, if that is known, and a range
    or operator that each of them holds and no usual step does.
    """

    pairs: tuple[tuple[int, int], ...]
    excess_ns: int
    cause_ns: int
    usual_ns: int
    cause: str
    name: str | None
    holds: str | None = None

    @property
    def steps(self) -> list[int]:
        """The steps, ascending."""
        return sorted({step for _, step in self.pairs})

    @property
    def ranks(self) -> list[int]:
        """The ranks, ascending."""
        return sorted({rank for rank, _ in self.pairs})


@dataclass(frozen=True)
class _Gap:
    key: tuple[int, int, int]
    start: int
    end: int
    after: str
    before: str
    moved: int = 0


_RangesByRank = Mapping[int, Mapping[str, tuple[np.ndarray, np.ndarray]]]
"""Of each rank the starts and ends of its ranges by name, without their digits, ns on the export's clock."""


def _ranges(folder: Path, gaps: Sequence[_Gap], run: RunFact) -> _RangesByRank:
    """Return the ranges of ranks with gaps, but for those that fill most of the run, which stand between nothing."""
    ranges: dict[int, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    if not gaps or not (folder / "ranges.parquet").is_file():
        return ranges
    import duckdb

    rows = duckdb.execute(
        "SELECT rank, regexp_replace(name, '[0-9]+', '*', 'g') AS without_digits, array_agg(start_ns ORDER BY start_ns)"
        ", array_agg(start_ns + duration_ns ORDER BY start_ns) FROM read_parquet(?) GROUP BY rank, without_digits"
        " HAVING count(*) BETWEEN 2 AND ? ORDER BY rank, without_digits",
        [str(folder / "ranges.parquet"), MOST_RANGES],
    ).fetchall()
    for rank, name, starts, ends in rows:
        times = np.array(starts, np.int64), np.maximum.accumulate(np.array(ends, np.int64))
        if (times[1] - times[0]).sum() < MOST_OF_RUN * run.elapsed_ns:
            ranges.setdefault(rank, {})[name] = times
    return ranges


def _between(gaps: Sequence[_Gap], ranges: Mapping[int, _RangesByRank]) -> str | None:
    """Return the name of the ranges between one of which and the next each gap stands, no two gaps at one place, and no
    range fills much of one; of several those that are longest in all. None without such ranges, or of a single gap.
    """
    own = [ranges.get(gap.key[0], {}).get(gap.key[1], {}) for gap in gaps]
    names = set.intersection(*map(set, own)) if len(gaps) > 1 else set()
    longest: dict[str, int] = {}
    for name in names:
        indices = set()
        for gap, times in zip(gaps, own, strict=True):
            starts, ends = times[name]
            begun = np.searchsorted(starts, (gap.start + gap.end) // 2)
            if 0 < begun < starts.size and _covers(gap, int(ends[begun - 1]), int(starts[begun])):
                indices.add((gap.key, begun))
        if len(indices) == len(gaps):
            longest[name] = sum(int((times[name][1] - times[name][0]).sum()) for times in own)
    if any(_inside(gap, starts, ends) for gap, times in zip(gaps, own, strict=True) for starts, ends in times.values()):
        return None
    return max(longest, key=lambda name: (longest[name], name), default=None)


def _covers(gap: _Gap, begin: int, end: int) -> bool:
    """Return whether most of a gap lies between two moments."""
    return min(gap.end, end) - max(gap.start, begin) >= MOST_OF_RUN * (gap.end - gap.start)


def _inside(gap: _Gap, starts: np.ndarray, ends: np.ndarray) -> bool:
    """Return whether a range of some that are ordered by start fills much of a gap, and says what stands there."""
    first = int(np.searchsorted(ends, gap.start))
    last = int(np.searchsorted(starts, gap.end))
    held = np.minimum(ends[first:last], gap.end) - np.maximum(starts[first:last], gap.start)
    return bool(held.size) and int(held.max()) > (1 - MOST_OF_RUN) * (gap.end - gap.start)


def _long_gaps(folder: Path, number: int, least_ns: int, names: Mapping[int, str]) -> list[_Gap]:
    """Return the times in which a device of an export runs no launch for `least_ns` or more, between its first and last
    work of any kind.
    """
    reach: dict[tuple[int, int], tuple[int, int]] = {}
    first: dict[tuple[int, int], tuple[int, int]] = {}
    gaps = []
    columns = ["start_ns", "duration_ns", "rank", "device", "configuration"]
    with open_table(folder / "launches.parquet", "launches") as file:
        for batch in file.iter_batches(columns=columns):
            start, duration, rank, device, configuration = (
                column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns
            )
            lanes = rank << 16 | device
            for lane in np.unique(lanes).tolist():
                rows = np.flatnonzero(lanes == lane)
                begins = start[rows]
                ends = begins + duration[rows]
                which = configuration[rows]
                key = (lane >> 16, lane & 0xFFFF)
                first.setdefault(key, (int(begins[0]), int(which[0])))
                prior = reach.get(key)
                if prior is not None:
                    begins, ends, which = (
                        np.concatenate([[earlier], rest])
                        for earlier, rest in zip((prior[0], prior[0], prior[1]), (begins, ends, which), strict=True)
                    )
                reached = np.maximum.accumulate(ends)
                latest = np.maximum.accumulate(np.where(ends >= reached, np.arange(len(ends)), -1))
                for i in np.flatnonzero(begins[1:] - reached[:-1] >= least_ns).tolist():
                    before = names[int(which[i + 1])]
                    after = names[int(which[latest[i]])]
                    gaps.append(_Gap((number, *key), int(reached[i]), int(begins[i + 1]), after, before))
                reach[key] = (int(reached[-1]), int(which[latest[-1]]))
    for key, begin, end in _other_work(folder):
        launch, which = first.get(key, (end, -1))
        if launch - begin >= least_ns:
            gaps.append(_Gap((number, *key), begin, launch, "the start", names.get(which, "the end")))
        last, which = reach.get(key, (end, -1))
        if end - last >= least_ns:
            gaps.append(_Gap((number, *key), last, end, names.get(which, "the start"), "the end"))
    return gaps


def _other_work(folder: Path) -> list[tuple[tuple[int, int], int, int]]:
    """Return when the first copy or graph of each rank and device of an export begins, and the last one ends."""
    import duckdb

    which = {"transfers": f"copy_kind NOT IN {MIGRATIONS}", "graphs": "TRUE"}
    parts = [
        f"SELECT rank, device, start_ns, duration_ns FROM {file_source(path)} WHERE {which[path.stem]}"  # noqa: S608
        for path in files_of([folder], *which)
    ]
    if not parts:
        return []
    rows = duckdb.execute(
        f"SELECT rank, device, min(start_ns), max(start_ns + duration_ns) FROM ({' UNION ALL '.join(parts)})"  # noqa: S608
        " GROUP BY rank, device ORDER BY rank, device"
    ).fetchall()
    return [((rank, device), begin, end) for rank, device, begin, end in rows]


def _without_copies(gaps: Sequence[_Gap], folder: Path, least_ns: int) -> list[_Gap]:
    """Return gaps without the time in which copies, memsets or whole graphs run, those that are still `least_ns`."""
    of_lane: dict[tuple[int, int, int], list[_Gap]] = defaultdict(list)
    for gap in gaps:
        of_lane[gap.key].append(gap)
    inside: dict[_Gap, list[tuple[int, int, str]]] = defaultdict(list)
    for path in files_of([folder], "transfers", "graphs") if gaps else ():
        columns = ["start_ns", "duration_ns", "rank", "device", *(["copy_kind"] if path.stem == "transfers" else [])]
        with open_table(path, path.stem) as file:
            for batch in file.iter_batches(columns=columns):
                start, duration, rank, device, *rest = (
                    column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns
                )
                kinds = rest[0] if rest else np.full(len(start), -1)
                for (_, of_rank, of_device), own in of_lane.items():
                    chosen = (rank == of_rank) & (device == of_device) & ~np.isin(kinds, MIGRATIONS)
                    begins = start[chosen]
                    ends = begins + duration[chosen]
                    code = kinds[chosen]
                    for gap in own:  # few: each is a share of the run
                        for i in np.flatnonzero((begins < gap.end) & (ends > gap.start)).tolist():
                            name = "a graph" if code[i] < 0 else _copy_name(int(code[i]))
                            inside[gap].append((int(begins[i]), int(ends[i]), name))
    remaining = []
    for gap in gaps:
        now = gap.start
        after = gap.after
        for begin, end, name in sorted(inside[gap]):
            if begin - now >= least_ns:
                remaining.append(_Gap(gap.key, now, begin, after, name))
            if end > now:
                now = end
                after = name
        if gap.end - now >= least_ns:
            remaining.append(_Gap(gap.key, now, gap.end, after, gap.before))
    return remaining


def _copy_name(kind: int) -> str:
    words = COPY_KINDS.get(kind, "unknown")
    return "a memset" if words == "memset" else f"a copy ({words})"


def _names(folder: Path) -> dict[int, tuple[str, str]]:
    """Return short name and class of the kernel of each configuration of an export."""
    numbers = read_table(folder / "configurations.parquet", "configurations", ["configuration"]).column(0)
    names, kinds = (column.to_pylist() for column in kernel_columns(folder, ["short_name", "class"]).columns)
    return dict(zip(numbers.to_pylist(), zip(names, kinds, strict=True), strict=True))


def gap_facts(tables: RunTables, run: RunFact) -> list[GapFact]:
    """Return the gaps of a run by the work before and after them, those that make up a hundredth of the run, most
    time first.
    """
    if tables.efficiency.get("shared"):  # a GPU's gaps are those of all its ranks together
        return []
    least = max(int(SHORTEST * run.elapsed_ns), 1)
    groups: dict[tuple[str, str], list[_Gap]] = defaultdict(list)
    ranges: dict[int, _RangesByRank] = {}
    for number, folder in enumerate(tables.folders):
        if not (folder / "launches.parquet").is_file():
            continue
        names = {configuration: name for configuration, (name, _) in _names(folder).items()}
        every = _without_copies(_long_gaps(folder, number, least, names), folder, least)
        ranges[number] = _ranges(folder, every, run)
        for gap in every:
            begins = tables.moment(folder, gap.start)
            if begins >= 0:  # not while a recording of the others had not begun
                groups[gap.after, gap.before].append(replace(gap, moved=begins - gap.start))
    facts = []
    steps = run.steps.count if run.steps and run.steps.share >= MOST_OF_RUN else 0
    unexplained = sum(row["wait_ns"] for row in tables.waiting if row["reason"] == UNKNOWN)
    is_unexplained = 2 * unexplained >= max(sum(row["wait_ns"] for row in tables.waiting), 1)
    for (after, before), every in groups.items():
        longest_ns = max(gap.end - gap.start for gap in every)
        gaps = [gap for gap in every if MUCH_SHORTER * (gap.end - gap.start) >= longest_ns]
        lengths = sorted(gap.end - gap.start for gap in gaps)
        devices = len({gap.key for gap in gaps})
        longest = max(gaps, key=lambda gap: gap.end - gap.start)
        if run.share(sum(lengths)) >= NOTICEABLE:
            facts.append(
                GapFact(
                    after=after,
                    before=before,
                    count=len(gaps),
                    devices=devices,
                    total_ns=sum(lengths),
                    median_ns=round(float(np.median(lengths))),
                    longest_ns=lengths[-1],
                    start_ns=longest.start + longest.moved,
                    per_step=steps > 2 and abs(len(gaps) / devices - steps) <= 1,
                    between=_between(gaps, ranges),
                    meanwhile=innermost(tables.folders[longest.key[0]], longest.key[1], (longest.start, longest.end))
                    if is_unexplained
                    else None,
                )
            )
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.after, fact.before))


def long_ns(gaps: Sequence[GapFact]) -> int:
    """Return the time in gaps that are longer than launching takes the host, ns of all devices."""
    return sum(gap.total_ns for gap in gaps if gap.median_ns >= LAUNCHING_NS)


def between(gaps: Sequence[GapFact]) -> tuple[str, int] | None:
    """Return the ranges between which most time of gaps stands, and how much, ns of all devices; None without any."""
    sums: dict[str, int] = defaultdict(int)
    for gap in gaps:
        if gap.between is not None:
            sums[gap.between] += gap.total_ns
    return max(sums.items(), key=lambda pair: (pair[1], pair[0]), default=None)


def event_facts(tables: RunTables, run: RunFact) -> list[EventFact]:
    """Return single launches and copies that take a hundredth of the run or more beyond what is usual for their kind,
    most time first; launches of one kernel, or copies of one direction, are one fact. What is usual for a launch is
    that of its kernel with its grid, where there are enough of these.
    """
    import duckdb

    least = NOTICEABLE * run.elapsed_ns
    groups: dict[tuple[str, bool, bool, str | None], list[tuple[Any, ...]]] = defaultdict(list)
    medians = {row["short_name"]: (row["value_median"], row["launches"]) for row in tables.kernels}
    launched, copied = (_with_long(tables.folders, name, least) for name in ("launches", "transfers"))
    for folder in tables.folders:
        if folder in launched:
            rows = duckdb.execute(
                "SELECT start_ns, duration_ns, rank, device, configuration, n, q[2], q[3] + $fence * (q[3] - q[1]),"
                " larger FROM read_parquet($path) LEFT JOIN (SELECT configuration, count(*) AS n,"
                " quantile_cont(duration_ns, [0.25, 0.5, 0.75]) AS q FROM read_parquet($path) WHERE configuration IN"
                " (SELECT configuration FROM read_parquet($path) GROUP BY configuration HAVING count(*) <= $most"
                " AND max(duration_ns) >= $least) GROUP BY configuration)"
                " USING (configuration) LEFT JOIN (SELECT configuration, size / max(size) OVER (PARTITION BY kernel"
                " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS larger FROM (SELECT"
                " *, grid_x::DOUBLE * coalesce(grid_y, 1) * coalesce(grid_z, 1) AS size"
                " FROM read_parquet($configurations)))"
                " USING (configuration) WHERE duration_ns >= $least ORDER BY start_ns, rank, device",
                {
                    "path": str(folder / "launches.parquet"),
                    "configurations": str(folder / "configurations.parquet"),
                    "least": least,
                    "most": MOST_LAUNCHES,
                    "fence": FENCE,
                },
            ).fetchall()
            names = _names(folder) if rows else {}
            for start, duration, rank, device, configuration, alike, middle, fence, larger in rows:
                name, kind = names[configuration]
                is_alike = kind != "communication" and (alike or 0) >= FEWEST_USUAL
                median, launches = (middle, alike) if is_alike else medians.get(name, (None, 0))
                if median is None or launches < FEWEST_USUAL or duration - median < least:
                    continue
                usual = median * (1.0 if is_alike else max(larger or 1.0, 1.0))  # a grid beyond the others is more work
                if duration < STANDS_OUT * usual and not (is_alike and duration > fence):
                    continue
                event = duration, tables.moment(folder, start), (rank, device), None, round(median), None
                groups[name, False, kind == "communication", None].append(event)
        if folder in copied:
            rows = duckdb.execute(
                "SELECT start_ns, duration_ns, rank, device, copy_kind, bytes, src_kind, dst_kind, usual.ns,"
                " usual.size, n FROM read_parquet($path) JOIN (SELECT copy_kind, quantile_disc({'ns': duration_ns,"
                " 'size': bytes}, 0.5) AS usual, count(*) AS n FROM read_parquet($path) GROUP BY ALL) USING (copy_kind)"
                " WHERE duration_ns >= $least AND duration_ns - usual.ns >= $least ORDER BY start_ns, rank, device",
                {"path": str(folder / "transfers.parquet"), "least": least},
            ).fetchall()
            for start, duration, rank, device, kind, size, source, target, median, usual_size, n in rows:
                if n < FEWEST_USUAL or duration < STANDS_OUT * median or kind in MIGRATIONS:
                    continue
                memory = MEMORY_KINDS.get(source if kind == 1 else target if kind == 2 else -1)
                event = duration, tables.moment(folder, start), (rank, device), size, median, usual_size
                groups[COPY_KINDS.get(kind, "unknown"), True, False, memory].append(event)
    facts = []
    for (what, is_copy, is_collective, memory), every in groups.items():
        events = [event for event in every if event[1] >= 0]
        if not events:
            continue
        duration, start, _, size, usual_ns, usual_size = max(events, key=lambda event: (event[0], -event[1]))
        facts.append(
            EventFact(
                what=what,
                is_copy=is_copy,
                is_collective=is_collective,
                count=len(events),
                devices=len({event[2] for event in events}),
                longest_ns=duration,
                total_ns=sum(event[0] for event in events),
                usual_ns=usual_ns,
                start_ns=start,
                bytes=size,
                usual_bytes=usual_size,
                memory=memory,
            )
        )
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.what))


def _with_long(folders: Sequence[Path], name: str, least: float) -> set[Path]:
    """Return the exports whose table holds rows of a duration or more, ns: one query of all of them takes less than one
    for each of those without any.
    """
    import duckdb

    paths = [str(path) for path in files_of(folders, name)]
    long = "SELECT DISTINCT filename FROM read_parquet(?, filename = true) WHERE duration_ns >= ?"
    rows = duckdb.execute(long, [paths, least]).fetchall() if paths else []
    return {Path(path).parent for (path,) in rows}


def slow_step_facts(tables: RunTables, run: RunFact) -> list[SlowStepsFact]:
    """Return slow steps by cause, those that are a hundredth of the run longer in all, most time first."""
    if run.steps is None or tables.steps is None:
        return []
    own = {step["step"] for step in tables.steps["slow"] if step["cause"] not in (None, WAITS)}
    groups: dict[str, list[Row]] = defaultdict(list)
    for step in tables.steps["slow"]:  # a rank that waits for a late one is no reason of its own
        if step["cause"] is not None and not (step["cause"] == WAITS and step["step"] in own):
            groups[step["cause"]].append(step)
    facts = []
    for cause, steps in sorted(groups.items()):
        longest: dict[int, int] = {}
        for step in steps:
            longest[step["step"]] = max(longest.get(step["step"], 0), step["duration_ns"] - step["usual_ns"])
        excess = sum(longest.values())
        if excess < NOTICEABLE * run.elapsed_ns:
            continue
        facts.append(
            SlowStepsFact(
                pairs=tuple(sorted((step["rank"], step["step"]) for step in steps)),
                excess_ns=excess,
                cause_ns=sum(step["cause_ns"] for step in steps),
                usual_ns=steps[0]["usual_ns"],
                cause=cause,
                name=max(steps, key=lambda step: (step["cause_ns"], -step["step"]))["name"],
                holds=_held_alone(tables, {(step["rank"], step["step"]) for step in steps})
                if run.launches <= MOST_LAUNCHES
                else None,
            )
        )
    return sorted(facts, key=lambda fact: (-fact.excess_ns, fact.cause))


_COUNTS = re.compile(r"(?<![0-9])(?:[1-9][0-9]*|0[0-9]+)")
"""Numbers in names, but for a single 0: `context_0` holds none of what `context_7` holds."""


def _held_alone(tables: RunTables, slow: set[tuple[int, int]]) -> str | None:
    """Return the range or operator, with the numbers that it has most often, that begins in each of several slow steps,
    (rank, step), and in no usual one, whatever its numbers are; of several the one with most time.
    """
    if tables.steps is None or len({step for _, step in slow}) < 2:
        return None
    others = {(step["rank"], step["step"]) for step in tables.steps["slow"]} - slow
    held: dict[str, set[tuple[int, int]]] = defaultdict(set)
    names: dict[str, Counter[str]] = defaultdict(Counter)
    usual = set()
    for name, step, ns in _begun_in_steps(tables):
        kind = _COUNTS.sub("*", name)
        if step in slow:
            held[kind].add(step)
            names[kind][name] += ns
        elif step not in others:
            usual.add(kind)
    alone = {kind: names[kind] for kind, steps in held.items() if steps == slow and kind not in usual}
    if not alone:
        return None
    most = max(alone, key=lambda kind: (alone[kind].total(), kind))
    return max(alone[most], key=lambda name: (alone[most][name], name))


def _begun_in_steps(tables: RunTables) -> Iterator[tuple[str, tuple[int, int], int]]:
    """Give each name of a range or operator that begins in a step, (rank, step), with its time there, ns."""
    if tables.steps_table is None:
        return
    columns = {name: tables.steps_table.column(name).to_numpy() for name in ("rank", "step", "start_ns", "duration_ns")}
    order = np.lexsort((columns["start_ns"], columns["rank"]))
    rank, step, start, duration = (values[order] for values in columns.values())
    for folder in tables.folders:
        clock = tables.clocks.get(folder.name, Clock())
        own = {"rank": rank, "step": step, "begins": clock.own(start), "ends": clock.own(start + duration)}
        connection = bounded_database()
        connection.register("steps", pa.table(own))
        for path in files_of([folder], "ranges", "host_operators"):
            rows = connection.execute(
                "SELECT name::VARCHAR, e.rank, step, sum(e.duration_ns)::BIGINT FROM read_parquet(?) e"
                " ASOF JOIN steps s ON e.rank = s.rank AND e.start_ns >= s.begins WHERE e.start_ns < s.ends"
                " GROUP BY ALL ORDER BY ALL",
                [str(path)],
            ).fetchall()
            yield from ((name, (of_rank, number), ns) for name, of_rank, number, ns in rows)


def behind_steps(
    fact: SlowStepsFact | FirstStepFact, singles: Sequence[EventFact | GapFact]
) -> EventFact | GapFact | None:
    """Return the single event, or the gaps, whose time is the excess of slow steps; None where there is none. A
    collective in which others wait is not behind a step that is slow by itself.
    """
    for single in singles:
        if isinstance(single, EventFact) and single.is_collective and fact.cause != WAITS:
            continue
        ns = single.longest_ns if isinstance(single, EventFact) else single.total_ns / single.devices
        if 0.8 * fact.excess_ns <= ns <= 1.25 * fact.excess_ns:
            return single
    return None
