"""What the warps of kernels wait for: one bar for each kernel, split by reason."""

from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.codes import WARP_STALLS
from causeway.core.formatting import elided
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.kernel_labels import short_names

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

LABEL = 40
"""Characters of a kernel's name."""
MOST_KERNELS = 24
MEMORY = ("#12343f", "#1b4d5b", "#2b7183", "#4997aa", "#78b6c4", "#355e8d", "#3d7fb5", "#8db8db")
OTHER_WARPS = ("#a34f06", "#dd7a1f", "#fbdcbc")
EXECUTION = ("#433e85", "#a54a8f", "#7a5fb0", "#b39ddb", "#c9a227", theme.GRID, theme.UNKNOWN)
COLOURS = dict(zip(WARP_STALLS, (*MEMORY, *OTHER_WARPS, *EXECUTION), strict=True))
"""One hue for each family: memory blue, other warps orange, execution violet; grey is no loss, or not told."""


def stalls_by_kernel(table: "pa.Table") -> dict[str, list[dict]]:
    """Return the rows by kernel, both in the table's order.

    Parameters
    ----------
    table : Table
        `stall_reasons`.
    """
    found: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        found.setdefault(row["kernel"], []).append(row)
    return found


def draw_warp_stalls(table: "pa.Table", *, dataset: str) -> "Figure":
    """Return one bar for each of the first `MOST_KERNELS` kernels, as long as the cycles that a warp waits before it
    issues its next instruction.

    Parameters
    ----------
    table : Table
        `stall_reasons`.
    dataset : str
        For the title.
    """
    import pandas as pd

    title = "What warps wait for"
    kernels = list(stalls_by_kernel(table).values())[:MOST_KERNELS]
    short = short_names([rows[0]["name"] for rows in kernels], LABEL)
    cycles = [{WARP_STALLS[row["reason"]]: max(row["cycles"], 0.0) for row in rows} for rows in kernels]
    frame = pd.DataFrame(cycles, [short[rows[0]["name"]] for rows in kernels]).fillna(0)
    frame = frame[[words for words in WARP_STALLS.values() if words in frame and frame[words].any()]]
    if frame.empty:
        return notice(title, dataset, ["The export has no counters of warp stalls, or no warp waited."])
    below = f"{elided(dataset, 60)}: cycles per issued instruction, by reason"
    with theme.drawing():
        figure, axis = charts.sheet(title, below, charts.ROW * (len(frame) + len(frame.columns) // 5 + 1) + 0.4)
        colours = {WARP_STALLS[reason]: colour for reason, colour in COLOURS.items()}
        charts.stacked(axis, frame, colours, lambda why, n: f"{why}: {formatting.significant(n, 3)} cycles")
        whole = frame.sum(axis=1)
        charts.words_at(axis, whole, [formatting.significant(cycles, 3) for cycles in whole])
        charts.key(axis, colours, list(frame.columns), 5)
    return figure
