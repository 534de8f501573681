"""Words of a compared pair that concern its kernels, and of two plain tables."""

import math
from collections.abc import Sequence
from dataclasses import replace

from causeway.core.feature_registry import attribution_sentence
from causeway.core.formatting import changed_by, count, counted, elided, integer_ranges, quantity, setting_value, time
from causeway.core.names.kernel_words import LONGEST, kernel_words
from causeway.core.vocabulary import INCONCLUSIVE, SAME
from causeway.findings.first_screen.compared_kernels import (
    ComparedTables,
    EffectFact,
    KernelChange,
    KernelDetail,
    MixFact,
)
from causeway.findings.first_screen.run_facts import NOTICEABLE
from causeway.findings.first_screen.words.run_words import percent

MOST_KERNELS = 3
MOST_VALUES = 3
MOST_COUNTERS = 5


def pair(words: str, before: float, after: float) -> str:
    """Return a time before and after, ns.

    >>> pair("Idle", 0, 1500)
    'Idle 0 to 1.5 µs'
    """
    return f"{words} {time(before) if before else '0'} to {time(after) if after else '0'}"


def of_tables(fact: ComparedTables) -> list[tuple[str, str | None]]:
    """Return what changed, line by line, with the query of the change: kernels, those that did not, the mix."""
    equal = f" with equal {_listed(fact.columns)}" if fact.columns else ""
    lines: list[tuple[str, str | None]] = []
    for kernel in fact.kernels[:MOST_KERNELS]:
        lines.append((_of_kernel(kernel, equal), kernel.query))
    if len(fact.kernels) > MOST_KERNELS:
        lines.append((f"{counted(len(fact.kernels) - MOST_KERNELS, 'further kernel')} changed.", None))
    if fact.kernels and fact.others:
        lines.append((f"{counted(len(fact.others), 'other kernel')}: no change beyond noise.", None))
    elif fact.others:
        first = max(fact.others, key=lambda kernel: abs(kernel.percent or 0.0))
        changes = changed_by(first.percent, first.low, first.high)
        names = "" if len(fact.others) == 1 else f", of {count(len(fact.others))} kernels, {_name(first)} most"
        times = f"{pair('median', *first.median)}, {pair('p99', *first.p99)}"
        lines.append((f"No change beyond noise{names}: {changes}{equal}; {times}.", first.query))
    for name, *ends in fact.alone[:MOST_KERNELS]:
        before, after = (time(ns) if ns else "no rows" for ns in ends)
        lines.append((f"{elided(kernel_words(name), LONGEST)}: {before} before, {after} after.", None))
    if len(fact.alone) > MOST_KERNELS:
        lines.append((f"{counted(len(fact.alone) - MOST_KERNELS, 'further kernel')} in one table alone.", None))
    return [*lines, *((_of_mix(mix), None) for mix in fact.mixes)]


def _listed(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _name(kernel: KernelChange) -> str:
    return elided(kernel_words(kernel.kernel), LONGEST)


def _of_kernel(kernel: KernelChange, equal: str) -> str:
    """Return how the time of a kernel changed, with which values of a setting, and what that came with."""
    noise = {SAME: ", the same within noise", INCONCLUSIVE: ""}.get(kernel.verdict, ", beyond noise")
    change = f"{changed_by(kernel.percent, kernel.low, kernel.high)}{equal}{noise}"
    times = f"{pair('mean', *kernel.mean)}, {pair('median', *kernel.median)}, {pair('p99', *kernel.p99)}"
    sentences = [f"{_name(kernel)} {change}: {times}."]
    if kernel.detail.tail is not None and kernel.detail.column is None:
        sentences = [f"{_name(kernel)}, the slowest launches alone: {times} ({change})."]
    if kernel.detail.column is not None:
        sentences.append(f"By {kernel.detail.column}: {_effects(kernel.detail)}.")
    if kernel.came_with is not None and any(part["is_clear"] for part in kernel.came_with["parts"]):
        sentences.append(attribution_sentence(kernel.came_with))
    return " ".join(sentences)


def _effects(detail: KernelDetail) -> str:
    effects = _of_ranks(detail.effects) if detail.column == "rank" else detail.effects
    shown = [
        f"{effect.value} {changed_by(effect.percent, effect.low, effect.high)}" for effect in effects[:MOST_VALUES]
    ]
    return ", ".join(shown)


def _of_ranks(effects: Sequence[EffectFact]) -> list[EffectFact]:
    """Return the effects of ranks, those that follow one another within a point together, the largest change first."""
    groups: list[list[EffectFact]] = []
    for effect in sorted(effects, key=lambda effect: effect.percent):
        if groups and effect.percent - groups[-1][-1].percent <= 100 * NOTICEABLE:
            groups[-1].append(effect)
        else:
            groups.append([effect])
    together = [
        replace(
            group[0],
            value=integer_ranges(int(effect.value) for effect in group),
            percent=math.fsum(effect.percent for effect in group) / len(group),
        )
        for group in groups
    ]
    return sorted(together, key=lambda effect: -abs(effect.percent))


def of_detail(detail: KernelDetail | None) -> str:
    """Return what is behind the change of a kernel, in brackets; empty where nothing is known."""
    if detail is None:
        return ""
    parts = [
        f"{column.replace('_', ' ')} {' to '.join(end if isinstance(end, str) else count(end) for end in ends)}"
        for column, *ends in detail.shapes
    ]
    for words, unit, *values in detail.counters[:MOST_COUNTERS]:
        before, after = (_counted(value, unit) for value in values)
        parts.append(f"{words} {before} to {after}")
    if detail.column is not None:
        parts.insert(0, f"by {detail.column}: {_effects(detail)}")
    elif detail.tail is not None:
        parts.insert(0, of_tail(detail))
    return f" ({'; '.join(parts)})" if parts else ""


def _counted(value: float, unit: str) -> str:
    """Return a counter's value in words: shares in per cent, bytes with a prefix, numbers as they are.

    >>> _counted(0.5, "ratio"), _counted(2e9, "bytes/s"), _counted(2e6, "instructions")
    ('50 %', '2 GB/s', '2,000,000')
    """
    if unit == "ratio":
        return setting_value(value, unit)
    amount, rate, per = unit.partition("/")
    if amount == "bytes":
        return quantity(value, amount) + (rate and f"/{per}")
    return quantity(value, unit if unit == "Hz" else "")


def of_tail(detail: KernelDetail) -> str:
    """Return that only the slowest launches of a kernel changed."""
    if detail.tail is None or detail.median is None:
        return ""
    return f"{pair('p99', *detail.tail)}, {pair('median', *detail.median)}"


def _of_mix(fact: MixFact) -> str:
    shares = [f"{value} {percent(before)} to {percent(after)}" for value, before, after in fact.shares[:MOST_VALUES]]
    return f"Mix in column {fact.column}: {', '.join(shares)}."
