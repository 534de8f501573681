"""What is claimed of a comparison: verdicts of many groups at once, with the share of false findings controlled, and
whether the causes of the variability changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from causeway.comparison.change_estimates import Choices, Estimate
from causeway.core.tables import read_table
from causeway.core.vocabulary import APPEARED, CHANGE_WORDS, CHANGED, GONE, INCONCLUSIVE, OTHER_WORK, SAME, SUPPORTED

WORSE = "worse"
BETTER = "better"
WORDS = {metric: {WORSE: worse, BETTER: better} for metric, (worse, better) in CHANGE_WORDS.items()}
"""How each metric's verdicts read; `same` and `inconclusive` need no other word."""

TOO_FEW = "too_few"
REASONS = {
    TOO_FEW: "too few independent launches for an interval",
    "no_floor": "no noise floor: too few launches to compare their halves",
    "beyond_floor": "the interval lies beyond the noise floor",
    "many_tests": "not beyond what chance gives among so many comparisons",
    SAME: "the interval lies within {:.2g} %, the noise floor or what counts as the same",
    "unmeasured_floor": "runs of one program may differ by {:.2g} %, which no repeats measured here",
    "wide_floor": "the interval lies within the noise floor, which is too wide to call this the same",
    "holds_no_change": "the interval holds no change, and changes beyond the noise floor",
    "reaches_into_floor": "the interval reaches into the noise floor",
    OTHER_WORK: "{} of the {} {} that both sides have: other work, which is no change of speed",
    "one_number": "one run on each side: {} is a single number, and says nothing of its own noise",
    "one_side": "{}: only the {} has it",
    "same_recording": "both sides are the same recording",
}
"""Why a verdict is what it is, in words, by `Reason.code`."""


@dataclass(frozen=True)
class Reason:
    """Why a verdict is what it is: a key of `REASONS`, and the values of its words."""

    code: str
    values: tuple[float | str, ...] = ()

    @property
    def words(self) -> str:
        """The reason as it is said."""
        return REASONS[self.code].format(*self.values)


WIDEST = 5
"""A floor wider than this many times what counts as the same makes nothing equal: a noise of 40 % is not sameness."""


def claim_floor(estimate: Estimate, choices: Choices) -> float | None:
    """Return what a change has to exceed to be claimed: the noise floor, and what runs of one program may differ by
    where that was not measured; None without a noise floor.
    """
    return None if estimate.floor is None else max(estimate.floor, choices.unmeasured)


def p_value(estimate: Estimate, choices: Choices) -> float | None:
    """Return the p-value of a change that is no larger than `claim_floor`, in either direction; None where it cannot
    be tested.

    Two-sided test of |change| <= floor (McCarthy and Smyth, Testing significance relative to a fold-change threshold is
    a TREAT, Bioinformatics 25 (2009) 765, eq. 2).
    """
    floor = claim_floor(estimate, choices)
    if estimate.error is None or not estimate.decidable or floor is None:
        return None
    if estimate.error == 0:
        return 0.0 if abs(estimate.change) > floor else 1.0
    size = abs(estimate.change)
    tails = [(size - floor) / estimate.error, (size + floor) / estimate.error]
    return float(min(1.0, stats.t.sf(tails, estimate.freedom).sum()))


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Return q-values of one family of tests (Benjamini and Hochberg 1995); None stays None."""
    tested = [index for index, value in enumerate(p_values) if value is not None]
    q_values: list[float | None] = [None] * len(p_values)
    if tested:
        for index, q in zip(tested, stats.false_discovery_control([p_values[index] for index in tested]), strict=True):
            q_values[index] = float(q)
    return q_values


def verdict(estimate: Estimate, q_value: float | None, choices: Choices) -> tuple[str, Reason]:
    """Return the verdict of a change, and why.

    `worse` or `better`: the whole interval lies beyond `claim_floor` and the q-value is at most the rate. `same`: the
    whole interval lies within `same_margin` (equivalence). Otherwise `inconclusive`.
    """
    low = estimate.low
    high = estimate.high
    floor = claim_floor(estimate, choices)
    if not estimate.decidable or low is None or high is None:
        return INCONCLUSIVE, Reason(TOO_FEW)
    if estimate.floor is None or floor is None:
        return INCONCLUSIVE, Reason("no_floor")
    if low > floor or high < -floor:
        if q_value is not None and q_value <= choices.rate:
            return (WORSE if estimate.change > 0 else BETTER), Reason("beyond_floor")
        return INCONCLUSIVE, Reason("many_tests")
    margin = same_margin(estimate.floor, choices.same_within)
    if -margin <= low and high <= margin:
        return SAME, Reason(SAME, (100 * margin,))
    if floor > estimate.floor and -floor <= low and high <= floor:
        return INCONCLUSIVE, Reason("unmeasured_floor", (100 * floor,))
    if -floor <= low and high <= floor:
        return INCONCLUSIVE, Reason("wide_floor")
    if low <= 0 <= high:
        return INCONCLUSIVE, Reason("holds_no_change")
    return INCONCLUSIVE, Reason("reaches_into_floor")


def same_margin(floor: float, same_within: float) -> float:
    """Return within what a change is called the same: the noise floor, but no less than `same_within` and no more
    than five times that.
    """
    return min(max(floor, same_within), WIDEST * same_within)


def typical_floor(floors: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the median floor of the kernels weighted by their time, which no group's own floor undercuts: small ones
    are small by chance.

    Parameters
    ----------
    floors : sequence of (float or None, float)
        Floor and weight.
    """
    measured = [(floor, weight) for floor, weight in floors if floor is not None]
    values, times = zip(*measured, strict=True) if measured else ((), ())
    weights = times if any(times) else None  # each counts the same
    return float(np.quantile(values, 0.5, weights=weights, method="inverted_cdf")) if measured else None


