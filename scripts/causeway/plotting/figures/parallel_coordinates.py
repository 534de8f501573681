"""Parallel coordinates as a static figure; the page for brushing draws the same selection."""

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.svg import notice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from causeway.plotting.figures.coordinate_axes import Coordinates


HEIGHTS = 560
"""Heights at which a line crosses an axis, half a point apart: finer ones would only make the file larger."""


def title_of(dataset: str, target: str) -> str:
    """Return the heading of both figures."""
    return f"Parallel coordinates of {target_name(target)}, {dataset}"


def nothing(dataset: str, target: str) -> Markup:
    """Return what stands where no launch was kept."""
    words = (
        f"No launch of this dataset has a {target_name(target)}, so there is no line to draw; the data quality section"
        " says why."
    )
    return notice(title_of(dataset, target), "0 launches", [words])


def draw_parallel_coordinates(
    coordinates: "Coordinates | None", *, dataset: str, target: str, of_kernels: bool = False
) -> "Markup | Figure":
    """Return the static figure: the same lines and axes in the same order; without a launch, one that says so.
    `of_kernels` tells which variance is shared, as of `variance_of`.
    """
    title = title_of(dataset, target)
    if coordinates is None:
        return nothing(dataset, target)
    with theme.drawing():
        figure = _static(coordinates)
        figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=11.5, fontweight="bold")
        selection = f"{coordinates.selection[:1].upper()}{coordinates.selection[1:]}; one line each."
        selection += f" Percentages: shares of {variance_of(target, of_kernels)}."
        figure.text(0.012, 0.925, selection, ha="left", va="top", color=theme.MUTED)
    return figure


def broken(name: str, room: int = 15) -> list[str]:
    """Return a feature's name in lines of at most about `room` characters, broken behind underscores where it has
    any.
    """
    lines = [""]
    parts = (
        part[i : i + room]
        for part in elided(name, 3 * room).replace("_", "_\n").split("\n")
        for i in range(0, max(len(part), 1), room)
    )
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > room:
            lines.append("")
        lines[-1] += part
    return lines


def _static(coordinates: "Coordinates"):
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    axes = coordinates.axes
    count = len(axes)
    kernels_first = axes[0].name == "kernel"
    width = max(10.4, 1.18 * count + (2.6 if kernels_first else 1.0) + 1.3)
    figure, axis = plt.subplots(figsize=(width, 5.9))
    figure.subplots_adjust(left=(2.3 if kernels_first else 0.5) / width, right=1 - 2.2 / width, top=0.71, bottom=0.05)
    heights = np.column_stack([(a.values - a.low) / (a.high - a.low) for a in axes])
    heights = np.rint(heights * HEIGHTS) / HEIGHTS
    order = np.argsort(coordinates.quantile, kind="stable")
    points = np.empty((len(order), count, 2))
    points[:, :, 0] = np.arange(count)
    points[:, :, 1] = heights[order]
    colours = [theme.shade(q) for q in coordinates.quantile[order]]
    many = len(order) > 400
    axis.add_collection(
        LineCollection(points, colors=colours, linewidths=0.6 if many else 0.9, alpha=0.45 if many else 0.75)
    )
    for position, one in enumerate(axes):
        axis.axvline(position, color=theme.INK, linewidth=1)
        left = position == 0 and kernels_first
        for place, words in one.ticks:
            y = (place - one.low) / (one.high - one.low)
            axis.plot([position - 0.015, position + 0.015], [y, y], color=theme.INK, linewidth=1)
            side = (
                {"ha": "right"}
                if left
                else {"ha": "left", "bbox": {"facecolor": "white", "alpha": 0.82, "edgecolor": "none", "pad": 0.6}}
            )
            axis.text(position + (-0.035 if left else 0.035), y, words, va="center", **side)
        axis.text(
            position,
            1.03,
            "\n".join([*broken(one.name), one.note]).strip(),
            ha="center",
            va="bottom",
            linespacing=1.15,
        )
    axis.set_xlim(*((-0.05, count - 0.95) if count > 1 else (-0.5, 0.5)))
    axis.set_ylim(0, 1)
    axis.axis("off")
    bar = figure.add_axes([1 - 1.25 / width, 0.08, 0.13 / width, 0.6])
    scale = figure.colorbar(ScalarMappable(Normalize(0, 1), theme.colormap()), cax=bar)
    scale.set_ticks(
        [place for place, _ in coordinates.quartiles],
        labels=[f"{100 * place:.0f} %" for place, _ in coordinates.quartiles],
    )
    scale.outline.set_visible(False)
    bar.set_title("quantile of\nthe target", fontsize=9, fontweight="normal", loc="left")
    return figure
