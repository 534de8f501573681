"""Series of runs drawn: parallel efficiency, computation scalability and global efficiency from the smallest run to
the largest.
"""

import itertools
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import COMPUTATION_SCALABILITY, FLAVOUR_NAMES, FLAVOURS, GLOBAL, PARALLEL, SERIES_RATIOS
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, text

COLOURS = {PARALLEL: "#3b6fb6", COMPUTATION_SCALABILITY: "#1b9e8a", GLOBAL: "#c8630f"}
WIDTH = 1180.0
LEFT = 78.0
HIGH = 230.0
STEP = 104.0
ROW = 20.0
CELL = 62.0
GROUP = 210.0
MOST_RUNS = 10
"""Runs side by side; of longer series the first ones and the last."""


def draw_series(document_: Mapping) -> Markup:
    """Return the figure of `series.json`: per series its lines over the runs, and a table of the three numbers in
    all flavours.
    """
    parts = [text(MARGIN, 26, "Series of runs", 15, font_weight="bold")]
    y = 44.0
    for name, series in document_["series"].items():
        y = _series(name, series, parts, y) + 26
    return document(WIDTH, y, "Series of runs", *parts)


def _series(name: str, series: Mapping, parts: list[Markup], top: float) -> float:
    runs = list(series["runs"])
    left_out = 0
    if len(runs) > MOST_RUNS:
        left_out = len(runs) - MOST_RUNS
        runs = [*runs[: MOST_RUNS - 1], runs[-1]]
    reference = series["reference"]
    words = f"{series['scaling']} scaling; "
    words += "no run was measured" if reference is None else f"reference {elided(reference, 60)}, the run with the"
    words += "" if reference is None else " fewest devices"
    words += f"; {left_out} runs before the last one not shown" if left_out else ""
    parts.append(text(MARGIN, top + 14, elided(name, 100), theme.SIZE, font_weight="bold"))
    parts.append(text(MARGIN, top + 32, words, theme.SMALL, colour=theme.MUTED))
    if series["not_measured"]:
        names = ", ".join(one["dataset"] for one in series["not_measured"])
        top += 18
        parts.append(text(MARGIN, top + 32, elided(f"without an efficiency: {names}", 150), theme.SMALL))
    if not runs:
        return top + 40
    y = _lines(runs, parts, top + 48)
    return _table(runs, parts, y + 6)


def _lines(runs: Sequence[Mapping], parts: list[Markup], top: float) -> float:
    """Draw the lines of the flavour `device`; return where they end."""
    known = [run["device"][key] for run in runs for key in COLOURS if run["device"][key] is not None]
    highest = max([1.0, *known]) * 1.04
    right = LEFT + STEP * len(runs)
    bottom = top + HIGH

    def height(value: float) -> float:
        return bottom - HIGH * value / highest

    for tick in theme.nice_ticks(0.0, highest, 6):
        parts.append(tag("line", x1=LEFT, x2=right, y1=height(tick), y2=height(tick), stroke=theme.GRID))
        parts.append(text(LEFT - 8, height(tick) + 4, formatting.significant(tick), theme.SMALL, "end", theme.MUTED))
    parts.append(
        tag("line", x1=LEFT, x2=right, y1=height(1.0), y2=height(1.0), stroke=theme.MUTED, stroke_dasharray="4 4")
    )
    for number, (key, colour) in enumerate(COLOURS.items()):
        points = [(LEFT + STEP * (at + 0.5), run["device"][key]) for at, run in enumerate(runs)]
        for (x, value), (after, following) in itertools.pairwise(points):
            if value is not None and following is not None:  # no line across a run without the number
                parts.append(
                    tag("line", x1=x, x2=after, y1=height(value), y2=height(following), stroke=colour, stroke_width=1.8)
                )
        parts += [
            tag("circle", cx=x, cy=height(value), r=4.2 - 0.8 * number, fill=colour)
            for x, value in points
            if value is not None
        ]
    for at, run in enumerate(runs):
        words = f"{formatting.count(run['n_devices'])} device{'s' if run['n_devices'] != 1 else ''}"
        parts.append(text(LEFT + STEP * (at + 0.5), bottom + 17, words, theme.SMALL, "middle", theme.MUTED))
    return _key(parts, bottom + 32)


def _key(parts: list[Markup], y: float) -> float:
    x = LEFT
    for ratio in SERIES_RATIOS:
        label = ratio.label + " = both multiplied" * (ratio.name == GLOBAL)
        parts.append(tag("rect", x=x, y=y, width=12, height=12, fill=COLOURS[ratio.name]))
        parts.append(text(x + 18, y + 10, label, theme.SMALL))
        x += 18 + text_width(label, theme.SMALL) + 22
    parts.append(
        text(x, y + 10, "flavour: device; dashed: 1, as good as the reference", theme.SMALL, colour=theme.MUTED)
    )
    return y + 20


def _table(runs: Sequence[Mapping], parts: list[Markup], top: float) -> float:
    """Draw one row per run; return where they end."""
    devices = LEFT + 350
    y = top + 34
    parts.append(text(devices, y, "devices", theme.SMALL, "end", theme.MUTED))
    for at, flavour in enumerate(FLAVOURS):
        parts.append(
            text(
                devices + 50 + GROUP * at + 1.5 * CELL, y - 17, flavour.label, theme.SIZE, "middle", font_weight="bold"
            )
        )
        for place, ratio in enumerate(SERIES_RATIOS):
            parts.append(
                text(
                    devices + 50 + GROUP * at + CELL * (place + 0.5), y, ratio.short, theme.SMALL, "middle", theme.MUTED
                )
            )
    for number, run in enumerate(runs):
        y += ROW
        parts.append(text(LEFT - 8, y, number + 1, theme.SMALL, "end", theme.MUTED))
        parts.append(text(LEFT, y, elided(run["dataset"], 36), theme.SMALL))
        parts.append(text(devices, y, formatting.count(run["n_devices"]), theme.SMALL, "end"))
        for at, flavour in enumerate(FLAVOUR_NAMES):
            for place, ratio in enumerate(SERIES_RATIOS):
                x = devices + 50 + GROUP * at + CELL * (place + 0.5)
                parts.append(text(x, y, formatting.ratio(run[flavour][ratio.name]), theme.SMALL, "middle"))
    return y + 6
