"""Kernels ranked by their share of the total variability, with what is known of each: the rows of a table, drawn or
in a page.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from causeway.core import formatting
from causeway.core.codes import WARP_STALLS
from causeway.core.formatting import elided
from causeway.core.vocabulary import TRACE_TARGETS, target_name
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.drawn import Axes, Figure
from causeway.plotting.drawing.labels import full_name, short_names, unit_stated

LONGEST_HEADING = 16
"""Characters of a heading for which columns of words have room; longer ones take two lines."""
MOST_ROWS = 24


class Kernel:
    """One kernel as it is shown, from its row of a `kernel_summary`, its short name and the sum of all values; shares
    are 0 to 1.
    """

    def __init__(self, row: Mapping, short: str, total: float) -> None:
        self.id: str = row["kernel"]
        self.name: str = row["name"]
        self.short = short
        self.kind: str = row["class"]
        self.share: float = row["target_share"]
        self.value_share = row["value_sum"] / total if total > 0 else None
        self.launches: int = row["launches"]
        self.median: float = row["value_median"]
        self.smallest: float = row["value_min"]
        self.largest: float = row["value_max"]
        self.robust_cv: float | None = row["robust_cv"]
        self.histogram: Sequence[int] = row["histogram"] or []
        self.timeline: Sequence[float | None] = row["timeline"] or []


def kernels_of(table: pa.Table) -> list[Kernel]:
    """Return the kernels of a `kernel_summary`, the largest share of the total variability first, ties by name."""
    rows = table.to_pylist()
    short = short_names(row["name"] for row in rows)
    total = math.fsum(row["value_sum"] for row in rows)
    rows.sort(key=lambda row: (-row["target_share"], -row["target_sum"], row["name"]))
    return [Kernel(row, short[row["name"]], total) for row in rows]


def headings_of(target: str) -> list[str]:
    """Return the headings of the columns behind the kernel's name."""
    value = elided("time" if target in TRACE_TARGETS else target, 12)
    words = (f"share of {value}", "launches", f"median {value}", "robust CV", f"{value} per launch")
    return ["share of variability", *words, "variability over time"]


