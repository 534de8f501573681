"""Findings about inputs that could not be used: what is not in the results."""

from collections.abc import Mapping

from causeway.findings.record import evidence, finding, link_to, shortened
from causeway.queries import in_document


def of_quality(quality: Mapping) -> list[dict]:
    """Return one finding per export that could not be used, in the sheet's order."""
    found = []
    dataset, document = quality["dataset"], f"{quality['dataset']}/quality.json"
    for number, export in enumerate(quality["exports"]):
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if export["status"] == "refused" else "was read in part"
        shown = evidence(document, in_document(document, "exports", number, "status", kind="text"), export["status"])
        facts = {
            "sentence": f"{shortened(export['source'])} {degree}{why}",
            "verdict": "supported",
            "evidence": shown,
            "link": link_to(dataset, "quality"),
            "suggestion": error.get("advice") or "See the data quality section for what was left out.",
        }
        found.append(finding(dataset, None, "dataset", "quality", export["export"], **facts))
    return found
