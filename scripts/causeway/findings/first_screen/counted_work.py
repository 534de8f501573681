"""What counters of kernels say: shares of what a device can do, sums, means, and estimates of a profiler's rules."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from causeway.core.codes import GPU_TIME
from causeway.core.names.kernel_words import kernel_words
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunTables, files_of


@dataclass(frozen=True, kw_only=True)
class PeakFact:
    """What a kernel reaches of its device, means over its time, 0 to 1; None where that was not measured. Without times
    (`total_ns` 0) that of one launch, the median by the larger of compute and memory, as nothing tells a warm-up from
    the work. `levels` are the shares of each level of memory. `allowed` is the occupancy that its launches can have at
    most, and `limited_by` what they need too much of for more.
    """

    kernel: str
    total_ns: int
    launches: int
    compute: float | None
    memory: float | None
    occupancy: float | None
    levels: Mapping[str, float] = field(default_factory=dict)
    allowed: float | None = None
    limited_by: str | None = None


PEAKS = {
    "compute": ("sm_throughput",),
    "memory": ("gpu_comp_mem", "gpu_dram", "dram__throughput_avg_pct_of_peak_sustained_elapsed"),
    "occupancy": ("occupancy_ratio", "OccupancyPercent"),
}
"""Counters of a launch that are shares of what the device can do, by what they say."""
PER_CENT = ("OccupancyPercent",)
"""Those of them that count to 100, of AMD's."""
LEVELS = {"DRAM": ("gpu_dram",), "L2": ("l2_throughput",), "L1": ("l1_throughput",)}
ALLOWED = ("Theoretical_Occupancy", "sm__maximum_warps_per_active_cycle_pct")
BLOCK_LIMITS = {
    "blocks": ("Block_Limit_SM", "launch__occupancy_limit_blocks"),
    "registers": ("Block_Limit_Registers", "launch__occupancy_limit_registers"),
    "shared memory": ("Block_Limit_Shared_Mem", "launch__occupancy_limit_shared_mem"),
    "warps": ("Block_Limit_Warps", "launch__occupancy_limit_warps"),
}
"""Blocks on a multiprocessor at once, by what limits them; the least counts."""


def peak_facts(tables: RunTables, most: int) -> list[PeakFact]:
    """Return what the kernels with most time reach of their device, from counters of each launch, most time first;
    without times those with most launches.
    """
    import duckdb

    facts = []
    for path in files_of(tables.folders, "counters"):
        described = duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        held = {name for name, kind, *_ in described if kind != "VARCHAR"}
        groups = [*PEAKS.values(), *LEVELS.values(), ALLOWED, *BLOCK_LIMITS.values()]
        columns = [next((name for name in names if name in held), None) for names in groups]
        if not any(columns[: len(PEAKS)]):
            continue
        weight, time = ("gpu_time", "sum(gpu_time)") if "gpu_time" in held else ("1", "0")
        shares = [f"{name} / 100" if name in PER_CENT else name or "NULL" for name in columns]
        means = [f"sum({share} * {weight}) / sum({weight}) FILTER ({share} IS NOT NULL)" for share in shares]
        if weight == "1":  # a mean would count a warm-up of few blocks as much as the work; medians apart, no launch
            reached = "coalesce(greatest({}, {}), {})".format(*shares)
            launch = f"quantile_disc([{', '.join([reached, *shares])}], 0.5) FILTER ({reached} IS NOT NULL)"
            means = [f"({launch})[{number}]" for number in range(2, len(shares) + 2)]
        rows = duckdb.execute(
            f"SELECT k.short_name, {time}, count(*), {', '.join(means)} FROM {LAUNCHES_WITH_COUNTERS}"  # noqa: S608
            f" GROUP BY k.short_name HAVING sum({weight}) > 0",
            _counter_files(path.parent),
        ).fetchall()
        facts += [
            PeakFact(
                kernel=kernel_words(name),
                total_ns=round(ns),
                launches=launches,
                compute=means[0],
                memory=means[1],
                occupancy=means[2],
                levels={level: share for level, share in zip(LEVELS, means[3:6], strict=True) if share is not None},
                allowed=means[6],
                limited_by=_least(means[7:]),
            )
            for name, ns, launches, *means in rows
            if any(mean is not None for mean in means[: len(PEAKS)])
        ]
    return sorted(facts, key=lambda fact: (-fact.total_ns, -fact.launches, fact.kernel))[:most]


