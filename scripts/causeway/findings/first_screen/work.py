"""What fills the devices' time, and what of it varies at a cost."""

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.feature_registry import record_of
from causeway.core.names.kernel_words import kernel_words
from causeway.core.names.work_classes import COLLECTIVES, WHOLE_GRAPHS, work_of
from causeway.core.queries import bounded_database, file_source, of_table, rows_where
from causeway.core.schemas import Row
from causeway.core.vocabulary import KERNEL_VARIABILITY, SUPPORTED, UNEXPLAINED
from causeway.findings.first_screen.run_facts import (
    ALIKE,
    FEWEST_REPEATS,
    LAUNCHING_NS,
    LEAST_CLOCK,
    MOST_LAUNCHES,
    NOTICEABLE,
    RunFact,
    RunTables,
)

FEWEST_QUARTILES = 4
"""Launches of which quartiles are told: those of fewer lie between their launches."""
MIX = 0.9
"""Share of the variance within configurations that the work before and after a launch, its operator and the size of its
input explain, from which its launches are of different problems: that is no variability.
"""
POSITIONS = ("program_order", "operator", "input_size", "grid")
"""Kinds of features that say what a launch works on."""


@dataclass(frozen=True, kw_only=True)
class WorkFact:
    """Work of one class or kernel: its name, ns of all devices (of counters: of all launches), launches, the share of
    the multiprocessors that it can fill (None: not known, or all), and how many kernels have that name.
    """

    name: str
    total_ns: int
    launches: int
    filled: float | None = None
    kernels: int = 1


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A duration that follows the time of the run.

    Attributes
    ----------
    begins_ns, ends_ns : float
        Mean of the first and of the last tenth of the launches.
    is_jump : bool
        Whether nearly all launches are like one of the two.
    clock : (str, float, float) or None
        The sampled clock that changes most the other way, and its mean in both tenths, Hz.
    rank : int or None
        The rank whose launches these are, where those of no other device follow the time.
    since_ns : int or None
        When a jump is, on the run's time.
    """

    begins_ns: float
    ends_ns: float
    is_jump: bool = False
    clock: tuple[str, float, float] | None = None
    rank: int | None = None
    since_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class DriftFact:
    """A device on which nearly all kernels are slower in the second half of its time: its rank and number, of how many
    such devices it is the one that loses most, by what factor, what that costs, ns, and the clock that falls, as
    `Trend` has it.
    """

    rank: int
    device: int
    devices: int = 1
    times: float
    cost_ns: int
    clock: tuple[str, float, float] | None


@dataclass(frozen=True, kw_only=True)
class VariationFact:
    """A kernel whose launches take longer than usual at a cost.

    Attributes
    ----------
    kernel, name : str
        Its id and short name.
    cost_ns : int
        What launches above the mean of their configuration take beyond it, or what the cause costs; all devices.
    launches, shapes : int
        Of its launches, and their configurations.
    quartiles_ns : (float, float, float)
        First quartile, median and third of its durations.
    longest_ns : float
    cause : str or None
        Feature of the supported cause that costs most.
    level : str or None
    change_percent : float or None
        Change of the mean by it.
    trend : Trend or None
        Where its duration follows the time of the run.
    slower : (str, float, float) or None
        When they are slower, and the mean, ns, of those and of the others.
    is_mix : bool
        Its launches are of different problem sizes.
    query : str
        SQL that gives `cost_ns`.
    """

    kernel: str
    name: str
    cost_ns: int
    launches: int
    shapes: int
    quartiles_ns: tuple[float, float, float]
    longest_ns: float
    cause: str | None
    level: str | None
    change_percent: float | None
    trend: Trend | None
    slower: tuple[str, float, float] | None = None
    is_mix: bool
    query: str


def class_facts(tables: RunTables) -> list[WorkFact]:
    """Return the classes of work by the time of their kernels, most first; the sum is the time of all kernels."""
    kinds = {row["kernel"]: (row["short_name"], row["class"], row["name"]) for row in tables.kernels}
    totals: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    rows = [row for row in tables.operators if row["level"] == "operator_kernel"]
    if not rows:
        operators = _operators(tables)
        rows = [
            {
                "kernel": row["kernel"],
                "name": operators.get(row["kernel"]),
                "gpu_ns": round(row["value_sum"]),
                "launches": row["launches"],
            }
            for row in tables.kernels
        ]
    for row in rows:
        name, kind, demangled = kinds.get(row["kernel"], (row["kernel"], "compute", ""))
        work = work_of(name, row["name"], kind, demangled)
        totals[work] += row["gpu_ns"]
        launches[work] += row["launches"]
    if tables.is_timed:
        graphs = sum(device["graph_ns"] for device in tables.efficiency["breakdown"].values())
        totals[WHOLE_GRAPHS] += graphs
        if (tables.efficiency.get("recordings") or {}).get("held_ns"):  # they wait for the start of recordings
            for work in COLLECTIVES:
                del totals[work]
    facts = [WorkFact(name=work, total_ns=ns, launches=launches[work]) for work, ns in totals.items() if ns]
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.name))


def _operators(tables: RunTables) -> dict[str, str]:
    """Return the operator that launches most of each kernel's time, where it is known."""
    return {
        row["kernel"]: row["name"] for row in tables.operators if row["level"] == "kernel" and row["name"] is not None
    }


