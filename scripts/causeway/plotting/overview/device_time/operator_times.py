"""The overview's part "GPU time by operator and layer": what the host was doing when it launched the work."""

import hashlib
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.core.queries import of_table
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag

if TYPE_CHECKING:
    import pyarrow as pa

LEVELS = (("operator", "Operator", 10), ("module", "Module or annotation", 10), ("phase", "Phase", 3))
"""Levels that are shown, what they are called, and how many of their names, most GPU time first."""
LONGEST_NAME = 100
"""Characters of a name; a path of modules differs at its end."""
COLUMNS = (("GPU time", "gpu_ns"), ("variability", "variability_ns"), ("launches", "launches"), ("kernels", "kernels"))


def gpu_time_by_operator(table: "pa.Table", name: str) -> list[Markup]:
    """Return a sentence and a table for each level that has names; nothing where no operator is known. A level whose
    rows are those of another stands in its table: an annotation that no operator runs in is both.

    Parameters
    ----------
    table : Table
        `operator_summary.parquet`.
    name : str
        The dataset.
    """
    path = f"{name}/operator_summary.parquet"
    rows = table.to_pylist()
    of_operators = [row for row in rows if row["level"] == "operator"]
    whole = sum(row["gpu_ns"] for row in of_operators)
    if not whole or all(row["name"] is None for row in rows):
        return []
    known = sum(row["gpu_ns"] for row in of_operators if row["name"] is not None)
    share = "coalesce(100 * sum(gpu_ns) FILTER (name IS NOT NULL), 0) / sum(gpu_ns)"
    sentence = [
        "For ",
        citations.percent(100 * known / whole, of_table(share, path, "level = 'operator'")),
        " of the kernels' GPU time it is known which operator launched it. Variability is the sum of what launches"
        " deviate from the mean of their configuration.",
    ]
    parts = [tag("h4", "GPU time by operator and layer", id=f"{name}--operators"), tag("p", sentence)]
    shown: dict[tuple, tuple[list[str], list[dict]]] = {}
    for level, label, most in LEVELS:
        own = [row for row in rows if row["level"] == level]
        if any(row["name"] is not None for row in own):
            told = tuple(tuple(value for key, value in row.items() if key != "level") for row in own)
            shown.setdefault(told, ([], own[:most]))[0].append(label)
    return [*parts, *(_table(", ".join(labels), own, path) for labels, own in shown.values())]


def _table(label: str, rows: list[dict], path: str) -> Markup:
    heads = [tag("th", label), *(tag("th", words, class_="n") for words, _ in COLUMNS)]
    body = []
    for row in rows:
        where = f"level = '{row['level']}' AND {_is_name(row['name'])}"
        name = "not known" if row["name"] is None else elided(row["name"], LONGEST_NAME, LONGEST_NAME // 2)
        cells = [tag("td", citations.name(name))]
        for _, column in COLUMNS:
            cite = citations.time if column.endswith("_ns") else citations.count
            cells.append(tag("td", cite(row[column], of_table(column, path, where)), class_="n"))
        body.append(tag("tr", cells))
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="wide")


def _is_name(name: str | None) -> str:
    """Return the condition that a row has a name, by its digest: names come from outside."""
    if name is None:
        return "name IS NULL"
    return f"md5(name) = '{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}'"
