"""Headlines: each claim in at most 25 plain words. Those that several findings share, or that choose among many words,
are made here; the others stand beside what they claim.

The page, `findings.json`, the explorer and the comparison show them as they are. Verdict, number of launches, interval
and robustness stand in fields beside them.
"""

from causeway.core.feature_registry import IN_STEP, LONGEST_NAME, cause_words, record_of
from causeway.core.formatting import significant, time, variance_of
from causeway.core.names.kernel_words import kernel_words
from causeway.core.schemas import Row
from causeway.core.vocabulary import INCONCLUSIVE, KERNEL_VARIABILITY, MEMORY_STALL, REFUTED
from causeway.findings.record import LOWERS, NOT_MONOTONE, RAISES, UNSURE, Effect, Worth

MOST_WORDS = 40
"""Words of a headline: the length of a sentence above which plain-language guides ask to split it (gov.uk, "Writing for
GOV.UK", 25 words). The name of a kernel counts as one.
"""
LARGE = 50
"""Percent of the mean from which a change is stated in means: read as a ratio of two levels it would be another."""
ALL_KERNELS = "All kernels"
POSITIONS = ("program_order", "operator")
"""Suggestions of features that are where the program makes a launch."""
COUNTER = "counter"
"""The tier of features that are measured during a launch."""
QUANTITIES = {KERNEL_VARIABILITY: "mean time", MEMORY_STALL: "mean memory stall"}
VARYING = {KERNEL_VARIABILITY: "duration", MEMORY_STALL: "memory stall"}


def short(name: str) -> str:
    """Return a name cut to the length of a headline."""
    return kernel_words(name, LONGEST_NAME)


def quantity_of(target: str) -> str:
    """Return what a cause of a target changes, in words.

    >>> quantity_of("kernel_variability"), quantity_of("dram_bytes")
    ('mean time', 'mean dram_bytes')
    """
    return QUANTITIES.get(target, f"mean {target}")


def word_count(headline: str, subject: str) -> int:
    """Return the number of words, the subject as one of them."""
    return len(headline.replace(subject, "x").split())


def in_percent(value: float) -> str:
    """Return a size in percent with two digits: `4.2 %`."""
    return f"{significant(abs(value), 2)} %"


def _costs(worth: Worth | None, *, is_of_position: bool) -> str:
    """Return what a cause costs; of a place in the program only if launches there do the same work as elsewhere."""
    if worth is None or not worth.is_cost:
        return ""
    cost = f"{time(worth.ns)} of GPU time"
    return f"; if equal-sized, costs {cost}" if is_of_position else f"; its variation costs {cost}"


def is_of_position(row: Row) -> bool:
    """Return whether a cause is where the program makes a launch: launches of one configuration at other places may do
    other work, as layers of different size do, which is no variation.
    """
    return record_of(row["feature"], row.get("group") or "").suggestion in POSITIONS


def of_cause(
    subject: str,
    target: str,
    row: Row,
    *,
    direction: str,
    change: Effect | None,
    spread: Effect | None,
    worth: Worth | None,
) -> str:
    """Return the headline of a cause.

    Parameters
    ----------
    subject, target : str
    row : mapping
        Of `contributions.parquet`.
    direction : str
        What more of it does to the quantity, one of `record.DIRECTIONS`.
    change : Effect or None
        Of the mean, percent; None where that was not estimated.
    spread : Effect or None
        Of the standard deviation, percent.
    worth : Worth or None
        GPU time that it costs.
    """
    level = row.get("level")
    group = row.get("group") or ""
    label = cause_words(row["feature"], group, level)
    if row["verdict"] == REFUTED:
        return f"{subject}: {label} is no cause; a test refuted it."
    if (
        row.get("determines_time") and record_of(row["feature"], group).tier == COUNTER
    ):  # what was so before the launch is not computed from it
        return f"{subject}: {label} determines the time: a leak if computed from it, else the cause."
    between = (
        f"for {label}" if level and IN_STEP.match(level) else f"with {label}" if level else f"from low to high {label}"
    )
    is_of_all = "mean_change" not in (row.get("of_first") or ())
    words = _change(target, label, between, direction, change, spread, is_of_all)
    if words is None:
        words = _explained(target, label, row)
    elif row["verdict"] != INCONCLUSIVE:
        words += _costs(worth, is_of_position=is_of_position(row))
    return f"{subject}: {words}{UNSURE if row['verdict'] == INCONCLUSIVE else ''}."


