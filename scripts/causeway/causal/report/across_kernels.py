"""Correction for the number of kernels: which causes are significant after many kernels were looked at.

Kernels are searched in batches that do not know each other. Each search leaves its uncorrected outcome; here all
outcomes of a dataset and target come together. Of the kernels, those are selected whose Simes p-values pass Benjamini
and Hochberg's procedure at 5 %, and within them the causes that pass at the level that is left to them. This is decided
on the outcomes, before anything is written.

Causes of the whole dataset must be borne out by its kernels. The search over all kernels asks whether a feature moves
with the time in most of them, each in its own standard deviations. So it is inconclusive

- where a feature stands for another cause in a single kernel with much of the time: the kernels, searched alone, lose
  much less to it than is said of all of them together;
- where it moves some kernels by a thousandth of their time: all others were searched as well, would have shown such a
  share of the variability, and do not;
- where of the kernels with a tenth of the time each fewer than two have it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_names import INPUT_SIZES, KERNEL_IN_FLIGHT, TOTAL_SIZES
from causeway.causal.data.observations import Drop, Dropped
from causeway.causal.data.outcome import (
    CONFIGURATION,
    REFUSED,
    Arrow,
    Estimate,
    Examination,
    Outcome,
    WhatIf,
    six_digits,
    to_six_digits,
)
from causeway.causal.discovery.arrows import PASSING
from causeway.causal.selection.linear_model import SIGNIFICANT, benjamini_bogomolov
from causeway.core.feature_registry import MISSING_VALUES
from causeway.core.formatting import name_in_sentence
from causeway.core.vocabulary import (
    FRAGILE_BELOW,
    INCONCLUSIVE,
    LEAST_EXPLAINED,
    LOWERS,
    NEGLIGIBLE,
    RAISES,
    REFUTED,
    SUPPORTED,
)

SAME_MEMBERS = {KERNEL_IN_FLIGHT: "launches_in_flight"}
"""What a feature of one kernel is called among several."""
MOST = 0.5
"""Part of the variability in the kernels that were searched, of a cost, or of a share, from which kernels bear it out.
"""
LARGE = 0.1
"""Share of the time of all kernels but collectives from which a kernel has a say in what is said of all kernels."""
FRAGILE = "a moderate unmeasured common cause could explain it, and its share of the variance may be below 1 %"
PASSING_TIME = "it stands for anything that changes along the run, and a moderate cause of that could explain it"
TRIFLE = f"it changes the time by less than {NEGLIGIBLE} %"
UNKNOWN_SIZE = "neither a change of the mean or the spread nor a share of the variance can be told from zero"
"""Why a cause is not supported that was found, but of which nothing is known that one could act upon."""


def borne_out(
    whole: Outcome,
    kernels: Sequence[Outcome],
    shares: Mapping[str, float],
    time: Mapping[str, float],
    names: Mapping[str, str] | None = None,
) -> Outcome:
    """Return the outcome of a whole dataset, its supported causes as inconclusive where its kernels do not lose what
    they are said to cost, or where fewer than two kernels with much of the time have them.

    Parameters
    ----------
    whole : Outcome
    kernels : sequence of Outcome
        All corrected for their number.
    shares : mapping of str to float
        Of each kernel, by its id, the share of the dataset's variability, 0 .. 1.
    time : mapping of str to float
        Of the kernels that are no collectives, whose time includes waiting, by their ids the sum of the values.
    names : mapping of str to str or None
        Of kernels, by their ids; None: ids stand for them.
    """
    answered = [kernel for kernel in kernels if kernel.refusal is None]
    are_most = math.fsum(shares[kernel.scope.scope] for kernel in answered) >= MOST
    weak = {}
    for arrow in whole.arrows:
        if arrow.verdict != SUPPORTED:
            continue
        weakness = ""
        if are_most:
            weakness = _of_cost(arrow, answered) or _of_variability(arrow, answered, shares)
        weakness = weakness or _of_one_kernel(arrow, kernels, time, names or {})
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
        return six_digits(min(100.0 * math.fsum(shares[kernel] for kernel in kernels), 100.0))

    arrows = tuple(replace(arrow, kernels_variance=percent(arrow.kernels)) for arrow in whole.arrows)
    return replace(whole, arrows=arrows)


def _of_cost(arrow: Arrow, answered: Sequence[Outcome]) -> str:
    """Return that the kernels lose too little to a cause; empty if they do not, or its cost is not known."""
    cost = _cost(arrow)
    if cost is None or not cost > 0:
        return ""
    causes = [
        cause for kernel in answered for cause in kernel.arrows if cause.verdict == SUPPORTED and _is_same(arrow, cause)
    ]
    part = math.fsum(max(_cost(cause) or 0.0, 0.0) for cause in causes) / cost
    said = f"the kernels that have it when searched alone lose {100 * part:.0f} % of what it is said to cost"
    return said if part < MOST else ""


def _of_variability(arrow: Arrow, answered: Sequence[Outcome], shares: Mapping[str, float]) -> str:
    """Return that the kernels that may have a cause vary too little; empty if they do not."""
    share = arrow.variance.value / 100

    def lacks(kernel: Outcome) -> bool:
        has = any(cause.verdict != REFUTED and _is_same(arrow, cause) for cause in kernel.arrows)
        unseen = set(kernel.slow) & set(arrow.node.members)
        return not has and not unseen and kernel.detectable_share is not None and kernel.detectable_share < share

    left = max(1.0 - math.fsum(shares[kernel.scope.scope] for kernel in answered if lacks(kernel)), 0.0)
    said = f"the kernels that may have it make up {100 * left:.2g} % of the variability"
    return said if left < MOST * share else ""


def _of_one_kernel(
    arrow: Arrow, kernels: Sequence[Outcome], time: Mapping[str, float], names: Mapping[str, str]
) -> str:
    """Return that fewer than two of the kernels with much of the time have a cause; empty if two have it, or may: one
    that was not searched, or refused. Also where it varies in fewer than two with much of the time, or has no sign.

    A kernel has it if its own search supports it with the same sign.
    """
    large = {name for name, own in time.items() if own >= LARGE * math.fsum(time.values())}
    large &= {*arrow.kernels}
    if len(large) < 2 or arrow.sign not in (RAISES, LOWERS) or arrow.stage == CONFIGURATION:
        return ""
    searched = {kernel.scope.scope for kernel in kernels if kernel.refusal is None}
    having = {
        kernel.scope.scope
        for kernel in kernels
        for cause in kernel.arrows
        if cause.verdict == SUPPORTED and cause.sign == arrow.sign and _is_same(arrow, cause)
    }
    if len(large & having) + len(large - searched) > 1:
        return ""
    alone = "".join(large & having)
    who = f"{name_in_sentence(names.get(alone, alone))} alone" if alone else "none"
    return f"of the kernels with a tenth of the time or more {who} has it"


def _cost(arrow: Arrow) -> float | None:
    """Return the GPU time that a cause costs, ns; None where its change of the mean is unclear or no time."""
    effect = arrow.in_time
    if effect is None or effect.cost is None or effect.mean.low <= 0 <= effect.mean.high:
        return None
    return effect.cost.value


def _is_same(cause: Arrow, other: Arrow) -> bool:
    """Tell whether a cause is one feature with another, or cannot be told from it. Of all kernels together the number
    of launches in flight stands for which kernel is; and the size of one input for that of all, or the other way round,
    as in a kernel that has a single input both are one.
    """
    own, others = ({SAME_MEMBERS.get(name, name) for name in arrow.node.members} for arrow in (cause, other))
    sizes = any(first & {*TOTAL_SIZES} and second & INPUT_SIZES for first, second in ((own, others), (others, own)))
    return bool(own & others) or sizes


def _resting_on(row: WhatIf, weak: Collection[str]) -> WhatIf:
    """Return a what-if, as inconclusive if it rests on a cause that the kernels do not bear out."""
    if row.verdict != SUPPORTED or not set(weak) & set(row.causes):
        return row
    return replace(row, verdict=INCONCLUSIVE, reason="the cause itself is not supported")


def correct(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of a dataset's kernels with q-values and without the causes that are not significant.

    A cause that is not significant becomes a dropped feature, and its shares join the unexplained ones.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Uncorrected, as `examine` returns them; refusals without a p-value are returned as they are.

    References
    ----------
    Y. Benjamini, M. Bogomolov, Selective inference on multiple families of hypotheses, J. R. Stat. Soc. B 76 (2014)
    297.
    """
    tested = [outcome.p_value for outcome in outcomes if outcome.p_value is not None]
    q_values = iter(tested)
    if len(tested) > 1:
        from scipy.stats import false_discovery_control  # a second of CPU time, where it is needed

        q_values = iter(false_discovery_control(np.asarray(tested, dtype=float)))
    of_kernels = [None if outcome.p_value is None else float(next(q_values)) for outcome in outcomes]
    n_selected = sum(q is not None and q <= SIGNIFICANT for q in of_kernels)
    return [
        outcome if q is None else _corrected(outcome, q, n_selected, len(tested))
        for outcome, q in zip(outcomes, of_kernels, strict=True)
    ]


