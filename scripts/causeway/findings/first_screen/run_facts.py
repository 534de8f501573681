"""What a run is: its devices, its steps, how its time splits, and whether its recording is fit to say so."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.queries import bounded_database, in_document, value_at, within
from causeway.core.schemas import Row
from causeway.core.tables import read_table
from causeway.core.vocabulary import KERNEL_VARIABILITY

NOTICEABLE = 0.01
"""Share of a run from which something is said of it."""
MOST_OF_RUN = 0.8
"""Share of the devices' time that steps must be to stand for the run."""
ANNOTATED = ("annotations", "graphs")
"""Sources of steps that say that they are steps."""
FENCE = 3.0
"""Interquartile ranges above the third quartile from which a value is far from the others (Tukey's outer fence)."""
FEWEST_REPEATS = 20
LAUNCHING_NS = 500_000
"""Idle time before a launch up to which it may be that of launching; a longer one is a pause."""
ALIKE = 0.95
"""Fewest repeats of a launch sequence, and the least share of them that is alike, that are said."""
MOST_ROWS = 200_000
"""Rows of a table up to which it is read whole and compared by these: a sweep has fewer."""
MOST_LAUNCHES = 20_000_000
"""Launches of a dataset up to which single ones, or their calls, are looked at in their order."""
LEAST_CLOCK = 0.02
"""Share by which a clock changes to be worth a word, as for late ranks."""
UNKNOWN = "unknown"
"""The reason of idle time that explains nothing."""
COMPUTE = "useful"
COMMUNICATION = "communication"
COPIES = "transfers"
IDLE = "orchestration"
OUTSIDE = "outside"
"""Parts of the devices' time, as `waterfall_ns` of `efficiency.json` names them; they add up to all of it."""
RECORDED = {
    "launches": "kernels",
    "transfers": "copies",
    "calls": "runtime calls",
    "host_operators": "operators",
    "python_functions": "Python functions",
    "ranges": "ranges",
    "samples": "device metrics",
    "mpi": "MPI",
}
"""What a recording holds, by its tables."""


@dataclass(frozen=True, kw_only=True)
class RunTables:
    """All that the facts of a dataset are read from; what a dataset does not have is None or empty.

    Attributes
    ----------
    folders : sequence of Path
        Tables of its exports, in the sheet's order.
    steps_table : Table or None
        `steps.parquet`, all its columns, one row for each step of a rank, times in ns.
    waiting, replay, collectives, operators : sequence of mapping
        Rows of the tables, those of the whole run where they have steps.
    targets, units : mapping
        Rows of `kernels.parquet` and the unit of their values, by target.
    """

    dataset: str
    folders: Sequence[Path] = ()
    quality: Row = field(default_factory=dict)
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    capabilities: Sequence[Row] = ()
    efficiency: Row = field(default_factory=dict)
    stragglers: Row = field(default_factory=dict)
    steps: Row = field(default_factory=dict)
    steps_table: pa.Table | None = None
    waiting: Sequence[Row] = ()
    replay: Sequence[Row] = ()
    collectives: Sequence[Row] = ()
    operators: Sequence[Row] = ()
    targets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    searches: Sequence[Any] = ()

    @property
    def kernels(self) -> Sequence[Row]:
        """Rows of `kernels.parquet` of the durations."""
        return self.targets.get(KERNEL_VARIABILITY, ())

    def moment(self, folder: Path, start_ns: int) -> int:
        """Return when something of an export began, ns after the time begins in which the dataset is measured."""
        return int(self.clocks.get(folder.name, Clock()).aligned(start_ns)) - int(self.efficiency["origin_ns"])

    @cached_property
    def too_fast(self) -> tuple[dict[int, int], str]:
        """What `_too_fast` returns, which reads all transfers."""
        return _too_fast(self)

    @property
    def is_timed(self) -> bool:
        """Whether the dataset has a time line."""
        return bool(self.efficiency) and not self.efficiency["why"]