def kernel_facts(tables: RunTables) -> list[WorkFact]:
    """Return the kernels by their time, most first, those of one name together, with the share of the device that they
    can fill.
    """
    whole = partial(kernel_words, longest=sys.maxsize)  # names that are equal when they are cut are not
    shapes: dict[str, list[Row]] = {}
    for row in tables.efficiency.get("launch_shapes", ()) if tables.is_timed else ():
        if row["blocks"] and row["multiprocessors"]:
            shapes.setdefault(whole(row["kernel"]), []).append(row)
    named: dict[str, list[Row]] = {}
    for row in tables.kernels:
        named.setdefault(whole(row["short_name"]), []).append(row)
    facts = []
    for name, rows in named.items():
        ns = sum(round(row["value_sum"]) for row in rows)
        own = shapes.get(name, ())
        spent = sum(row["duration_ns"] for row in own)
        filled = None
        if spent and spent >= 0.5 * ns:
            filled = (
                math.fsum(min(row["blocks"] / row["multiprocessors"], 1.0) * row["duration_ns"] for row in own) / spent
            )
        launches = sum(row["launches"] for row in rows)
        words = kernel_words(name)
        facts.append(WorkFact(name=words, total_ns=ns, launches=launches, filled=filled, kernels=len(rows)))
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.name))


def variation_facts(tables: RunTables, run: RunFact, between_ns: int = 0) -> list[VariationFact]:
    """Return the kernels whose variation within their configurations costs a hundredth of the devices' time or more,
    most first; not collectives, which wait, nor what a supported cause says to be the size of the work. Of the devices'
    time `between_ns` lies between requests: that does not count.
    """
    counted_ns = max(run.gpu_ns - between_ns, 1)
    facts = []
    path = f"{tables.dataset}/{KERNEL_VARIABILITY}/kernels.parquet"
    for row in tables.kernels:
        cost = row["target_sum"] / 2
        is_told = row["class"] != COMMUNICATION_KERNEL and row["launches"] >= FEWEST_QUARTILES
        if not is_told or cost < NOTICEABLE * counted_ns:
            continue
        cause = _cause(tables, row["kernel"])
        facts.append(
            VariationFact(
                kernel=row["kernel"],
                name=row["short_name"],
                cost_ns=math.floor(cost + 0.5),
                launches=row["launches"],
                shapes=row["configurations"],
                quartiles_ns=(row["value_q1"], row["value_median"], row["value_q3"]),
                longest_ns=row["value_max"],
                cause=cause["feature"] if cause else None,
                level=cause.get("level") if cause else None,
                change_percent=cause.get("mean_change_percent") if cause else None,
                trend=_trend(tables.folders, row["short_name"], tables.moment)
                if run.launches <= MOST_LAUNCHES
                else None,
                slower=_slower(tables, row["short_name"]) if run.launches <= MOST_LAUNCHES else None,
                is_mix=_is_mix(tables, run, row),
                query=of_table("floor(target_sum / 2 + 0.5)::BIGINT", path, rows_where({"kernel": row["kernel"]})),
            )
        )
    return sorted(facts, key=lambda fact: (-fact.cost_ns, fact.kernel))