def _corrected(outcome: Outcome, q_kernel: float, n_selected: int, n_kernels: int) -> Outcome:
    """Return one outcome with its q-values; `n_selected` of `n_kernels` pass at the level of kernels."""
    arrows = []
    lost: dict[str, float] = {}
    for arrow in outcome.arrows:
        q_value = benjamini_bogomolov(arrow.p_value, n_selected, n_kernels)
        q_value = q_value if q_kernel <= SIGNIFICANT else max(q_value, q_kernel)
        corrected = replace(arrow, q_value=six_digits(q_value))
        weakness = _weakness(arrow) if arrow.verdict == SUPPORTED else ""
        if weakness:
            corrected = replace(corrected, verdict=INCONCLUSIVE, weakness=weakness)
        arrows.append(corrected)
        if q_value > SIGNIFICANT:
            lost[arrow.name] = q_value
    doubtful = {arrow.name for arrow in arrows if arrow.weakness}
    what_ifs = tuple(_resting_on(row, doubtful) for row in outcome.examination.what_ifs)
    examination = replace(outcome.examination, what_ifs=what_ifs)
    outcome = replace(outcome, q_value=six_digits(q_kernel), arrows=tuple(arrows), examination=examination)
    return _without(outcome, lost, n_kernels) if lost else outcome


