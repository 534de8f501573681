"""Verdicts of many groups at once, with the share of false findings controlled."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from causeway.comparison.change_estimates import Choices, Estimate
from causeway.core.vocabulary import CHANGE_WORDS, INCONCLUSIVE, SAME

WORSE = "worse"
BETTER = "better"
WORDS = {metric: {WORSE: worse, BETTER: better} for metric, (worse, better) in CHANGE_WORDS.items()}
"""How each metric's verdicts read; `same` and `inconclusive` need no other word."""

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
    known = [index for index, value in enumerate(p_values) if value is not None]
    found: list[float | None] = [None] * len(p_values)
    if known:
        for index, q in zip(known, stats.false_discovery_control([p_values[index] for index in known]), strict=True):
            found[index] = float(q)
    return found


def verdict(estimate: Estimate, q_value: float | None, choices: Choices) -> tuple[str, str]:
    """Return the verdict of a change, and why.

    `worse` or `better`: the whole interval lies beyond `claim_floor` and the q-value is at most the rate. `same`: the
    whole interval lies within `same_margin` (equivalence). Otherwise `inconclusive`.
    """
    low = estimate.low
    high = estimate.high
    floor = claim_floor(estimate, choices)
    if not estimate.decidable or low is None or high is None:
        return INCONCLUSIVE, "too few independent launches for an interval"
    if estimate.floor is None or floor is None:
        return INCONCLUSIVE, "no noise floor: too few launches to compare their halves"
    if low > floor or high < -floor:
        if q_value is not None and q_value <= choices.rate:
            return (WORSE if estimate.change > 0 else BETTER), "the interval lies beyond the noise floor"
        return INCONCLUSIVE, "not beyond what chance gives among so many comparisons"
    margin = same_margin(estimate.floor, choices.same_within)
    if -margin <= low and high <= margin:
        return SAME, f"the interval lies within {100 * margin:.2g} %, the noise floor or what counts as the same"
    if floor > estimate.floor and -floor <= low and high <= floor:
        return INCONCLUSIVE, f"runs of one program may differ by {100 * floor:.2g} %, which no repeats measured here"
    if -floor <= low and high <= floor:
        return INCONCLUSIVE, "the interval lies within the noise floor, which is too wide to call this the same"
    if low <= 0 <= high:
        return INCONCLUSIVE, "the interval holds no change, and changes beyond the noise floor"
    return INCONCLUSIVE, "the interval reaches into the noise floor"


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
    known = sorted((floor, weight) for floor, weight in floors if floor is not None)
    if not known:
        return None
    reached = np.cumsum([weight for _, weight in known])
    return known[int(np.searchsorted(reached, reached[-1] / 2))][0]
