"""The overview's part "What warps wait for": the figure of warp stalls, and its numbers as a table."""

import hashlib
import math
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.codes import WARP_STALLS
from causeway.core.queries import of_table
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.kernel_labels import short_names
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.warp_stalls import LABEL, draw_warp_stalls, stalls_by_kernel

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 12
"""Kernels of the table; the figure and `stall_reasons.parquet` have more."""
MOST_REASONS = 6
"""Reasons of the table: those that the shown kernels wait for longest."""
NOTE = (
    "Cycles that a warp waits for each reason before it issues an instruction, means over the launches with counters"
    " (Nsight Compute's warp stall reasons). Waiting costs time only where too few warps are ready: see also how often"
    " a scheduler issues."
)


def warp_stalls(table: "pa.Table", name: str) -> Markup | None:
    """Return the part of a dataset; None without counters of warp stalls.

    Parameters
    ----------
    table : Table
        `stall_reasons.parquet`.
    name : str
        The dataset.
    """
    kernels = list(stalls_by_kernel(table).values())[:MOST_ROWS]
    if not kernels:
        return None
    sums = {
        reason: math.fsum(row["cycles"] for rows in kernels for row in rows if row["reason"] == reason)
        for reason in WARP_STALLS
    }
    reasons = [reason for reason in sorted(sums, key=lambda one: -sums[one]) if sums[reason] > 0][:MOST_REASONS]
    short = short_names([rows[0]["name"] for rows in kernels], LABEL)
    file = f"{name}/stall_reasons.parquet"
    body = [_row(rows, reasons, short[rows[0]["name"]], file) for rows in kernels]
    heads = [
        tag("th", "kernel"),
        *(tag("th", word, class_="n") for word in ("launches", "all recorded", *map(WARP_STALLS.get, reasons))),
    ]
    drawing = inline(draw_warp_stalls(table, dataset=name))
    return joined(
        [
            tag("h3", "What warps wait for", id=f"{name}--stalls"),
            tag("p", NOTE, class_="note"),
            tag("figure", drawing, class_="drawing", data_repeats="stall_reasons"),
            tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="wide"),
        ]
    )


def _row(rows: list[dict], reasons: list[str], label: str, file: str) -> Markup:
    digest = hashlib.md5(rows[0]["kernel"].encode(), usedforsecurity=False).hexdigest()  # names come from outside
    own = f"md5(kernel) = '{digest}'"
    cycles = {row["reason"]: row["cycles"] for row in rows}
    cells = [
        tag("td", citations.name(label)),
        tag("td", citations.count(rows[0]["launches"], of_table("any_value(launches)", file, own)), class_="n"),
    ]
    cells.append(
        tag("td", citations.quantity(math.fsum(cycles.values()), "", of_table("sum(cycles)", file, own)), class_="n")
    )
    for reason in reasons:
        where = f"{own} AND reason = '{reason}'"
        value = cycles.get(reason)
        cells.append(tag("td", citations.quantity(value, "", of_table("cycles", file, where)), class_="n"))
    return tag("tr", cells)