def _supported(tables: RunTables, kernel: str) -> list[Row]:
    """Return the supported causes of a kernel's durations."""
    for search in tables.searches:
        if search.graph["scope"] == kernel or (search.graph["scope"] == "dataset" and len(tables.kernels) == 1):
            return [
                row for row in search.contributions if row["feature"] != UNEXPLAINED and row["verdict"] == SUPPORTED
            ]
    return []


@dataclass(frozen=True)
class TableCause:
    """A cause in a dataset without a time line: its row of `contributions.parquet`, and the kernel of several, else
    none.
    """

    row: Row
    kernel: str | None


def cause_of_most(tables: RunTables) -> TableCause | None:
    """Return the supported cause that explains most of the variance of one kernel, of a dataset without a time line."""
    names = {search.graph["scope"]: search.graph["scope_name"] for search in tables.searches}
    several = len(names) > 2  # one of them is the dataset
    causes = [
        TableCause(row, name if several else None)
        for kernel, name in names.items()
        for row in _supported(tables, kernel)
        if row["variance_percent"]
    ]
    return max(causes, key=lambda cause: cause.row["variance_percent"], default=None)


def _cause(tables: RunTables, kernel: str) -> Row | None:
    """Return the supported cause of a kernel's durations that costs most, and surely something."""
    rows = [
        row
        for row in _supported(tables, kernel)
        if (row.get("cost_low") or 0) > 0
        and row.get("role") in ("lever", "exposure", "mediator")
        and record_of(row["feature"], row.get("group") or "").suggestion not in POSITIONS
    ]
    return max(rows, key=lambda row: row["cost_ns"], default=None)


def _is_mix(tables: RunTables, run: RunFact, kernel: Row) -> bool:
    """Return whether launches of a kernel, within its configurations, are of different problems: a supported cause that
    is a place in the program or a size, or the launches before and after, the operator and the input, explain nearly
    all of the variance.
    """
    for row in _supported(tables, kernel["kernel"]):
        record = record_of(row["feature"], row.get("group") or "")
        if record.suggestion in POSITIONS and (row.get("variance_percent") or 0) >= 100 * MIX:
            return True
    if run.launches > MOST_LAUNCHES:
        return False
    return _explained_by_neighbours(tables.folders, kernel["short_name"]) >= MIX


