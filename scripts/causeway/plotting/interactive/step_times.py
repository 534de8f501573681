"""Duration of each step, a line for each rank; slow steps are marked and say why."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from causeway.core import formatting
from causeway.core.vocabulary import SLOW_STEP_CAUSES
from causeway.plotting.interactive.look import compact, figure

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_RANKS = 16
"""Ranks that are drawn: those that lose most time in slow steps, then the first."""
MOST_STEPS = 2000
"""Steps of a rank that are drawn one by one; of more, the longest of neighbours."""


def step_times(steps: Mapping, table: "pd.DataFrame") -> "go.Figure":
    """Return the steps of `steps.json` and of the table `steps`, which has at least one row."""
    import plotly.graph_objects as go

    name, size = formatting.time_unit(float(table["duration_ns"].median()))
    slow = {(step["rank"], step["step"]): step for step in steps["slow"]}
    lost: dict[int, int] = {}
    for step in steps["slow"]:
        lost[step["rank"]] = lost.get(step["rank"], 0) + step["excess_ns"]
    ranks = sorted(table["rank"].unique().tolist(), key=lambda rank: (-lost.get(rank, 0), rank))[:MOST_RANKS]
    traces = []
    for rank in sorted(ranks):
        rows = table[table["rank"] == rank]
        together = -(-len(rows) // MOST_STEPS)
        rows = rows.loc[rows.groupby(np.arange(len(rows)) // together)["duration_ns"].idxmax()]
        numbers = rows["step"].tolist()
        is_slow = np.array([(rank, number) in slow for number in numbers])
        symbols = np.where(is_slow, "diamond", np.where(rows["warm_up"], "circle-open", "circle"))
        traces.append(
            go.Scatter(
                x=numbers,
                y=compact(rows["duration_ns"].to_numpy() / size),
                text=[_why(slow.get((rank, number))) for number in numbers],
                name=f"rank {rank}",
                mode="lines+markers",
                line={"width": 1},
                marker={"size": np.where(is_slow, 9, 4), "symbol": symbols.tolist()},
                hovertemplate=f"rank {rank}, step %{{x}}: %{{y:.4g}} {name}%{{text}}<extra></extra>",
            )
        )
    words = "Diamonds: slow steps, hollow: warm-up."
    return figure(
        traces, meta=words, xaxis={"title": "step"}, yaxis={"title": f"duration, {name}", "rangemode": "tozero"}
    )


def _why(step: Mapping | None) -> str:
    if step is None:
        return ""
    words = f"<br>slow: {100 * (step['duration_ns'] / step['usual_ns'] - 1):+,.0f} % of the usual step"
    words += f", {SLOW_STEP_CAUSES[step['cause']]}" if step["cause"] else ""
    return words + (f", waits for rank {step['waits_for']}" if step["waits_for"] is not None else "")
