"""What fills the devices' time, and what of it varies at a cost."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.feature_registry import record_of
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import file_source, of_table, rows_where
from causeway.core.schemas import Row
from causeway.core.vocabulary import KERNEL_VARIABILITY, SUPPORTED, UNEXPLAINED
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables
from causeway.findings.first_screen.work_classes import COLLECTIVES, work_of

MIX = 0.9
"""Share of the variance within configurations that the work before and after a launch, its operator and the size of its
input explain, from which its launches are of different problems: that is no variability.
"""
MOST_LAUNCHES = 20_000_000
"""Launches of a dataset up to which that is looked at."""
POSITIONS = ("program_order", "operator", "input_size", "grid")
"""Kinds of features that say what a launch works on."""


@dataclass(frozen=True, kw_only=True)
class WorkFact:
    """Work of one class or kernel: its name, ns of all devices (of counters: of all launches), launches, and the share
    of the multiprocessors that it can fill (None: not known, or all).
    """

    name: str
    total_ns: int
    launches: int
    filled: float | None = None


@dataclass(frozen=True, kw_only=True)
class VariationFact:
    """A kernel whose launches take longer than usual at a cost.

    Attributes
    ----------
    kernel, name : str
        Its id and short name.
    cost_ns : int
        What launches above the mean of their configuration take beyond it, or what the cause costs; all devices.
    launches : int
    quartiles_ns : (float, float, float)
        First quartile, median and third of its durations.
    longest_ns : float
    cause : str or None
        Feature of the supported cause that costs most.
    level : str or None
    change_percent : float or None
        Change of the mean by it.
    trend_ns : (float, float) or None
        Mean of its first and of its last tenth, where its duration follows a smooth trend over the run.
    is_mix : bool
        Its launches are of different problem sizes.
    query : str
        SQL that gives `cost_ns`.
    """

    kernel: str
    name: str
    cost_ns: int
    launches: int
    quartiles_ns: tuple[float, float, float]
    longest_ns: float
    cause: str | None
    level: str | None
    change_percent: float | None
    trend_ns: tuple[float, float] | None
    is_mix: bool
    query: str


def class_facts(tables: RunTables) -> list[WorkFact]:
    """Return the classes of work by the time of their kernels, most first; the sum is the time of all kernels."""
    kinds = {row["kernel"]: (row["short_name"], row["class"]) for row in tables.kernels}
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
        name, kind = kinds.get(row["kernel"], (row["kernel"], "compute"))
        work = work_of(name, row["name"], kind)
        totals[work] += row["gpu_ns"]
        launches[work] += row["launches"]
    if tables.is_timed:
        graphs = sum(one["graph_ns"] for one in tables.efficiency["breakdown"].values())
        totals["CUDA graphs traced as a whole"] += graphs
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
    shapes: dict[str, list[Row]] = {}
    for row in tables.efficiency.get("launch_shapes", ()) if tables.is_timed else ():
        if row["blocks"] and row["multiprocessors"]:
            shapes.setdefault(kernel_words(row["kernel"]), []).append(row)
    totals: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    for row in tables.kernels:
        totals[kernel_words(row["short_name"])] += round(row["value_sum"])
        launches[kernel_words(row["short_name"])] += row["launches"]
    facts = []
    for name, ns in totals.items():
        own = shapes.get(name, ())
        spent = sum(row["duration_ns"] for row in own)
        filled = None
        if spent and spent >= 0.5 * ns:
            filled = (
                math.fsum(min(row["blocks"] / row["multiprocessors"], 1.0) * row["duration_ns"] for row in own) / spent
            )
        facts.append(WorkFact(name=name, total_ns=round(ns), launches=launches[name], filled=filled))
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.name))


@dataclass(frozen=True, kw_only=True)
class PeakFact:
    """What a kernel reaches of its device, means over its time, 0 to 1; None where that was not measured."""

    kernel: str
    total_ns: int
    compute: float | None
    memory: float | None
    occupancy: float | None


PEAKS = {
    "compute": ("sm_throughput",),
    "memory": ("gpu_comp_mem", "dram_throughput"),
    "occupancy": ("occupancy_ratio",),
}
"""Counters of a launch that are shares of what the device can do, by what they say."""


def peak_facts(tables: RunTables, most: int) -> list[PeakFact]:
    """Return what the kernels with most time reach of their device, from counters of each launch, most time first."""
    import duckdb

    facts = []
    for folder in tables.folders:
        path = folder / "counters.parquet"
        if not path.is_file():
            continue
        held = {row[0] for row in duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()}
        columns = [next((name for name in names if name in held), None) for names in PEAKS.values()]
        if "gpu_time" not in held or not any(columns):
            continue
        means = ", ".join(f"sum({name} * gpu_time) / sum(gpu_time)" if name else "NULL" for name in columns)
        rows = duckdb.execute(
            f"SELECT k.short_name, sum(gpu_time), {means} FROM read_parquet($counters)"  # noqa: S608
            " JOIN read_parquet($configurations) USING (configuration) JOIN read_parquet($kernels) k USING (kernel)"
            " GROUP BY k.short_name HAVING sum(gpu_time) > 0",
            {
                "counters": str(path),
                "configurations": str(folder / "configurations.parquet"),
                "kernels": str(folder / "kernels.parquet"),
            },
        ).fetchall()
        facts += [
            PeakFact(kernel=kernel_words(name), total_ns=round(ns), compute=compute, memory=memory, occupancy=occupancy)
            for name, ns, compute, memory, occupancy in rows
        ]
    return sorted(facts, key=lambda fact: (-fact.total_ns, fact.kernel))[:most]


def variation_facts(tables: RunTables, run: RunFact) -> list[VariationFact]:
    """Return the kernels whose variation within their configurations costs a hundredth of the devices' time or more,
    most first; not collectives, which wait, nor what a supported cause says to be the size of the work.
    """
    facts = []
    path = f"{tables.dataset}/{KERNEL_VARIABILITY}/kernels.parquet"
    for row in tables.kernels:
        cost = row["target_sum"] / 2
        if row["class"] == COMMUNICATION_KERNEL or run.share(cost) < NOTICEABLE:
            continue
        cause = _cause(tables, row["kernel"])
        facts.append(
            VariationFact(
                kernel=row["kernel"],
                name=row["short_name"],
                cost_ns=math.floor(cost + 0.5),
                launches=row["launches"],
                quartiles_ns=(row["value_q1"], row["value_median"], row["value_q3"]),
                longest_ns=row["value_max"],
                cause=cause["feature"] if cause else None,
                level=cause.get("level") if cause else None,
                change_percent=cause.get("mean_change_percent") if cause else None,
                trend_ns=_trend(tables.folders, row["short_name"]) if run.launches <= MOST_LAUNCHES else None,
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


def _trend(folders: Sequence[Any], short_name: str) -> tuple[float, float] | None:
    """Return the mean of the first and of the last tenth of a kernel's launches, where neighbours of one configuration
    are alike (von Neumann's ratio) and the ends differ; ns, None else.
    """
    import duckdb

    found = []
    for folder in folders:
        if not (folder / "launches.parquet").is_file():
            continue
        found += duckdb.execute(
            "WITH rows AS (SELECT l.rank AS rank, l.device AS device, l.configuration AS c, l.start_ns AS start,"
            " l.duration_ns AS t"
            " FROM read_parquet($launches) l JOIN read_parquet($configurations) USING (configuration)"
            " JOIN read_parquet($kernels) k USING (kernel) WHERE k.short_name = $name),"
            " placed AS (SELECT *, t - lag(t) OVER w AS step, ntile(10) OVER w AS tenth FROM rows"
            " WINDOW w AS (PARTITION BY rank, device, c ORDER BY start))"
            " SELECT avg(step ** 2) / (2 * var_pop(t)), avg(t) FILTER (tenth = 1), avg(t) FILTER (tenth = 10), count(*)"
            " FROM placed GROUP BY rank, device, c",
            {
                "launches": str(folder / "launches.parquet"),
                "configurations": str(folder / "configurations.parquet"),
                "kernels": str(folder / "kernels.parquet"),
                "name": short_name,
            },
        ).fetchall()
    ratio, first, last, _ = max(found, key=lambda row: row[3], default=(None, None, None, 0))
    if ratio is None or last is None or ratio > 1 - MIX or max(first, last) < 1.2 * min(first, last):
        return None
    return first, last