def _explained_by_neighbours(folders: Sequence[Any], short_name: str) -> float:
    """Return the share of the variance within configurations of a kernel that its place in the program explains, the
    launches before and after it or the size of its input, corrected for the number of places, 0 to 1.
    """
    import duckdb

    connection = duckdb.connect()
    parts = [
        f"SELECT {number} AS export, l.duration_ns AS t, l.configuration AS c, (shape, before, after) AS near,"  # noqa: S608
        " (before, after, before_that, after_that) AS far FROM (SELECT *, lag(configuration) OVER w AS before,"
        " lead(configuration) OVER w AS after, lag(configuration, 2) OVER w AS before_that,"
        f" lead(configuration, 2) OVER w AS after_that FROM {file_source(folder / 'launches.parquet')}"
        " WINDOW w AS (PARTITION BY rank, device, stream ORDER BY start_ns)) l"
        f" JOIN {file_source(folder / 'configurations.parquet')} USING (configuration)"
        f" JOIN {file_source(folder / 'kernels.parquet')} k USING (kernel) WHERE k.short_name = $name"
        for number, folder in enumerate(folders)
        if (folder / "launches.parquet").is_file()
    ]
    best = 0.0
    for around in ("near", "far") if parts else ():
        whole, within, positions, configurations, launches = connection.execute(
            f"WITH rows AS ({' UNION ALL '.join(parts)}), placed AS (SELECT *,"  # noqa: S608 - names of ours alone
            f" avg(t) OVER (PARTITION BY export, c) AS mean, avg(t) OVER (PARTITION BY export, c, {around}) AS own"
            f" FROM rows) SELECT sum((t - mean) ** 2), sum((t - own) ** 2), count(DISTINCT (export, c, {around})),"
            " count(DISTINCT (export, c)), count(*) FROM placed",
            {"name": short_name},
        ).fetchall()[0]
        if whole and launches > positions and launches > configurations:
            best = max(best, 1 - (within / (launches - positions)) / (whole / (launches - configurations)))
    return best


def _slower(tables: RunTables, short_name: str) -> tuple[str, float, float] | None:
    """Return when a kernel's launches of one configuration are much slower than its others, and both means, ns: beside
    what runs in their middle, or as the first on their device after a pause; None where too few of one export are so.
    """
    gpus = [(number, *key.split("/")) for number, gpu in enumerate(_shared(tables)) for key in gpu["devices"]]
    on = ", ".join(f"({number}, {int(rank)}, {int(device)})" for number, rank, device in gpus)
    queries = [("beside work of another rank on the same GPU", BESIDE_RANKS.format(gpus=on))] if gpus else []
    queries.append(("beside collectives on its GPU", BESIDE_COLLECTIVES.format(kind=COMMUNICATION_KERNEL)))
    queries.append(("after a pause of the device", AFTER_PAUSE.format(pause=LAUNCHING_NS)))
    for when, query in queries:
        slower = []
        for folder in tables.folders:
            if (folder / "launches.parquet").is_file():
                given = {name: str(folder / f"{name}.parquet") for name in ("launches", "configurations", "kernels")}
                with closing(bounded_database()) as base:
                    slower += base.execute(
                        f"{query} {MEANS.format(fewest=FEWEST_REPEATS, least=LEAST_TREND)}",
                        given | {"name": short_name},
                    ).fetchall()
        if slower:
            return when, *max(slower)[1:]
    return None


def _shared(tables: RunTables) -> Sequence[Row]:
    """Return the GPUs that several ranks share."""
    return tables.efficiency.get("shared") or ()


