"""The finding that names where the variability is, an exact count."""

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import name_in_sentence
from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import SUPPORTED, target_name
from causeway.findings import headlines
from causeway.findings.causes import subject_of
from causeway.findings.record import Analysis, Effect, Evidence, Finding, link_to
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
    sentence += f"; robust CV {row['robust_cv']:.2f}." if row["robust_cv"] is not None else "."
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
            headline=headlines.of_variability(subject, target, value, row["launches"]),
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
            suggestion=COLLECTIVE if row["class"] == COMMUNICATION_KERNEL else THIS_KERNEL,
        )
    ]