@dataclass(frozen=True, kw_only=True)
class StepsFact:
    """Steps of a run, or (not `annotated`) repeats of its launch sequence, which may be layers: `count` on the rank
    with most, times of one in ns, parts of their devices' time in ns, and their share of all of it.
    """

    count: int
    mean_ns: float
    median_ns: float
    p99_ns: float | None
    longest_ns: int
    parts: Mapping[str, int]
    share: float
    annotated: bool


@dataclass(frozen=True, kw_only=True)
class RunFact:
    """A run: its time and that of its devices, ns, their number and models, how that time splits, what is recorded,
    whether it runs in graphs of CUDA or HIP, and how many launches wait in a stream's queue on average, where known;
    `runtime` is CUDA, HIP or "" where that is not known.
    """

    elapsed_ns: int
    devices: int
    ranks: int
    gpus: Sequence[str]
    parts: Mapping[str, int]
    steps: StepsFact | None
    recorded: Sequence[str]
    launches: int
    in_graphs: bool = False
    queued: float | None = None
    runtime: str = ""
    whole_ns: int = 0
    query: str

    @property
    def recorded_ns(self) -> int:
        """From the first begin of the ranks' recordings to the last end, ns: more than the run where what is lost is
        told of the time that they share.
        """
        return max(self.elapsed_ns, self.whole_ns)

    @property
    def gpu_ns(self) -> int:
        """Time of all devices, ns."""
        return self.elapsed_ns * self.devices

    def share(self, ns: float) -> float:
        """Return a time of all devices as a share of theirs."""
        return ns / self.gpu_ns if self.gpu_ns else 0.0


@dataclass(frozen=True, kw_only=True)
class RecordingFact:
    """A fault of the recording that makes it unfit for a question.

    Attributes
    ----------
    fault : str
        A key of `words.recording_words.FAULTS`.
    count : int
        How many events, or ns, it concerns.
    of : int
        Of how many, for unrecorded steps of how many ranks; 0 where that means nothing.
    table, query : str
        Where `count` is, and SQL that gives it.
    unit : str
        Of `count`.
    why : str
        What an export lacks, as its reader says it; empty for other faults.
    """

    fault: str
    count: int
    of: int = 0
    table: str
    query: str
    unit: str = "events"
    why: str = ""


def files_of(folders: Sequence[Path], *names: str) -> list[Path]:
    """Return the tables of these names that exports have, export by export."""
    return [path for folder in folders for name in names if (path := folder / f"{name}.parquet").is_file()]


def inside(path: Path) -> str:
    """Return the path of an export's table in the results folder."""
    return "/".join(path.parts[-4:])


def run_fact(tables: RunTables) -> RunFact | None:
    """Return the run; None without a time line."""
    document = tables.efficiency
    if not tables.is_timed or not document["elapsed_ns"]:
        return None
    names = [row["name"] for row in _devices(tables.folders) if row["name"]]
    held = {name for export in tables.capabilities for name, rows in export["tables"].items() if rows}
    return RunFact(
        elapsed_ns=document["elapsed_ns"],
        whole_ns=(document.get("recordings") or {}).get("whole_ns", 0),
        devices=document["device"]["n_devices"],
        ranks=len(document["device"]["ranks"]) or 1,
        gpus=sorted(set(names)),
        parts=dict(document["waterfall_ns"]),
        steps=_steps(tables),
        recorded=[words for name, words in RECORDED.items() if name in held],
        launches=document["launch_path"]["launches"],
        queued=document["launch_path"].get("mean_queue_length"),
        runtime=_runtime(tables),
        in_graphs=bool(document.get("graphs"))
        or any(issue["kind"] == "graph_launches" for issue in tables.quality["issues"])
        or any(row["reason"] == "graph_internal" for row in tables.waiting),
        query=in_document(f"{tables.dataset}/efficiency.json", "elapsed_ns", kind="integer"),
    )