BESIDE_RANKS = (
    "WITH gpus (gpu, rank, device) AS (VALUES {gpus}), placed AS (SELECT *, start_ns + duration_ns // 2 AS middle"
    " FROM read_parquet($launches) JOIN gpus USING (rank, device)), own AS (SELECT p.*, o.rank AS other FROM placed p"
    " JOIN read_parquet($configurations) c USING (configuration) JOIN read_parquet($kernels) k USING (kernel)"
    " JOIN gpus o ON o.gpu = p.gpu AND o.rank <> p.rank WHERE k.short_name = $name),"
    " met AS (SELECT own.rank, own.start_ns, any_value(own.configuration) AS c, any_value(own.duration_ns) AS t,"
    " coalesce(bool_or(placed.start_ns + placed.duration_ns > own.middle), false) AS beside FROM own"
    " ASOF LEFT JOIN placed ON own.gpu = placed.gpu AND own.other = placed.rank AND own.middle >= placed.start_ns"
    " GROUP BY ALL)"
)
BESIDE_COLLECTIVES = (
    "WITH placed AS (SELECT *, start_ns + duration_ns // 2 AS middle FROM read_parquet($launches) l"
    " JOIN read_parquet($configurations) c USING (configuration) JOIN read_parquet($kernels) k USING (kernel)),"
    " others AS (SELECT rank, device, start_ns, max(start_ns + duration_ns) OVER (PARTITION BY rank, device"
    " ORDER BY start_ns) AS ended FROM placed WHERE class::VARCHAR = '{kind}'),"
    " met AS (SELECT configuration AS c, duration_ns AS t, coalesce(others.ended > middle, false) AS beside FROM placed"
    " ASOF LEFT JOIN others ON placed.rank = others.rank AND placed.device = others.device"
    " AND placed.middle >= others.start_ns WHERE short_name = $name)"
)
AFTER_PAUSE = (
    "WITH placed AS (SELECT configuration, duration_ns AS t, start_ns - max(start_ns + duration_ns) OVER"
    " (PARTITION BY rank, device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) >= {pause}"
    " AS beside FROM read_parquet($launches)), met AS (SELECT configuration AS c, t, beside FROM placed"
    " JOIN read_parquet($configurations) c USING (configuration) JOIN read_parquet($kernels) k USING (kernel)"
    " WHERE k.short_name = $name)"
)
"""A kernel's launches with their configuration and duration, and whether in their middle a launch of another rank runs
on their GPU, or a collective of their own, or nothing ran there before them for a while.
"""
MEANS = (
    "SELECT sum(t), avg(t) FILTER (beside), avg(t) FILTER (NOT beside) FROM met GROUP BY c"
    " HAVING least(count(*) FILTER (beside), count(*) FILTER (NOT beside)) >= {fewest}"
    " AND avg(t) FILTER (beside) >= {least} * avg(t) FILTER (NOT beside) AND 2 * sum(t) >= (SELECT sum(t) FROM met)"
)
"""Configurations with most of the time and enough launches of both kinds, the former much slower: their time, and both
means.
"""
PLACED = (
    "WITH rows AS (SELECT l.rank AS rank, l.device AS device, l.configuration AS c, l.start_ns AS start,"
    " l.duration_ns AS t"
    " FROM read_parquet($launches) l JOIN read_parquet($configurations) USING (configuration)"
    " JOIN read_parquet($kernels) k USING (kernel) WHERE k.short_name = $name),"
    " placed AS (SELECT *, t - lag(t) OVER w AS step, ntile(10) OVER w AS tenth FROM rows"
    " WINDOW w AS (PARTITION BY rank, device, c ORDER BY start))"
)
"""Launches of a kernel, each with its change to the one before of its configuration, and its tenth of them."""
LIKE_AN_END = 0.1
"""Share of a change up to which a tenth of the launches is like the first or the last."""
LEAST_TREND = 1.2
"""Times by which the ends of a trend differ; of a jump, any that costs enough to be looked at."""
MOST_RETURN = 0.5
"""Share of the change that a trend goes back at most on its way: what comes and goes follows no time."""


