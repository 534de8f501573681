"""Parallel coordinates, drawn twice from one selection: a plotly page for brushing, and a static SVG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causeway.plotting import theme
from causeway.plotting.marks import notice, write_svg
from causeway.plotting.markup import Markup, escape, tag
from causeway.plotting.names import elided
from causeway.plotting.words import target_name

if TYPE_CHECKING:
    from causeway.plotting.coordinates import Coordinates

HALO = {"facecolor": "white", "alpha": 0.82, "edgecolor": "none", "pad": 0.6}
DIV = "parallel-coordinates"
READ = (
    "Each line is one launch, coloured by the rank of its target: dark is most variable. Drag along an axis to keep the lines that pass"
    " there, drag a name to move its axis, click an axis to release it."
)


def title_of(dataset: str, target: str) -> str:
    """Return the heading of both figures."""
    return f"Parallel coordinates of {target_name(target)}, {dataset}"


def nothing(dataset: str, target: str) -> Markup:
    """Return what stands where no launch was kept."""
    words = f"No launch of this dataset has a {target_name(target)}, so there is no line to draw; the data quality section says why."
    return notice(title_of(dataset, target), "0 launches", [words])


def write_page(coordinates: "Coordinates | None", dataset: str, target: str, folder: str | Path) -> None:
    """Write `index.html` and, beside it, plotly's own script: the page needs no network."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if coordinates is None:
        body = nothing(dataset, target)
    else:
        from plotly.offline import get_plotlyjs

        (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
        figure = interactive(coordinates)
        options = {"displayModeBar": False, "responsive": True}
        chart = figure.to_html(full_html=False, include_plotlyjs="directory", include_mathjax=False, div_id=DIV, config=options)
        body = Markup(
            escape(tag("h1", title_of(dataset, target)))
            + escape(tag("p", f"{coordinates.selection[:1].upper()}{coordinates.selection[1:]}. {READ}"))
            + chart
        )
    head = [tag("meta", charset="utf-8"), tag("title", title_of(dataset, target)), tag("style", Markup(STYLE))]
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    (folder / "index.html").write_text(f"<!doctype html>\n{page}\n", encoding="utf-8")


def interactive(coordinates: "Coordinates"):
    """Return the plotly figure. plotly reads a small part of HTML in labels, so they are escaped; ticks are plain text to it."""
    import plotly.graph_objects as go

    dimensions = [
        {
            "label": "<br>".join(escape(line) for line in [*_broken(axis.name, 14), *axis.note.split("\n")] if line),
            "values": axis.values.tolist(),
            "range": [axis.low, axis.high],
            "tickvals": [place for place, _ in axis.ticks],
            "ticktext": [words for _, words in axis.ticks],
        }
        for axis in coordinates.axes
    ]
    line = {
        "color": coordinates.quantile.tolist(),
        "colorscale": [[i / (len(theme.SEQUENTIAL) - 1), colour] for i, colour in enumerate(theme.SEQUENTIAL)],
        "cmin": 0,
        "cmax": 1,
        "showscale": True,
        "colorbar": {
            "title": {"text": "target, by quantile", "side": "right"},
            "tickvals": [place for place, _ in coordinates.quartiles],
            "ticktext": [f"{100 * place:.0f} %: {escape(words)}" for place, words in coordinates.quartiles],
            "thickness": 14,
            "x": 1.05,
        },
    }
    font = {"family": theme.FONT.replace("'", ""), "size": 13, "color": theme.INK}
    ticks = {**font, "size": 12}
    hidden = {"size": 1, "color": theme.PAPER}
    # below the axes, since names grow downwards: above, those of several lines would lie over the lines of the launches
    axes = go.Parcoords(line=line, dimensions=dimensions, labelfont=font, labelside="bottom", tickfont=ticks, rangefont=hidden)
    figure = go.Figure(axes)
    first = coordinates.axes[0]
    left = 40 + (7 * max(len(words) for _, words in first.ticks) if first.named else 40)
    margin = {"l": min(left, 250), "r": 40, "t": 24, "b": 130}
    figure.update_layout(template="none", font=font, height=640, margin=margin, paper_bgcolor=theme.PAPER)
    return figure


def write_static(coordinates: "Coordinates | None", dataset: str, target: str, path: str | Path) -> None:
    """Write the static figure: the same lines and axes in the same order."""
    title = title_of(dataset, target)
    if coordinates is None:
        write_svg(nothing(dataset, target), path)
        return
    with theme.drawing():
        figure = _static(coordinates)
        figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=11.5, fontweight="bold")
        selection = f"{coordinates.selection[:1].upper()}{coordinates.selection[1:]}; one line each."
        figure.text(0.012, 0.925, selection, ha="left", va="top", color=theme.MUTED)
        theme.save(figure, path, title)


def _broken(name: str, room: int = 15) -> list[str]:
    """Return a feature's name in lines of at most about `room` characters, broken behind underscores where it has any."""
    lines = [""]
    parts = (
        part[i : i + room] for part in elided(name, 3 * room).replace("_", "_\n").split("\n") for i in range(0, max(len(part), 1), room)
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
    order = np.argsort(coordinates.quantile, kind="stable")
    points = np.empty((len(order), count, 2))
    points[:, :, 0], points[:, :, 1] = np.arange(count), heights[order]
    colours = [theme.shade(q) for q in coordinates.quantile[order]]
    many = len(order) > 400
    axis.add_collection(LineCollection(points, colors=colours, linewidths=0.6 if many else 0.9, alpha=0.45 if many else 0.75))
    for position, one in enumerate(axes):
        axis.axvline(position, color=theme.INK, linewidth=1)
        left = position == 0 and kernels_first
        for place, words in one.ticks:
            y = (place - one.low) / (one.high - one.low)
            axis.plot([position - 0.015, position + 0.015], [y, y], color=theme.INK, linewidth=1)
            side = (
                {"ha": "right"} if left else {"ha": "left", "bbox": {"facecolor": "white", "alpha": 0.82, "edgecolor": "none", "pad": 0.6}}
            )
            axis.text(position + (-0.035 if left else 0.035), y, words, va="center", **side)
        axis.text(position, 1.03, "\n".join([*_broken(one.name), one.note]).strip(), ha="center", va="bottom", linespacing=1.15)
    axis.set_xlim(*((-0.05, count - 0.95) if count > 1 else (-0.5, 0.5)))
    axis.set_ylim(0, 1)
    axis.axis("off")
    bar = figure.add_axes([1 - 1.25 / width, 0.08, 0.13 / width, 0.6])
    scale = figure.colorbar(ScalarMappable(Normalize(0, 1), theme.colormap()), cax=bar)
    scale.set_ticks([place for place, _ in coordinates.quartiles], labels=[f"{100 * place:.0f} %" for place, _ in coordinates.quartiles])
    scale.outline.set_visible(False)
    bar.set_title("quantile of\nthe target", fontsize=9, fontweight="normal", loc="left")
    return figure


STYLE = f"""
body {{ font: 15px/1.5 system-ui, 'Segoe UI', Roboto, {theme.FONT}; color: {theme.INK}; margin: 24px; }}
h1 {{ font-size: 22px; margin: 0 0 4px; }}
p {{ margin: 0 0 8px; color: {theme.MUTED}; max-width: 110ch; }}
"""
