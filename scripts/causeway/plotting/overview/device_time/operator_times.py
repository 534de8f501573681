"""The overview's part "GPU time by operator and layer": what the host was doing when it launched the work."""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.formatting import elided, integer_ranges
from causeway.core.queries import of_table
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag

if TYPE_CHECKING:
    import pyarrow as pa

LEVELS = (("operator", "Operator", 6), ("module", "Module or annotation", 6), ("phase", "Phase", 3))
"""Levels that are shown, what they are called, and how many of their names, most GPU time first."""
LONGEST_NAME = 100
"""Characters of a name; a path of modules differs at its end."""
NUMBERED = "module"
"""The level whose names are drawn together where they differ by numbers alone and are more than are shown: layers."""
NUMBER = re.compile("([0-9]{1,9})")
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
        " of the kernels' GPU time the operator is known.",
    ]
    parts = [tag("h4", "GPU time by operator and layer", id=f"{name}--operators"), tag("p", sentence)]
    shown: dict[tuple, tuple[list[str], list[dict]]] = {}
    for level, label, most in LEVELS:
        own = [row for row in rows if row["level"] == level]
        if any(row["name"] is not None for row in own):
            told = tuple(tuple(value for key, value in row.items() if key != "level") for row in own)
            is_drawn_together = level == NUMBERED and len(own) > most
            listed = _together(own, rows.index(own[0])) if is_drawn_together else own
            shown.setdefault(told, ([], listed[:most]))[0].append(label)
    return [*parts, *(_table(", ".join(labels), own, path) for labels, own in shown.values())]


def _together(rows: Sequence[dict], first: int) -> list[dict]:
    """Return rows of one level with those in one whose names differ by numbers alone, as those of layers do: the one
    with most GPU time first. Which kernels such rows share is not known, so that theirs are not counted.

    Parameters
    ----------
    rows : sequence of dict
        One after the other in the table.
    first : int
        Number of the first one in the table.
    """
    groups: dict[tuple, list[tuple[int, dict]]] = {}
    for number, row in enumerate(rows, start=first):
        key = (None,) if row["name"] is None else tuple(NUMBER.split(row["name"])[::2])
        groups.setdefault(key, []).append((number, row))
    found = []
    for group in groups.values():
        _, row = group[0]
        if len(group) > 1:
            sums = {column: sum(one[column] for _, one in group) for column in ("gpu_ns", "variability_ns", "launches")}
            names = [one["name"] for _, one in group]
            row = {**row, **sums, "name": _range_of(names), "kernels": None, "rows": [number for number, _ in group]}
        found.append(row)
    return sorted(found, key=lambda row: -row["gpu_ns"])


def _range_of(names: Sequence[str]) -> str:
    """Return names that differ by numbers alone as one, with the range of each number that differs.

    >>> _range_of(["layers.0.mlp", "layers.1.mlp", "layers.3.mlp"])
    'layers.0–1, 3.mlp'
    """
    parts = list(zip(*map(NUMBER.split, names), strict=True))
    return "".join(few[0] if len(set(few)) == 1 else integer_ranges(set(map(int, few))) for few in parts)


def _table(label: str, rows: list[dict], path: str) -> Markup:
    heads = [tag("th", label), *(tag("th", words, class_="n") for words, _ in COLUMNS)]
    body = []
    for row in rows:
        several = row.get("rows")
        where = f"level = '{row['level']}' AND {_is_name(row['name'])}"
        if several:
            where = f"file_row_number IN ({', '.join(map(str, several))})"
        name = "not known" if row["name"] is None else elided(row["name"], LONGEST_NAME, LONGEST_NAME // 2)
        many = [" (", citations.count(len(several), of_table("count(*)", path, where)), " names)"] if several else []
        cells = [tag("td", citations.name(name), *many)]
        for _, column in COLUMNS:
            cite = citations.time if column.endswith("_ns") else citations.count
            what = f"sum({column})::BIGINT" if several else column
            cells.append(tag("td", cite(row[column], of_table(what, path, where)), class_="n"))
        body.append(tag("tr", cells))
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="wide")


def _is_name(name: str | None) -> str:
    """Return the condition that a row has a name, by its digest: names come from outside."""
    if name is None:
        return "name IS NULL"
    return f"md5(name) = '{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}'"
