"""What a what-if must not say of a mean: where the two ends of a cause are compared and the mean is not clearly another
at one of them, nothing is known to be saved by setting the cause to an end.

The two estimates differ in what they compare. Of skewed times the mean at the slow end rests on few launches, and so
does the change from end to end; from the launches as they were to the fast end there is no such launch to predict, and
the interval is narrow. Both are of one model, and what is said of a cause must hold whichever of them one reads.
"""

from collections.abc import Sequence
from dataclasses import replace

from causeway.causal.data.outcome import REFUSED, Arrow, Estimate, WhatIf
from causeway.causal.effects.interventions import intervention_verdict

UNCLEAR = "refused: the mean is not clearly another at one end of the cause than at the other"
"""Why a what-if of a measured target, all of whose changes are of the mean, is not answered."""


def without_unclear_costs(arrows: Sequence[Arrow]) -> tuple[Arrow, ...]:
    """Return causes without the cost of the worse of two ends where neither is known to be the worse one.

    A mean that both rises and falls may be the same at both ends: their cost is then that of both.
    """
    return tuple(
        replace(arrow, in_time=replace(arrow.in_time, cost=None))
        if arrow.in_time is not None and _unclear(arrow) and arrow.in_time.monotone
        else arrow
        for arrow in arrows
    )


def without_unclear_means(rows: Sequence[WhatIf], arrows: Sequence[Arrow], is_deviation: bool) -> list[WhatIf]:
    """Return built-in what-ifs without the mean, the 99th percentile and the time saved where setting a cause is the
    change whose mean is not clear.

    Parameters
    ----------
    rows : sequence of WhatIf
    arrows : sequence of Arrow
        With their effects in time.
    is_deviation : bool
        The target is a deviation, of which a change may be clear all the same; else it is the measured value itself,
        and the what-if is refused.
    """
    unclear = {arrow.name: arrow for arrow in arrows if _unclear(arrow)}
    found = []
    for row in rows:
        arrow = unclear.get(row.features[0])
        if arrow is None or row.change is None or row.user_intervention or not _same_change(row.after[0], arrow):
            found.append(row)
            continue
        without = replace(row, mean_change=None, p99_change=None, saved=None)
        if is_deviation:
            verdict, reason = intervention_verdict([arrow], row.change.low, row.change.high)
            found.append(replace(without, verdict=verdict, reason=reason))
        else:
            found.append(replace(without, change=None, verdict=REFUSED, reason=UNCLEAR))
    return found


def _unclear(arrow: Arrow) -> bool:
    """Tell whether the change of the mean between the ends of a cause is known, and its interval holds none."""
    return arrow.in_time is not None and _holds_none(arrow.in_time.mean)


def _holds_none(change: Estimate) -> bool:
    return change.low <= 0 <= change.high


def _same_change(after: str, arrow: Arrow) -> bool:
    """Tell whether setting a cause to a value is the change that was compared: from one of its ends to the other.

    The median is none, where the mean both rises and falls: it may take less time than both ends.
    """
    return (arrow.in_time is not None and arrow.in_time.monotone) or "median" not in after