RUNTIMES = {"hip": "HIP", "cuda": "CUDA", "cu": "CUDA"}
"""The runtime of a call, by how its name begins."""
FORMATS = {"rocprof": "HIP", "rocprofv3": "HIP", "rocpd": "HIP", "rpd": "HIP", "nsys": "CUDA", "ncu": "CUDA"}
"""The runtime of a format that is one vendor's."""


def _runtime(tables: RunTables) -> str:
    """Return whose runtime launches the kernels, by the calls that are recorded, else by the format; "" if neither says
    it.
    """
    import duckdb

    calls = [str(path) for path in files_of(tables.folders, "calls")]
    of_calls = "SELECT DISTINCT regexp_extract(name::VARCHAR, '^(hip|cuda|cu)') FROM read_parquet(?)"
    begins = [row[0] for row in duckdb.execute(of_calls, [calls]).fetchall()] if calls else []
    runtimes = {RUNTIMES[prefix] for prefix in begins if prefix}
    runtimes = runtimes or {FORMATS.get(export["format"], "") for export in tables.capabilities}
    return runtimes.pop() if len(runtimes) == 1 else ""


def _devices(folders: Sequence[Path]) -> list[Row]:
    """Return the rows of all `devices` of a dataset that did work."""
    import duckdb

    launches = [str(path) for folder in folders if (path := folder / "launches.parquet").is_file()]
    used: dict[Path, set[tuple[int, int]]] = defaultdict(set)
    if launches:
        triples = "SELECT DISTINCT filename, rank, device FROM read_parquet(?, filename = true)"  # streamed
        for path, rank, device in duckdb.execute(triples, [launches]).fetchall():
            used[Path(path).parent].add((rank, device))
    devices = []
    for folder in folders:
        if (folder / "devices.parquet").is_file():
            rows = read_table(folder / "devices.parquet", "devices").to_pylist()
            devices += [row for row in rows if folder not in used or (row["rank"], row["device"]) in used[folder]]
    return devices


def _steps(tables: RunTables) -> StepsFact | None:
    """Return the steps, warm-up left out; None where none are known to be steps."""
    document = tables.steps
    if document is None or tables.steps_table is None or not tables.steps_table.num_rows:
        return None
    ranks = [row for row in document["ranks"] if row["steps"]]
    sure = all(row["steps"] >= FEWEST_REPEATS and (row["confidence"] or 0) >= ALIKE for row in ranks)
    if document["source"] not in ANNOTATED and not sure:
        return None
    rows = tables.steps_table.to_pandas()
    rows = rows[~rows["warm_up"]] if not rows["warm_up"].all() else rows
    durations = rows["duration_ns"].to_numpy()
    if len(durations) < 2:
        return None
    devices = {row["rank"]: row["devices"] for row in document["ranks"]}
    total = int(sum(duration * devices[rank] for rank, duration in zip(rows["rank"], durations, strict=True)))
    communication, copies, idle, busy = (
        int(rows[name].sum()) for name in ("exposed_communication_ns", "exposed_copies_ns", "idle_ns", "busy_ns")
    )
    elapsed = tables.efficiency["elapsed_ns"] * tables.efficiency["device"]["n_devices"]
    return StepsFact(
        count=int(rows.groupby("rank").size().max()),
        mean_ns=float(durations.mean()),
        median_ns=float(np.median(durations)),
        p99_ns=document["p99_ns"],
        longest_ns=int(durations.max()),
        parts={COMPUTE: busy - communication - copies, COMMUNICATION: communication, COPIES: copies, IDLE: idle},
        share=total / elapsed if elapsed else 0.0,
        annotated=document["source"] in ANNOTATED,
    )


