"""What the warps of kernels wait for: one bar for each kernel, split by reason."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import WARP_STALLS
from causeway.core.formatting import elided
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.kernel_labels import short_names
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

if TYPE_CHECKING:
    import pyarrow as pa

WIDTH = 1180.0
ROW = 24.0
LEFT = 320.0
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


def draw_warp_stalls(table: "pa.Table", *, dataset: str) -> Markup:
    """Return one bar for each of the first `MOST_KERNELS` kernels, as long as the cycles that a warp waits before it
    issues its next instruction.

    Parameters
    ----------
    table : Table
        `stall_reasons`.
    dataset : str
        For the title.
    """
    title = "What warps wait for"
    kernels = list(stalls_by_kernel(table).values())[:MOST_KERNELS]
    most = max((math.fsum(row["cycles"] for row in rows) for rows in kernels), default=0.0)
    if not most:
        return notice(title, dataset, ["The export has no counters of warp stalls, or no warp waited."])
    used = [
        reason
        for reason in WARP_STALLS
        if any(row["reason"] == reason and row["cycles"] for rows in kernels for row in rows)
    ]
    keys, below = _legend(used)
    drawn = [
        text(MARGIN, 26, title, 15, font_weight="bold"),
        text(
            MARGIN,
            45,
            f"{elided(dataset, 60)}: cycles per issued instruction, by reason",
            theme.SMALL,
            colour=theme.MUTED,
        ),
        *keys,
    ]
    short = short_names([rows[0]["name"] for rows in kernels], LABEL)
    scale = (WIDTH - LEFT - 90) / most
    for number, rows in enumerate(kernels):
        y = below + ROW * number
        drawn.append(text(LEFT - 10, y + 13, short[rows[0]["name"]], theme.SMALL, "end"))
        x = LEFT
        for row in rows:
            width = max(row["cycles"], 0.0) * scale
            if width:
                words = f"{WARP_STALLS[row['reason']]}: {formatting.significant(row['cycles'], 3)} cycles"
                drawn.append(
                    tag("rect", tag("title", words), x=x, y=y, width=width, height=18, fill=COLOURS[row["reason"]])
                )
                x += width
        drawn.append(
            text(x + 6, y + 13, formatting.significant(math.fsum(row["cycles"] for row in rows), 3), theme.SMALL)
        )
    return document(WIDTH, below + ROW * len(kernels) + 14, f"{title}, {dataset}", *drawn)


def _legend(reasons: Sequence[str]) -> tuple[list[Markup], float]:
    """Return the legend in as many lines as it needs, and where the bars begin below it."""
    drawn = []
    x = MARGIN
    y = 60.0
    for reason in reasons:
        width = 34 + text_width(WARP_STALLS[reason], theme.SMALL)
        if x + width > WIDTH - MARGIN:
            x = MARGIN
            y += 20
        drawn.append(tag("rect", x=x, y=y, width=12, height=12, fill=COLOURS[reason]))
        drawn.append(text(x + 17, y + 10, WARP_STALLS[reason], theme.SMALL))
        x += width
    return drawn, y + 32