def _trend(
    folders: Sequence[Path], short_name: str, moment: Callable[[Path, int], int] = lambda folder, start_ns: start_ns
) -> Trend | None:
    """Return how a kernel's durations follow the time of the run, where neighbours of one configuration are alike (von
    Neumann's ratio) and the ends differ; None else. Of the devices with most of its launches the one where they are
    most alike is looked at; `moment` gives when something of an export began.
    """
    import duckdb

    candidates = []
    for folder in folders:
        if not (folder / "launches.parquet").is_file():
            continue
        given = {name: str(folder / f"{name}.parquet") for name in ("launches", "configurations", "kernels")}
        rows = duckdb.execute(
            f"{PLACED} SELECT count(*), avg(step ** 2) / nullif(2 * var_pop(t), 0), rank, device, c FROM placed"  # noqa: S608
            " GROUP BY rank, device, c",
            given | {"name": short_name},
        ).fetchall()
        candidates += [(*row, folder, given) for row in rows]
    most = max((row[0] for row in candidates), default=0)
    many = [row for row in candidates if 2 * row[0] >= most]
    alike = [row for row in many if row[1] is not None]
    count, ratio, rank, device, configuration, folder, given = min(
        alike, key=lambda row: (row[1], -row[0]), default=(0,) * 7
    )
    if not count or ratio > 1 - MIX:
        return None
    of_device = {"name": short_name, "rank": rank, "device": device, "c": configuration}
    tenths = duckdb.execute(
        f"{PLACED} SELECT avg(t), min(start), max(start + t) FROM placed"  # noqa: S608
        " WHERE rank = $rank AND device = $device AND c = $c GROUP BY tenth ORDER BY tenth",
        given | of_device,
    ).fetchall()
    means = [mean for mean, _, _ in tenths]
    change = means[-1] - means[0]
    like = sum(min(abs(mean - means[0]), abs(mean - means[-1])) <= LIKE_AN_END * abs(change) for mean in means)
    is_last = [abs(mean - means[-1]) < abs(mean - means[0]) for mean in means]
    is_jump = like >= len(means) - 1 and is_last == sorted(is_last)
    rising = np.array(means) * (1 if change > 0 else -1)
    returns = float(np.max(np.maximum.accumulate(rising) - rising))
    ends_differ = max(means[0], means[-1]) >= LEAST_TREND * min(means[0], means[-1])
    ends_differ = ends_differ and returns <= MOST_RETURN * abs(change)
    if len(tenths) < 10 or not (is_jump or ends_differ):
        return None
    others = [row for row in many if row[2:4] != (rank, device)]
    since_ns = None
    if is_jump and change:
        first = is_last.index(True)  # the tenth before it may hold the change, too
        launches = duckdb.execute(
            f"{PLACED} SELECT start, t::DOUBLE AS t FROM placed WHERE rank = $rank AND device = $device AND c = $c"  # noqa: S608
            " AND tenth BETWEEN $first AND $first + 1 ORDER BY start",
            given | of_device | {"first": first},
        ).fetchnumpy()
        since_ns = moment(folder, _jumps_at(launches["start"], launches["t"], means[0], means[-1]))
    return Trend(
        since_ns=since_ns,
        rank=rank if others and all(row[1] is None or row[1] > 1 - MIX for row in others) else None,
        begins_ns=means[0],
        ends_ns=means[-1],
        is_jump=is_jump,
        clock=_clock(folder, rank, device, tenths[0][1:], tenths[-1][1:], change > 0),
    )


FEWEST_IN_HALF = 3
"""Launches of a configuration in each half of the time from which these are compared."""
HALVES = (
    "WITH spans AS (SELECT rank, device, min(start_ns) AS began, max(start_ns) AS ended FROM read_parquet($launches)"
    " GROUP BY rank, device), halves AS (SELECT rank, device, configuration, 2 * start_ns >= began + ended AS is_late,"
    " count(*) AS n, sum(duration_ns) AS ns, avg(ln(greatest(duration_ns, 1))) AS log,"
    " parse_dirpath(any_value(filename)) AS folder FROM read_parquet($launches, filename = true)"
    " JOIN spans USING (rank, device) GROUP BY rank, device, configuration, is_late), classes AS"
    " (SELECT parse_dirpath(c.filename) AS folder, configuration, class::VARCHAR AS class"
    " FROM read_parquet($configurations, filename = true) c JOIN read_parquet($kernels, filename = true) k"
    " ON c.kernel = k.kernel AND parse_dirpath(c.filename) = parse_dirpath(k.filename)), each AS (SELECT folder, rank,"
    " device, sum(ns) AS total, any_value(n) FILTER (is_late) AS n, any_value(ns / n) FILTER (is_late)"
    " - any_value(ns / n) FILTER (NOT is_late)"
    " AS more, exp(any_value(log) FILTER (is_late) - any_value(log) FILTER (NOT is_late)) AS times, count(*) = 2 AND"
    " min(n) >= {fewest} AS is_compared FROM halves JOIN classes USING (folder, configuration) WHERE class <> $class"
    " GROUP BY rank, device, configuration, folder) SELECT any_value(folder), rank, device, any_value(began),"
    " any_value(ended),"
    " median(times) FILTER (is_compared), sum(n * more) FILTER (is_compared) FROM each JOIN spans USING (rank, device)"
    " GROUP BY rank, device"
    " HAVING count(*) FILTER (is_compared) > 1 AND sum(total) FILTER (is_compared) >= {most} * sum(total)"
    " AND sum(total) FILTER (is_compared AND times >= {least}) >= {alike} * sum(total) FILTER (is_compared)"
)
"""Devices whose kernels, by configurations with enough launches in both halves of their time, are slower in the second:
that time, by what factor, and what all take longer.
"""