SAME_RECORDING = "same_recording"
UNFIT = (
    SAME_RECORDING,
    "no_launches",
    "late_stamps",
    "unrecorded_steps",
    "missing_dispatches",
    "graphs_without_launches",
    "outlasting",
    "missing_name",
    "overlapping_launches",
    "end_before_start",
    "dropped_events",
    "repeated_events",
)
"""Issues of quality that make a recording unfit for a question, the gravest first."""
FROM_ONE = (SAME_RECORDING, "unrecorded_steps", "end_before_start")
"""Those that are said from the first event on: one step or launch may be much of the run."""


def recording_facts(tables: RunTables) -> list[RecordingFact]:
    """Return the faults that make the recording unfit for a question, the gravest first."""
    document = f"{tables.dataset}/quality.json"
    facts = []
    read = sum(export["rows"] for export in tables.quality["exports"])
    ranks = {rank for export in tables.quality["exports"] for rank in export.get("ranks", ())}
    for index, export in enumerate(tables.quality["exports"]):
        if export["status"] != "read":
            query = in_document(document, "exports", index, "status", kind="text")
            facts.append(
                RecordingFact(
                    fault=export["status"],
                    count=1,
                    of=len(tables.quality["exports"]),
                    table=document,
                    query=query,
                    why=export["error"]["found"].partition(": ")[0] if export["error"] else "",
                )
            )
    issues = tables.quality["issues"]
    kinds = {issue["kind"] for issue in issues}
    for fault in UNFIT:
        if fault == "no_launches" and (read or "graphs_without_launches" in kinds):  # whose executions are the work
            continue
        alike = [index for index, issue in enumerate(issues) if issue["kind"] == fault]
        # of all exports together, but for those that are the same: each group of these is one
        for group in [[index] for index in alike] if fault == SAME_RECORDING else [alike]:
            total = sum(issues[index]["count"] for index in group)
            if group and (fault in FROM_ONE or total >= NOTICEABLE * read):
                facts.append(_of_issues(tables, fault, group, len(ranks) if fault == "unrecorded_steps" else read))
    facts.sort(key=lambda fact: fact.fault != SAME_RECORDING)
    # what lacks in the dispatches' numbers is what the calls of that export lack
    said = {of["export"] for fact in facts for of in issues if of["kind"] == fact.fault == "missing_dispatches"}
    lost = _lost_launches(tables, read, said) or _unanswered_calls(tables, read, said)
    return [*facts, *lost, *_too_fast_copies(tables), *_of_ranks(tables), *_sparse_graphs(tables)]


def _of_issues(tables: RunTables, fault: str, group: Sequence[int], of: int, where: str = "") -> RecordingFact:
    """Return a fault that is the sum of all issues of a kind `where` the text holds, or one, by their indices."""
    issues = tables.quality["issues"]
    path = f"{tables.dataset}/quality.json"
    rows = within(path, "unnest(json_extract(content, '$.issues[*]')) AS issue")
    kind = f"(issue->>'kind') = '{issues[group[0]]['kind']}'"
    query = f"WITH issues AS ({rows}) SELECT sum((issue->>'count')::BIGINT)::BIGINT FROM issues WHERE {kind}{where}"  # noqa: S608
    query = query if len(group) > 1 else in_document(path, "issues", group[0], "count", kind="integer")
    return RecordingFact(fault=fault, count=sum(issues[n]["count"] for n in group), of=of, table=path, query=query)


TIMES_A_BUS = 2.0
"""Times the rate of a device's bus from which a copy over it cannot be: small ones may seem a little faster."""
TICK_NS = 1000
"""Time by which a copy may have taken longer than its record says: some profilers write whole microseconds."""
FASTEST_MEMORY = 25_000.0
"""GB/s from which no copy can be: more than the memory of any device moves."""


