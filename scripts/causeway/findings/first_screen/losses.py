"""What the devices' time is lost to, why, and what the run would win without it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.codes import (
    BEHIND_RANK,
    BY_KERNEL,
    COPY_KINDS,
    HOST_CODE,
    IN_MPI,
    IN_RANGE,
    MEMORY_KERNEL,
    MEMORY_KINDS,
    MIGRATIONS,
    PROFILER,
)
from causeway.core.queries import in_document, of_table, within
from causeway.core.schemas import Row
from causeway.core.vocabulary import MIXED, NOT_IDLE, OTHER_PROCESS, STRAGGLER, form_of
from causeway.events.outer_ranges import outer_ranges
from causeway.findings.first_screen.run_facts import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    IDLE,
    NOTICEABLE,
    OUTSIDE,
    UNKNOWN,
    RunFact,
    RunTables,
    files_of,
)

BY_HOST = ("launch_starved", "blocked_host")
"""Reasons of idle time that are the host's."""
OWN_STREAM = " of its own stream"
"""What a detail says of work that waited behind work of its own stream, which had ended: that explains no wait."""
CHANGES = {COMMUNICATION: "collectives_free", COPIES: "copies_free", IDLE: "host_free"}
"""The replayed change that takes a loss away."""
_DIGITS = re.compile(r"[0-9]+|\*+")
FOREIGN = (OTHER_PROCESS, PROFILER)
"""Reasons of idle time that are not the program's."""
MOST_UNKNOWN = 0.5
"""Share of idle time without a known reason, in MPI or of `FOREIGN` from which no replay stands for the loss: it keeps
these gaps.
"""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a run would win: `saved_ns` of its time, then what limits it (kind and name, where known); `at_least`: the
    replay keeps waiting that belongs to the loss. `row` of `replay.parquet` gives it, as the difference of `columns`.
    """

    saved_ns: int
    limited_by: str | None = None
    limited_name: str | None = None
    at_least: bool = False
    row: Row
    columns: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class CopiesFact:
    """The copies of one direction, or by one kernel (`BY_KERNEL`, the direction is its name), all devices: ns, bytes,
    count, GB/s, and the kind of the host's memory.
    """

    kind: int
    direction: str
    total_ns: int
    copies: int
    bytes: int | None = None
    gb_per_s: float | None = None
    memory: str | None = None


@dataclass(frozen=True, kw_only=True)
class CollectivesFact:
    """The collectives with most time: operation, message, bandwidth of the bus at the median, GB/s. Of
    sends and receives, which begin before their peer is there, `beyond_ns` is what all take beyond the median.
    """

    operation: str
    bytes: int | None
    count: int
    total_ns: int
    bus_gb_per_s: float | None
    matched: bool
    beyond_ns: int = 0

    @property
    def has_unknown_peers(self) -> bool:
        """Whether how long these wait for their peers is not known: sends and receives of unknown size."""
        return self.operation == "send_recv" and self.bytes is None and not self.matched


MOST_EXPOSED = 0.9
"""Share of communication that must be exposed for the waits in it to be taken for losses."""


@dataclass(frozen=True, kw_only=True)
class LossFact:
    """A part of the devices' time that is not compute.

    Attributes
    ----------
    part : str
        Its key in `waterfall_ns`.
    lost_ns : int
        All devices.
    reasons : sequence of (str, str, int)
        Of idle time: reason, what is behind it, ns of all devices; most first.
    unknown_ns : int
        Of idle time: without a known reason.
    waits : (str, int) or None
        Of idle time: the call with which the host waits for a device most often, and how often.
    long_ns : int
        Of idle time: in gaps between the same work that are each longer than a launch takes the host.
    between : (str, int) or None
        Of idle time: ranges between which most of it stands, and how much, ns of all devices.
    copies, collectives : sequence
        Of these losses what they are made of, most time first.
    are_apart : bool
        Of copies: most of their time is on streams without launches.
    waited_ns : int
        Of communication: waiting for other ranks, all devices.
    peers_ns : int
        Of this, waiting of sends and receives for their peers.
    overlap_ns : int or None
        What hiding the loss behind compute could win of the run at most: of copies on the device with most of it, of
        communication the mean of the devices.
    has_unknown_peers : bool
        Of communication: most is sends and receives of unknown size, which may wait for their peers.
    missing_ranks : int
        Ranks of the job that are not in the recording.
    gain : Gain or None
        None where it is not known.
    """

    part: str
    lost_ns: int
    reasons: Sequence[tuple[str, str, int]] = ()
    unknown_ns: int = 0
    long_ns: int = 0
    between: tuple[str, int] | None = None
    waits: tuple[str, int] | None = None
    copies: Sequence[CopiesFact] = ()
    collectives: Sequence[CollectivesFact] = ()
    are_apart: bool = False
    waited_ns: int = 0
    peers_ns: int = 0
    overlap_ns: int | None = None
    has_unknown_peers: bool = False
    missing_ranks: int = 0
    gain: Gain | None = None


@dataclass(frozen=True, kw_only=True)
class LateRankFact:
    """A rank, or several together, that the others wait for.

    Attributes
    ----------
    group : int
        Index of the communicator in `stragglers.json`.
    ranks : sequence of int
    of_ranks : int
        Ranks of the communicator.
    last, collectives : int
        Collectives in which they are last, of how many.
    waited_ns : int
        What the others wait for them, all of them together.
    saved_ns : int
        What the run would win were they on time.
    is_bound : bool
        No replay gives that: it is a bound.
    cause : str or None
        What they have more of than the others: one of `vocabulary.LATENESS_CAUSES`.
    kernel : str or None
        The kernel that costs them most.
    is_often : bool
        Whether they are late often; else few long waits make up most.
    query : str
    """

    group: int
    ranks: Sequence[int]
    of_ranks: int
    last: int
    collectives: int
    waited_ns: int
    saved_ns: int
    is_bound: bool
    cause: str | None
    kernel: str | None
    is_often: bool
    query: str


def loss_facts(
    tables: RunTables, run: RunFact, long_ns: int = 0, between: tuple[str, int] | None = None, single_ns: int = 0
) -> list[LossFact]:
    """Return the parts of the devices' time that are not compute, of a hundredth or more of it, the largest first;
    `long_ns` of the idle time is in long gaps, so much of it `between` ranges of a name; `single_ns` of the
    communication is what single collectives take beyond the usual.
    """
    facts = [
        _loss(tables, run, part, long_ns, between, single_ns)
        for part in (COMMUNICATION, COPIES, IDLE, OUTSIDE)
        if run.share(run.parts.get(part, 0)) >= NOTICEABLE
    ]
    return sorted(facts, key=lambda fact: (-fact.lost_ns, fact.part))


def _loss(
    tables: RunTables, run: RunFact, part: str, long_ns: int, between: tuple[str, int] | None, single_ns: int
) -> LossFact:
    breakdown = tables.efficiency["breakdown"]
    lost = run.parts[part]
    gain = _gain(tables, run, part)
    if part == IDLE:
        reasons, unknown = _reasons(tables)
        unknown = unknown if reasons or unknown else lost  # a rank without work yet, or no longer
        total = sum(ns for _, _, ns in reasons) + unknown
        if total > lost:  # waits are told of the whole recording, losses of what all ranks recorded
            reasons = [(reason, detail, ns * lost // total) for reason, detail, ns in reasons]
            unknown = unknown * lost // total
            total = lost
        kept = unknown + sum(ns for why, detail, ns in reasons if why in FOREIGN or detail.startswith(IN_MPI))
        if not total or kept >= MOST_UNKNOWN * total:
            gain = None
        return LossFact(
            part=part,
            lost_ns=lost,
            reasons=reasons,
            unknown_ns=unknown,
            long_ns=min(long_ns, lost),
            between=between if between and lost >= between[1] >= lost / 2 else None,
            waits=_waits(tables),
            gain=gain,
        )
    if part == COPIES:
        overlap = max(min(gpu["exposed_memory_ns"], gpu["compute_ns"]) for gpu in breakdown.values())
        overlap = min(overlap, gain.saved_ns) if gain and not gain.at_least else overlap
        apart = _are_apart(tables.folders)
        return LossFact(part=part, lost_ns=lost, copies=_copies(tables), are_apart=apart, overlap_ns=overlap, gain=gain)
    if part == COMMUNICATION:
        exposed = (max(gpu["exposed_communication_ns"] - single_ns // run.devices, 0) for gpu in breakdown.values())
        overlap = sum(map(min, exposed, (gpu["compute_ns"] for gpu in breakdown.values())))
        waited = sum(group["waiting_ns"] for group in tables.stragglers["groups"]) if tables.stragglers else 0
        alone = ("unread_ranks", "one_rank_of_a_job")
        missing = next((issue["count"] for issue in tables.quality["issues"] if issue["kind"] in alone), 0)
        collectives = _collectives(tables, waited)
        all_of_it = sum(gpu["communication_ns"] for gpu in breakdown.values())
        is_exposed = lost >= MOST_EXPOSED * all_of_it  # else what waits may be hidden behind compute
        peers = min(sum(fact.beyond_ns for fact in collectives), max(lost - waited, 0)) if is_exposed else 0
        return LossFact(
            part=part,
            lost_ns=lost,
            collectives=collectives,
            waited_ns=min(waited + peers, lost),
            peers_ns=peers,
            has_unknown_peers=bool(collectives) and collectives[0].has_unknown_peers,
            overlap_ns=overlap // run.devices,
            missing_ranks=missing,
            gain=gain,
        )
    return LossFact(part=part, lost_ns=lost)


def replayed(tables: RunTables, change: str, name: str | None = None) -> Row | None:
    """Return the row of the whole run in which one change is replayed; None without it."""
    wanted = change, None, name
    return next((row for row in tables.replay if (row["change"], row["step"], row["name"]) == wanted), None)


def _gain(tables: RunTables, run: RunFact, part: str) -> Gain | None:
    """Return what the run wins without a loss, of the time from the first to the last work of its devices."""
    row = replayed(tables, CHANGES.get(part, ""))
    if row is None:
        return None
    has_devices = row["device_time_ns"] is not None and row["predicted_device_time_ns"] is not None
    columns = ("device_time_ns", "predicted_device_time_ns") if has_devices else ("time_ns", "predicted_ns")
    # in a replay kernels of several streams may run at once, in a device they share it: what computes stays
    most = row[columns[0]] * (1 - run.share(run.parts.get(COMPUTE, 0)))
    saved = min(max(row[columns[0]] - row[columns[1]], 0), round(most))
    # calls that wait in a full queue behind the copies are taken for work of the host
    alone = max((device["exposed_memory_ns"] for device in tables.efficiency["breakdown"].values()), default=0)
    at_least = part == COPIES and row["limited_by"] in ("launch", "host") and saved < 0.9 * alone
    limits = {name: row[name] for name in ("limited_by", "limited_name")}
    return Gain(saved_ns=saved, at_least=at_least, row=row, columns=columns, **limits)


def is_unexplained(reason: str, detail: str) -> bool:
    """Return whether a reason explains nothing: it is unknown, or the work before on the stream had ended."""
    return reason == UNKNOWN or (reason == "dependency_stalled" and OWN_STREAM in detail)


def _reasons(tables: RunTables) -> tuple[list[tuple[str, str, int]], int]:
    """Return why devices are idle between their first and last work, and how long for no known reason, ns.

    A range around a step, or around most of the run, is no reason.
    """
    sums: Counter[tuple[str, str]] = Counter()
    outer = {name for folder in tables.folders for name in outer_ranges(folder)}
    outer |= {tables.steps["ranges"]} if tables.steps else set()
    for row in tables.waiting:
        if row["reason"] not in NOT_IDLE:
            name = row["detail"].removeprefix(IN_RANGE)
            is_outer = name != row["detail"] and (_DIGITS.sub("*", name) in outer or form_of(name) is not None)
            sums[row["reason"], HOST_CODE if is_outer else row["detail"]] += row["wait_ns"]
    unknown = sum(ns for (reason, detail), ns in sums.items() if is_unexplained(reason, detail))
    rows = [(reason, detail, ns) for (reason, detail), ns in sums.items() if not is_unexplained(reason, detail)]
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1])), unknown


def _waits(tables: RunTables) -> tuple[str, int] | None:
    """Return the call with which the host waits for a device most often, and how often; None where it never does."""
    import duckdb

    paths = [str(path) for path in files_of(tables.folders, "calls")]
    counted = (
        "SELECT name::VARCHAR, count(*) FROM read_parquet(?) WHERE regexp_matches(name::VARCHAR,"
        " '(Device|Stream|Ctx|Context|Event)Synchronize|^(cuda|hip|cu)Memcpy')"
        " AND NOT contains(name::VARCHAR, 'Async') GROUP BY ALL ORDER BY 2 DESC, 1 DESC LIMIT 1"
    )
    return duckdb.execute(counted, [paths]).fetchone() if paths else None


def _copies(tables: RunTables) -> list[CopiesFact]:
    """Return the copies of each direction, most time first, with the memory that most of their time is of on
    each device; None where devices differ.
    """
    most = sorted(host_memory(tables.folders).items(), key=lambda row: (row[1], row[0]))
    memory = {(kind, rank, device): words for (kind, words, rank, device), _ in most}
    sums: dict[int, list[Row]] = {}
    for row in tables.efficiency["copies"]:
        sums.setdefault(row["kind"], []).append(row)
    facts = []
    impossible, _ = tables.too_fast
    for kind, rows in sums.items():
        ns = sum(row["duration_ns"] for row in rows)
        sized = sum(row["sized_ns"] for row in rows)
        is_sized = sized >= MOST_UNKNOWN * ns and kind not in impossible
        size = sum(row["bytes"] or 0 for row in rows) if is_sized else None
        own = {words for (of, _, _), words in memory.items() if of == kind}
        facts.append(
            CopiesFact(
                kind=kind,
                direction=COPY_KINDS.get(kind, "unknown"),
                total_ns=ns,
                copies=sum(row["copies"] for row in rows),
                bytes=size,
                gb_per_s=size / sized if size and sized else None,
                memory=own.pop() if len(own) == 1 else "managed" if kind in MIGRATIONS else None,
            )
        )
    facts += [
        CopiesFact(
            kind=BY_KERNEL,
            direction=row["short_name"],
            total_ns=round(row["value_sum"]),
            copies=row["launches"],
        )
        for row in tables.kernels
        if row["class"] == MEMORY_KERNEL
    ]
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.kind, fact.direction))


def host_memory(folders: Sequence[Path]) -> Counter[tuple[int, str, int, int]]:
    """Return the time of copies between host and device by their kind, the host's memory, rank and device, ns."""
    import duckdb

    memory: Counter[tuple[int, str, int, int]] = Counter()
    paths = [str(path) for path in files_of(folders, "transfers")]
    summed = (
        "SELECT copy_kind, src_kind, dst_kind, rank, device, sum(duration_ns)::BIGINT FROM read_parquet(?) GROUP BY ALL"
    )
    for kind, source, target, rank, device, ns in duckdb.execute(summed, [paths]).fetchall() if paths else ():
        host = source if kind == 1 else target if kind == 2 else None
        if host is not None:
            memory[kind, MEMORY_KINDS.get(host, "unknown"), rank, device] += ns
    return memory


