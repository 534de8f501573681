"""Parallel coordinates of launches: one line each; dragging along an axis keeps those that pass there."""

from typing import TYPE_CHECKING

import numpy as np

from causeway.plotting.drawing.markup import escape
from causeway.plotting.figures.parallel_coordinates import broken
from causeway.plotting.interactive.look import compact, figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from causeway.plotting.figures.coordinate_axes import Axis, Coordinates


PLACES = 2000
"""Places of an axis, more than a screen has pixels: whole numbers of two bytes hold them."""


def parallel_coordinates(chosen: "Coordinates") -> "go.Figure":
    """Return the lines of a selection, an axis for each feature and the target last, coloured by its quantile."""
    import plotly.graph_objects as go

    dimensions = [
        {
            "label": "<br>".join(escape(line) for line in [*broken(axis.name, 14), *axis.note.split("\n")] if line),
            "values": np.rint(_places(axis, axis.values)).astype(np.int16),
            "range": [0, PLACES],
            "tickvals": [float(_places(axis, position)) for position, _ in axis.ticks],
            "ticktext": [words for _, words in axis.ticks],  # plain text to plotly
        }
        for axis in chosen.axes
    ]
    scale = {
        "title": {"text": "target, by quantile", "side": "right"},
        "tickvals": [position for position, _ in chosen.quartiles],
        "ticktext": [f"{100 * position:.0f} %: {escape(words)}" for position, words in chosen.quartiles],
        "thickness": 14,
        "x": 1.05,
    }
    # names below the axes, since they grow downwards: above, those of several lines would lie over the launches
    line = {"color": compact(chosen.quantile), "coloraxis": "coloraxis"}
    lines = go.Parcoords(dimensions=dimensions, line=line, labelside="bottom")
    first = chosen.axes[0]
    left = 40 + (7 * max(len(words) for _, words in first.ticks) if first.named else 40)
    margin = {"l": min(left, 250), "r": 40, "t": 24, "b": 130}
    return figure([lines], height=640, margin=margin, coloraxis={"cmin": 0, "cmax": 1, "colorbar": scale})


def _places(axis: "Axis", values: np.ndarray | float) -> np.ndarray:
    return PLACES * (np.asarray(values) - axis.low) / (axis.high - axis.low)
