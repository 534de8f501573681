"""Series of runs drawn: parallel efficiency, computation scalability and global efficiency from the smallest run to the largest."""

import itertools
from collections.abc import Mapping, Sequence

from causeway.plotting import theme
from causeway.plotting.efficiency import FLAVOURS
from causeway.plotting.marks import MARGIN, document, text
from causeway.plotting.markup import Markup, tag, text_width
from causeway.plotting.names import elided

LINES = (
    ("parallel_efficiency", "parallel efficiency", "#3b6fb6"),
    ("computation_scalability", "computation scalability", "#1b9e8a"),
    ("global_efficiency", "global efficiency = both multiplied", "#c8630f"),
)
WIDTH, LEFT, HIGH, STEP, ROW, CELL, GROUP = 1180.0, 78.0, 230.0, 104.0, 20.0, 62.0, 210.0
MOST_RUNS = 10
"""Runs side by side; of longer series the first ones and the last."""


def drawing(document_: Mapping) -> Markup:
    """Return the figure of `series.json`: per series its lines over the runs, and a table of the three numbers in all flavours."""
    parts, y = [text(MARGIN, 26, "Series of runs", 15, font_weight="bold")], 44.0
    for name, series in document_["series"].items():
        y = _series(name, series, parts, y) + 26
    return document(WIDTH, y, "Series of runs", *parts)


def _series(name: str, series: Mapping, parts: list[Markup], top: float) -> float:
    runs, left_out = list(series["runs"]), 0
    if len(runs) > MOST_RUNS:
        left_out = len(runs) - MOST_RUNS
        runs = [*runs[: MOST_RUNS - 1], runs[-1]]
    words = f"{series['scaling']} scaling; reference {elided(series['reference'], 60)}, the run with the fewest devices"
    words += f"; {left_out} runs before the last one not shown" if left_out else ""
    parts.append(text(MARGIN, top + 14, elided(name, 100), theme.SIZE, font_weight="bold"))
    parts.append(text(MARGIN, top + 32, words, theme.SMALL, colour=theme.MUTED))
    y = _lines(runs, parts, top + 48)
    return _table(runs, parts, y + 6)


def _lines(runs: Sequence[Mapping], parts: list[Markup], top: float) -> float:
    """Draw the lines of the flavour `device`; return where they end."""
    known = [run["device"][key] for run in runs for key, _, _ in LINES if run["device"][key] is not None]
    highest = max([1.0, *known]) * 1.04
    right, bottom = LEFT + STEP * len(runs), top + HIGH

    def height(value: float) -> float:
        return bottom - HIGH * value / highest

    for tick in theme.nice_ticks(0.0, highest, 6):
        parts.append(tag("line", x1=LEFT, x2=right, y1=height(tick), y2=height(tick), stroke=theme.GRID))
        parts.append(text(LEFT - 8, height(tick) + 4, theme.significant(tick), theme.SMALL, "end", theme.MUTED))
    parts.append(tag("line", x1=LEFT, x2=right, y1=height(1.0), y2=height(1.0), stroke=theme.MUTED, stroke_dasharray="4 4"))
    for number, (key, _, colour) in enumerate(LINES):
        points = [(LEFT + STEP * (at + 0.5), run["device"][key]) for at, run in enumerate(runs)]
        for (x, value), (after, following) in itertools.pairwise(points):
            if value is not None and following is not None:  # no line across a run without the number
                parts.append(tag("line", x1=x, x2=after, y1=height(value), y2=height(following), stroke=colour, stroke_width=1.8))
        parts += [tag("circle", cx=x, cy=height(value), r=4.2 - 0.8 * number, fill=colour) for x, value in points if value is not None]
    for at, run in enumerate(runs):
        words = f"{theme.count(run['n_devices'])} device{'s' if run['n_devices'] != 1 else ''}"
        parts.append(text(LEFT + STEP * (at + 0.5), bottom + 17, words, theme.SMALL, "middle", theme.MUTED))
    return _key(parts, bottom + 32)


def _key(parts: list[Markup], y: float) -> float:
    x = LEFT
    for _, label, colour in LINES:
        parts.append(tag("rect", x=x, y=y, width=12, height=12, fill=colour))
        parts.append(text(x + 18, y + 10, label, theme.SMALL))
        x += 18 + text_width(label, theme.SMALL) + 22
    parts.append(text(x, y + 10, "flavour: device; dashed: 1, as good as the reference", theme.SMALL, colour=theme.MUTED))
    return y + 20


def _table(runs: Sequence[Mapping], parts: list[Markup], top: float) -> float:
    """Draw one row per run; return where they end."""
    devices, y = LEFT + 350, top + 34
    parts.append(text(devices, y, "devices", theme.SMALL, "end", theme.MUTED))
    for at, (_, words) in enumerate(FLAVOURS):
        parts.append(text(devices + 50 + GROUP * at + 1.5 * CELL, y - 17, words, theme.SIZE, "middle", font_weight="bold"))
        for place, short in enumerate(("parallel", "scalab.", "global")):
            parts.append(text(devices + 50 + GROUP * at + CELL * (place + 0.5), y, short, theme.SMALL, "middle", theme.MUTED))
    for number, run in enumerate(runs):
        y += ROW
        parts.append(text(LEFT - 8, y, number + 1, theme.SMALL, "end", theme.MUTED))
        parts.append(text(LEFT, y, elided(run["dataset"], 36), theme.SMALL))
        parts.append(text(devices, y, theme.count(run["n_devices"]), theme.SMALL, "end"))
        for at, (flavour, _) in enumerate(FLAVOURS):
            for place, (key, _, _) in enumerate(LINES):
                x = devices + 50 + GROUP * at + CELL * (place + 0.5)
                parts.append(text(x, y, theme.ratio(run[flavour][key]), theme.SMALL, "middle"))
    return y + 6
