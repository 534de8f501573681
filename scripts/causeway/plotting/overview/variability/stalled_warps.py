"""The overview's part "What warps wait for": the figure of warp stalls."""

from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.warp_stalls import draw_warp_stalls, stalls_by_kernel

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "Cycles that a warp waits before it issues an instruction, by reason: means over the launches with counters."


def warp_stalls(table: "pa.Table", name: str) -> Markup | None:
    """Return the part of a dataset; None without counters of warp stalls.

    Parameters
    ----------
    table : Table
        `stall_reasons.parquet`.
    name : str
        The dataset.
    """
    if not stalls_by_kernel(table):
        return None
    drawing = inline(draw_warp_stalls(table, dataset=name))
    return joined(
        [
            tag("h3", "What warps wait for", id=f"{name}--stalls"),
            tag("p", NOTE, class_="note"),
            tag("figure", drawing, class_="drawing", data_repeats="stall_reasons"),
        ]
    )
