"""Which rank: who waits for whom, and components of variance."""

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.markup import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_RANKS = 32
"""Mean deviations of log durations below this are not worth a sentence."""
PARTS = tuple((key, key, colour) for key, colour in zip(VARIANCE_PARTS, theme.PARTS, strict=True))
"""Components of variance: key, words, colour."""


def sentences(stragglers: Mapping) -> list[str]:
    """Return the verdict of each communicator, why its stragglers are late, and what could not be matched."""
    found = []
    for group in stragglers["groups"]:
        label = f"Collectives of sequence {group['sequence']}" if group.get("sequence") else "Collectives"
        if group["communicator"] is not None:
            label = f"Communicator {elided(group['communicator'], 40)}"
        found.append(
            f"{label}, {group['collectives']:,} on {group['n_ranks']} ranks: {group['verdict']}; {group['reason']}."
        )
        found += [
            f"Rank {entry['rank']}, {entry['pattern']}: {_why(entry['why'])}."
            for entry in group["ranks"]
            if "why" in entry
        ]
    return found + [f"{note[:1].upper()}{note[1:]}." for note in stragglers["notes"]]


def _why(why: Mapping) -> str:
    if why["cause"] == "other_ranks":
        excess = formatting.time(max(why["excess_communication_ns"], 0))
        return f"it waits {excess} more for ranks of other communicators before a late collective"
    if why["cause"] != "compute":
        excess = formatting.time(max(why["excess_idle_ns" if why["cause"] == "host" else "excess_copies_ns"], 0))
        if why["cause"] == "copies":
            return f"its device copies for {excess} more before a late collective"
        return f"its device is idle for {excess} more before a late collective: it is launched late" + _clock(
            why["clock"]
        )
    words = f"its kernels run for {formatting.time(max(why['excess_compute_ns'], 0))} more before a late collective"
    if why["kernels"]:
        words += f", most of all {_kernel(why['kernels'][0])}"
    if why["only_here"]:
        words += f"; {elided(why['only_here'][0]['kernel'], 50)} runs on no other rank then"
    return words + _clock(why["clock"])


def _kernel(kernel: Mapping) -> str:
    """Return which kernel is slower, and whether in the same launch configurations or because of other ones."""
    ratio = kernel["mean_ns"] / max(kernel["others_mean_ns"], 1)
    words = f"{elided(kernel['kernel'], 50)}, {formatting.percent(100 * (ratio - 1))} slower than on other ranks"
    if 2 * kernel["same_configuration_ns"] < kernel["excess_ns"]:
        return f"{words}, because it is launched in other configurations"
    if not kernel["configurations"]:
        return words
    first = kernel["configurations"][0]
    sizes = [
        " × ".join(str(first[f"{part}_{axis}"]) for axis in "xyz" if first[f"{part}_{axis}"] is not None)
        for part in ("grid", "block")
    ]
    where = ", ".join(f"{part} {size}" for part, size in zip(("grid", "block"), sizes, strict=True) if size)
    return f"{words} in the same configuration" + (f" ({where})" if where else "")


def _clock(clock: Mapping | None) -> str:
    if not clock or not clock["slower"]:
        return ""
    return (
        f"; its {clock['metric'].removesuffix('_hz')} is"
        f" {formatting.percent(100 * (1 - clock['mean_hz'] / clock['others_hz']))} lower"
    )


def draw_stragglers(stragglers: Mapping, name: str) -> "Figure":
    """Return the matrix of waits of the largest communicator, where somebody is waited for, and the components of
    variance as bars.
    """
    groups = sorted(stragglers["groups"], key=lambda group: -group["waiting_ns"])
    lines = [line for one in sentences(stragglers)[:6] for line in textwrap.wrap(plain(one), 165)]
    is_late = bool(groups) and any(entry["pattern"] != "none" for entry in groups[0]["ranks"])
    if groups and not is_late:
        lines.append("No rank is named as a straggler, so there is no table of who waits for whom.")
    order = sorted(groups[0]["ranks"], key=lambda one: -one["waiting_for_it_ns"])[:MOST_RANKS] if is_late else []
    matrix = 0.26 * max(len(order), 3) + 0.75 if is_late else 0
    variance = stragglers["variance"]
    # the text that fills a row of its own is measured in lines
    rows = {"words": 0.175 * len(lines) + 0.1, "waits": matrix, "variance": 1.0 if variance else 0}
    rows = {row: high for row, high in rows.items() if high > 0.1}
    with theme.drawing():
        height = math.fsum(rows.values()) + (0.25 * len(PARTS) + 0.3 if variance else 0.1)
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


