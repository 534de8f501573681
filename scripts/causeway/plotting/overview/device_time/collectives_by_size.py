"""The overview's part "Collectives by size": how long they take, and the bandwidth that they reach."""

from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.queries import cell
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 6
"""Rows shown, those with most time; the table has all."""
HEADS = ("collective", "message", "ranks", "how often", "time in all", "median", "bus bandwidth", "best")
NOTE = "Bus bandwidth as nccl-tests define it, at the median and at the shortest time."
OWN_RANK = " Where not all ranks are known, waiting is in it: the bandwidth is a lower bound."


def collectives_by_size(table: "pa.Table", name: str) -> list[Markup]:
    """Return a note and a table; nothing without collectives whose size is recorded.

    Parameters
    ----------
    table : Table
        `collective_sizes.parquet`.
    name : str
        The dataset.
    """
    rows = [(at, row) for at, row in enumerate(table.to_pylist()) if row["bytes"] is not None][:MOST_ROWS]
    if not rows:
        return []
    file = f"{name}/collective_sizes.parquet"
    head = tag("tr", [tag("th", words, class_="n" if at else None) for at, words in enumerate(HEADS)])
    body = [tag("tr", _cells(row, at, file)) for at, row in rows]
    note = NOTE + ("" if all(row["matched"] for _, row in rows) else OWN_RANK)
    return [
        tag("h4", "Collectives by size", id=f"{name}--collectives"),
        tag("p", note, class_="note glossary"),
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="wide"),
    ]


def _cells(row: dict, at: int, file: str) -> list[Markup]:
    words = ", ".join(filter(None, [row["operation"].replace("_", "-"), row["algorithm"], row["protocol"]]))
    size = citations.cited(formatting.quantity(row["bytes"], "bytes"), row["bytes"], cell("bytes", file, at), "bytes")
    cells = [
        size,
        citations.cited(_ranks(row["ranks"]), row["ranks"], cell("ranks", file, at), "count"),
        citations.count(row["collectives"], cell("collectives", file, at)),
        *(citations.time(row[column], cell(column, file, at)) for column in ("total_ns", "median_ns")),
        *(
            citations.quantity(row[column], "GB/s", cell(column, file, at))
            for column in ("bus_gb_per_s", "best_bus_gb_per_s")
        ),
    ]
    return [tag("td", tag("span", words, class_="id")), *(tag("td", value, class_="n") for value in cells)]


def _ranks(ranks: int | None) -> str:
    return formatting.NOT_MEASURED if ranks is None else formatting.count(ranks)
