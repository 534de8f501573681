"""Signed bars with intervals: contributions, what-ifs, and slopes of groups, on one axis with zero in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, text

ROW = 26.0
PLOT = 300.0
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


def ticks(low: float, high: float) -> list[float]:
    """Return at most seven round numbers from `low` to `high`, zero among them."""
    span = high - low
    step = next(
        size * 10.0**power
        for power in range(-6, 12)
        for size in (1, 2, 5)
        if span / (size * 10.0**power) <= 5.5 or power == 11
    )
    first = int(low // step)
    return [number * step for number in range(first, int(high // step) + 2) if low <= number * step <= high]


def interval_bars(bars: Sequence[Bar], title: str, below: str, axis: str) -> Markup:
    """Return the figure.

    Parameters
    ----------
    bars : sequence of Bar
        From top to bottom.
    title, below : str
        Two lines above the bars.
    axis : str
        What is measured, with its unit.
    """
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    low = min([0.0, *ends])
    high = max([0.0, *ends])
    span = (high - low) or 1.0
    low = low - (0.04 * span if low < 0 else 0.0)
    high = high + 0.04 * span
    labels = max([text_width(elided(bar.label, LABEL), theme.SIZE) for bar in bars], default=0.0)
    left = MARGIN + labels + 12
    top = 66.0
    words = max([text_width(elided(bar.words, WORDS), theme.SMALL) for bar in bars], default=0.0)

    def x(value: float) -> float:
        return left + PLOT * (value - low) / (high - low)

    bottom = top + ROW * len(bars)
    parts = [tag("line", x1=x(t), x2=x(t), y1=top - 4, y2=bottom, stroke=theme.GRID) for t in ticks(low, high)]
    parts += [
        text(x(t), bottom + 16, formatting.significant(round(t, 9)), theme.SMALL, "middle", theme.MUTED)
        for t in ticks(low, high)
    ]
    parts.append(tag("line", x1=x(0.0), x2=x(0.0), y1=top - 4, y2=bottom, stroke=theme.FAINT, stroke_width=1.4))
    for place, bar in enumerate(bars):
        parts.append(_bar(bar, x, left, top + ROW * (place + 0.5)))
    # the axis' name may be longer than the axis
    half = text_width(axis, theme.SMALL) / 2
    middle = max(left + PLOT / 2, MARGIN + half)
    width = max(
        left + PLOT + 14 + words + MARGIN,
        middle + half + MARGIN,
        text_width(title, 15, bold=True) + 2 * MARGIN,
        text_width(below, theme.SMALL) + 2 * MARGIN,
    )
    head = [text(MARGIN, 24, title, 15, font_weight="bold"), text(MARGIN, 43, below, theme.SMALL, colour=theme.MUTED)]
    axis_name = text(middle, bottom + 34, axis, theme.SMALL, "middle", theme.MUTED)
    return document(width, bottom + 46, title, head, parts, axis_name)


def _bar(bar: Bar, x, left: float, y: float) -> Markup:
    label = text(
        left - 10, y + 4.5, elided(bar.label, LABEL), theme.SIZE, "end", theme.MUTED if bar.faint else theme.INK
    )
    words = text(left + PLOT + 12, y + 4.5, elided(bar.words, WORDS), theme.SMALL, colour=theme.MUTED)
    drawn: list[Markup] = []
    if bar.value is not None:
        begin, end = sorted((x(0.0), x(bar.value)))
        opacity = 0.45 if bar.faint else None
        drawn.append(
            tag("rect", x=begin, y=y - 7, width=max(end - begin, 1.0), height=14, fill=bar.colour, fill_opacity=opacity)
        )
    if bar.low is not None and bar.high is not None:
        whisker = (
            f"M{x(bar.low):.1f} {y:.1f}H{x(bar.high):.1f}M{x(bar.low):.1f} {y - 4:.1f}v8M{x(bar.high):.1f}"
            f" {y - 4:.1f}v8"
        )
        drawn += [
            tag("path", d=whisker, fill="none", stroke=edge, stroke_width=w)
            for edge, w in ((theme.PAPER, 3.4), (theme.INK, 1.3))
        ]
    return tag("g", tag("title", bar.hover or f"{bar.label}: {bar.words}"), label, drawn, words)
