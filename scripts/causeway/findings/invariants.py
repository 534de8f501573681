"""What must hold of every statement: checked when statements are written; one that breaks an invariant is not written,
but counted.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from causeway.core.feature_registry import record_of
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.logs import LOG
from causeway.core.vocabulary import KERNEL_VARIABILITY, LEAST_EXPLAINED, MEMORY_STALL, NEGLIGIBLE, STEP_TIME
from causeway.core.vocabulary import LOWERS as LOWERING
from causeway.core.vocabulary import RAISES as RAISING
from causeway.findings.headlines import MOST_WORDS, word_count
from causeway.findings.record import (
    DIRECTIONS,
    EXPLAINED,
    LOWERS,
    NOT_MONOTONE,
    RAISES,
    SETTABLE,
    Effect,
    Finding,
    Worth,
    may_advise,
)
from causeway.findings.suggestions import CAUSES, COLLECTIVE, LESS_IS_BETTER

LEAST_COST = 0.001
"""Share of the dataset's GPU time below which a cost is not worth stating: a tenth of the share from which it is a
finding among the first (chosen; not measured).
"""
LEAST_SPREAD = 5.0
"""Percent of the standard deviation, below which a change of it alone is not worth stating: with 400 effective launches
a standard deviation is known to 1.645 / sqrt(2 x 400) = 6 % (normal approximation, 90 %).
"""
ROUNDING = 0.01
"""Percent by which a sum of shares, each of six digits, may exceed 100."""
DEFINITION = {MEMORY_STALL: frozenset({"transfer_bytes", "transfer_copy_kind"})}
"""Features that a target is computed from, by target: |launch - transfer| has the transfer's size and kind in it."""
SHARE_OF_TIME = "percent of the GPU time"
"""Unit of losses, which exclude one another."""
TARGET_NEEDS = {KERNEL_VARIABILITY: KERNEL_VARIABILITY, MEMORY_STALL: MEMORY_STALL, STEP_TIME: "time_line"}
"""Analyses without which nothing is said of a target; of any other, the deviation of counters."""
SECONDARY = ("p99", "spread", "explained")
"""Estimates beside the main one: a wrong one is left out of the statement, which stays."""


@dataclass(frozen=True, kw_only=True)
class CheckBasis:
    """What statements are checked against.

    Attributes
    ----------
    gpu_ns : mapping of str to int
        GPU time by dataset, ns; without one that is not known.
    impossible : mapping of str to frozenset of str
        Analyses by dataset that a filter, a missing table or a short capture rules out.
    """

    gpu_ns: Mapping[str, float] = field(default_factory=dict)
    impossible: Mapping[str, frozenset[str]] = field(default_factory=dict)


def _ends(estimate: Effect | Worth) -> tuple[float, float | None, float | None]:
    value = estimate.ns if isinstance(estimate, Worth) else estimate.value
    return value, estimate.low, estimate.high


def _is_broken(estimate: Effect | Worth | None) -> bool:
    """Return whether an estimate lies outside its interval, or has half of one, or one that is clipped at it.

    An interval without any width is that of an exact number.
    """
    if estimate is None:
        return False
    value, low, high = _ends(estimate)
    if (low is None) != (high is None) or not all(math.isfinite(end) for end in (value, low, high) if end is not None):
        return True
    return low is not None and high is not None and not low < value < high and not low == value == high


def estimate_outside_interval(finding: Finding, basis: CheckBasis) -> bool:
    """The main estimate or what the statement is worth is outside of its interval, or is where that is clipped."""
    return _is_broken(finding.effect) or _is_broken(finding.worth)


def _is_clear(effect: Effect) -> bool:
    """Tell whether an interval leaves zero out."""
    return effect.low is not None and effect.high is not None and not effect.low <= 0 <= effect.high


