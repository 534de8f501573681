"""Bins over time: the median of a target in each bin, a line for each rank, or a map where ranks are many."""

from typing import TYPE_CHECKING

import numpy as np

from causeway.core import formatting
from causeway.plotting.drawing.target_labels import target_axis, unit_stated
from causeway.plotting.figures.bins import LOG_BEYOND, MOST_LANES, lanes_of
from causeway.plotting.interactive.look import compact, figure

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa


def bins_over_time(bins: "pa.Table", ranking: "pa.Table", target: str) -> "go.Figure":
    """Return the bins of a target; bins without launches stay empty, and bins kept for the causal analysis are marked.

    Parameters
    ----------
    bins, ranking : Table
        The tables of that name; `bins` has at least one row.
    target : str
        For the axis.
    """
    import plotly.graph_objects as go

    lanes = lanes_of(bins, ranking)
    unit = unit_stated(bins)
    name, size = formatting.time_unit(float(np.nanmax(lanes.high))) if unit == "ns" else (unit, 1.0)
    middle = (lanes.edges[1:] + lanes.edges[:-1]) / 2 / (1e9 if lanes.timed else 1)
    x = {"title": "time since the first bin, s" if lanes.timed else "bin, in the order of the export"}
    y = {"title": f"median{f', {name}' if name else ''}"}
    words = f"Of {target_axis(target)}. Diamonds: bins kept for the causal analysis."
    medians = lanes.median_high / size
    if len(lanes.ranks) > MOST_LANES:
        cells = go.Heatmap(
            x=compact(middle), y=[str(rank) for rank in lanes.ranks], z=compact(medians), coloraxis="coloraxis"
        )
        cells.update(hovertemplate="rank %{y}, %{x:.4g}: median %{z:.4g}<extra></extra>")
        scale = {"colorbar": {"title": {"text": name}}}
        return figure([cells], meta=words, xaxis=x, yaxis={"title": "rank", "type": "category"}, coloraxis=scale)
    traces = []
    for row, rank in enumerate(lanes.ranks):
        marked = lanes.kept[row]
        traces.append(
            go.Scatter(
                x=compact(middle),
                y=compact(medians[row]),
                customdata=compact(np.column_stack([lanes.low[row], lanes.high[row]]) / size),
                name=f"rank {rank}",
                mode="lines+markers",
                line={"width": 1.3},
                marker={"size": np.where(marked, 7, 2), "symbol": np.where(marked, "diamond", "circle").tolist()},
                hovertemplate=(
                    f"rank {rank}, %{{x:.4g}}: median %{{y:.4g}}, quartiles %{{customdata[0]:.4g}} to"
                    f" %{{customdata[1]:.4g}} {name}<extra></extra>"
                ),
            )
        )
    above = medians[medians > 0]
    if above.size and above.max() / above.min() > LOG_BEYOND:
        y["type"] = "log"
    return figure(traces, meta=words, xaxis=x, yaxis=y)