def _least(limits: Sequence[float | None]) -> str | None:
    """Return what limits the blocks on a multiprocessor most, the first of equal ones; None where that is not known."""
    recorded = {name: limit for name, limit in zip(BLOCK_LIMITS, limits, strict=True) if limit is not None}
    return min(recorded, key=lambda name: recorded[name]) if recorded else None


LAUNCHES_WITH_COUNTERS = (
    "read_parquet($counters) JOIN read_parquet($configurations) USING (configuration)"
    " JOIN read_parquet($kernels) k USING (kernel)"
)


def _counter_files(folder: Path) -> dict[str, str]:
    return {name: str(folder / f"{name}.parquet") for name in ("counters", "configurations", "kernels")}


OF_UNITS = ("_avg", "_max", "_min")
"""How counters end that are of one unit of a device, as Nsight Compute names them: those do not add up."""


@dataclass(frozen=True, kw_only=True)
class CounterFact:
    """What a counter of launches adds up to, its unit, and the kernel that has most of it, with its share."""

    name: str
    unit: str
    total: float
    kernel: str
    share: float


def counter_facts(tables: RunTables, most: int) -> list[CounterFact]:
    """Return what the first counters add up to, of those that do: sums, bytes and instructions."""
    import duckdb

    units = {name: unit for export in tables.capabilities for name, unit in export["values"].items()}
    facts = []
    for name, unit in units.items():
        if not name.endswith("_sum") and (unit not in ("bytes", "instructions") or name.endswith(OF_UNITS)):
            continue
        sums: Counter[str] = Counter()
        for folder, capabilities in zip(tables.folders, tables.capabilities, strict=True):
            if name in capabilities["values"]:
                number = 'TRY_CAST("' + name.replace('"', '""') + '" AS DOUBLE)'
                query = f"SELECT k.short_name, sum({number}) FROM {LAUNCHES_WITH_COUNTERS} GROUP BY ALL"  # noqa: S608
                rows = duckdb.execute(query, _counter_files(folder)).fetchall()
                sums.update({kernel: value or 0.0 for kernel, value in rows})
        total = math.fsum(sums.values())
        if total > 0:
            kernel, value = max(sums.items(), key=lambda pair: (pair[1], pair[0]))
            facts.append(CounterFact(name=name, unit=unit, total=total, kernel=kernel, share=value / total))
    return facts[:most]


def counter_means(tables: RunTables, most: int) -> list[tuple[str, str, float]]:
    """Return the first counters that are numbers but no time, those in per cent before others, each with its unit and
    its mean over the launches that have it.
    """
    import duckdb

    means: list[tuple[str, str, float]] = []
    units = {name: unit for export in tables.capabilities for name, unit in export["values"].items() if unit != "ns"}
    for name, unit in sorted(units.items(), key=lambda pair: pair[1] != "percent"):
        holders = zip(tables.folders, tables.capabilities, strict=True)
        files = [str(folder / "counters.parquet") for folder, export in holders if name in export["values"]]
        number = 'TRY_CAST("' + name.replace('"', '""') + '" AS DOUBLE)'
        query = f"SELECT avg({number}) FROM read_parquet(?, union_by_name => true)"  # noqa: S608
        ((mean,),) = duckdb.execute(query, [files]).fetchall()
        if mean is not None:
            means.append((name, unit, mean))
        if len(means) == most:
            break
    return means


@dataclass(frozen=True, kw_only=True)
class RuleFact:
    """What a rule of Nsight Compute estimates for a kernel: its speedup, and the share of the time of all kernels that
    this saves, 0 to 1; without times `saved_ns` is 0, and the share is of the kernel alone.
    """

    kernel: str
    rule: str
    text: str
    speedup: float
    share: float
    saved_ns: float


def rule_facts(tables: RunTables) -> list[RuleFact]:
    """Return the rule with the largest estimate of each kernel, the one that saves most first."""
    times: Counter[str] = Counter()
    for row in tables.targets.get(GPU_TIME, ()):
        times[row["short_name"]] += row["value_sum"]
    best: dict[str, RuleFact] = {}
    for row in (row for export in tables.capabilities for row in export.get("rules", ())):
        name = row["kernel"]
        saved = row["speedup"] * times[name]
        fact = RuleFact(
            kernel=kernel_words(name),
            rule=row["rule"],
            text=row["text"],
            speedup=row["speedup"],
            share=saved / times.total() if times else row["speedup"],
            saved_ns=saved,
        )
        best[name] = max(best.get(name, fact), fact, key=lambda fact: fact.share)
    facts = sorted(best.values(), key=lambda fact: (-fact.share, fact.kernel, fact.rule))
    return [fact for fact in facts if fact.share >= NOTICEABLE]
