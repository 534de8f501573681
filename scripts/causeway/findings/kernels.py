"""The finding that names where the variability is, an exact count."""

from causeway.findings.record import Analysis, evidence, finding, link_to, shortened
from causeway.queries import of_table, rows_where

WHAT = {"kernel_variability": "kernel variability", "memory_stall": "memory stall"}


def of_kernels(analysis: Analysis) -> list[dict]:
    """Return the finding that names the kernel with the largest share of the variability."""
    if not analysis.kernels:
        return []
    number, row = max(enumerate(analysis.kernels), key=lambda item: (item[1]["target_share"], -item[0]))
    what = WHAT.get(analysis.target, f"deviation of {analysis.target}")
    total = sum(kernel["launches"] for kernel in analysis.kernels)
    value = 100 * row["target_share"]
    words = f"{shortened(row['short_name'])} holds {value:.0f} % of the {what}, in {row['launches']:,} of {total:,} launches"
    words += f"; robust CV {row['robust_cv']:.2f}." if row["robust_cv"] is not None else "."
    where = rows_where({"kernel": row["kernel"]})
    facts = {
        "scope_name": row["name"],
        "sentence": words,
        "effect": {"value": value, "low": None, "high": None, "unit": f"percent of the summed {what}"},
        "n": row["launches"],
        "verdict": "supported",
        "evidence": evidence(analysis.kernels_table, of_table("100 * target_share", analysis.kernels_table, where), value, [number], where),
        "link": link_to(analysis.dataset, analysis.target, "kernel", row["kernel"]),
        "suggestion": "Look at this kernel first: its causes stand under Why, its launches in the explorer.",
    }
    return [finding(analysis.dataset, analysis.target, row["kernel"], "variability", "", **facts)]