COLUMNS = ["feature", "group", "variance_percent", "variance_low", "variance_high", "sign", "sign_of", "verdict"]
NORMAL = float(stats.norm.isf(0.025))


def read_causes(paths: Mapping[str, str | Path]) -> dict[str, dict[str, dict]]:
    """Return the supported causes of the whole dataset by target and feature, each with its share of the variance of
    the measured value, from `{target}/causal/dataset/contributions.parquet`.
    """
    causes = {}
    for target, path in paths.items():
        rows = read_table(path, "contributions", COLUMNS).to_pylist()
        causes[target] = {
            row["feature"]: row for row in rows if row["verdict"] == SUPPORTED and row["variance_percent"] is not None
        }
    return causes


def compare_causes(sides: Sequence[Mapping[str, Mapping[str, dict]]], rate: float) -> list[dict]:
    """Return one row per target and supported cause of either side: shares of the variance of the measured value, their
    difference with its interval, verdict.

    The interval of the difference takes each side's own (Zou and Donner, Construction of confidence limits about effect
    measures: a general approach, Stat. Med. 27 (2008) 1693, eq. 3), its standard error is that interval's width over
    twice the normal quantile. A cause that one side does not have is `appeared` or `gone`: how large it could have been
    there is not known, so no interval is given.
    """
    rows = []
    for target in sorted(set(sides[0]) & set(sides[1])):
        for feature in sorted(set(sides[0][target]) | set(sides[1][target])):
            rows.append(_row(target, feature, sides[0][target].get(feature), sides[1][target].get(feature)))
    for row, q in zip(rows, adjusted([row["p_value"] for row in rows]), strict=True):
        row["q_value"] = q
        if q is not None:
            row["verdict"] = CHANGED if q <= rate else INCONCLUSIVE
    return rows


def _row(target: str, feature: str, before: Mapping | None, after: Mapping | None) -> dict:
    row: dict = {
        "target": target,
        "feature": feature,
        "group": (after or before or {}).get("group"),
        "baseline_percent": before and before["variance_percent"],
        "candidate_percent": after and after["variance_percent"],
        **dict.fromkeys(("change", "low", "high", "p_value")),
        "signs": [side and side["sign"] for side in (before, after)],
        "sign_of": [side and side["sign_of"] for side in (before, after)],
        "verdict": GONE if after is None else APPEARED,
    }
    if before is None or after is None:
        return row
    row["change"] = after["variance_percent"] - before["variance_percent"]
    row["verdict"] = INCONCLUSIVE
    ends = [side[f"variance_{end}"] for side in (before, after) for end in ("low", "high")]
    if None not in ends:
        down = np.hypot(after["variance_percent"] - ends[2], ends[1] - before["variance_percent"])
        up = np.hypot(ends[3] - after["variance_percent"], before["variance_percent"] - ends[0])
        error = (down + up) / (2 * NORMAL)
        row |= {"low": float(row["change"] - down), "high": float(row["change"] + up)}
        row["p_value"] = (
            float(2 * stats.norm.sf(abs(row["change"]) / error)) if error > 0 else float(row["change"] == 0)
        )
    return row
