"""Sentences: each cause in words, with its numbers and the assumption it rests on.

Likewise why a graph is as it is: its reasons, and those of the columns that are not in it.
"""

from causeway.causal.data.feature_names import called, capital
from causeway.causal.data.observations import Drop
from causeway.causal.data.outcome import VALUE, Arrow, Association, Ends, Estimate, Node, Outcome, Scope, WhatIf
from causeway.causal.effects.interventions import NONE
from causeway.causal.examination.falsification import FUTURE
from causeway.causal.selection.linear_model import FEW_ROWS
from causeway.core.feature_registry import record_of
from causeway.core.formatting import (
    count,
    counted,
    elided,
    percent,
    ratio,
    significant,
    time,
    variance_of,
    whole_percent,
)
from causeway.core.vocabulary import FRAGILE_BELOW, KERNEL_VARIABILITY, MEMORY_STALL, NEGLIGIBLE, REFUTED, SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW, shown_below

RAISE = {
    "+": ("raise", "raises"),
    "-": ("lower", "lowers"),
    "?": ("change", "changes"),
}
MAKE = ("make", "makes")
MOVED = {"+": "slower", "-": "faster"}
VARIED = {"+": "more", "-": "less"}
"""Verbs for many and for one; the words for what a launch's run time does, and for how much a measured value varies."""
ASSUMPTION = "if no unmeasured common cause"
COUNTER = "counter"
"""Tier of columns that are read when a launch has ended: what was measured may have acted on them."""
MEASURED = {KERNEL_VARIABILITY: "the duration", MEMORY_STALL: "the memory stall"}
SPREAD_OF = {KERNEL_VARIABILITY: "the durations", MEMORY_STALL: "the memory stall"}
"""What a column may be an effect of, and what has a spread; of other targets they themselves."""
FEW = "too few effective samples behind it"
DEVIATIONS = {KERNEL_VARIABILITY: "its deviation", MEMORY_STALL: "its memory stall"}
AMOUNTS = {MEMORY_STALL: "the mean memory stall"}
"""Targets that are measured; of all others the deviation is."""
QUANTITIES = {KERNEL_VARIABILITY: "the mean duration", MEMORY_STALL: "the mean memory stall"}
"""What a cause changes; of other targets their mean."""
TWICE = 2.0
"""Ratio of two means from which it is said."""
LONGEST_COMPARED = 60
"""Characters of the level that a cause is compared with."""
OF_ALL = " of that of all launches"
"""What a difference between two settings of a cause is a percentage of: neither setting's own mean or spread is."""
MOSTLY_RECORDED = 0.95
"""Share of the launches below which it is said in how many a cause was recorded."""
MOST_SLOWER = 2
"""So many groups of levels between the slowest and the fastest are named."""
MOST_NAMED = 3
"""So many columns are named of which an effect need not have been seen; of more, their number."""


def what_varies(target: str) -> str:
    """Return the words for a target."""
    return DEVIATIONS.get(target, f"the deviation of {target}")


def sentences_of(outcome: Outcome) -> dict[str, str]:
    """Return the sentence of each cause by its name, in the order of the arrows."""
    assumption = assumption_of(outcome)
    return {
        arrow.name: cause_sentence(
            arrow,
            outcome.scope,
            _weakness(arrow, outcome),
            _setting(arrow, outcome),
            assumption,
            n_kernels=outcome.n_kernels,
        )
        for arrow in outcome.arrows
    }


def assumption_of(outcome: Outcome) -> str:
    """Return what the causes of a scope rest on. Where a counter is among them, it must not be an effect of what was
    measured: given a common effect, what has nothing to do with the target goes with it. What is known when a launch
    begins is no effect of it.
    """
    if all(arrow.node.tier != COUNTER for arrow in outcome.arrows):
        return ASSUMPTION
    target = outcome.scope.target
    return f"{ASSUMPTION} and no column is an effect of {MEASURED.get(target, target)}"