def _too_fast(tables: RunTables) -> tuple[dict[int, int], str]:
    """Return by their kind how many copies move more than their bus, or any memory, can in their time, where these are
    a hundredth of the bytes; and SQL that counts them.
    """
    rows = tables.efficiency.get("copies", ())
    files = files_of(tables.folders, "transfers")
    if not rows or not files:
        return {}, ""
    rows = sorted(rows, key=lambda row: row["limit_gb_per_s"] or 0.0)
    limits = {row["kind"]: row["limit_gb_per_s"] for row in rows if row["limit_gb_per_s"]}  # the fastest bus of a kind
    buses = " ".join(f"WHEN copy_kind = {kind} THEN {TIMES_A_BUS * limit}" for kind, limit in sorted(limits.items()))
    rate = f"CASE {buses} ELSE {FASTEST_MEMORY} END" if buses else FASTEST_MEMORY
    which = f"bytes > (duration_ns + {TICK_NS}) * {rate}"
    sums = f"SELECT copy_kind, count(*), sum(bytes) FROM read_parquet($files) WHERE {which} GROUP BY ALL"  # noqa: S608
    with closing(bounded_database()) as base:
        fast = base.execute(sums, {"files": list(map(str, files))}).fetchall()
    sizes = {kind: sum(row["bytes"] for row in rows if row["kind"] == kind) for kind, _, _ in fast}
    copies = {kind: count for kind, count, size in fast if sizes[kind] and size >= NOTICEABLE * sizes[kind]}
    tables_of_run = ", ".join(f"'{inside(path)}'" for path in files)
    kinds = ", ".join(map(str, copies))
    return copies, f"SELECT count(*) FROM read_parquet([{tables_of_run}]) WHERE {which} AND copy_kind IN ({kinds})"  # noqa: S608


def _too_fast_copies(tables: RunTables) -> list[RecordingFact]:
    """Return that copies are recorded with rates that cannot be."""
    copies, query = tables.too_fast
    of = sum(row["copies"] for row in tables.efficiency.get("copies", ()) if row["kind"] in copies)
    path = f"{tables.dataset}/efficiency.json"
    fact = RecordingFact(fault="too_fast", count=sum(copies.values()), of=of, table=path, query=query)
    return [fact] if copies else []


def _lost_launches(tables: RunTables, read: int, said: Collection[str]) -> list[RecordingFact]:
    """Return that calls have no launch in exports of which the profiler lost events, but for those that are `said`."""
    issues = tables.quality["issues"]
    dropped = {of["export"] for of in issues if of["kind"] == "dropped_events"}.difference(said)
    lost = [n for n, of in enumerate(issues) if of["kind"] == "calls_without_launch" and of["export"] in dropped]
    if sum(issues[index]["count"] for index in lost) < max(NOTICEABLE * read, 1):
        return []
    exports = "(SELECT issue->>'export' FROM issues WHERE (issue->>'kind') ="
    others = f" AND (issue->>'export') NOT IN {exports} 'missing_dispatches')" if said else ""
    where = f" AND (issue->>'export') IN {exports} 'dropped_events'){others}"
    return [_of_issues(tables, "lost_launches", lost, read, where)]