def _matrix(group: Mapping, left: "Axes", right: "Axes") -> None:
    """Draw who waits for whom, and how often each rank is last; of many ranks those that are waited for longest."""
    import numpy as np
    from matplotlib.collections import PolyCollection

    ranks = group["ranks"]
    shown = sorted(sorted(range(len(ranks)), key=lambda at: -ranks[at]["waiting_for_it_ns"])[:MOST_RANKS])
    waits = np.array(group["matrix_ns"], float)[np.ix_(shown, shown)]
    largest = waits.max(initial=0)
    names = [str(ranks[at]["rank"]) for at in shown]
    corners = [((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)) for y in range(len(shown)) for x in range(len(shown))]
    colours = [theme.shade(value / largest) if value else theme.PANEL for value in waits.ravel().tolist()]
    cells = left.add_collection(PolyCollection(corners, facecolor=colours, edgecolor=theme.PAPER, linewidth=1))
    charts.hover(
        cells,
        [
            f"rank {row} for rank {column}: {formatting.time(group['matrix_ns'][i][j])}"
            for i, row in zip(shown, names, strict=True)
            for j, column in zip(shown, names, strict=True)
        ],
    )
    middles = np.arange(len(shown)) + 0.5
    left.set(xlim=(0, len(shown)), ylim=(len(shown), 0))
    left.set_yticks(middles, [f"rank {name}" for name in names])
    every = max(1, -(-len(shown) // 16))
    late = [place for place, at in enumerate(shown) if ranks[at]["pattern"] != "none"]
    named = late + [place for place in range(0, len(shown), every) if all(abs(place - one) >= every for one in late)]
    left.set_xticks(middles[named], [names[place] for place in named])
    left.set_title("Rows wait for columns")
    words = f"empty: nobody waited; darkest: {formatting.time(int(largest))}"
    left.set_xlabel(words + (f"; {len(shown)} of {len(ranks)} ranks" if len(ranks) > len(shown) else ""), loc="left")
    shares = [ranks[at]["last_share"] for at in shown]
    right.barh(range(len(shown)), shares, color=theme.CLASSES["communication"], linewidth=0)
    charts.labels(right, [f"rank {name}" for name in names])
    patterns = [ranks[at]["pattern"] for at in shown]
    said = [
        f"{formatting.percent(100 * share)} {'' if pattern == 'none' else pattern}".strip()
        for share, pattern in zip(shares, patterns, strict=True)
    ]
    charts.words_at(right, shares, said)
    right.set(xlim=(0, 1.3), xticks=[])
    right.spines["bottom"].set_visible(False)
    right.set_title("Share of collectives in which a rank is last")
    for axis in (left, right):
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)


def variance_of_parts(variance: Mapping) -> tuple["pd.DataFrame", dict[str, str]]:
    """Return the components as rows `all launches` and `within configurations`, and the words of each: its shares."""
    import pandas as pd

    rows = {"all launches": variance["shares"], "within configurations": variance["within"]}
    frame = pd.DataFrame(
        [{key: shares[key]["value"] if key in shares else 0 for key, _, _ in PARTS} for shares in rows.values()],
        list(rows),
    )
    words = {
        key: f"{label}: {_share(rows['all launches'][key])} of all launches" if key in rows["all launches"] else label
        for key, label, _ in PARTS
    }
    for key in words:
        if key in variance["within"]:
            words[key] += f", {_share(variance['within'][key])} within configurations"
    return frame.astype(float).fillna(0), words


def _variance(figure: "Figure", axis: "Axes", variance: Mapping) -> None:
    """Draw the components of variance, of all launches and within configurations, and list their shares."""
    frame, words = variance_of_parts(variance)
    colours = {key: colour for key, _, colour in PARTS}
    charts.stacked(axis, frame, colours, lambda key, value: f"{key}: {formatting.percent(100 * value)}")
    nothing = frame.sum(axis=1) == 0
    charts.words_at(axis, [0] * len(frame), ["nothing varies" if alike else "" for alike in nothing])
    axis.set(xlim=(0, 1), xticks=[])
    axis.spines["bottom"].set_visible(False)
    said = (
        f"{variance['launches']:,} launches, {variance['configurations']:,} configurations; outliers cut at four scales"
    )
    axis.set_title(f"Components of the variance of log durations: {said}")
    charts.key(figure, {words[key]: colours[key] for key in words}, list(words.values()), 1)


def _share(share: Mapping) -> str:
    return (
        "cannot be told"
        if share["value"] is None
        else formatting.percent(*(100 * share[end] for end in ("value", "low", "high")))
    )
