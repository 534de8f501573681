"""Parts of drawings in SVG: text, a stand-alone document, and the small ones inside tables: sparkline, histogram,
bar.
"""

from collections.abc import Sequence

from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width, wrapped

MARGIN = 18.0
"""Pixels around a stand-alone drawing."""


def frame(width: float, height: float, *children: object, label: str | None = None, **place: object) -> Markup:
    """Return an `<svg>` of that size, alone or inside another; `label` is what a screen reader says, None hides it."""
    reads = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag("svg", *children, width=width, height=height, viewBox=f"0 0 {width} {height}", **reads, **place)


def histogram(
    counts: Sequence[int], width: int = 96, height: int = 26, label: str | None = None, **place: object
) -> Markup:
    """Return bars of counts in equal classes; a class with few launches keeps a pixel, so that an outlier is seen."""
    top = max(counts, default=0)
    if not top:
        return frame(width, height, label=label, **place)
    step = width / len(counts)
    bars = [
        f"M{i * step:.1f}"
        f" {height - 1}h{max(step - 0.6, 0.6):.1f}v{-max((height - 3) * c / top, 1.4):.1f}h{-max(step - 0.6, 0.6):.1f}z"
        for i, c in enumerate(counts)
        if c
    ]
    base = tag("line", x1=0, x2=width, y1=height - 0.5, y2=height - 0.5, stroke=theme.GRID)
    return frame(width, height, base, tag("path", d="".join(bars), fill=theme.SEQUENTIAL[5]), label=label, **place)


def bar(
    value: float | None,
    full: float,
    colour: str,
    low: float | None = None,
    high: float | None = None,
    width: int = 110,
    height: int = 14,
    **place: object,
) -> Markup:
    """Return a bar of `value` out of `full` with its interval as a whisker; empty where the value is not known."""
    if value is None or full <= 0:
        return frame(width, height, **place)
    scale = width / full
    parts = [
        tag("rect", x=0, y=1, width=width, height=height - 2, fill="#eef1f4"),
        tag("rect", x=0, y=1, width=min(value * scale, width), height=height - 2, fill=colour),
    ]
    if low is not None and high is not None:
        left, right = (min(max(end * scale, 0.0), float(width)) for end in (low, high))
        for edge, thick in ((theme.PAPER, 3.2), (theme.INK, 1.2)):
            parts.append(tag("path", d=f"M{left:.1f} {height / 2}H{right:.1f}", stroke=edge, stroke_width=thick))
    return frame(width, height, parts, **place)


def text(
    x: float,
    y: float,
    line: object,
    size: float = theme.SIZE,
    anchor: str = "start",
    colour: str = theme.INK,
    **more: object,
) -> Markup:
    """Return one line of text with its baseline at `y`."""
    return tag(
        "text", line, x=x, y=y, font_size=size, text_anchor=None if anchor == "start" else anchor, fill=colour, **more
    )


def document(width: float, height: float, label: str, *children: object) -> Markup:
    """Return a stand-alone SVG, also fit to stand in a page."""
    return tag(
        "svg",
        tag("title", label),
        tag("rect", width=float(width), height=float(height), fill=theme.PAPER),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        font_family=theme.FONT,
    )


def notice(title: str, below: str, sentences: Sequence[str]) -> Markup:
    """Return the small figure that stands where there is nothing to draw: a title and, in words, why."""
    width = max(560.0, text_width(title, 15, bold=True) + 2 * MARGIN)
    lines = [line for words in sentences for line in wrapped(elided(words, 600), width - 2 * MARGIN - 20, theme.SIZE)]
    height = 76.0 + 20 * len(lines)
    return document(
        width,
        height + 8,
        title,
        text(MARGIN, 24, title, 15, font_weight="bold"),
        text(MARGIN, 43, below, theme.SMALL, colour=theme.MUTED),
        tag("rect", x=MARGIN, y=56, width=4, height=height - 64, fill=theme.UNDECIDED),
        [text(MARGIN + 16, 74 + 20 * i, line) for i, line in enumerate(lines)],
    )