def direction_contradicts(finding: Finding, basis: CheckBasis) -> bool:
    """The direction is not that of the change, of the sign, or of a curve that is not monotone."""
    if finding.kind != "cause":
        return False
    if finding.direction not in DIRECTIONS:
        return True
    if finding.monotone is False or finding.direction == NOT_MONOTONE:
        says = any(f" {verb} " in finding.headline for verb in ("rises", "falls"))
        return says or finding.monotone is not False or finding.direction != NOT_MONOTONE
    stated = {RAISES: 1, LOWERS: -1}.get(finding.direction, 0)
    is_change = finding.quantity != EXPLAINED
    if is_change and stated and finding.effect and stated * finding.effect.value <= 0:
        return True
    signed = {RAISING: 1, LOWERING: -1}.get(finding.sign or "", 0)
    return is_change and finding.sign_of == "value" and signed * stated < 0


def advice_without_gain(finding: Finding, basis: CheckBasis) -> bool:
    """Something is advised that wins neither time nor spread, or less of a cause that does not take longer; where to
    look for what a collective waits for is no such advice.
    """
    if finding.kind != "cause" or finding.suggestion in (None, COLLECTIVE):
        return False
    is_less = finding.suggestion in {CAUSES[key] for key in LESS_IS_BETTER}
    return not may_advise(finding) or (is_less and finding.direction != RAISES)


def lever_not_settable(finding: Finding, basis: CheckBasis) -> bool:
    """A lever is named that one cannot set."""
    if finding.lever is None:
        return False
    record = record_of(finding.key)
    return finding.role not in SETTABLE or not record.is_lever or record.is_control


def part_of_definition(finding: Finding, basis: CheckBasis) -> bool:
    """A cause is what its target is computed from."""
    return finding.kind == "cause" and finding.key in DEFINITION.get(finding.target or "", ())


def too_small(finding: Finding, basis: CheckBasis) -> bool:
    """The statement is about less than is worth stating: see `NEGLIGIBLE`, `LEAST_COST` and `LEAST_SPREAD`."""
    gpu_ns = basis.gpu_ns.get(finding.dataset)
    share = finding.worth.ns / gpu_ns if finding.worth is not None and gpu_ns else None
    if finding.kind == "cause" and share is not None and finding.recoverable_ns is not None and share < LEAST_COST:
        return True
    if FINDING_KINDS[finding.kind].is_of_time:
        return share is not None and share < LEAST_COST
    if finding.kind != "cause" or finding.effect is None:
        return False
    if finding.quantity == EXPLAINED:
        return finding.effect.value < LEAST_EXPLAINED
    spread = finding.spread
    is_steadier = spread is not None and _is_clear(spread) and abs(spread.value) >= LEAST_SPREAD
    return abs(finding.effect.value) < NEGLIGIBLE and (share or 0.0) < LEAST_COST and not is_steadier


def share_exceeds_kernels(finding: Finding, basis: CheckBasis) -> bool:
    """A cause explains more of the variance of all kernels, each alike, than those are of all in which it varies."""
    share = finding.explained
    return (
        share is not None and finding.kernels_percent is not None and share.value > finding.kernels_percent + ROUNDING
    )


def falls_by_more_than_all(finding: Finding, basis: CheckBasis) -> bool:
    """A time falls by more than all of it, or may."""
    is_change = finding.kind == "cause" and finding.is_time and finding.effect is not None
    return is_change and any(_ends_below_nothing(change) for change in (finding.effect, finding.p99, finding.spread))


def _ends_below_nothing(change: Effect | None) -> bool:
    return (
        change is not None and min(change.value, change.value if change.low is None else change.low) < -100 - ROUNDING
    )


def ruled_out(finding: Finding, basis: CheckBasis) -> bool:
    """The statement needs what a filter, a missing table or a short capture rules out."""
    impossible = basis.impossible.get(finding.dataset, frozenset())
    needed = set(FINDING_KINDS[finding.kind].needs)
    if finding.target is not None:
        needed.add(TARGET_NEEDS.get(finding.target, "counter_deviation"))
    record = record_of(finding.key) if finding.kind == "cause" else None
    if record is not None and record.table:
        needed.add("context_features")
    return bool(needed & impossible)


