"""The finding that names where the variability is, an exact count."""

import math
from collections.abc import Mapping

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import name_in_sentence, share, significant, spread
from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL, SUPPORTED, target_name
from causeway.findings import headlines
from causeway.findings.causes import subject_of
from causeway.findings.record import NOTICEABLE, Analysis, Effect, Evidence, Finding, link_to
from causeway.findings.suggestions import COLLECTIVE, THIS_KERNEL


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
        f"{name_in_sentence(row['short_name'])} has {value:.0f} % of the {target}, in {row['launches']:,} of"
        f" {total:,} launches"
    )
    of_what = "" if analysis.target != MEMORY_STALL else " of their durations"
    over = f" over {row['configurations']:,} configurations" if row["configurations"] > 1 else ""
    if row["variance_between"] is not None:
        over += f", between whose means lies {share(row['variance_between'])} of the variance"
    sentence += f"; robust CV{of_what} {spread(row['robust_cv'])}{over}." if row["robust_cv"] is not None else "."
    of_time = _share_of_time(analysis)
    barely = of_time is not None and of_time < NOTICEABLE
    if barely:
        whole = "the launches' time" if analysis.target == KERNEL_VARIABILITY else f"the summed {analysis.target}"
        means = " from the means of their configurations" if over else ""
        sentence += f" That is little: all launches deviate{means} by {significant(100 * of_time, 2)} % of {whole}."
    where = rows_where({"kernel": row["kernel"]})
    return [
        Finding(
            dataset=analysis.dataset,
            target=analysis.target,
            scope=row["kernel"],
            scope_name=row["name"],
            kind="variability",
            subject=subject,
            quantity=f"share of the {target}",
            headline=_headline(analysis, subject, row, value, of_time),
            sentence=sentence,
            verdict=SUPPORTED,
            effect=Effect(value=value, unit=f"percent of the summed {target}"),
            evidence=Evidence(
                table=analysis.kernels_table,
                query=of_table("100 * target_share", analysis.kernels_table, where),
                value=value,
                rows=(index,),
                filter=where,
            ),
            n=row["launches"],
            link=link_to(analysis.dataset, analysis.target, "kernel", row["kernel"]),
            suggestion=None if barely else COLLECTIVE if row["class"] == COMMUNICATION_KERNEL else THIS_KERNEL,
            is_negligible=barely,
        )
    ]


def _headline(analysis: Analysis, subject: str, row: Mapping, percent: float, of_time: float | None) -> str:
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
