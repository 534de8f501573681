"""Findings about inputs that could not be used, and about recordings whose times cannot be trusted."""

from collections.abc import Mapping

from causeway.core.files.source_names import shown_sources
from causeway.core.formatting import name_in_sentence
from causeway.core.queries import in_document
from causeway.core.schemas import Row
from causeway.core.vocabulary import SUPPORTED
from causeway.findings.headlines import short
from causeway.findings.record import Evidence, Finding, link_to


def quality_findings(quality: Row, shown: Mapping[str, str] | None = None) -> list[Finding]:
    """Return one finding per export of a dataset's `quality.json` that could not be used, in the sheet's order.

    Parameters
    ----------
    quality : mapping
    shown : mapping of str to str or None
        What to call each source, by `shown_sources` over all datasets of the analysis; over this one alone by default.
    """
    dataset = quality["dataset"]
    document = f"{dataset}/quality.json"
    names = shown or shown_sources(export["source"] for export in quality["exports"])
    findings = []
    for index, export in enumerate(quality["exports"]):
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        name = names[export["source"]]
        source = short(name)
        is_refused = export["status"] == "refused"
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if is_refused else "was read in part"
        findings.append(
            Finding(
                dataset=dataset,
                kind="quality",
                key=export["export"],
                subject=source,
                quantity="inputs that were read",
                headline=f"{source} {degree if is_refused else 'was read only in part'}.",
                sentence=f"{name_in_sentence(name)} {degree}{why}",
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
    return findings