def _change(
    target: str,
    label: str,
    between: str,
    direction: str,
    change: Effect | None,
    spread: Effect | None,
    is_of_all: bool = True,
) -> str | None:
    """Return what a cause changes; None where no change of the mean or of the spread is clear. `is_of_all` tells
    whether the change of the mean is in percent of that of all launches.
    """
    quantity = quantity_of(target)
    if direction == NOT_MONOTONE:
        return f"{quantity} is not monotone in {label}"
    if change is not None and direction in (RAISES, LOWERS):
        verb = "rises" if direction == RAISES else "falls"
        if (
            is_of_all and abs(change.value) >= LARGE
        ):  # in percent of the average of all launches, not of the mean at the low level
            times = significant(abs(change.value) / 100, 2)
            return f"{quantity.removeprefix('mean ')} {verb} {times}× its mean {between}"
        return f"{quantity} {verb} {in_percent(change.value)} {between}"
    if spread is not None and spread.low is not None and spread.high is not None and not spread.low <= 0 <= spread.high:
        return f"spread {'rises' if spread.low > 0 else 'falls'} {in_percent(spread.value)} {between}, not the mean"
    return None


def _explained(target: str, label: str, row: Row) -> str:
    share = "part" if row["variance_percent"] is None else in_percent(row["variance_percent"])
    if row.get("kernels_percent") is not None:
        return f"{label} explains {share} of the kernels' {VARYING.get(target, target)} variance, each kernel alike"
    return f"{label} explains {share} of {variance_of(target)}"


def of_no_cause(subject: str, target: str, refused: bool, constant: bool = False, nothing_left: bool = False) -> str:
    """Return the headline of a search without a cause: of a `constant` target, `nothing_left`, `refused` or in vain."""
    if constant:
        return f"{subject}: {VARYING.get(target, target)} does not vary within a configuration."
    if nothing_left:
        return f"{subject}: no recorded column can be a cause of varying {VARYING.get(target, target)}."
    if refused:
        return f"{subject}: too little data to search for causes of varying {VARYING.get(target, target)}."
    return f"{subject}: no cause of varying {VARYING.get(target, target)} was found in what was recorded."


def of_variability(subject: str, target_words: str, percent: float, launches: int) -> str:
    """Return the headline of the kernel with most of the variability."""
    times = "launch" if launches == 1 else "launches"
    return f"{subject} has {in_percent(percent)} of the {target_words}, in {launches:,} {times}."


def of_only_kernel(subject: str, percent: float, launches: int) -> str:
    """Return the headline of a dataset's only kernel; `percent` are its deviations over what was measured."""
    its = "one launch deviates" if launches == 1 else f"{launches:,} launches deviate"
    return f"{subject} is the only kernel; its {its} by {in_percent(percent)} in all."


def of_little(target: str, percent: float, subject: str, several: bool) -> str:
    """Return the headline of a target that barely varies: `percent` of what was measured, within its `several`
    configurations, whose means may differ.
    """
    what = VARYING[target].capitalize() if target in VARYING else target
    within = " within a configuration" if several else ""
    return f"{what} barely varies{within}: by {in_percent(percent)} in all, most of it in {subject}."


def filled(blocks: int | None, multiprocessors: int | None, threads: int | None, wave: int) -> str:
    """Return what of a device a launch fills, where that is not all.

    >>> filled(1, 108, 1, 32)
    '1 of 108 multiprocessors, 1 thread of 32 in a warp'
    """
    parts = []
    if blocks and multiprocessors and blocks < multiprocessors:
        parts.append(f"{blocks} of {multiprocessors} multiprocessors")
    if threads and threads < wave:
        of = "warp" if wave == 32 else "wavefront"
        parts.append(f"{threads} thread{'s' * (threads > 1)} of {wave} in a {of}")
    return ", ".join(parts)
