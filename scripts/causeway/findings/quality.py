"""Findings about inputs that could not be used: what is not in the results."""

from collections.abc import Mapping

from causeway.core.formatting import name_in_sentence
from causeway.core.queries import in_document
from causeway.core.vocabulary import SUPPORTED
from causeway.findings import headlines
from causeway.findings.record import Evidence, Finding, link_to


def quality_findings(quality: Mapping) -> list[Finding]:
    """Return one finding per export of a dataset's `quality.json` that could not be used, in the sheet's order."""
    dataset = quality["dataset"]
    document = f"{dataset}/quality.json"
    found = []
    for index, export in enumerate(quality["exports"]):
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        source = headlines.short(export["source"])
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if export["status"] == "refused" else "was read in part"
        found.append(
            Finding(
                dataset=dataset,
                kind="quality",
                key=export["export"],
                subject=source,
                quantity="inputs that were read",
                headline=headlines.of_input(source, export["status"] == "refused"),
                sentence=f"{name_in_sentence(export['source'])} {degree}{why}",
                verdict=SUPPORTED,
                evidence=Evidence(
                    table=document,
                    query=in_document(document, "exports", index, "status", kind="text"),
                    value=export["status"],
                ),
                link=link_to(dataset, "quality"),
                suggestion=error.get("advice") or "See the data quality section for what was left out.",
            )
        )
    return found