def _weakness(arrow: Arrow, outcome: Outcome) -> str:
    """Return the reason of a verdict other than supported."""
    if arrow.weakness:
        return arrow.weakness
    return f"it does not survive {FUTURE.replace('_', ' ')}" if arrow.verdict == REFUTED else FEW


def _setting(arrow: Arrow, outcome: Outcome) -> WhatIf | None:
    """Return the built-in what-if that a cause's sentence states: with none in flight if there is one, else the first;
    None if all are refused.
    """
    own = [
        row
        for row in outcome.examination.what_ifs
        if row.features == (arrow.name,) and row.change is not None and row.user_intervention is None
    ]
    return next((row for row in own if row.after == (NONE,)), own[0] if own else None)


def cause_sentence(
    arrow: Arrow,
    scope: Scope,
    why: str = FEW,
    setting: WhatIf | None = None,
    assumption: str = ASSUMPTION,
    *,
    n_kernels: int = 1,
) -> str:
    """Return short sentences on one cause: what it does or what setting it would change, its share of the variance of
    the measured value, and what supports this.

    Parameters
    ----------
    arrow : Arrow
    scope : Scope
        Its target is named; of a collective no time is saved.
    why : str
        The reason of a verdict other than supported.
    setting : WhatIf or None
        What setting the cause would change, with a `change`.
    assumption : str
        As of `assumption_of`.
    n_kernels : int
        Kernels of the scope.
    """
    node = arrow.node
    subject = _subject(node, arrow.level)
    others = len(node.members) - 1
    if others:
        other = "the column that moves" if others == 1 else f"one of the {others} columns that move"
        subject += f" (or {other} with it)"
    target = scope.target
    acts = _acts(arrow, target, subject) + (f", through {arrow.through}" if arrow.through else "")
    # of the value, not of its absolute deviation: whoever reads of a variance takes it for that of what is measured
    share = arrow.variance
    explains = f"This explains {percent(share.value, share.low, share.high)} of {variance_of(target, n_kernels > 1)}."
    backed = [*([] if arrow.through else [explains, *_part_of_dataset(arrow, target, n_kernels)]), _backing(arrow, why)]
    if setting is None:
        return " ".join([f"{acts}, {assumption}.", *backed])
    leads = arrow.in_time is None and setting.change is not None and not unclear(setting.change)
    condition = assumption if leads else ""
    change = what_if_sentence(setting, target, node.group, is_collective=scope.is_collective, assumption=condition)
    # the verdict is the cause's: what setting it would change has one of its own
    return " ".join([change, f"{acts}.", *backed] if leads else [f"{acts}, {assumption}.", *backed, change])


def _part_of_dataset(arrow: Arrow, target: str, n_kernels: int) -> list[str]:
    """Return in which part of the kernels a cause varies, and what these have of the dataset's variance, as a sentence;
    none where it varies in all.
    """
    if len(arrow.kernels) in (0, n_kernels):
        return []
    unit = "ns²" if target in MEASURED else f"{target} squared"
    part = (
        "" if arrow.kernels_variance is None else f", with {percent(arrow.kernels_variance)} of the variance in {unit}"
    )
    return [f"It varies in {len(arrow.kernels)} of {n_kernels} kernels{part}."]