FEWEST_GRAPHS = 3
FEWEST_LOST = {False: FEWEST_REPEATS, True: FEWEST_GRAPHS}
"""Calls that launch one after another and have no work of a device, of kernels and of graphs, for it to be lost: single
ones may fail, or stand around others.
"""
ALONE = (
    "SELECT count(*) FROM read_parquet('{calls}') calls ANTI JOIN ({work}) work USING (call)"
    " WHERE regexp_matches(name::VARCHAR, '(?i)launch.*kernel|graph_?launch')"
)
"""How many calls that launch have no work of a device, in any order: few in most recordings, and then that is all."""
UNLINKED = "SELECT count(*) FROM read_parquet(?) WHERE call IS NULL"
"""How many launches have no known call: each may be the work of one that seems to have none."""
UNANSWERED = (
    "WITH work AS (SELECT call, max(begins) AS begins FROM ({work}) GROUP BY call),"
    " calls AS (SELECT call, rank, start_ns,"
    " regexp_matches(name, '(?i)graph_?launch') AS is_graph,"
    " regexp_matches(name, '(?i)launch.*kernel|graph_?launch') AS launches,"
    " sum(CASE WHEN contains(name, 'BeginCapture') THEN 1 WHEN contains(name, 'EndCapture') THEN -1 ELSE 0 END)"
    " OVER (PARTITION BY rank ORDER BY start_ns, call) AS capturing FROM (SELECT call, rank, start_ns, name::VARCHAR AS"
    " name FROM read_parquet('{calls}'))), placed AS (SELECT rank, is_graph, start_ns, begins,"
    " begins IS NOT NULL AS has_work"
    " FROM calls LEFT JOIN work USING (call) WHERE launches AND capturing <= 0), runs AS (SELECT *, sum(has_work::INT)"
    " OVER (PARTITION BY rank, is_graph ORDER BY start_ns) AS run, greatest(max(start_ns) FILTER (has_work) OVER own,"
    " max(start_ns) OVER own - max(begins - start_ns) OVER own) AS until FROM placed WINDOW own AS (PARTITION BY rank))"
    " SELECT rank, is_graph, count(*) AS lost FROM runs WHERE NOT has_work AND start_ns < until{which}"
    " GROUP BY rank, is_graph, run"
)
"""Of an export the calls that launch, and have no work of a device, that follow each other; not those in the capture of
a graph, nor behind the last that has work where the longest wait in a queue lets theirs come after the recording.
"""


def _unanswered_calls(tables: RunTables, read: int, said: Collection[str]) -> list[RecordingFact]:
    """Return that launches of kernels or graphs have no work of a device: it is not in the recording, whatever the
    profiler says; of graphs alone in exports whose missing dispatches are `said`.
    """
    lost = {False: 0, True: 0}
    parts = []
    if read > MOST_LAUNCHES:
        return []
    with closing(bounded_database()) as base:
        for folder in tables.folders:
            work = files_of([folder], "launches", "graphs", "transfers")
            if not (folder / "calls.parquet").is_file() or not work:
                continue
            for home in (folder, Path(*folder.parts[-3:])):
                selected = " UNION ALL ".join(
                    f"SELECT call, start_ns AS begins FROM read_parquet('{_text(home / path.name)}')"  # noqa: S608
                    " WHERE call IS NOT NULL"
                    for path in work
                )
                which = " AND is_graph" if folder.name in said else ""
                names = {"work": selected, "calls": _text(home / "calls.parquet"), "which": which}
                query = UNANSWERED.format(**names)
                if home == folder:
                    alone = base.execute(ALONE.format(**names)).fetchall()[0][0]
                    # of launches, or of graphs where there are none
                    unlinked = sum(base.execute(UNLINKED, [str(path)]).fetchall()[0][0] for path in work[:1])
                    is_told = alone >= max(FEWEST_GRAPHS, unlinked + 1)
                    for _, is_graph, count in base.execute(query).fetchall() if is_told else ():
                        lost[is_graph] += count if count >= FEWEST_LOST[is_graph] else 0
            parts += [f"({query})"] if is_told else []
    facts = []
    for is_graph, fault in ((True, "unrecorded_graphs"), (False, "unanswered_calls")):
        if lost[is_graph] >= max(NOTICEABLE * read, 1):
            which = f"is_graph = {is_graph} AND lost >= {FEWEST_LOST[is_graph]}"
            query = f"SELECT sum(lost)::BIGINT FROM ({' UNION ALL '.join(parts)}) WHERE {which}"  # noqa: S608
            table = f"{'/'.join(tables.folders[0].parts[-3:])}/calls.parquet"
            facts.append(RecordingFact(fault=fault, count=lost[is_graph], of=read, table=table, query=query))
    return facts


def _text(path: Path) -> str:
    """Return a path for a text of SQL."""
    return str(path).replace("'", "''")