def headline_unreadable(finding: Finding, basis: CheckBasis) -> bool:
    """The headline is empty or longer than `MOST_WORDS`."""
    return not 0 < word_count(finding.headline, finding.subject) <= MOST_WORDS


INVARIANTS: tuple[Callable[[Finding, CheckBasis], bool], ...] = (
    ruled_out,
    part_of_definition,
    estimate_outside_interval,
    direction_contradicts,
    advice_without_gain,
    lever_not_settable,
    share_exceeds_kernels,
    falls_by_more_than_all,
    too_small,
    headline_unreadable,
)
"""What each statement must hold by itself, in the order in which a statement is counted under the first."""
SHARES = "shares_exceed_the_whole"
SAME = "same_statement"
SECOND = "secondary_estimate"
"""Names of the other counts: shares that exclude one another and exceed 100 %, statements that repeat an earlier one,
estimates beside the main one that were left out.
"""


def checked(findings: Iterable[Finding], basis: CheckBasis) -> tuple[list[Finding], dict[str, int]]:
    """Return the statements that hold, in their order, and how many do not by the invariant that they break.

    Parameters
    ----------
    findings : iterable of Finding
        In the order of the document: of two that say the same the first stays.
    basis : CheckBasis
    """
    dropped: Counter[str] = Counter()
    kept = []
    for finding in findings:
        broken = next((invariant.__name__ for invariant in INVARIANTS if invariant(finding, basis)), None)
        if broken is None:
            kept.append(finding)
        else:
            _drop(finding, broken, dropped)
    kept = _within_the_whole([_without_broken(finding, dropped) for finding in kept], dropped)
    return _once(kept, dropped), dict(sorted(dropped.items()))


def _drop(finding: Finding, invariant: str, dropped: Counter[str]) -> None:
    dropped[invariant] += 1
    LOG.warning("not stated, %s: %s", invariant.replace("_", " "), finding.id)


def _without_broken(finding: Finding, dropped: Counter[str]) -> Finding:
    """Return a statement without the estimates beside the main one that are outside their interval."""
    broken = [name for name in SECONDARY if _is_broken(getattr(finding, name))]
    for _ in broken:
        _drop(finding, SECOND, dropped)
    nothing: dict[str, Any] = dict.fromkeys(broken)
    return replace(finding, **nothing) if broken else finding


def _within_the_whole(findings: Sequence[Finding], dropped: Counter[str]) -> list[Finding]:
    """Return the statements without the losses of a dataset, and the explained variances of a search, that exceed
    100 % in sum.

    The shares of the variance of the measured value are one whole like the contributions: with the unexplained rest
    each sums to 100.
    """
    lost: dict[str, float] = defaultdict(float)
    explained: dict[tuple[Any, ...], float] = defaultdict(float)
    for finding in findings:
        if finding.effect is not None and finding.effect.unit == SHARE_OF_TIME:
            lost[finding.dataset] += finding.effect.value
        if finding.explained is not None:
            explained[finding.dataset, finding.target, finding.scope] += finding.explained.value
    kept = []
    for finding in findings:
        is_loss = (
            finding.effect is not None
            and finding.effect.unit == SHARE_OF_TIME
            and lost[finding.dataset] > 100 + ROUNDING
        )
        is_too_much = (
            explained[finding.dataset, finding.target, finding.scope] > 100 + ROUNDING and finding.explained is not None
        )
        if is_loss or (is_too_much and finding.quantity == EXPLAINED):
            _drop(finding, SHARES, dropped)
        elif is_too_much:
            _drop(finding, SECOND, dropped)
            kept.append(replace(finding, explained=None))
        else:
            kept.append(finding)
    return kept


def _once(findings: Sequence[Finding], dropped: Counter[str]) -> list[Finding]:
    """Return the statements without those whose headline, in the same dataset, has been said."""
    said: set[tuple[str, str]] = set()
    kept = []
    for finding in findings:
        if (finding.dataset, finding.headline) in said:
            _drop(finding, SAME, dropped)
        else:
            said.add((finding.dataset, finding.headline))
            kept.append(finding)
    return kept
