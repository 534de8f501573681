"""The look of interactive figures: a template of plotly for light pages, one for dark pages; names made harmless."""

from typing import TYPE_CHECKING, Any

import numpy as np

from causeway.core.formatting import elided
from causeway.numeric.kept_bits import with_bits
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

LIGHT = "light"
DARK = "dark"
LINES = {
    LIGHT: ("#3b6fb6", "#e08214", "#1b9e8a", "#9467bd", "#57606a", "#a34f06"),
    DARK: ("#7aa9e6", "#f0a04b", "#45c4ae", "#b79ae0", "#aab4bf", "#d98a4a"),
}
"""Colours of lines without a meaning of their own, in their order; told apart with any colour vision."""
FLOOR = theme.UNKNOWN
NAME = 60
"""Characters of a name in a label; the hover says as many."""


def template(page: str) -> "go.layout.Template":
    """Return the template of `light` or `dark` pages; on both, much stands out from the paper and little is near it."""
    import plotly.graph_objects as go

    scale = theme.SEQUENTIAL if page == LIGHT else theme.SEQUENTIAL[::-1]
    ink, paper, line = map(theme.css_properties(page == DARK).get, ("ink", "paper", "line"))
    axis = {"gridcolor": line, "linecolor": line, "zerolinecolor": line, "automargin": True}
    hidden = {"size": 1, "color": "rgba(0,0,0,0)"}  # the ends of an axis, which its ticks say
    return go.layout.Template(
        layout={
            "font": {"family": theme.FONT.replace("'", ""), "size": 13, "color": ink},
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "colorway": LINES[page],
            "coloraxis": {"colorscale": [[i / (len(scale) - 1), colour] for i, colour in enumerate(scale)]},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": paper, "font": {"color": ink}, "align": "left"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "margin": {"l": 8, "r": 16, "t": 40, "b": 8},
            "hovermode": "closest",
        },
        data={"parcoords": [{"rangefont": hidden, "tickfont": {"size": 12}}]},
    )


def figure(traces: list, page: str = LIGHT, **layout: Any) -> "go.Figure":
    """Return a figure of the traces with the look of a page."""
    import plotly.graph_objects as go

    return go.Figure(traces, {"template": template(page), "height": 420, **layout})


def compact(values: np.ndarray) -> np.ndarray:
    """Return numbers as figures hold them, so that pages stay small.

    Parameters
    ----------
    values : ndarray of float, any shape

    Returns
    -------
    ndarray of float32, the same shape
        Off by at most one part in 8,000.
    """
    return with_bits(values, 12)


def label(text: object, limit: int = NAME) -> str:
    """Return a text from an export as a label shows it: plotly reads some HTML, so that it is escaped."""
    return str(escape(elided(str(text), limit)))