def _of_ranks(tables: RunTables) -> list[RecordingFact]:
    """Return that the ranks' recordings begin apart, or have too little in common, or less than most of a run."""
    recordings = tables.efficiency.get("recordings") if tables.is_timed else None
    if not recordings:
        return _not_concurrent(tables) if tables.is_timed else []
    held = max((recordings["held_ns"] or {}).values(), default=0)
    whole = recordings["whole_ns"]
    if recordings["are_apart"]:
        return [_of_recordings(tables, "apart", "common_ns", whole)]
    if held and held >= NOTICEABLE * whole:
        return [_of_recordings(tables, "begin_apart", "begins_ns", held)]
    if recordings["common_ns"] < MOST_OF_RUN * whole:
        is_one = len(tables.folders) == 1  # one profiler recorded all: what ends early is a process
        return [_of_recordings(tables, "end_apart" if is_one else "partly_shared", "common_ns", whole)]
    return []


def _not_concurrent(tables: RunTables) -> list[RecordingFact]:
    """Return that recordings of ranks without collectives in common are of other times, though each begins at 0."""
    group = [n for n, issue in enumerate(tables.quality["issues"]) if issue["kind"] == "not_concurrent"][:1]
    return [_of_issues(tables, "not_concurrent", group, 0)] if group else []


def _of_recordings(tables: RunTables, fault: str, name: str, of: int) -> RecordingFact:
    """Return a fault of the ranks' recordings: a time of theirs, ns, of another."""
    path = f"{tables.dataset}/efficiency.json"
    query = in_document(path, "recordings", name, kind="integer")
    count = tables.efficiency["recordings"][name]
    return RecordingFact(fault=fault, count=count, of=of, table=path, query=query, unit="ns")


LEAST_COVERED = 0.25
"""Share of the time from the first to the last recorded node of a graph that its nodes must fill; of what is less,
nodes are probably missing.
"""
GRAPHS = (
    "SELECT count(*) AS nodes, (max(start_ns + duration_ns) - min(start_ns))::BIGINT AS span_ns,"
    " sum(duration_ns)::BIGINT AS nodes_ns FROM {table} WHERE correlation IS NOT NULL"
    " GROUP BY rank, device, correlation HAVING count(*) > 1"
)
"""The graph launches of an export: nodes, time from the first to the last, and time of the nodes, ns."""


def _sparse_graphs(tables: RunTables) -> list[RecordingFact]:
    """Return that launches of graphs span far more time than their recorded nodes fill: nodes are probably missing."""
    issue = next((issue for issue in tables.quality["issues"] if issue["kind"] == "graph_launches"), None)
    if issue is None or not tables.is_timed:
        return []
    import duckdb

    spans = []
    parts = []
    for path in files_of(tables.folders, "launches"):
        spans += duckdb.execute(GRAPHS.format(table=f"'{path}'")).fetchall()
        parts.append(GRAPHS.format(table=f"'{inside(path)}'"))
    span = sum(ns for _, ns, _ in spans)
    nodes = sum(ns for _, _, ns in spans)
    gpu_ns = tables.efficiency["elapsed_ns"] * tables.efficiency["device"]["n_devices"]
    if len(spans) < FEWEST_GRAPHS or span < NOTICEABLE * gpu_ns or nodes >= LEAST_COVERED * span:
        return []
    table = f"{'/'.join(tables.folders[0].parts[-3:])}/launches.parquet"
    query = f"SELECT sum(nodes_ns)::BIGINT FROM ({' UNION ALL '.join(parts)})"  # noqa: S608 - names of ours alone
    return [RecordingFact(fault="sparse_graphs", count=nodes, of=span, table=table, query=query, unit="ns")]


def percent_query(dataset: str, part: str) -> str:
    """Return the query of a part of the devices' time in percent."""
    path = f"{dataset}/efficiency.json"
    whole = f"({value_at('elapsed_ns', kind='integer')} * {value_at('device', 'n_devices', kind='integer')})"
    return within(path, f"100 * {value_at('waterfall_ns', part, kind='integer')} / {whole}")
