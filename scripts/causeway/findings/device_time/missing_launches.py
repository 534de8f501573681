"""Claims about device time where most launches are missing from the exports: the time in which they ran counts as idle,
so that nothing is decided.
"""

from collections.abc import Mapping, Sequence

from causeway.findings.record import Finding, undecided

MISSING = "missing_dispatches"
"""The kind of issue that counts them."""
COUNTS = ("shared_devices",)
"""Keys of claims that do not rest on the time between launches."""
MISSING_LAUNCHES = (
    "Export the whole recording, or record without filters of kernels: most launches are missing, and where they ran"
    " devices look idle."
)


def without_missing(findings: Sequence[Finding], qualities: Sequence[Mapping]) -> list[Finding]:
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
        undecided(one, lacking[one.dataset], MISSING_LAUNCHES)
        if one.dataset in lacking and one.kind == "efficiency" and one.key not in COUNTS
        else one
        for one in findings
    ]


def _missing(quality: Mapping) -> str | None:
    """Return how many launches a dataset lacks and holds, in words, where these are fewer."""
    missing = sum(issue["count"] for issue in quality["issues"] if issue["kind"] == MISSING)
    read = sum(export["rows"] for export in quality["exports"])
    if missing <= read:
        return None
    return (
        f"{missing:,} launches are missing from the exports, which hold {read:,}, and the time in which they ran counts"
        " as idle"
    )
