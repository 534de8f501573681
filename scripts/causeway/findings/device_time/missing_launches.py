"""Claims about device time where most launches are missing from the exports: the time in which they ran counts as idle,
so that nothing is decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from causeway.core.vocabulary import INCONCLUSIVE
from causeway.findings import headlines, suggestions
from causeway.findings.record import Finding

MISSING = "missing_dispatches"
"""The kind of issue that counts them."""
COUNTS = ("shared_devices",)
"""Keys of claims that do not rest on the time between launches."""


def undecided(findings: Sequence[Finding], qualities: Sequence[Mapping]) -> list[Finding]:
    """Return findings; those about device time of datasets that lack more launches than they hold are undecided: worth
    nothing that is known, and without a replay.

    Parameters
    ----------
    findings : sequence of Finding
        Before their replays are looked at.
    qualities : sequence of mapping
        `quality.json` of each dataset.
    """
    lacking = {quality["dataset"]: found for quality in qualities if (found := _missing(quality)) is not None}
    return [
        _undecided(one, *lacking[one.dataset])
        if one.dataset in lacking and one.kind == "efficiency" and one.key not in COUNTS
        else one
        for one in findings
    ]


def _missing(quality: Mapping) -> tuple[int, int] | None:
    """Return how many launches a dataset lacks and holds, where these are fewer."""
    missing = sum(issue["count"] for issue in quality["issues"] if issue["kind"] == MISSING)
    read = sum(export["rows"] for export in quality["exports"])
    return (missing, read) if missing > read else None


def _undecided(finding: Finding, missing: int, read: int) -> Finding:
    return replace(
        finding,
        verdict=INCONCLUSIVE,
        headline=f"{finding.headline.rstrip('.')}{headlines.UNSURE}.",
        sentence=(
            f"{finding.sentence} That is not decided: {missing:,} launches are missing from the exports, which hold"
            f" {read:,}, and the time in which they ran counts as idle."
        ),
        worth=None,
        recoverable_ns=None,
        recoverable_query=None,
        suggestion=suggestions.MISSING_LAUNCHES,
        undone_by=None,
    )