def _are_apart(folders: Sequence[Path]) -> bool:
    """Return whether copies run on streams without launches for most of their time; stream 0 may be one not known."""
    import duckdb

    sums = Counter({True: 0, False: 0})
    query = (
        "SELECT stream NOT IN (SELECT DISTINCT stream FROM read_parquet(?) WHERE stream > 0),"
        " sum(duration_ns)::BIGINT FROM read_parquet(?) WHERE stream > 0 GROUP BY ALL"
    )
    for folder in folders:
        if len(files := files_of([folder], "launches", "transfers")) == 2:
            sums.update(dict(duckdb.execute(query, list(map(str, files))).fetchall()))
    return sums[True] > sums[False]


def _collectives(tables: RunTables, waited_ns: int) -> list[CollectivesFact]:
    """Return the collectives, most time first: waits for other ranks are in the matched ones."""
    rows = sorted(tables.collectives, key=_kernels_ns, reverse=True)
    if rows and _kernels_ns(rows[0])[0] < waited_ns:
        rows.sort(key=lambda row: not row["matched"])
    return [
        CollectivesFact(
            operation=row["operation"],
            bytes=row["bytes"],
            count=row["collectives"],
            total_ns=row["total_ns"],
            bus_gb_per_s=row["bus_gb_per_s"],
            matched=row["matched"],
            beyond_ns=0
            if row["matched"] or row["operation"] != "send_recv" or row["bytes"] is None
            else max(row["total_ns"] - row["collectives"] * row["median_ns"], 0),
        )
        for row in rows
    ]