def _weakness(arrow: Arrow) -> str:
    """Return why the evidence for a cause does not support it; empty if it does."""
    if arrow.determines_time:  # only its definition can tell whether it was computed from the time
        return ""
    if arrow.node.group == MISSING_VALUES:
        return "it stands for the values that are missing, or for why they are: a reading changes no time"
    if _is_of_unknown_size(arrow):
        return UNKNOWN_SIZE
    if arrow.robustness < FRAGILE_BELOW and arrow.role in PASSING:
        return PASSING_TIME
    if arrow.robustness < FRAGILE_BELOW and arrow.variance.low < LEAST_EXPLAINED:
        return FRAGILE
    return TRIFLE if _is_trifle(arrow) else ""


def _is_trifle(arrow: Arrow) -> bool:
    """Tell whether the changes of the mean and of the 99th percentile are surely too small to act upon."""
    if arrow.in_time is None:
        return False
    changes = (arrow.in_time.mean, arrow.in_time.p99)
    return all(max(abs(change.low), abs(change.high)) < NEGLIGIBLE for change in changes if change is not None)


def _is_of_unknown_size(arrow: Arrow) -> bool:
    """Tell whether the intervals of all that is said of a cause's size hold zero: its changes of the mean and of the
    spread of the durations, and its shares; of a cause in too few launches its shares alone. Never of one that was
    found between configurations, which changes no mean.
    """
    if arrow.stage == CONFIGURATION:
        return False
    changes = () if arrow.in_time is None else (arrow.in_time.mean, arrow.in_time.spread)
    return all(size.low <= 0 <= size.high for size in (*changes, arrow.contribution, arrow.variance))


def _without(outcome: Outcome, lost: Mapping[str, float], n_kernels: int) -> Outcome:
    """Return an outcome without the causes that are not significant, given with their q-values."""
    arrows = tuple(arrow for arrow in outcome.arrows if arrow.name not in lost)
    given = [arrow for arrow in outcome.arrows if arrow.name in lost]
    dropped = [
        Dropped(name, f"candidate cause, not significant after {n_kernels} kernels (q = {q_value:.2g})", Drop.REFUSED)
        for name, q_value in lost.items()
    ]
    examination = outcome.examination
    return replace(
        outcome,
        arrows=arrows,
        unexplained=_with_shares(outcome.unexplained, [arrow.contribution for arrow in given]),
        unexplained_variance=_with_shares(outcome.unexplained_variance, [arrow.variance for arrow in given]),
        dropped=tuple(sorted([*outcome.dropped, *dropped], key=lambda column: column.feature)),
        examination=Examination(
            context_nodes=examination.context_nodes if arrows else (),
            context_edges=examination.context_edges if arrows else (),
            refutations=tuple(attempt for attempt in examination.refutations if attempt.feature not in lost),
            what_ifs=_significant_what_ifs(examination.what_ifs, lost, n_kernels),
            failures=examination.failures,
        ),
    )


def _with_shares(unexplained: Estimate | None, given: Sequence[Estimate]) -> Estimate:
    """Return an unexplained share with the shares of some causes, percent."""
    parts = [*given, unexplained] if unexplained else given
    value, low, high = (min(100.0, math.fsum(getattr(part, end) for part in parts)) for end in ("value", "low", "high"))
    return to_six_digits(Estimate(value=value, low=low, high=high))


def _significant_what_ifs(what_ifs: Sequence[WhatIf], lost: Mapping[str, float], n_kernels: int) -> tuple[WhatIf, ...]:
    """Return the built-in what-ifs of significant causes, and the user-specified ones, refused where they rest on a
    cause that is not significant.
    """
    rows = []
    for row in what_ifs:
        broken = next((name for name in row.causes if name in lost), None)
        if broken is None:
            rows.append(row)
        elif row.user_intervention is not None:
            reason = f"refused: {broken} is not significant after {n_kernels} kernels"
            without = replace(row, change=None, mean_change=None, p99_change=None, saved=None)
            rows.append(replace(without, verdict=REFUSED, reason=reason))
    return tuple(rows)