def _acts(arrow: Arrow, target: str, subject: str) -> str:
    """Return what a cause does: to the duration where that is known, else which way it moves the target."""
    effect = arrow.in_time
    if effect is None:
        return f"{subject} {_does(arrow, target)}"
    singular = bool(arrow.levels)
    quantity = quantity_of(target)
    of_levels = _compared(arrow.node, effect.ends, target) if arrow.levels and effect.ends else ""
    range_of = of_levels or _between(effect.ends, target)
    if effect.recorded < MOSTLY_RECORDED:
        range_of += f", recorded in {100 * effect.recorded:.0f} % of the launches"
    of_mean, of_spread = ("" if name in effect.of_first else OF_ALL for name in ("mean", "spread"))
    if is_clear(effect.mean):
        sign = "+" if effect.mean.value > 0 else "-"
        bend = "" if effect.monotone else ", though not at all of its levels"
        return f"{subject} {RAISE[sign][singular]} {quantity} by {_amount(effect.mean)}{of_mean}{range_of}{bend}"
    if is_clear(effect.spread):
        sign = "+" if effect.spread.value > 0 else "-"
        what = SPREAD_OF.get(target, target)
        return (
            f"{subject} {RAISE[sign][singular]} the spread of {what} by {_amount(effect.spread)}{of_spread}{range_of},"
            f" without a clear change of {quantity}"
        )
    return f"{subject} {RAISE['?'][singular]} how much launches deviate, without a clear change of {quantity}"


def _between(ends: Ends | None, target: str) -> str:
    """Return which values of a number are compared, as the end of a clause."""
    if ends is None:
        return " from their 10th to their 90th percentile"
    if ends.are_everywhere and ends.low and ends.high:
        low, high = (counted(number, "launch") for number in (ends.launches_low, ends.launches_high))
        return f" from {ends.low} ({low}) to {ends.high} ({high}){_means(ends, target)}"
    launches = f"{count(ends.launches_low)} and {count(ends.launches_high)} launches"
    if ends.are_everywhere:
        return f" from their lowest to their highest values ({launches})"
    return f" from their 10th to their 90th percentile, or lowest to highest values where these are one ({launches})"


def _compared(node: Node, ends: Ends, target: str) -> str:
    """Return what the slowest levels of a category are compared with, as the end of a clause."""
    subject = _subject(node, elided(ends.low, LONGEST_COMPARED))
    where = f", {ends.configuration}" if ends.configuration else ""
    between = [
        f"{elided(levels, LONGEST_COMPARED)}: {_value(mean, target)}" for levels, mean in ends.slower[:MOST_SLOWER]
    ]
    also = f" (also slower: {'; '.join(between)})" if between else ""
    return f" compared with {subject[0].lower()}{subject[1:]}{_means(ends, target)}{also}{where}"


def _means(ends: Ends, target: str) -> str:
    """Return the means at both ends, and their ratio where one is at least twice the other, as the end of a clause."""
    if ends.mean_low is None or ends.mean_high is None:
        return ""
    low, high = (_value(mean, target) for mean in (ends.mean_low, ends.mean_high))
    times = ends.mean_high / ends.mean_low if ends.mean_low > 0 else 0.0
    ratio_of = f", {significant(times, 2)} times" if times >= TWICE else ""
    return f": {high} instead of {low}{ratio_of}"


def _value(value: float, target: str) -> str:
    """Return a value of a target in words."""
    return time(value) if target in MEASURED else significant(value)


def quantity_of(target: str) -> str:
    """Return what a cause of a target changes, in words."""
    return QUANTITIES.get(target, f"the mean of {target}")


def is_clear(change: Estimate) -> bool:
    """Tell whether an interval leaves zero out."""
    return change.low > 0 or change.high < 0


def _amount(change: Estimate) -> str:
    """Return the size of a clear change in percent with its interval, two digits: `6.9 % [5.2, 8.6]`."""
    ends = sorted((abs(change.low), abs(change.high)))
    return f"{significant(abs(change.value), 2)} % [{significant(ends[0], 2)}, {significant(ends[1], 2)}]"


def _signed_amount(change: Estimate) -> str:
    """Return a clear change in percent with its interval, all with their signs, two digits: `-6.9 % [-8.6, -5.2]`."""
    sign = "+" if change.value > 0 else "-"
    value, low, high = (f"{sign}{significant(abs(end), 2)}" for end in (change.value, change.low, change.high))
    return f"{value} % [{low}, {high}]"


