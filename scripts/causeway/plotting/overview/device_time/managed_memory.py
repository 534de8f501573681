"""The overview's table of migrations of managed memory: by kernel, and by what the host touches between kernels."""

from collections.abc import Mapping

from markupsafe import Markup

from causeway.core.queries import in_document
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag

HEAD = ("while", "kernel time", "pages move during", "migrations", "moved", "their own time")


def managed_memory(document: Mapping, path: str) -> list[Markup]:
    """Return the table with its heading; nothing where no page of managed memory moved.

    Parameters
    ----------
    document : mapping
        `efficiency.json`.
    path : str
        Where it lies, relative to the results folder.
    """
    found = document.get("migrations")
    if not found:
        return []

    def cells(part: str, at: int, row: Mapping) -> list[Markup]:
        def query(key: str) -> str:
            return in_document(path, "migrations", part, at, key, kind="integer")

        times = [citations.time(row.get(key), query(key)) if key in row else "" for key in ("kernel_ns", "under_ns")]
        values = [
            *times,
            citations.count(row["migrations"], query("migrations")),
            citations.quantity(row["bytes"], "bytes", query("bytes")),
            citations.time(row["duration_ns"], query("duration_ns")),
        ]
        return [tag("td", value, class_="n") for value in values]

    body = [
        tag("tr", tag("td", citations.name(row["name"]), class_="long"), cells("kernels", at, row))
        for at, row in enumerate(found["kernels"])
    ]
    for at, row in enumerate(found["host"]):
        after = ["after ", citations.name(row["after"])] if row["after"] is not None else ["before the first kernel"]
        words = joined(["the host touches it, ", *after])
        body.append(tag("tr", tag("td", words, class_="long"), cells("host", at, row)))
    head = tag("thead", tag("tr", [tag("th", word, class_="n" if at else None) for at, word in enumerate(HEAD)]))
    return [
        tag("h4", "Migrations of managed memory"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    ]
