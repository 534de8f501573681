"""What changed between two plain tables: kernels at equal settings, with which values of a setting, and the mix."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from causeway.core.queries import cell
from causeway.core.schemas import Row
from causeway.core.vocabulary import INCONCLUSIVE, SAME

OTHER_SHARE = 0.05
"""Change of a value's share of the rows from which the mix is another, as `compared.OTHER_NUMBER`."""
STANDARD_ERRORS = 3
"""Of the difference of two shares, below which it may be chance."""


@dataclass(frozen=True, kw_only=True)
class EffectFact:
    """The change of a kernel with one value of a setting, percent, with its interval."""

    value: str
    percent: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class KernelChange:
    """A kernel of both tables: the change of the same launches in percent with its interval, mean, median and 99th
    percentile before and after, ns; whether any of them changed beyond noise, or only the percentile; the setting whose
    values differ most in their change; and what the change of the mean came with.
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
    is_tail: bool
    column: str | None
    effects: Sequence[EffectFact]
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
    that did not change take less or more, and the mix.
    """

    columns: Sequence[str]
    kernels: Sequence[KernelChange]
    others: Sequence[KernelChange]
    mixes: Sequence[MixFact]


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
    came_with = {row["kernel"]: row for row in (document.get("attributions") or {"kernels": ()})["kernels"]}
    kernels = [
        (
            abs(row["candidate_total_ns"] - row["baseline_total_ns"]),
            _kernel(row, quantiles[row["candidate"]], settings["effects"], came_with, table, index),
        )
        for index, row in enumerate(rows)
        if row["level"] == "kernel" and row["metric"] == "time_per_launch" and row["candidate"] in quantiles
    ]
    kernels.sort(key=lambda pair: (-pair[0], pair[1].kernel))
    return ComparedTables(
        columns=settings["columns"],
        kernels=[kernel for _, kernel in kernels if kernel.is_changed],
        others=[kernel for _, kernel in kernels if not kernel.is_changed],
        mixes=_mixes(settings["values"]),
    )


def _kernel(
    row: Row, quantiles: Row, effects: Iterable[Row], came_with: Mapping[str, Row], table: str, index: int
) -> KernelChange:
    own = [effect for effect in effects if effect["kernel"] == row["candidate"]]
    by_column: dict[str, list[EffectFact]] = {}
    for effect in own:
        by_column.setdefault(effect["column"], []).append(
            EffectFact(
                value=effect["value"],
                percent=effect["change_percent"],
                low=effect["low_percent"],
                high=effect["high_percent"],
            )
        )
    column = max(by_column, key=lambda name: _apart(by_column[name]), default=None)
    if column is not None and _apart(by_column[column]) < (row["floor_percent"] or 0):
        column = None
    is_claimed = row["verdict"] not in (SAME, INCONCLUSIVE)
    return KernelChange(
        kernel=row["candidate"],
        percent=row["change_percent"],
        low=row["low_percent"],
        high=row["high_percent"],
        verdict=row["verdict"],
        mean=(row["baseline_value"], row["candidate_value"]),
        median=(quantiles["baseline_median_ns"], quantiles["candidate_median_ns"]),
        p99=(quantiles["baseline_p99_ns"], quantiles["candidate_p99_ns"]),
        is_changed=is_claimed or quantiles["median_differs"] or quantiles["p99_differs"],
        is_tail=quantiles["p99_differs"] and not quantiles["median_differs"],
        column=column,
        effects=sorted(by_column[column], key=lambda effect: -abs(effect.percent)) if column else (),
        came_with=came_with.get(row["baseline"]),
        query=cell("change_percent", table, index),
    )


def _apart(effects: Sequence[EffectFact]) -> float:
    """Return by how many points the intervals of two values are apart at most; 0 where all overlap."""
    return max(0.0, max(effect.low for effect in effects) - min(effect.high for effect in effects))


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
            before, after = row["baseline"] / wholes[0], row["candidate"] / wholes[1]
            share = (row["baseline"] + row["candidate"]) / pooled
            error = math.sqrt(share * (1 - share) * (1 / wholes[0] + 1 / wholes[1]))
            if abs(after - before) >= max(OTHER_SHARE, STANDARD_ERRORS * error):
                shares.append((row["value"], before, after))
        if shares:
            facts.append(MixFact(column=column, shares=sorted(shares, key=lambda each: -abs(each[2] - each[1]))))
    return sorted(facts, key=lambda fact: -abs(fact.shares[0][2] - fact.shares[0][1]))
