"""The findings that name where the variability is, within configurations and between them: exact counts."""

import math
from typing import Any

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import counted, share, significant, spread, time_three_digits
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import of_table, rows_where
from causeway.core.schemas import Row
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL, SUPPORTED, UNEXPLAINED, target_name
from causeway.findings import headlines
from causeway.findings.causes import subject_of
from causeway.findings.record import NOTICEABLE, Analysis, Effect, Evidence, Finding, link_to, made_from
from causeway.findings.suggestions import COLLECTIVE, ITS_LAUNCHES, THIS_KERNEL

MOST = 0.5
"""Share of the variance from which a straight line in a launch's threads is named, and of the kernels' time from which
one launch is: more than all else together.
"""
FEWEST_BESIDE_ONE = 10
"""Launches from which on it is said that one of them has most of the time: of a few one easily has."""


def variability_findings(analysis: Analysis) -> list[Finding]:
    """Return the finding that names the kernel with the largest share of the variability; none without
    kernels, or where nothing varies.
    """
    if not analysis.kernels:
        return []
    index, row = max(enumerate(analysis.kernels), key=lambda item: (item[1]["target_share"], -item[0]))
    if not row["target_share"]:  # each configuration was launched once
        return []
    target = target_name(analysis.target)
    total = sum(kernel["launches"] for kernel in analysis.kernels)
    value = 100 * row["target_share"]
    subject = subject_of(analysis, row["kernel"], row["name"])
    sentence = (
        f"{kernel_words(row['short_name'])} has {value:.0f} % of the {target}, in {row['launches']:,} of"
        f" {counted(total, 'launch')}"
    )
    of_what = "" if analysis.target != MEMORY_STALL else " of their durations"
    over = f" over {row['configurations']:,} configurations" if row["configurations"] > 1 else ""
    if row["variance_between"] is not None:
        over += f", between whose means lies {share(row['variance_between'])} of the variance"
    sentence += f"; robust CV{of_what} {spread(row['robust_cv'])}{over}." if row["robust_cv"] is not None else "."
    of_time = _share_of_time(analysis)
    barely = of_time is not None and of_time < NOTICEABLE
    if of_time is not None and barely:
        whole = "the launches' time" if analysis.target == KERNEL_VARIABILITY else f"the summed {analysis.target}"
        means = " from the means of their configurations" if over else ""
        sentence += f" That is little: all launches deviate{means} by {significant(100 * of_time, 2)} % of {whole}."
    advice = THIS_KERNEL if _has_cause(analysis, row["kernel"]) else ITS_LAUNCHES
    return [
        _of_kernel(
            analysis,
            index,
            subject,
            "100 * target_share",
            Effect(value=value, unit=f"percent of the summed {target}"),
            quantity=f"share of the {target}",
            headline=_headline(analysis, subject, row, value, of_time),
            sentence=sentence,
            suggestion=None if barely else COLLECTIVE if row["class"] == COMMUNICATION_KERNEL else advice,
            is_negligible=barely,
        )
    ]


@made_from("target")
def one_launch_findings(analysis: Analysis) -> list[Finding]:
    """Return that one launch has most of the kernels' time, if it has: the rest hardly shows beside it."""
    total = math.fsum(row["value_sum"] for row in analysis.kernels)
    launches = sum(row["launches"] for row in analysis.kernels)
    if analysis.target != KERNEL_VARIABILITY or launches < FEWEST_BESIDE_ONE or not total > 0:
        return []
    index, row = max(enumerate(analysis.kernels), key=lambda item: (item[1]["value_max"], -item[0]))
    if row["value_max"] < MOST * total:
        return []
    value = 100 * row["value_max"] / total
    subject = subject_of(analysis, row["kernel"], row["name"])
    where = rows_where({"kernel": row["kernel"]})
    table = analysis.kernels_table
    return [
        Finding(
            dataset=analysis.dataset,
            kind="recording",
            key="one_launch",
            subject=subject,
            quantity="share of all kernel time",
            headline=f"One launch of {subject} has {significant(value, 3)} % of all kernel time.",
            sentence=(
                f"One launch of {kernel_words(row['short_name'])} takes"
                f" {time_three_digits(round(row['value_max']))} of {time_three_digits(round(total))}"
                f" of all {counted(launches, 'launch')}"
                f" ({significant(value, 3)} %): every share of time is mostly its share."
            ),
            verdict=SUPPORTED,
            effect=Effect(value=value, unit="percent of all kernel time"),
            evidence=Evidence(
                table=table,
                query=of_table(f"100 * value_max / ({of_table('sum(value_sum)', table)})", table, where),
                value=value,
                rows=(index,),
                filter=where,
            ),
            n=launches,
            link=link_to(analysis.dataset, analysis.target, "kernel", row["kernel"]),
            suggestion=(
                "Look at this launch first: whether it waits for another rank or process, or its end was recorded"
                " wrongly; a filter that leaves it out shows the rest."
            ),
        )
    ]


def _has_cause(analysis: Analysis, kernel: str) -> bool:
    """Return whether a search of a kernel, or of a dataset that has no other, found a supported cause."""
    scopes = (kernel, "dataset") if len(analysis.kernels) == 1 else (kernel,)
    return any(
        search.graph["scope"] in scopes
        and any(row["feature"] != UNEXPLAINED and row["verdict"] == SUPPORTED for row in search.contributions)
        for search in analysis.searches
    )


def _of_kernel(analysis: Analysis, index: int, subject: str, query: str, effect: Effect, **facts: Any) -> Finding:
    """Return a finding about the kernel in a row of the table of kernels, whose effect a query of that row gives."""
    row = analysis.kernels[index]
    where = rows_where({"kernel": row["kernel"]})
    return Finding(
        dataset=analysis.dataset,
        target=analysis.target,
        scope=row["kernel"],
        scope_name=row["name"],
        kind="variability",
        subject=subject,
        verdict=SUPPORTED,
        effect=effect,
        evidence=Evidence(
            table=analysis.kernels_table,
            query=of_table(query, analysis.kernels_table, where),
            value=effect.value,
            rows=(index,),
            filter=where,
        ),
        n=row["launches"],
        link=link_to(analysis.dataset, analysis.target, "kernel", row["kernel"]),
        **facts,
    )


def _headline(analysis: Analysis, subject: str, row: Row, percent: float, of_time: float | None) -> str:
    """Return the headline of the kernel that varies most: its part of the variability (`percent`), of a single kernel,
    which has all of it, how much it varies (`of_time`).
    """
    if of_time is not None and of_time < NOTICEABLE:
        return headlines.of_little(analysis.target, 100 * of_time, subject, several=row["configurations"] > 1)
    if of_time is not None and len(analysis.kernels) == 1:
        return headlines.of_only_kernel(subject, 100 * of_time, row["launches"])
    return headlines.of_variability(subject, target_name(analysis.target), percent, row["launches"])


def _share_of_time(analysis: Analysis) -> float | None:
    """Return the deviations of all launches over the sum of what was measured of them; None where that is not above 0,
    and of the memory stall, which is no deviation.
    """
    measured = math.fsum(row["value_sum"] for row in analysis.kernels)
    if analysis.target == MEMORY_STALL or not measured > 0:
        return None
    return math.fsum(row["target_sum"] for row in analysis.kernels) / measured