def _kernels_ns(row: Row) -> tuple[int, str, int]:
    """Return the time of all kernels of a row of collectives, and what orders equal ones: of matched ones each rank has
    a kernel.
    """
    return row["total_ns"] * ((row["ranks"] or 1) if row["matched"] else 1), row["operation"], row["bytes"] or 0


def late_rank_facts(tables: RunTables, run: RunFact) -> list[LateRankFact]:
    """Return the ranks that the others wait for, where that costs a hundredth of the run or more, most waiting first;
    one rank counts once, in the communicator where it is waited for longest.
    """
    facts: dict[tuple[int, ...], LateRankFact] = {}
    for index, group in enumerate(tables.stragglers["groups"] if tables.stragglers else ()):
        for fact in _late(tables, index, group):
            previous = facts.get(tuple(fact.ranks))
            others = max(fact.of_ranks - len(fact.ranks), 1)
            if fact.waited_ns / others >= NOTICEABLE * run.elapsed_ns and (
                previous is None or previous.waited_ns < fact.waited_ns
            ):
                facts[tuple(fact.ranks)] = fact
    return sorted(facts.values(), key=lambda fact: (-fact.saved_ns, -fact.waited_ns, fact.ranks))


@dataclass(frozen=True, kw_only=True)
class MigrationsFact:
    """Pages of managed memory that move while kernels run, ns of all devices, of the kernels' time; the kernel with
    most of it.
    """

    under_ns: int
    kernels_ns: int
    kernel: str
    query: str


