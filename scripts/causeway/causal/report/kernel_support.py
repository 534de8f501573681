"""Causes of a whole dataset that its kernels do not bear out.

The search over all kernels asks whether a feature moves with the time in most of them. One that stands for another
cause in a single kernel with most of the variability passes that test: where a kernel takes twice as long after a
certain other one, idle times and waits in the queue before it differ as well. The search of that kernel alone knows
what was launched before and names it. So a cause of the whole dataset is inconclusive where most of what the kernels
have of the variability lies in kernels whose own search named causes, but not this one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from causeway.causal.data.outcome import Arrow, Outcome, WhatIf
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED

BORNE_OUT = 0.5
"""Least share of the variability, of kernels with causes of their own, in kernels that have the dataset's cause."""


def borne_out(whole: Outcome, kernels: Sequence[Outcome], shares: Mapping[str, float]) -> Outcome:
    """Return the outcome of a whole dataset, its supported causes as inconclusive where the kernels name others.

    Parameters
    ----------
    whole : Outcome
    kernels : sequence of Outcome
        All corrected for their number.
    shares : mapping of str to float
        Of each kernel, by its id, the share of the dataset's variability, 0 .. 1.
    """
    answered = {
        one.scope.scope: [arrow for arrow in one.arrows if arrow.verdict == SUPPORTED]
        for one in kernels
        if any(arrow.verdict == SUPPORTED for arrow in one.arrows)
    }
    total = math.fsum(shares[kernel] for kernel in answered)
    weak = {}
    for arrow in whole.arrows:
        if arrow.verdict != SUPPORTED or total <= 0:
            continue
        others = [kernel for kernel, own in answered.items() if not any(_same(arrow, one) for one in own)]
        share = math.fsum(shares[kernel] for kernel in others) / total
        if share > 1 - BORNE_OUT:
            weak[arrow.name] = _reason(100 * share, [answered[kernel][0].name for kernel in others])
    arrows = tuple(
        replace(arrow, verdict=INCONCLUSIVE, weakness=weak[arrow.name]) if arrow.name in weak else arrow
        for arrow in whole.arrows
    )
    what_ifs = tuple(_resting_on(row, weak) for row in whole.examination.what_ifs)
    return replace(whole, arrows=arrows, examination=replace(whole.examination, what_ifs=what_ifs))


def _same(one: Arrow, other: Arrow) -> bool:
    """Tell whether two causes are one feature, or cannot be told from one another."""
    return bool(set(one.node.members) & set(other.node.members))


def _reason(percent: float, named: Sequence[str]) -> str:
    others = " and ".join(list(dict.fromkeys(named))[:2])
    return f"kernels with {percent:.0f} % of the variability have other causes when searched alone ({others})"


def _resting_on(row: WhatIf, weak: Mapping[str, str]) -> WhatIf:
    """Return a what-if, as inconclusive if it rests on a cause that the kernels do not bear out."""
    if row.verdict != SUPPORTED or not set(weak) & set(row.causes):
        return row
    return replace(row, verdict=INCONCLUSIVE, reason="the cause itself is not supported")
