"""Signed bars with intervals: contributions, what-ifs, and slopes of groups, on one axis with zero in it.

A table of a page, in which style sheets place the bars: pages hold one for each searched kernel, and matplotlib takes
.2 CPU-s for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.page import rendered

LABEL = 44
WORDS = 100


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: its label, value and interval (None where there is none), its colour, and what stands behind it."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    colour: str
    words: str
    hover: str = ""
    faint: bool = False


def interval_bars(bars: Sequence[Bar], title: str, below: str, axis: str) -> Markup:
    """Return the bars as a table.

    Parameters
    ----------
    bars : sequence of Bar
        From top to bottom.
    title, below : str
        Two lines above the bars.
    axis : str
        What is measured, with its unit.
    """
    ends = [0.0, *(end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None)]
    low = min(ends)
    high = max(ends)
    span = (high - low) or 1.0

    def place(*values: float | None) -> str | None:
        """Return where what lies between two values begins and how wide it is, or where one is."""
        if None in values:
            return None
        left = 100 * (min(values) - low) / span
        return f"left:{left:.2f}%;width:{100 * (max(values) - min(values)) / span:.2f}%"

    rows = [
        {
            "label": elided(bar.label, LABEL),
            "words": elided(bar.words, WORDS),
            "hover": bar.hover or f"{bar.label}: {bar.words}",
            "faint": bar.faint,
            "bar": bar.value is not None and f"{place(0.0, bar.value)};background:{bar.colour}",
            "interval": place(bar.low, bar.high),
        }
        for bar in bars
    ]
    ticks = [(place(tick), formatting.significant(round(tick, 9))) for tick in theme.nice_ticks(low, high, 4)]
    values = {"title": title, "below": below, "axis": axis, "bars": rows, "ticks": ticks, "zero": place(0.0)}
    return rendered("interval_bars.html", **values)