def migration_facts(tables: RunTables) -> list[MigrationsFact]:
    """Return that pages of managed memory move during a hundredth of the kernels' time or more."""
    breakdown = tables.efficiency["breakdown"].values()
    under = sum(device.get("under_migrations_ns", 0) for device in breakdown)
    kernels = sum(device.get("kernel_ns", 0) for device in breakdown)
    if not under or under < NOTICEABLE * kernels:
        return []
    query = "list_sum(json_extract(content, '$.breakdown.*.under_migrations_ns')::BIGINT[])::BIGINT"
    name = tables.efficiency["migrations"]["kernels"][0]["name"]
    path = f"{tables.dataset}/efficiency.json"
    return [MigrationsFact(under_ns=under, kernels_ns=kernels, kernel=name, query=within(path, query))]


@dataclass(frozen=True, kw_only=True)
class SharedFact:
    """GPUs that several ranks share: how many, how many ranks, and how long these wait there for each other, ns."""

    gpus: int
    ranks: int
    waited_ns: int
    query: str


def shared_facts(tables: RunTables, run: RunFact) -> list[SharedFact]:
    """Return that ranks share GPUs and wait for each other there, where that is a hundredth of the run or more."""
    waited = sum(row["wait_ns"] for row in tables.waiting if row["detail"] == BEHIND_RANK)
    if not tables.efficiency.get("shared") or waited < NOTICEABLE * run.elapsed_ns:
        return []
    where = f"step IS NULL AND detail = '{BEHIND_RANK}'"
    query = of_table("sum(wait_ns)::BIGINT", f"{tables.dataset}/waiting.parquet", where)
    gpus = len(tables.efficiency["shared"])
    return [SharedFact(gpus=gpus, ranks=run.ranks, waited_ns=waited, query=query)]