def _backing(arrow: Arrow, why: str) -> str:
    """Return verdict and robustness of an arrow as a sentence."""
    fragile = ", fragile" if arrow.robustness < FRAGILE_BELOW else ""
    verdict = arrow.verdict if arrow.verdict == SUPPORTED else f"{arrow.verdict}, {why}"
    return f"{capital(verdict)}: robustness {ratio(arrow.robustness, 1)}{fragile}."


def _subject(node: Node, level: str) -> str:
    """Return what a cause is, as the subject of a sentence: larger values, or one level of a category."""
    record = record_of(node.name, node.group)
    if record.subject and record.is_category == bool(level):
        return record.subject.format(level)
    return f"{capital(record.label)} = {level}" if level else f"Higher values of {record.label}"


def _does(arrow: Arrow, target: str) -> str:
    """Return what a cause does, to the target or to the measured value, in words."""
    singular = bool(arrow.levels)
    if arrow.sign_of == VALUE:
        if target in DEVIATIONS:
            return f"{MAKE[singular]} the launch itself {MOVED[arrow.sign]}"
        return f"{RAISE[arrow.sign][singular]} {target} itself"
    if arrow.sign == "?" or target in DEVIATIONS:
        return f"{RAISE[arrow.sign][singular]} {what_varies(target)}"
    return f"{MAKE[singular]} {target} vary {VARIED[arrow.sign]}"


def unclear(change: Estimate) -> bool:
    """Tell whether a change in percent is none of any size, or may be."""
    return (
        change.low <= 0 <= change.high
        or max(abs(change.low), abs(change.high)) < NEGLIGIBLE
        or abs(change.value) < NEGLIGIBLE
    )


def what_if_sentence(
    row: WhatIf, target: str, group: str = "", *, is_collective: bool = False, assumption: str = ASSUMPTION
) -> str:
    """Return the sentence of one what-if that was not refused; `group` is that of the feature that is set, `assumption`
    is empty where the sentence before states it. A collective that waits for less time saves none, as the last rank
    decides when it ends.
    """
    condition = f", {assumption}" if assumption else ""
    subject = _set_to(row, group)
    amount = AMOUNTS.get(target, "the mean absolute deviation")
    change = row.change or Estimate(value=0.0, low=0.0, high=0.0)
    if row.mean_change is not None and is_clear(row.mean_change):
        return f"{subject} would {_in_time(row, row.mean_change, target, is_collective)}{condition}."

    if unclear(change):
        return f"{subject}: no clear change of {amount} ({_change(change.value, change.low, change.high, True)})."
    if change.value > 0:
        others = (
            ""
            if row.user_intervention or row.after == (NONE,)
            else "; other levels that were observed would raise it more"
        )
        raised = _change(change.value, change.low, change.high)
        return f"{subject} would raise {amount} by {raised}{condition}{others}."
    return f"{subject} would cut {amount} by {_change(-change.value, -change.high, -change.low)}{condition}."


def _in_time(row: WhatIf, mean: Estimate, target: str, is_collective: bool) -> str:
    """Return what a setting does to the mean duration, to its 99th percentile and, but for a collective, to the GPU
    time, in words.
    """
    tail = row.p99_change
    words = f"{'raise' if mean.value > 0 else 'cut'} {quantity_of(target)} by {_amount(mean)}"
    if tail is not None and is_clear(tail):
        words += f" (99th percentile: {_signed_amount(tail)})"
    if row.saved is not None and not is_collective:
        saved = row.saved.value
        verb = "save" if saved > 0 else "cost"
        is_none = abs(saved) < 1  # of whole nanoseconds: what sums leave when they are rounded
        words += (
            " and save no GPU time outside collectives" if is_none else f" and {verb} {time(abs(saved))} of GPU time"
        )
    return words


