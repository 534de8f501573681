"""Parallel coordinates as a page for brushing, drawn by plotly.js."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.files.whole_files import write_whole
from causeway.core.formatting import variance_of
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import escape
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.parallel_coordinates import broken, nothing, title_of

if TYPE_CHECKING:
    from causeway.plotting.figures.coordinate_axes import Coordinates

ASSETS = Path(__file__).parent / "assets"
LIBRARY = "plotly-gl2d.min.js"
"""plotly.js 3.7.0 with the charts drawn by WebGL alone, as npm's `plotly.js-gl2d-dist-min` has it."""


def draw_coordinates_page(
    coordinates: "Coordinates | None", *, dataset: str, target: str, of_kernels: bool = False
) -> Markup:
    """Return the page, which finds plotly.js beside it; without a launch, one that says so. `of_kernels` tells which
    variance is shared, as of `variance_of`.
    """
    title = title_of(dataset, target)
    if coordinates is None:
        return rendered("coordinates.html", title=title, chart=None, nothing=nothing(dataset, target))
    text = json.dumps(interactive(coordinates), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return rendered(
        "coordinates.html",
        title=title,
        chart=Markup(text.replace("<", "\\u003c")),  # noqa: S704 - JSON in which no tag can begin or end
        library=LIBRARY,
        variance=variance_of(target, of_kernels),
        selection=f"{coordinates.selection[:1].upper()}{coordinates.selection[1:]}",
        nothing=None,
    )


def write_plotly_script(folder: Path) -> None:
    """Write plotly.js and its licence beside the page: it needs no network."""
    for name in (LIBRARY, "plotly-gl2d.LICENSE"):
        write_whole(folder / name, (ASSETS / name).read_bytes())


def interactive(coordinates: "Coordinates") -> dict:
    """Return what plotly.js draws: `data`, `layout` and `config`. It reads a small part of HTML in labels, so they are
    escaped; ticks are plain text to it.
    """
    dimensions = [
        {
            "label": "<br>".join(escape(line) for line in [*broken(axis.name, 14), *axis.note.split("\n")] if line),
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
    axes = {
        "type": "parcoords",
        "line": line,
        "dimensions": dimensions,
        "labelfont": font,
        "labelside": "bottom",
        "tickfont": ticks,
        "rangefont": hidden,
    }
    first = coordinates.axes[0]
    left = 40 + (7 * max(len(words) for _, words in first.ticks) if first.named else 40)
    margin = {"l": min(left, 250), "r": 40, "t": 24, "b": 130}
    layout = {"font": font, "height": 640, "margin": margin, "paper_bgcolor": theme.PAPER}
    return {"data": [axes], "layout": layout, "config": {"displayModeBar": False, "responsive": True}}