def _late(tables: RunTables, index: int, group: Row) -> list[LateRankFact]:
    path = f"{tables.dataset}/stragglers.json"
    facts = []
    named = group["verdict"] in (STRAGGLER, MIXED)
    for number, row in enumerate(group.get("late_together", ()) if named else ()):
        facts.append(
            LateRankFact(
                group=index,
                ranks=list(row["ranks"]),
                of_ranks=group["n_ranks"],
                last=row["collectives"],
                collectives=group["collectives"],
                waited_ns=row["waiting_for_them_ns"],
                saved_ns=row["together_ns"],
                is_bound=True,
                cause=None,
                kernel=None,
                is_often=True,
                query=in_document(
                    path, "groups", index, "late_together", number, "waiting_for_them_ns", kind="integer"
                ),
            )
        )
    together = {rank for fact in facts for rank in fact.ranks}
    for number, rank in enumerate(group["ranks"]):
        is_often = rank["pattern"] != "none" and named
        if (not is_often and rank["rank"] != group.get("waited_for")) or rank["rank"] in together:
            continue
        row = replayed(tables, "no_straggler", f"rank {rank['rank']}")
        saved = row["time_ns"] - row["predicted_ns"] if row is not None else -1
        why = rank.get("why") or {}
        kernels = why.get("kernels") or []
        facts.append(
            LateRankFact(
                group=index,
                ranks=[rank["rank"]],
                of_ranks=group["n_ranks"],
                last=rank["last_collectives"],
                collectives=group["collectives"],
                waited_ns=rank["waiting_for_it_ns"],
                saved_ns=saved if saved > 0 else rank["alone_ns"],
                is_bound=saved <= 0,
                cause=why.get("cause"),
                kernel=kernels[0]["kernel"] if kernels and why.get("cause") == "compute" else None,
                is_often=is_often,
                query=in_document(path, "groups", index, "ranks", number, "waiting_for_it_ns", kind="integer"),
            )
        )
    return facts
