"""Which rank: who waits for whom, and components of variance."""

import math
import textwrap
from collections.abc import Mapping

from causeway.core import formatting
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.citations import document_parts
from causeway.plotting.drawing.drawn import Axes, DataFrame, Figure
from causeway.plotting.drawing.markup import plain
from causeway.plotting.drawing.page import rendered

MOST_RANKS = 32
COLOURS = dict(zip(VARIANCE_PARTS, theme.PARTS, strict=True))
"""Of the components of variance."""


def sentences(stragglers: Mapping) -> list[str]:
    """Return the verdict of each communicator, why its stragglers are late, and what could not be matched."""
    lines = rendered("straggler_lines.html", document=document_parts("stragglers.json", stragglers)).split("<br>")
    return [line.striptags() for line in lines[1:]]


def draw_stragglers(stragglers: Mapping, name: str) -> Figure:
    """Return the matrix of waits of the largest communicator, where somebody is waited for, and the components of
    variance as bars.
    """
    groups = sorted(stragglers["groups"], key=lambda group: -group["waiting_ns"])
    lines = [line for sentence in sentences(stragglers)[:6] for line in textwrap.wrap(plain(sentence), 165)]
    is_late = bool(groups) and any(entry["pattern"] != "none" for entry in groups[0]["ranks"])
    if groups and not is_late:
        lines.append("No rank is named as a straggler, so there is no table of who waits for whom.")
    matrix = 0.26 * min(max(len(groups[0]["ranks"]), 3), MOST_RANKS) + 0.9 if is_late else 0
    variance = stragglers["variance"]
    # the text that fills a row of its own is measured in lines
    rows = {"words": 0.175 * len(lines) + 0.1, "waits": matrix, "variance": 1.0 if variance else 0}
    rows = {row: high for row, high in rows.items() if high > 0.1}
    with theme.drawing():
        height = math.fsum(rows.values()) + (0.25 * len(COLOURS) + 0.3 if variance else 0.1)
        figure, axes = charts.sheet("Which rank", f"Stragglers and variance of {name}", height)
        axes.remove()
        grid = figure.add_gridspec(max(len(rows), 1), 2, height_ratios=list(rows.values()) or [1])
        for place, row in enumerate(rows):
            if row == "waits":
                left, right = (figure.add_subplot(grid[place, column]) for column in (0, 1))
                _matrix(groups[0], left, right)
            else:
                axis = figure.add_subplot(grid[place, :])
                if row == "variance":
                    _variance(figure, axis, variance)
                else:
                    axis.axis("off")
                    axis.text(0, 1, "\n".join(lines), va="top", color=theme.MUTED, linespacing=1.4, in_layout=False)
    return figure


def _matrix(group: Mapping, left: Axes, right: Axes) -> None:
    """Draw who waits for whom, and how often each rank is last; of many ranks those that are waited for longest."""
    import numpy as np
    from matplotlib.collections import PolyCollection

    ranks = group["ranks"]
    shown = sorted(sorted(range(len(ranks)), key=lambda index: -ranks[index]["waiting_for_it_ns"])[:MOST_RANKS])
    waits = np.array(group["matrix_ns"], float)[np.ix_(shown, shown)]
    largest = waits.max(initial=0)
    names = [str(ranks[index]["rank"]) for index in shown]
    corners = [((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)) for y in range(len(shown)) for x in range(len(shown))]
    colours = [theme.shade(value / largest) if value else theme.PANEL for value in waits.ravel().tolist()]
    cells = left.add_collection(PolyCollection(corners, facecolor=colours, edgecolor=theme.PAPER, linewidth=1))
    pairs = [(row, column) for row in shown for column in shown]
    times = [formatting.time(group["matrix_ns"][row][column]) for row, column in pairs]
    who = [f"rank {ranks[row]['rank']} for rank {ranks[column]['rank']}" for row, column in pairs]
    charts.hover(cells, [f"{pair}: {time}" for pair, time in zip(who, times, strict=True)])
    middles = np.arange(len(shown)) + 0.5
    left.set(xlim=(0, len(shown)), ylim=(len(shown), 0))
    left.set_yticks(middles, [f"rank {name}" for name in names])
    every = charts.cells_together(len(shown), 16)
    late = [place for place, index in enumerate(shown) if ranks[index]["pattern"] != "none"]
    named = late + [place for place in range(0, len(shown), every) if all(abs(place - near) >= every for near in late)]
    left.set_xticks(middles[named], [names[place] for place in named])
    left.set_title("Rows wait for columns")
    words = f"empty: nobody waited; darkest: {formatting.time(int(largest))}"
    words += f"; {len(shown)} of {len(ranks)} ranks" if len(ranks) > len(shown) else ""
    left.set_xlabel(words + "\n", loc="left")  # an empty line before the next row's title
    shares = [ranks[index]["last_share"] for index in shown]
    right.barh(range(len(shown)), shares, color=theme.CLASSES["communication"], linewidth=0)
    charts.labels(right, [f"rank {name}" for name in names])
    patterns = [ranks[index]["pattern"] for index in shown]
    said = [
        f"{formatting.percent(100 * share)} {'' if pattern == 'none' else pattern}".strip()
        for share, pattern in zip(shares, patterns, strict=True)
    ]
    charts.words_at(right, shares, said)
    right.set(xlim=(0, 1.3), xticks=[])
    right.set_title("Share of collectives in which a rank is last")
    for axis in (left, right):
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)


def variance_of_parts(variance: Mapping) -> tuple["DataFrame", dict[str, str]]:
    """Return the components as rows `all launches` and `within configurations`, and the words of each: its shares."""
    import pandas as pd

    rows = {"all launches": variance["shares"], "within configurations": variance["within"]}
    frame = pd.DataFrame(
        [{key: shares[key]["value"] if key in shares else 0 for key in COLOURS} for shares in rows.values()],
        list(rows),
    )
    words = {key: f"{key}: {_share(share)} of all launches" for key, share in variance["shares"].items()}
    words = {key: words.get(key, key) for key in COLOURS}
    for key, share in variance["within"].items():
        words[key] += f", {_share(share)} within configurations"
    return frame.astype(float).fillna(0), words


def _variance(figure: Figure, axis: Axes, variance: Mapping) -> None:
    """Draw the components of variance, of all launches and within configurations, and list their shares."""
    frame, words = variance_of_parts(variance)
    charts.stacked(axis, frame, COLOURS, lambda key, value: f"{key}: {formatting.percent(100 * value)}")
    nothing = frame.sum(axis=1) == 0
    charts.words_at(axis, [0] * len(frame), ["nothing varies" if alike else "" for alike in nothing])
    axis.set(xlim=(0, 1), xticks=[])
    axis.spines["bottom"].set_visible(False)
    rests = f"{variance['launches']:,} launches, {variance['configurations']:,} configurations"
    axis.set_title(f"Components of the variance of log durations: {rests}; outliers cut at four scales")
    charts.key(figure, {words[key]: COLOURS[key] for key in words}, list(words.values()), 1)


def _share(share: Mapping) -> str:
    if share["value"] is None:
        return "cannot be told"
    return formatting.percent(*(100 * share[end] for end in ("value", "low", "high")))
