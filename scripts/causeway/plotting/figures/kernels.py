"""Kernels ranked by their share of the total variability, with what is known of each: the rows of a table, drawn or
in a page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import TRACE_TARGETS, target_name
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.kernel_labels import full_name, short_names
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, bar, document, histogram, notice, sparkline, text
from causeway.plotting.drawing.target_labels import unit_stated

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 40
ROW = 32.0


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel as it is shown; shares are 0 to 1."""

    id: str
    name: str
    short: str
    kind: str
    share: float
    value_share: float | None
    launches: int
    configurations: int
    median: float
    smallest: float
    largest: float
    robust_cv: float | None
    between: float | None
    by_size: float | None
    histogram: Sequence[int]
    timeline: Sequence[float | None]


def kernels_of(table: "pa.Table") -> list[Kernel]:
    """Return the kernels of a `kernel_summary`, the largest share of the total variability first, ties by name."""
    rows = table.to_pylist()
    short = short_names(row["name"] for row in rows)
    total = math.fsum(row["value_sum"] for row in rows)
    rows.sort(key=lambda row: (-row["target_share"], -row["target_sum"], row["name"]))
    return [
        Kernel(
            id=row["kernel"],
            name=row["name"],
            short=short[row["name"]],
            kind=row["class"],
            share=row["target_share"],
            value_share=row["value_sum"] / total if total > 0 else None,
            launches=row["launches"],
            configurations=row["configurations"],
            median=row["value_median"],
            smallest=row["value_min"],
            largest=row["value_max"],
            robust_cv=row["robust_cv"],
            between=row["variance_between"],
            by_size=row["size_variance"],
            histogram=row["histogram"] or [],
            timeline=row["timeline"] or [],
        )
        for row in rows
    ]


def value_heading(target: str) -> str:
    """Return what a launch's measured value is called: time for targets of traces, else the counter."""
    return "time" if target in TRACE_TARGETS else target


def columns_of(target: str) -> list[tuple[str, float, str]]:
    """Return heading, width in pixels and alignment of the columns behind the kernel's name."""
    value = elided(value_heading(target), 16)

    def wide(heading: str, least: float) -> float:
        return max(least, text_width(heading, theme.SMALL) + 16)

    return [
        ("share of variability", 166, "start"),
        (f"share of {value}", wide(f"share of {value}", 104), "end"),
        ("launches", 92, "end"),
        (f"median {value}", wide(f"median {value}", 104), "end"),
        ("robust CV", 96, "end"),
        (f"{value} per launch", wide(f"{value} per launch", 130), "start"),
        ("variability over time", 160, "start"),
    ]


def draw_kernels(table: "pa.Table", *, dataset: str, target: str, most: int = MOST_ROWS) -> Markup:
    """Return the kernels of a dataset as a table of small figures.

    Parameters
    ----------
    table : pyarrow.Table
        A `kernel_summary`: all launches, not only the kept ones.
    dataset, target : str
        For the title.
    most : int
        Kernels that are drawn, the largest share first.
    """
    kernels = kernels_of(table)
    title = f"Kernels by their share of {target_name(target)}, {dataset}"
    if not kernels:
        why = f"No launch of this dataset has a {target_name(target)}; the data quality section says why."
        return notice(title, "0 kernels", [why])
    unit = unit_stated(table)
    shown = kernels[:most]
    columns = columns_of(target)
    name_width = max(max(text_width(k.short, theme.SIZE) for k in shown) + 26, 160)
    lefts = [MARGIN + name_width + math.fsum(width for _, width, _ in columns[:i]) + 14 for i in range(len(columns))]
    width = lefts[-1] + columns[-1][1] + MARGIN
    top = 96.0
    head = [text(MARGIN, top - 12, "kernel", theme.SMALL, colour=theme.MUTED)]
    for left, (heading, room, align) in zip(lefts, columns, strict=True):
        head.append(
            text(left if align == "start" else left + room - 14, top - 12, heading, theme.SMALL, align, theme.MUTED)
        )
    largest = max(k.share for k in shown)
    rows = [
        _row(k, position, top + position * ROW, lefts, columns, largest, unit, width)
        for position, k in enumerate(shown)
    ]
    rest = kernels[most:]
    said = (
        f"{formatting.counted(sum(k.launches for k in kernels), 'launch')} of"
        f" {formatting.counted(len(kernels), 'kernel')}"
    )
    if rest:
        share = formatting.share(math.fsum(k.share for k in rest))
        said += f"; {len(rest)} more, not drawn, with {share} of the variability together"
    kinds = list(dict.fromkeys(k.kind for k in shown))
    key = []
    x = 0.0
    for kind in kinds:
        key += [
            tag("circle", cx=x + 5, cy=-4, r=4.5, fill=theme.class_colour(kind)),
            text(x + 14, 0, kind, theme.SMALL, colour=theme.MUTED),
        ]
        x += text_width(kind, theme.SMALL) + 34
    return document(
        width,
        top + len(shown) * ROW + 34,
        title,
        text(MARGIN, 24, title, 15, font_weight="bold"),
        text(MARGIN, 43, said + ".", theme.SMALL, colour=theme.MUTED),
        head,
        tag("line", x1=MARGIN, x2=width - MARGIN, y1=top - 4, y2=top - 4, stroke=theme.FAINT),
        rows,
        tag("g", key, transform=f"translate({MARGIN:.0f} {top + len(shown) * ROW + 20:.0f})"),
    )


def _row(
    kernel: Kernel, position: int, y: float, lefts: list[float], columns: list, largest: float, unit: str, width: float
) -> Markup:
    base = y + ROW / 2 + 4.5

    def cell(column: int, words: str) -> Markup:
        return text(lefts[column] + columns[column][1] - 14, base, words, theme.SIZE, "end")

    place = {"y": y + 3}
    spread = (
        f"from {formatting.quantity(kernel.smallest, unit)} to {formatting.quantity(kernel.largest, unit)},"
        " in 32 classes of equal ratio"
    )
    return tag(
        "g",
        (
            tag("rect", x=MARGIN - 6, y=y, width=width - 2 * MARGIN + 12, height=ROW, fill="#f6f8fa")
            if position % 2
            else None
        ),
        tag("circle", cx=MARGIN + 5, cy=y + ROW / 2, r=4.5, fill=theme.class_colour(kernel.kind)),
        tag("g", tag("title", full_name(kernel.name)), text(MARGIN + 16, base, kernel.short)),
        bar(kernel.share, largest, theme.SEQUENTIAL[5], width=92, height=16, x=lefts[0], y=y + ROW / 2 - 8),
        text(lefts[0] + 100, base, formatting.share(kernel.share if largest > 0 else None)),
        cell(1, formatting.share(kernel.value_share)),
        cell(2, formatting.count(kernel.launches)),
        cell(3, formatting.quantity(kernel.median, unit)),
        cell(4, formatting.spread(kernel.robust_cv)),
        tag("g", tag("title", spread), histogram(kernel.histogram, 108, 26, x=lefts[5], **place)),
        sparkline(kernel.timeline, 150, 26, x=lefts[6], **place),
    )
