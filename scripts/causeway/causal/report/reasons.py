"""Why a graph is as it is, in sentences: its reasons, and those of the columns that are not in it."""

from collections.abc import Sequence

from causeway.causal.data.feature_names import ABOUT
from causeway.causal.data.outcome import GroupSlope, Outcome
from causeway.causal.data.scopes import NOT_SEARCHED
from causeway.causal.report.sentences import nothing_found, samples_in_words
from causeway.causal.selection.forward import FEW_ROWS

COLLECTIVE = "the time of a collective includes waiting for the last rank: no GPU time is said to be won here"
"""Reason of the graph of a collective with causes."""


def nothing_sentence(outcome: Outcome) -> str:
    """Return the sentence of a graph without a cause."""
    if outcome.refusal is not None:
        return f"Inconclusive: {outcome.refusal}."
    lost = [one for one in outcome.dropped if one.was_found]
    words = nothing_found(
        outcome.n_effective,
        outcome.detectable_share or 0.0,
        outcome.scope.target,
        lost,
        outcome.slow,
        outcome.n_kernels,
        outcome.beyond,
    )
    if any(one.reason == NOT_SEARCHED for one in outcome.dropped):
        return f"{words.removesuffix('.')}; counters were recorded and not searched."
    return words


def reasons_of(outcome: Outcome, contradictions: Sequence[str] = ()) -> list[str]:
    """Return the reasons of a graph: why there is no cause, what to be careful with, what could not be computed, and
    where causes act in opposite ways.

    Parameters
    ----------
    outcome : Outcome
    contradictions : sequence of str
        Where a kernel and the whole dataset disagree.
    """
    reasons = []
    if outcome.refusal is not None:
        reasons.append(outcome.refusal)
    else:
        if not outcome.arrows:
            reasons.append(nothing_sentence(outcome).rstrip("."))
        if outcome.n_effective < FEW_ROWS:
            few = f"fewer than {FEW_ROWS:.0f}"
            size = f"{samples_in_words(outcome.n_effective)}, {few}" if outcome.arrows else f"{few} effective samples"
            reasons.append(f"{size}: read with care")  # without a cause the first reason has the number
        if outcome.arrows and outcome.scope.is_collective:
            reasons.append(COLLECTIVE)
    opposite = [one for one in outcome.examination.slopes if one.label == "opposite"]
    contrasts = [_contrast(one, outcome) for one in opposite]
    return [*reasons, *outcome.notes, *outcome.examination.failures, *contrasts, *contradictions]


def _contrast(together: GroupSlope, outcome: Outcome) -> str:
    """Return where a cause acts in opposite ways."""
    own = [
        one
        for one in outcome.examination.slopes
        if (one.feature, one.by) == (together.feature, together.by) and one.group is not None
    ]
    top = max(own, key=lambda one: one.slope.value)
    bottom = min(own, key=lambda one: one.slope.value)
    level = next(arrow.level for arrow in outcome.arrows if arrow.name == together.feature)
    ends = [
        f"{word} it on {together.by} {one.group} ({one.slope.value:+.2f})"
        for word, one in (("raises", top), ("lowers", bottom))
    ]
    feature = with_level(together.feature, level)
    return f"{feature} acts in opposite ways on {ABOUT[together.slope_of]}: {' and '.join(ends)}"


def with_level(feature: str, level: str | None) -> str:
    """Return a feature, of a category with its level."""
    return f"{feature} = {level}" if level else feature
