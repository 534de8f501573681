"""Causes of a whole dataset that its kernels do not bear out.

The search over all kernels asks whether a feature moves with the time in most of them. One that stands for another
cause in a single kernel with much of the time passes that test: where a kernel takes twice as long after a certain
other one, idle times and waits in the queue before it differ as well. The search of that kernel alone knows what was
launched before and names it. What a cause costs in the whole run is what it costs in the kernels: where these were
searched as well, and what they lose to it is much less than what is said of all of them together, that is inconclusive.

The search over all kernels takes each in its own standard deviations. So a feature that moves some kernels by a
thousandth of their time has a share of the variance of all, though these kernels have next to none of the dataset's
variability. Where all others were searched as well, would have shown such a share and do not, that is inconclusive.

Where kernels differ in what a feature does to them, the time of all of them together may rise with it and fall again
though it does so in none. That is inconclusive, too, unless kernels have the cause when they are searched alone, and
lose half of what it is said to cost.

Collectives, whose time is mostly waiting, may hold most of the variability, and then the kernels beside them that were
searched do not: what these lose, or vary, tells nothing. There, what is said of all kernels is to hold in more than one
of the others, by the slopes of the single kernels in the search over all of them: where one alone has the cause, and
the rest together have none or much less of it, that is inconclusive and names the kernel.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from scipy.special import ndtri

from causeway.causal.data.feature_roles import INPUT_SIZES, KERNEL_IN_FLIGHT, TOTAL_SIZES
from causeway.causal.data.outcome import NORMAL_QUANTILE, Arrow, GroupSlope, Outcome, WhatIf
from causeway.causal.data.six_digits import six_digits
from causeway.causal.examination.heterogeneity import SIGNIFICANT
from causeway.core.formatting import name_in_sentence
from causeway.core.vocabulary import INCONCLUSIVE, LOWERS, RAISES, REFUTED, SUPPORTED

SAME_MEMBERS = {KERNEL_IN_FLIGHT: "launches_in_flight"}
"""What a feature of one kernel is called among several."""
HALF = 0.5
"""Least share of a cause's cost in kernels that were found to have it; of the variability in kernels with an
answer, or nothing is judged by them; least variability of the kernels that may have a cause, over its share of the
variance; and least slope of the kernels without the strongest, over that of all, from which they may have it.
"""
DIRECTIONS = {RAISES: 1, LOWERS: -1}


def borne_out(
    whole: Outcome,
    kernels: Sequence[Outcome],
    shares: Mapping[str, float],
    collectives: Collection[str] = (),
    names: Mapping[str, str] | None = None,
) -> Outcome:
    """Return the outcome of a whole dataset, its supported causes as inconclusive where its kernels do not lose what
    they are said to cost, or where one kernel alone has them, beside collectives with most of the variability.

    Parameters
    ----------
    whole : Outcome
    kernels : sequence of Outcome
        All corrected for their number.
    shares : mapping of str to float
        Of each kernel, by its id, the share of the dataset's variability, 0 .. 1.
    collectives : collection of str
        Ids of the kernels whose time includes waiting.
    names : mapping of str to str or None
        Of kernels, by their ids; None: ids stand for them.
    """
    answered = [one for one in kernels if one.refusal is None]
    are_most = math.fsum(shares[one.scope.scope] for one in answered) >= HALF
    others = math.fsum(shares[one.scope.scope] for one in answered if one.scope.scope not in collectives)
    weak = {}
    for arrow in whole.arrows:
        if arrow.verdict != SUPPORTED:
            continue
        weakness = _of_shape(arrow, kernels)
        if are_most:
            weakness = weakness or _of_cost(arrow, answered) or _of_variability(arrow, answered, shares)
        if others < HALF:
            weakness = weakness or _of_one_kernel(arrow, whole, kernels, collectives, names or {})
        if weakness:
            weak[arrow.name] = weakness
    arrows = tuple(
        replace(arrow, verdict=INCONCLUSIVE, weakness=weak[arrow.name]) if arrow.name in weak else arrow
        for arrow in whole.arrows
    )
    what_ifs = tuple(_resting_on(row, weak) for row in whole.examination.what_ifs)
    return replace(whole, arrows=arrows, examination=replace(whole.examination, what_ifs=what_ifs))


def with_kernels_variance(whole: Outcome, shares: Mapping[str, float]) -> Outcome:
    """Return the outcome of a whole dataset, its causes with what the kernels in which they vary have of its variance.

    Parameters
    ----------
    whole : Outcome
    shares : mapping of str to float
        Of each kernel, by its id, the share of the dataset's variance within configurations, 0 .. 1; empty where there
        is none.
    """

    def percent(kernels: Sequence[str]) -> float | None:
        if not shares or not kernels:
            return None
        return six_digits(min(100.0 * math.fsum(shares[one] for one in kernels), 100.0))

    arrows = tuple(replace(arrow, kernels_variance=percent(arrow.kernels)) for arrow in whole.arrows)
    return replace(whole, arrows=arrows)


def _of_shape(arrow: Arrow, kernels: Sequence[Outcome]) -> str:
    """Return that the time of several kernels both rises and falls with a cause that none of them has, or to which they
    lose too little; empty if not.
    """
    if len(kernels) < 2 or arrow.in_time is None or arrow.in_time.monotone:
        return ""
    both = "the time of all kernels both rises and falls with it, and"
    if not any(one.verdict == SUPPORTED and _is_same(arrow, one) for kernel in kernels for one in kernel.arrows):
        return f"{both} no kernel has it when searched alone"
    cost = _of_cost(arrow, kernels)
    return f"{both} {cost}" if cost else ""


def _of_cost(arrow: Arrow, answered: Sequence[Outcome]) -> str:
    """Return that the kernels lose too little to a cause; empty if they do not, or its cost is not known."""
    cost = _cost(arrow)
    if cost is None or not cost > 0:
        return ""
    found = [one for kernel in answered for one in kernel.arrows if one.verdict == SUPPORTED and _is_same(arrow, one)]
    part = math.fsum(max(_cost(one) or 0.0, 0.0) for one in found) / cost
    said = f"the kernels that have it when searched alone lose {100 * part:.0f} % of what it is said to cost"
    return said if part < HALF else ""


def _of_variability(arrow: Arrow, answered: Sequence[Outcome], shares: Mapping[str, float]) -> str:
    """Return that the kernels that may have a cause vary too little; empty if they do not."""
    share = arrow.variance.value / 100

    def lacks(kernel: Outcome) -> bool:
        has = any(one.verdict != REFUTED and _is_same(arrow, one) for one in kernel.arrows)
        unseen = set(kernel.slow) & set(arrow.node.members)
        return not has and not unseen and kernel.detectable_share is not None and kernel.detectable_share < share

    left = max(1.0 - math.fsum(shares[one.scope.scope] for one in answered if lacks(one)), 0.0)
    said = f"the kernels that may have it make up {100 * left:.2g} % of the variability"
    return said if left < HALF * share else ""


def _of_one_kernel(
    arrow: Arrow, whole: Outcome, kernels: Sequence[Outcome], collectives: Collection[str], names: Mapping[str, str]
) -> str:
    """Return that at most one of the kernels that are no collectives has a cause; empty if more do, or where slopes of
    single kernels are not known or are not about what the sign is about.
    """
    direction = DIRECTIONS.get(arrow.sign)
    slopes = [one for one in whole.examination.slopes if one.feature == arrow.name and one.by == "kernel"]
    pooled = next((one for one in slopes if one.group is None), None)
    if direction is None or pooled is None or pooled.slope_of != arrow.sign_of:
        return ""
    own = [one for one in slopes if one.group is not None and one.group not in collectives]
    limit = -float(ndtri(SIGNIFICANT / max(len(own), 1)))
    having = {one.group for one in own if one.group is not None and direction * one.slope.value > limit * _error(one)}
    for kernel in kernels:
        found = [one for one in kernel.arrows if one.verdict == SUPPORTED and one.sign == arrow.sign]
        if kernel.scope.scope not in collectives and any(_is_same(arrow, one) for one in found):
            having.add(kernel.scope.scope)
    rest = [one for one in own if one.group not in having]
    if len(having) > 1 or (rest and _have_together(rest, pooled, direction)):
        return ""
    if not having:
        return "of all kernels only collectives have it" if collectives else ""
    (one,) = having
    return f"of the kernels that are no collectives {name_in_sentence(names.get(one, one))} alone has it"


def _error(one: GroupSlope) -> float:
    """Return the standard error behind the 90 % interval of a slope."""
    return (one.slope.high - one.slope.low) / (2 * NORMAL_QUANTILE)


def _have_together(slopes: Sequence[GroupSlope], pooled: GroupSlope, direction: int) -> bool:
    """Tell whether slopes, pooled by their inverse variances, have a direction, and either an interval without zero or
    half the size of the slope of all: of what is not clear in any one kernel there may be much in all.
    """
    weights = [_error(one) ** -2 for one in slopes]
    total = math.fsum(weights)
    slope = direction * math.fsum(weight * one.slope.value for weight, one in zip(weights, slopes, strict=True)) / total
    return slope > NORMAL_QUANTILE * total**-0.5 or slope >= HALF * abs(pooled.slope.value)


def _cost(arrow: Arrow) -> float | None:
    """Return the GPU time that a cause costs, ns; None where its change of the mean is unclear or no time."""
    effect = arrow.in_time
    if effect is None or effect.cost is None or effect.mean.low <= 0 <= effect.mean.high:
        return None
    return effect.cost.value


def _is_same(one: Arrow, other: Arrow) -> bool:
    """Tell whether a cause is one feature with another, or cannot be told from it. Of all kernels together the number
    of launches in flight stands for which kernel is; and the size of one input for that of all, or the other way round,
    as in a kernel that has a single input both are one.
    """
    named, found = ({SAME_MEMBERS.get(name, name) for name in arrow.node.members} for arrow in (one, other))
    sizes = any(first & {*TOTAL_SIZES} and second & INPUT_SIZES for first, second in ((named, found), (found, named)))
    return bool(named & found) or sizes


def _resting_on(row: WhatIf, weak: Mapping[str, str]) -> WhatIf:
    """Return a what-if, as inconclusive if it rests on a cause that the kernels do not bear out."""
    if row.verdict != SUPPORTED or not set(weak) & set(row.causes):
        return row
    return replace(row, verdict=INCONCLUSIVE, reason="the cause itself is not supported")
