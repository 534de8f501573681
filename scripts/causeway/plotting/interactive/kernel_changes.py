"""Changes of two runs by kernel: an interval for each, and the noise floor behind it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core.errors import CausewayError
from causeway.core.vocabulary import FOR_THE_BETTER, FOR_THE_WORSE
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.kernel_labels import short_names
from causeway.plotting.figures.comparison import of_kernels
from causeway.plotting.interactive.look import FLOOR, figure, label

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_KERNELS = 40
COLOURS = dict.fromkeys(FOR_THE_WORSE, theme.DIVERGING[-2]) | dict.fromkeys(FOR_THE_BETTER, theme.DIVERGING[2])


def comparison(document: Mapping, rows: Sequence[Mapping]) -> "go.Figure":
    """Return the change of the whole run and of the kernels with most time, in percent, for the same launches.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`.

    Raises
    ------
    CausewayError
        If nothing was compared.
    """
    import plotly.graph_objects as go

    whole = [row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch"]
    shown = [row for row in [*whole, *of_kernels(rows)] if row["change_percent"] is not None][: MOST_KERNELS + 1]
    if not shown:
        raise CausewayError(document["why"] or "no kernel is on both sides with launches that take time")
    y = list(range(len(shown)))[::-1]
    change = [row["change_percent"] for row in shown]
    ends = [(row["low_percent"], row["high_percent"]) for row in shown]
    ends = [(at, at) if low is None else (low, high) for (low, high), at in zip(ends, change, strict=True)]
    floors = [row["floor_percent"] or 0.0 for row in shown]
    band = go.Bar(x=[2 * floor for floor in floors], base=[-floor for floor in floors], y=y, orientation="h")
    band.update(name="noise floor", marker={"color": FLOOR, "opacity": 0.25}, hoverinfo="skip")
    error = {
        "array": [high - at for (_, high), at in zip(ends, change, strict=True)],
        "arrayminus": [at - low for (low, _), at in zip(ends, change, strict=True)],
        "symmetric": False,
        "color": FLOOR,
    }
    points = go.Scatter(
        x=change,
        y=y,
        error_x=error,
        text=[f"{label(row['candidate'])}<br>{label(row['verdict'])}" for row in shown],
        customdata=ends,
        mode="markers",
        name="change and interval",
        marker={"size": 8, "color": [COLOURS.get(row["verdict"], FLOOR) for row in shown]},
        hovertemplate="%{text}: %{x:+.3g} % [%{customdata[0]:+.3g}, %{customdata[1]:+.3g}]<extra></extra>",
    )
    short = short_names((row["candidate"] for row in shown if row["level"] == "kernel"), 30)
    names = [label(short.get(row["candidate"], row["candidate"])) for row in shown]
    axis = {"tickvals": y, "ticktext": names, "range": [-0.6, len(shown) - 0.4]}
    x = {"title": "change, % (left: faster, right: slower)", "zeroline": True}
    words = "Time for the same launches; grey: noise floor. Orange is slower, blue faster, grey neither."
    return figure([band, points], meta=words, xaxis=x, yaxis=axis, height=160 + 24 * len(shown))