def drift_fact(tables: RunTables, run: RunFact) -> DriftFact | None:
    """Return the device on which nearly all kernels are slower in the second half, where that costs most and a
    hundredth of the run or more; None else.
    """
    query = HALVES.format(fewest=FEWEST_IN_HALF, most=MOST_RETURN, least=LEAST_TREND, alike=ALIKE)
    folders = [folder for folder in tables.folders if tables.is_timed and (folder / "launches.parquet").is_file()]
    if not folders:
        return None
    names = ("launches", "configurations", "kernels")
    given = {name: [str(folder / f"{name}.parquet") for folder in folders] for name in names}
    facts = []
    with closing(
        bounded_database()
    ) as base:  # one query for all: of a small export its plan takes longer than its rows
        for folder, rank, device, begin, end, times, cost in base.execute(
            query, given | {"class": COMMUNICATION_KERNEL}
        ).fetchall():
            tenth = (end - begin) // 10
            clock = _clock(Path(folder), rank, device, (begin, begin + tenth), (end - tenth, end), True)
            facts.append(DriftFact(rank=rank, device=device, times=times, cost_ns=round(cost), clock=clock))
    facts = [fact for fact in facts if fact.cost_ns >= NOTICEABLE * run.elapsed_ns]
    most = max(facts, key=lambda fact: (fact.cost_ns, -fact.rank, -fact.device), default=None)
    return replace(most, devices=len(facts)) if most is not None else None


def _jumps_at(starts: np.ndarray, lengths: np.ndarray, before: float, after: float) -> int:
    """Return when launches, in the order of their starts, change from one length to another, ns: where all before are
    most like the one, and all behind like the other.
    """
    worse = np.cumsum(np.append(0.0, (lengths - before) ** 2 - (lengths - after) ** 2))
    return int(starts[min(int(np.argmin(worse)), starts.size - 1)])


def _clock(
    folder: Path, rank: int, device: int, first: tuple[int, int], last: tuple[int, int], is_slower: bool
) -> tuple[str, float, float] | None:
    """Return the sampled clock of a device that changes most between two times, the way that explains slower (else
    faster) launches, and its mean in both, Hz; None where none changes by a fiftieth.
    """
    import duckdb

    path = folder / "samples.parquet"
    if not path.is_file():
        return None
    rows = duckdb.execute(
        "SELECT metric::VARCHAR, avg(value) FILTER (time_ns BETWEEN $begin AND $end) AS was,"
        " avg(value) FILTER (time_ns BETWEEN $since AND $until) AS now FROM read_parquet($path)"
        " WHERE rank = $rank AND device = $device AND regexp_matches(metric::VARCHAR, 'clock.*_hz$')"
        " GROUP BY ALL HAVING was > 0 AND now > 0 ORDER BY 1",
        {"path": str(path), "rank": rank, "device": device}
        | dict(zip(("begin", "end"), first, strict=True))
        | dict(zip(("since", "until"), last, strict=True)),
    ).fetchall()
    changed = [row for row in rows if abs(row[2] / row[1] - 1) >= LEAST_CLOCK and (row[2] < row[1]) == is_slower]
    return max(changed, key=lambda row: abs(row[2] / row[1] - 1), default=None)