def _change(value: float, low: float, high: float, signed: bool = False) -> str:
    """Return a change in percent with the ends of its interval, in whole numbers."""
    return f"{whole_percent(value, signed)} % [{whole_percent(low, signed)}, {whole_percent(high, signed)}]"


def _set_to(row: WhatIf, group: str) -> str:
    """Return what is set to what, in words."""
    if row.user_intervention:
        values = "; ".join(
            f"{called(name, group)}: {value}" for name, value in zip(row.features, row.after, strict=True)
        )
        return f"{capital(row.user_intervention)} ({values})"
    (feature,) = row.features
    (before,) = row.before
    (after,) = row.after
    record = record_of(feature, group)
    name = record.label
    if after == NONE:
        return record.at_zero or f"{capital(name)} at zero"
    if ", " in after:
        return f"In each kernel the best {name} that it was launched with ({after})"
    if "percentile" in after or "median" in after:
        return f"{capital(name)} always at {after}"
    if before.startswith("as it was"):
        return record.everywhere.format(after) if record.everywhere else f"{capital(name)} = {after}"
    return f"{record.counted or capital(name)} of {after} instead of {before}"


def samples_in_words(n_effective: float) -> str:
    """Return an effective size in words, below the limit of few ones where it is."""
    few = n_effective < FEW_ROWS
    words = shown_below(n_effective, FEW_ROWS) if few else f"{n_effective:,.0f}"
    return counted(words, "effective sample")


def _goes_along(beyond: Association, target: str, many: bool) -> str:
    """Return what goes with the target beyond single columns, as a sentence."""
    names = " and ".join(map(called, beyond.features))
    what = f"{capital(names)} one launch earlier" if beyond.is_earlier else f"{capital(names)} together"
    verb = "goes" if beyond.is_earlier else "go"
    return f"{what} {verb} with some {100 * beyond.share:.0f} % of {variance_of(target, many)}: not examined further."


COLLECTIVE = "the time of a collective includes waiting for the last rank: no GPU time is said to be won here"
"""Reason of the graph of a collective with causes."""


def nothing_sentence(outcome: Outcome) -> str:
    """Return the sentence of a graph without a cause, or only with such that a later test took away: of what was seen
    it must not be said that it would have been; nor of an effect of slow columns. What goes with the deviation beyond
    single columns is said, and that counters were not searched.
    """
    if outcome.refusal is not None:
        return f"Inconclusive: {outcome.refusal}."
    lost = [column for column in outcome.dropped if column.kind == Drop.REFUSED]
    near = [f"{called(column.feature)} ({column.reason.removeprefix('candidate cause, ')})" for column in lost]
    if near:
        words = f"No cause found that holds: {', '.join(near)}; {samples_in_words(outcome.n_effective)}."
    else:
        many = outcome.n_kernels > 1
        least = max(100 * (outcome.detectable_share or 0.0), 0.1)
        are_named = len(outcome.slow) <= MOST_NAMED
        names = ", ".join(map(called, outcome.slow)) if are_named else f"{len(outcome.slow)} columns"
        but = f", but not one of {names} (fewer than {REFUSED_BELOW:.0f} effective samples)" if outcome.slow else ""
        words = (
            f"No cause found: {samples_in_words(outcome.n_effective)}; a single column's effect at its launch above"
            f" {least:.1f} % of {variance_of(outcome.scope.target, many)}{',' if many else ''}"
            f" would have been seen{but}."
        )
        if outcome.beyond is not None:
            words += f" {_goes_along(outcome.beyond, outcome.scope.target, many)}"
    if any(column.kind == Drop.NOT_SEARCHED for column in outcome.dropped):
        return f"{words.removesuffix('.')}; counters were recorded and not searched."
    return words


def reasons_of(outcome: Outcome) -> list[str]:
    """Return the reasons of a graph: why there is no cause, what to be careful with, and what could not be computed."""
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
    return [*reasons, *outcome.notes, *outcome.examination.failures]
