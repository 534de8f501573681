"""Roofline (Williams, Waterman, Patterson, Commun. ACM 52, 2009) of kernels with counters of operations and bytes."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from causeway.core.errors import CausewayError
from causeway.plotting.interactive.look import figure, label

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

OPERATIONS = re.compile(r"sm(sp)?__sass_thread_inst_executed_op_[dfh](add|mul|fma)_pred_on_sum")
"""Counters of floating-point instructions by thread; a fused one counts twice. Tensor cores have none of these."""
BYTES = "dram_bytes"
RATE = "dram_bytes_per_second"
SHARES = ("gpu_dram", "dram__throughput_avg_pct_of_peak_sustained_elapsed")
"""Memory throughput as a share of the device's peak, from which the peak follows."""


def roofline(launches: "pd.DataFrame", names: Mapping[str, str]) -> "go.Figure":
    """Return a point for each kernel, the median of its launches: operations per byte and per second, both logarithmic.

    The sloping roof is the memory's peak, where counters have it; the peak of operations is in no counter.

    Parameters
    ----------
    launches : DataFrame
        Rows of `features` of a dataset of counters; `seconds` is how long each launch took.
    names : mapping of str to str
        Full kernel names by kernel id.

    Raises
    ------
    CausewayError
        If counters are missing; it names them.
    """
    import plotly.graph_objects as go

    counted = [name for name in launches if OPERATIONS.fullmatch(name)]
    missing = [] if counted else ["smsp__sass_thread_inst_executed_op_*_pred_on.sum (instructions)"]
    missing += [] if BYTES in launches else ["dram__bytes.sum"]
    missing += [] if "seconds" in launches else ["gpu__time_duration.sum"]
    if missing:
        raise CausewayError(f"a roofline needs counters that were not recorded: {', '.join(missing)}")
    operations = (launches[counted] * [2 if "fma" in name else 1 for name in counted]).sum(axis=1)
    frame = launches[["kernel"]].assign(
        intensity=operations / launches[BYTES], speed=operations / launches["seconds"], seconds=launches["seconds"]
    )
    frame = frame[(operations > 0) & (launches[BYTES] > 0) & (launches["seconds"] > 0)]
    if frame.empty:
        raise CausewayError("no launch has both floating-point operations and bytes, which a roofline needs")
    kernels = frame.groupby("kernel").median().sort_index()
    points = go.Scatter(
        x=kernels["intensity"],
        y=kernels["speed"],
        text=[label(names.get(kernel, kernel)) for kernel in kernels.index],
        mode="markers",
        name="kernels",
        marker={"size": 11},
        hovertemplate="%{text}<br>%{x:.3g} operations per byte, %{y:.3s} per second<extra></extra>",
    )
    traces = [points]
    share = next((name for name in SHARES if name in launches), None)
    if share is not None and RATE in launches and (launches[share] > 0).any():
        peak = float((launches[RATE] / launches[share])[launches[share] > 0].median())
        ends = [kernels["intensity"].min() / 4, kernels["intensity"].max() * 4]
        roof = go.Scatter(x=ends, y=[peak * end for end in ends], mode="lines", hoverinfo="skip")
        traces.append(roof.update(name=f"peak of the memory, {peak / 1e9:,.0f} GB/s"))
    x = {"title": "operations per byte of device memory", "type": "log"}
    words = "The median launch of each kernel; operations of tensor cores have no such counter. Both axes logarithmic."
    return figure(
        traces, meta=words, xaxis=x, yaxis={"title": "operations per second", "type": "log", "tickformat": ".2s"}
    )
