"""Scores of what an analysis says on durations: how often the truth lies within its intervals, signs, errors."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from lab.validation.generator import KnownTable
from lab.validation.time_truth import set_values, time_truth, what_if_truth

CLEAR_CHANGE = 0.2
"""A smaller change of the mean, in percent, is no direction in which a sign could be right."""

SAME_VALUES = 0.99
"""A copy of a cause with a smaller correlation has percentiles of its own."""

Interval = tuple[float, float, float]
"""Estimate, low, high."""


@dataclass(frozen=True, kw_only=True)
class TimeClaim:
    """What is said on one cause of a table: an estimate and its interval each, in percent; None where nothing is.

    Attributes
    ----------
    cause : str
        A cause of the table: `same_cause` of what is named.
    levels, against : tuple of str
        Of a category, whose cost is not that of `time_truth`.
    mean, p50, p99, spread : Interval or None
    cost : Interval or None
        ns.
    """

    cause: str
    levels: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    mean: Interval | None = None
    p50: Interval | None = None
    p99: Interval | None = None
    spread: Interval | None = None
    cost: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class WhatIfClaim:
    """What is said to follow if a cause is set to a value, given in words."""

    cause: str
    words: str
    mean: Interval | None = None
    p99: Interval | None = None


def interval_of(estimate: object | None) -> Interval | None:
    """Return an estimate, with attributes value, low and high, as an interval."""
    return None if estimate is None else (estimate.value, estimate.low, estimate.high)


def time_claim(arrow: object, table: KnownTable) -> TimeClaim | None:
    """Return what a cause of an outcome says on durations; None if it names no cause of the table.

    Parameters
    ----------
    arrow : object
        With attributes name, node.members, levels and in_time, as the analysis gives them.
    table : KnownTable
    """
    cause = same_cause(arrow.name, arrow.node.members, table)
    if cause is None:
        return None
    effect = arrow.in_time
    names = ("mean", "p50", "p99", "spread")
    of_all = [name for name in names if effect and name not in effect.of_first]  # the truth is in percent of that
    said = {name: interval_of(getattr(effect, name)) for name in of_all}
    if cause[1]:
        said = {name: opposite(interval) for name, interval in said.items()}
    ends = effect.ends if effect else None
    if ends is not None and ends.tail:  # of other values than those that the truth is of
        return TimeClaim(cause=cause[0], levels=(), against=())
    return TimeClaim(
        cause=cause[0],
        levels=arrow.levels,
        against=ends.levels_low if ends else (),
        cost=interval_of(effect.cost) if effect and not arrow.levels else None,
        **said,
    )


def same_cause(name: str, members: Iterable[str], table: KnownTable) -> tuple[str, bool] | None:
    """Return the cause whose numbers a claim gives, and whether they are those of the opposite: the cause itself, or a
    member of its class that correlates with the cause above `SAME_VALUES`, by values or by ranks within
    configurations; else None.
    """
    if name in table.causes:
        return name, False
    cause = next(
        (table.stands_for.get(member, member) for member in (name, *sorted(members)) if member in table.stands_for),
        None,
    )
    if cause is None or table.columns[name].dtype == object or not np.all(np.isfinite(table.columns[name])):
        return None
    pair = table.drivers[cause], table.columns[name]
    both = [pair, [_ranks(values, table.kernel) for values in pair]]
    correlation = max((float(np.corrcoef(*two)[0, 1]) for two in both), key=abs)
    return (cause, correlation < 0) if abs(correlation) > SAME_VALUES else None


def _ranks(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the ranks within configurations, 0 to 1."""
    ranks = np.empty(values.size)
    for number in np.unique(kernel):
        rows = kernel == number
        ranks[rows] = rankdata(values[rows]) / rows.sum()
    return ranks


def covers(interval: Interval, truth: float) -> bool:
    """Return whether the truth lies within an interval."""
    return interval[1] <= truth <= interval[2]


def opposite(interval: Interval | None) -> Interval | None:
    """Return an interval of the change in the other direction."""
    return None if interval is None else (-interval[0], -interval[2], -interval[1])


def time_scores(claims: Iterable[TimeClaim], table: KnownTable) -> dict[str, float]:
    """Return counts of one table, to be summed over tables.

    Returns
    -------
    dict of str to float
        `time_asked`, causes with a truth; `time_given`, those with an estimate; for each of mean, p50, p99, spread and
        cost `<what>_given` and `<what>_covered`; `time_signs_asked`, given ones whose mean truly changes by
        `CLEAR_CHANGE`, and `time_signs_right`; the same as `time_signs_said_...` of those whose interval leaves zero
        out, which are said to raise or to lower it; `mean_error`, the sum of the absolute errors of the mean's change,
        in percentage points.
    """
    scores = dict.fromkeys(("time_asked", "time_given", "time_signs_asked", "time_signs_right", "mean_error"), 0.0)
    scores |= {"time_signs_said_asked": 0.0, "time_signs_said_right": 0.0}
    for what in ("mean", "p50", "p99", "spread", "cost"):
        scores |= {f"{what}_given": 0.0, f"{what}_covered": 0.0}
    for claim in claims:
        truth = time_truth(table, claim.cause, claim.levels, claim.against)
        if truth is None:
            continue
        scores["time_asked"] += 1
        scores["time_given"] += claim.mean is not None
        for what in ("mean", "p50", "p99", "spread", "cost"):
            interval = getattr(claim, what)
            if interval is not None:
                scores[f"{what}_given"] += 1
                scores[f"{what}_covered"] += covers(interval, truth.cost_ns if what == "cost" else getattr(truth, what))
        if claim.mean is not None:
            scores["mean_error"] += abs(claim.mean[0] - truth.mean)
            if abs(truth.mean) >= CLEAR_CHANGE:
                scores["time_signs_asked"] += 1
                scores["time_signs_right"] += claim.mean[0] * truth.mean > 0
            if not covers(claim.mean, 0.0):
                scores["time_signs_said_asked"] += 1
                scores["time_signs_said_right"] += claim.mean[0] * truth.mean > 0
    return scores


def what_if_scores(claims: Iterable[WhatIfClaim], table: KnownTable) -> dict[str, float]:
    """Return counts of one table, to be summed: `whatif_asked`, what-ifs whose words name values; `whatif_mean_given`,
    `whatif_mean_covered`, and the same of p99.
    """
    scores = dict.fromkeys(
        ("whatif_asked", "whatif_mean_given", "whatif_mean_covered", "whatif_p99_given", "whatif_p99_covered"), 0.0
    )
    for claim in claims:
        values = set_values(table, claim.cause, claim.words)
        if values is None:
            continue
        scores["whatif_asked"] += 1
        for what, truth in zip(("mean", "p99"), what_if_truth(table, claim.cause, values), strict=True):
            interval = getattr(claim, what)
            if interval is not None:
                scores[f"whatif_{what}_given"] += 1
                scores[f"whatif_{what}_covered"] += covers(interval, truth)
    return scores
