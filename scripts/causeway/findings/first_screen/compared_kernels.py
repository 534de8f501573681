"""What changed of a kernel between two runs: with which grid, on which rank, with which value of a table's setting, and
whether only its slowest launches; of two plain tables also the mix of settings.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.names.kernel_words import demangled_words
from causeway.core.queries import cell
from causeway.core.schemas import Row
from causeway.core.vocabulary import GONE, INCONCLUSIVE, NEW, SAME
from causeway.findings.first_screen.run_facts import NOTICEABLE

OTHER_NUMBER = 0.05
"""Change from which a number is another: of steps, launches or calls, of a rate, of the idle share, and of the share
of a table's rows with a value.
"""
STANDARD_ERRORS = 3
"""Of the difference of two shares, below which it may be chance."""
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class EffectFact:
    """The change of a kernel with one value of a column, percent, with its interval where that is known."""

    value: str
    percent: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class KernelDetail:
    """Behind the change of a kernel: the column (grid, rank, a setting) whose values differ most in their change, and
    these; columns of its launch configuration with their value before and after; counters with unit and mean before
    and after, those that changed most first; and the 99th percentile before and after, ns, where it changed beyond
    noise and the median, which is beside it, did not.
    """

    column: str | None = None
    effects: Sequence[EffectFact] = ()
    shapes: Sequence[tuple[str, int | str, int | str]] = ()
    counters: Sequence[tuple[str, str, float, float]] = ()
    tail: tuple[float, float] | None = None
    median: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class KernelChange:
    """A kernel of both tables: the change of the same launches in percent with its interval, mean, median and 99th
    percentile before and after, ns; whether any of them changed beyond noise; what is behind it, and what the change of
    the mean came with.
    """

    kernel: str
    percent: float
    low: float | None
    high: float | None
    verdict: str
    mean: tuple[float, float]
    median: tuple[float, float]
    p99: tuple[float, float]
    is_changed: bool
    detail: KernelDetail
    came_with: Row | None
    query: str


@dataclass(frozen=True, kw_only=True)
class MixFact:
    """A column whose values have other shares of the rows than before: value, share before and after."""

    column: str
    shares: Sequence[tuple[str, float, float]]


@dataclass(frozen=True, kw_only=True)
class ComparedTables:
    """What is said of two tables: settings, kernels that changed, those with most time first, number of all, what those
    that did not change take less or more, the mix, and the kernels of one table `alone` that hold a hundredth of its
    time, which each takes in both, ns, the largest first.
    """

    columns: Sequence[str]
    kernels: Sequence[KernelChange]
    others: Sequence[KernelChange]
    mixes: Sequence[MixFact]
    alone: Sequence[tuple[str, int, int]] = ()


def compared_tables(document: Row, rows: Sequence[Row], table: str) -> ComparedTables | None:
    """Return what changed between two plain tables; None of other runs.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`, in its order.
    table : str
        Its path, for queries.
    """
    settings = document.get("settings")
    if settings is None:
        return None
    quantiles = {row["kernel"]: row for row in document["quantiles"]}
    details = kernel_details(document, rows)
    came_with = {row["kernel"]: row for row in (document.get("attributions") or {"kernels": ()})["kernels"]}
    kernels = [
        (
            abs(row["candidate_total_ns"] - row["baseline_total_ns"]),
            KernelChange(
                kernel=row["candidate"],
                percent=row["change_percent"],
                low=row["low_percent"],
                high=row["high_percent"],
                verdict=row["verdict"],
                mean=(row["baseline_value"], row["candidate_value"]),
                median=_ends(quantiles[row["candidate"]], "median"),
                p99=_ends(quantiles[row["candidate"]], "p99"),
                is_changed=row["verdict"] not in (SAME, INCONCLUSIVE)
                or any(quantiles[row["candidate"]][f"{word}_differs"] for word in ("median", "p99")),
                detail=details[row["candidate"]],
                came_with=came_with.get(row["baseline"]),
                query=cell("change_percent", table, index),
            ),
        )
        for index, row in enumerate(rows)
        if is_kernel(row) and row["candidate"] in quantiles
    ]
    kernels.sort(key=lambda pair: (-pair[0], pair[1].kernel))
    return ComparedTables(
        columns=settings["columns"],
        kernels=[kernel for _, kernel in kernels if kernel.is_changed],
        others=[kernel for _, kernel in kernels if not kernel.is_changed],
        mixes=_mixes(settings["values"]),
        alone=_of_one_alone(document["decomposition"]),
    )


def _of_one_alone(decomposition: Sequence[Row]) -> list[tuple[str, int, int]]:
    """Return the kernels of one side alone with a hundredth of its time, and their times on both, ns."""
    whole = {side: sum(row[side] for row in decomposition) for side in ("baseline_ns", "candidate_ns")}
    ends = [
        (row["kernel"], row["baseline_ns"], row["candidate_ns"]) for row in decomposition if row["match"] in (NEW, GONE)
    ]
    told = [each for each in ends if any(ns > NOTICEABLE * of for ns, of in zip(each[1:], whole.values(), strict=True))]
    return sorted(told, key=lambda each: (-max(each[1:]), each[0]))


def is_kernel(row: Row) -> bool:
    """Return whether a row of a comparison is the time of a kernel of both runs."""
    return bool(row["level"] == "kernel" and row["metric"] == "time_per_launch" and row["change_percent"] is not None)


def kernel_details(document: Row, rows: Iterable[Row]) -> dict[str, KernelDetail]:
    """Return what is behind the change of each kernel of both runs, by its name; `rows` of `comparison.parquet`."""
    effects: dict[str, dict[str, list[EffectFact]]] = {}
    for row in document.get("effects") or ():
        effects.setdefault(row["kernel"], {}).setdefault(row["column"], []).append(
            EffectFact(
                value=row["value"], percent=row["change_percent"], low=row["low_percent"], high=row["high_percent"]
            )
        )
    shapes: dict[str, list[tuple[str, int | str, int | str]]] = {}
    for row in document.get("other_shapes") or ():
        shapes.setdefault(row["kernel"], []).append((row["column"], row["baseline"], row["candidate"]))
    counters = _changed_counters(document.get("counters") or ())
    quantiles = {row["kernel"]: row for row in document.get("quantiles") or ()}
    details = {}
    for row in rows:
        if is_kernel(row):
            name = row["candidate"]
            column, of_column = _most_apart(effects.get(name, {}), row["floor_percent"] or 0)
            is_tail = name in quantiles and quantiles[name]["p99_differs"] and not quantiles[name]["median_differs"]
            details[name] = KernelDetail(
                column=column,
                effects=of_column,
                shapes=shapes.get(name, ()),
                counters=counters.get(name, ()),
                tail=_ends(quantiles[name], "p99") if is_tail else None,
                median=_ends(quantiles[name], "median") if is_tail else None,
            )
    return details


def _changed_counters(rows: Iterable[Row]) -> dict[str, list[tuple[str, str, float, float]]]:
    """Return the counters that differ by `OTHER_NUMBER`, by kernel; the largest factor first."""
    changed: dict[str, list[tuple[float, tuple[str, str, float, float]]]] = {}
    for row in rows:
        low, high = sorted(abs(row[side]) for side in ("baseline", "candidate"))
        if high > (1 + OTHER_NUMBER) * low:
            fact = row["counter"], row["unit"], row["baseline"], row["candidate"]
            changed.setdefault(row["kernel"], []).append((low / high, fact))
    return {name: [fact for _, fact in sorted(own)] for name, own in changed.items()}


def _ends(quantiles: Row, word: str) -> tuple[float, float]:
    return quantiles[f"baseline_{word}_ns"], quantiles[f"candidate_{word}_ns"]


def _most_apart(effects: Mapping[str, Sequence[EffectFact]], floor: float) -> tuple[str | None, Sequence[EffectFact]]:
    """Return the column whose values differ most in their change, by more than the noise floor, in percent, and these,
    the largest change first.
    """
    column = max(effects, key=lambda name: _apart(effects[name]), default=None)
    if column is None or _apart(effects[column]) <= floor:
        return None, ()
    return column, sorted(effects[column], key=lambda effect: -abs(effect.percent))


def _apart(effects: Sequence[EffectFact]) -> float:
    """Return by how many points the intervals of two values are apart at most; 0 where all overlap."""
    lows = [effect.percent if effect.low is None else effect.low for effect in effects]
    highs = [effect.percent if effect.high is None else effect.high for effect in effects]
    return max(0.0, max(lows) - min(highs))


def _mixes(values: Sequence[Row]) -> list[MixFact]:
    """Return the columns of which values have other shares of the rows than before, beyond chance; the largest change
    first.
    """
    by_column: dict[str, list[Row]] = {}
    for row in values:
        by_column.setdefault(row["column"], []).append(row)
    facts = []
    for column, own in by_column.items():
        wholes = [sum(row[side] for row in own) for side in ("baseline", "candidate")]
        pooled = sum(wholes)
        shares = []
        for row in own:
            before = row["baseline"] / wholes[0]
            after = row["candidate"] / wholes[1]
            share = (row["baseline"] + row["candidate"]) / pooled
            error = math.sqrt(share * (1 - share) * (1 / wholes[0] + 1 / wholes[1]))
            if abs(after - before) >= max(OTHER_NUMBER, STANDARD_ERRORS * error):
                shares.append((row["value"], before, after))
        if shares:
            facts.append(
                MixFact(column=column, shares=sorted(shares, key=lambda each: -round(abs(each[2] - each[1]), 9)))
            )
    return sorted(facts, key=lambda fact: -abs(fact.shares[0][2] - fact.shares[0][1]))


def kernels_by_name(decomposition: Sequence[Row]) -> list[Row]:
    """Return the rows of kernels, those of one run alone whose full names are equal but for their numbers as one:
    instances of a template are not matched where the runs have other numbers of them. Another functor is other work.
    Those whose numbers a sentence would say have a star for each.
    """
    both = [row for row in decomposition if row.get("match") not in (NEW, GONE)]
    lone: dict[str, dict] = {}
    for row in decomposition:
        if row.get("match") in (NEW, GONE):
            alike = NUMBER.sub("*", row["kernel"])
            sums = lone.setdefault(alike, {**row, "baseline_ns": 0, "candidate_ns": 0})
            if demangled_words(sums["kernel"]) != demangled_words(row["kernel"]):
                sums["kernel"] = alike
            for side in ("baseline", "candidate"):
                sums[f"{side}_ns"] += row[f"{side}_ns"]
    return [*both, *lone.values()]


def launch_ratio(rows: Sequence[Row]) -> float:
    """Return how many times as often the candidate launched the kernels of both runs: the median by their time."""
    kernels = list(filter(is_kernel, rows))
    ratios = [row["candidate_launches"] / row["baseline_launches"] for row in kernels]
    times = [row["baseline_total_ns"] for row in kernels]
    weights = times if any(times) else None
    return float(np.quantile(ratios, 0.5, weights=weights, method="inverted_cdf")) if ratios else 1.0


def is_alike(rows: Sequence[Row], percent: float, document: Row) -> bool:
    """Return whether all kernels with a hundredth of the time changed as the whole did, by so much, to a point."""
    least = NOTICEABLE * (document["candidate"].get("gpu_time_ns") or 0)
    kernels = [row["change_percent"] for row in filter(is_kernel, rows) if row["candidate_total_ns"] >= least]
    return len(kernels) > 1 and all(abs(change - percent) <= 100 * NOTICEABLE for change in kernels)
