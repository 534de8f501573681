"""The overview's first table where there are several datasets: one row each, with the claim that matters most."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.queries import in_document
from causeway.core.vocabulary import COMM_AWARE, PARALLEL
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag

WORDS = {"ok": "complete", "caution": "caution", "blocked": "blocked"}


MATTERS_MOST = ("Where", "What fills the time", "Run", "Recording")
"""The questions whose answer stands for a dataset, the first that it has."""


def datasets_table(datasets: Sequence, lines: Sequence[tuple[int, Mapping]]) -> Markup:
    """Return the table.

    Parameters
    ----------
    datasets : sequence of overview.DatasetView
    lines : sequence of (int, mapping)
        All lines of first screens with their places in the document.
    """
    heads = [
        ("dataset", ""),
        ("inputs", ""),
        ("parallel efficiency", "n"),
        ("what to know first", ""),
    ]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in heads]))
    body = [_row(view, _most(view.name, lines)) for view in datasets]
    note = "Each dataset with where its time is lost, or else what fills it."
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
        return tag("tr", cells, tag("td", "nothing was measured"))
    place, line = first
    query = in_document("findings.json", "first_screen", place, "answer", kind="text")
    return tag("tr", cells, tag("td", citations.said(line["answer"], query), class_="said"))


def _most(dataset: str, lines: Sequence[tuple[int, Mapping]]) -> tuple[int, Mapping] | None:
    """Return the line that stands for a dataset, with its place; None without any."""
    own = [one for one in lines if one[1]["dataset"] == dataset]
    return next((one for question in MATTERS_MOST for one in own if one[1]["question"] == question), None)