def draw_kernels(table: pa.Table, *, dataset: str, target: str, most: int = MOST_ROWS) -> Figure:
    """Return the kernels of a dataset as rows of small figures.

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
    said = (
        f"{formatting.counted(sum(k.launches for k in kernels), 'launch')} of"
        f" {formatting.counted(len(kernels), 'kernel')}"
    )
    if rest := kernels[most:]:
        share = formatting.share(math.fsum(k.share for k in rest))
        said += f"; {len(rest)} more, not drawn, with {share} of the variability together"
    headings = headings_of(target)
    with theme.drawing():
        height = 1.2 * charts.ROW * len(shown) + 0.75
        lines = 1 + (max(map(len, headings[1:5])) > LONGEST_HEADING)
        headings = [heading.replace(" ", "\n", lines - 1) for heading in headings]
        figure, axes = charts.panels(title, f"{said}.", height, gap=0, ncols=4, width_ratios=(2, 4.6, 1.5, 2))
        shares, words, spread, times = axes[0]
        charts.labels(shares, [kernel.short for kernel in shown])
        charts.hover(shares.get_yticklabels(), [full_name(kernel.name) for kernel in shown])
        colours = {kernel.kind: theme.class_colour(kernel.kind) for kernel in shown}
        largest = max(kernel.share for kernel in shown)
        shares.barh(range(len(shown)), [k.share for k in shown], color=[colours[k.kind] for k in shown], linewidth=0)
        shares.set_xlim(0, 1.5 * largest or 1)
        charts.words_at(
            shares,
            [kernel.share for kernel in shown],
            [formatting.share(kernel.share if largest > 0 else None) for kernel in shown],
        )
        columns = [[formatting.share(kernel.value_share) for kernel in shown]]
        columns += [[formatting.count(kernel.launches) for kernel in shown]]
        columns += [[formatting.quantity(kernel.median, unit) for kernel in shown]]
        columns += [[formatting.spread(kernel.robust_cv) for kernel in shown]]
        style = {"ha": "right", "va": "center", "in_layout": False}
        for place, (heading, column) in enumerate(zip(headings[1:5], columns, strict=True)):
            for row, text in enumerate([heading, *column], -1):
                words.text(place + 0.9, row, text, color=theme.INK if row >= 0 else theme.MUTED, **style)
        words.set_xlim(0, 4)
        _spreads(spread, shown, unit)
        _timelines(times, shown)
        for axis, heading in ((shares, headings[0]), (spread, headings[5]), (times, headings[6])):
            axis.annotate(heading, (0, -1), xycoords=axis.get_yaxis_transform(), va="center", color=theme.MUTED)
        for axis in axes[0]:
            axis.set(xticks=[], ylim=(len(shown) - 0.5, -1.0 - 0.5 * lines))
            if axis is not shares:
                axis.set_yticks([])
            axis.spines[:].set_visible(False)
            for row in range(1, len(shown), 2):
                axis.axhspan(row - 0.5, row + 0.5, color=theme.PANEL, zorder=0, linewidth=0)
        charts.key(figure, colours, list(colours))
    return figure


def _spreads(axis: Axes, kernels: Sequence[Kernel], unit: str) -> None:
    """Draw the histogram of each kernel; a class with few launches keeps a sliver, so that an outlier is seen."""
    import numpy as np
    from matplotlib.collections import PolyCollection

    shapes = []
    words = []
    for row, kernel in enumerate(kernels):
        counts = np.asarray(kernel.histogram, float)
        if counts.any():
            heights = np.where(counts > 0, np.maximum(0.8 * counts / counts.max(), 0.06), 0)
            edges = np.linspace(0, 1, len(counts) + 1).repeat(2)
            shapes.append(np.column_stack([edges, row + 0.4 - np.concatenate([[0], heights.repeat(2), [0]])]))
            spread = f"from {formatting.quantity(kernel.smallest, unit)} to {formatting.quantity(kernel.largest, unit)}"
            words.append(f"{spread}, in {len(counts)} classes of equal ratio")
    bars = axis.add_collection(PolyCollection(shapes, facecolor=theme.SEQUENTIAL[5], linewidth=0))
    charts.hover(bars, words)
    axis.set_xlim(-0.02, 1.1)


def _timelines(axis: Axes, kernels: Sequence[Kernel]) -> None:
    """Draw the timeline of each kernel and a dot at its largest value."""
    from matplotlib.collections import LineCollection

    lines = []
    peaks = []
    for row, kernel in enumerate(kernels):
        pieces, peak = timeline_of(kernel.timeline, row + 0.4)
        lines += pieces
        peaks += peak
    axis.add_collection(LineCollection(lines, color=theme.MUTED, linewidth=0.9, capstyle="round", joinstyle="round"))
    xs, ys = ([peak[coordinate] for peak in peaks] for coordinate in (0, 1))
    axis.scatter(xs, ys, color=theme.DIVERGING[-2], s=8, linewidth=0, zorder=3) if peaks else None
    axis.set_xlim(-0.02, 1.02)


def timeline_of(values: Sequence[float | None], base: float) -> tuple[list, list]:
    """Return the pieces of a line over equal slices, as lists of (x from 0 to 1, `base` less 0 to 0.8), and its peak.

    No piece crosses a slice without a value; a value alone is a piece of two equal points, which is drawn as a dot.
    """
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    points = [
        None if value is None else (place / max(len(values) - 1, 1), base - 0.8 * value / top)
        for place, value in enumerate(values)
    ]
    pieces = [list(filter(None, run)) for has_value, run in itertools.groupby(points, key=bool) if has_value]
    peak = min((point for piece in pieces for point in piece), key=lambda point: (point[1], point[0]), default=None)
    return [piece if len(piece) > 1 else piece * 2 for piece in pieces], [] if peak is None else [peak]


LABEL = 40
"""Characters of a kernel's name."""
MOST_KERNELS = 24
MEMORY = ("#12343f", "#1b4d5b", "#2b7183", "#4997aa", "#78b6c4", "#355e8d", "#3d7fb5", "#8db8db")
OTHER_WARPS = ("#a34f06", "#dd7a1f", "#fbdcbc")
EXECUTION = ("#433e85", "#a54a8f", "#7a5fb0", "#b39ddb", "#c9a227", theme.GRID, theme.UNKNOWN)
COLOURS = dict(zip(WARP_STALLS, (*MEMORY, *OTHER_WARPS, *EXECUTION), strict=True))
"""One hue for each family: memory blue, other warps orange, execution violet; grey is no loss, or not told."""


def stalls_by_kernel(table: pa.Table) -> dict[str, list[dict]]:
    """Return the rows by kernel, both in the table's order.

    Parameters
    ----------
    table : Table
        `stall_reasons`.
    """
    by_kernel: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        by_kernel.setdefault(row["kernel"], []).append(row)
    return by_kernel


def draw_warp_stalls(table: pa.Table, *, dataset: str) -> Figure:
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
