"""The overview's first table where there are several datasets: one row each, with the claim that matters most."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.queries import in_document
from causeway.core.vocabulary import COMM_AWARE, PARALLEL
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag

WORDS = {"ok": "complete", "caution": "caution", "blocked": "blocked"}


def datasets_table(datasets: Sequence, findings: Sequence[tuple[int, Mapping]]) -> Markup:
    """Return the table.

    Parameters
    ----------
    datasets : sequence of overview.DatasetView
    findings : sequence of (int, mapping)
        All findings with their places in the document.
    """
    heads = [
        ("dataset", ""),
        ("inputs", ""),
        ("parallel efficiency", "n"),
        ("what to know first", ""),
        ("GPU time", "n"),
    ]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in heads]))
    body = [_row(view, next((one for one in findings if one[1]["dataset"] == view.name), None)) for view in datasets]
    note = "Each dataset with its first finding and the GPU time that it is worth. The parts below say more."
    return tag(
        "section",
        tag("h2", "All datasets", class_="dataset"),
        tag("p", note, class_="note"),
        tag("div", tag("table", head, tag("tbody", body), class_="datasets"), class_="wide"),
        id="all-datasets",
    )


def _row(view: object, first: tuple[int, Mapping] | None) -> Markup:
    status = view.quality["status"]
    cells = [tag("td", tag("a", citations.name(view.name), href=f"#{view.name}"), class_="name")]
    cells.append(tag("td", tag("span", WORDS.get(status, status), class_=f"chip {status}")))
    value = view.efficiency[COMM_AWARE][PARALLEL] if view.efficiency and not view.efficiency["why"] else None
    query = in_document(f"{view.name}/efficiency.json", COMM_AWARE, PARALLEL)
    cells.append(tag("td", citations.ratio(value, query), class_="n"))
    if first is None:
        return tag("tr", cells, tag("td", "nothing is claimed"), tag("td", citations.UNKNOWN, class_="n"))
    place, finding = first
    query = in_document("findings.json", "findings", place, "headline", kind="text")
    worth = citations.UNKNOWN
    if finding["recoverable_ns"] is not None:
        worth = citations.time(finding["recoverable_ns"], finding["recoverable_query"])
    words = citations.said(finding["headline"], query)
    return tag("tr", cells, tag("td", words, class_="said"), tag("td", worth, class_="n"))
