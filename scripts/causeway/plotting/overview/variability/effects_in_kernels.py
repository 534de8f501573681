"""The overview's answer to which causes act in which kernels: in how many, how large there, what they cost together."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.core.queries import cell, of_table, rows_where
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.kernels import Kernel
from causeway.plotting.overview.variability.causes import breakable, cost_of

MOST_ROWS = 30
"""Causes shown; the table has all."""
MOST_NAMES = 3
"""Kernels named in a row; the others on hover."""
HEADS = (
    ("cause", ""),
    ("acts in", ""),
    ("mean time there", "n"),
    ("smallest, largest", "n"),
    ("differs between kernels (I²)", "n"),
    ("GPU time", "n"),
)
NOTE = (
    "Causes that are supported in single kernels, and what they do there. Mean time: the mean over these kernels of a"
    " random-effects model, in brackets the interval, from three kernels on. I²: share of their differences that is not"
    " error."
)


def effects_in_kernels(dataset: str, target: str, rows: Sequence[Mapping], kernels: Sequence[Kernel]) -> Markup | None:
    """Return the causes of single kernels as a table, None without any.

    Parameters
    ----------
    dataset, target : str
    rows : sequence of mapping
        Of `across_kernels.parquet`, in its order.
    kernels : sequence of Kernel
        They give the names.
    """
    if not rows:
        return None
    table = f"{dataset}/{target}/causal/across_kernels.parquet"
    names = {kernel.id: kernel.short for kernel in kernels}
    body = [_row(number, row, table, names) for number, row in enumerate(rows[:MOST_ROWS])]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in HEADS]))
    return tag(
        "div",
        tag("h4", "Causes over the kernels"),
        tag("p", NOTE, class_="note"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    )


def _row(number: int, row: Mapping, table: str, names: Mapping[str, str]) -> Markup:
    level = citations.name(f" = {elided(row['level'], 40)}") if row["level"] else None
    known = [names.get(kernel, kernel) for kernel in row["kernels"]]
    shown = ", ".join(known[:MOST_NAMES]) + (", ..." if len(known) > MOST_NAMES else "")
    acts = [
        citations.count(len(known), of_table("len(kernels)", table, rows_where({"file_row_number": number}))),
        " of ",
        citations.count(row["searched"], cell("searched", table, number)),
        " kernels",
        tag("div", citations.name(shown, title=elided(", ".join(known), 800)), class_="note"),
    ]
    mean = [f"mean_change_{end}" for end in ("percent", "low", "high")]
    mean_queries = tuple(cell(name, table, number) for name in mean)
    ends = [citations.percent(row[name], cell(name, table, number)) for name in ("smallest_percent", "largest_percent")]
    if row["smallest_percent"] is None or len(known) == 1:  # the mean says it, or nothing was measured
        ends = []
    cells = [
        tag("td", tag("code", breakable(elided(row["feature"], 60))), level, class_="name"),
        tag("td", acts),
        tag(
            "td",
            citations.interval(*(row[name] for name in mean), mean_queries),
            class_="n",
        ),
        tag("td", joined(ends, ", "), class_="n"),
        tag("td", citations.percent(row["i_squared"], cell("i_squared", table, number)), class_="n"),
        tag("td", cost_of(row, table, number), class_="n"),
    ]
    return tag("tr", cells)
