"""The interactive figures, each from tables: bins over time, steps, launches as parallel coordinates and by cause,
changes of two runs, and the roofline.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from causeway.core import formatting
from causeway.core.errors import CausewayError
from causeway.core.feature_registry import feature_words
from causeway.core.formatting import elided
from causeway.core.vocabulary import FOR_THE_BETTER, FOR_THE_WORSE, UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import short_names, target_axis, unit_stated
from causeway.plotting.drawing.markup import escape, wrapped
from causeway.plotting.figures.bins import LOG_BEYOND, MOST_LANES, Lanes
from causeway.plotting.figures.comparison import of_kernels
from causeway.plotting.figures.coordinates import Axis, Coordinates
from causeway.plotting.figures.steps import ranks_of, steps_of
from causeway.plotting.interactive.look import FLOOR, compact, figure, label

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def bins_over_time(bins: pa.Table, ranking: pa.Table, target: str) -> "go.Figure":
    """Return the bins of a target; bins without launches stay empty, and bins kept for the causal analysis are marked.

    Parameters
    ----------
    bins, ranking : Table
        The tables of that name; `bins` has at least one row.
    target : str
        For the axis.
    """
    import plotly.graph_objects as go

    lanes = Lanes(bins, ranking)
    unit = unit_stated(bins)
    name, size = formatting.time_unit(float(np.nanmax(lanes.high))) if unit == "ns" else (unit, 1.0)
    middle = (lanes.edges[1:] + lanes.edges[:-1]) / 2 / (1e9 if lanes.timed else 1)
    x = {"title": "time since the first bin, s" if lanes.timed else "bin, in the order of the export"}
    y: dict[str, object] = {"title": f"median{f', {name}' if name else ''}"}
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
        words_of = f"rank {rank}, %{{x:.4g}}: median %{{y:.4g}}, quartiles %{{customdata[0]:.4g}} to"
        line = go.Scatter(
            x=compact(middle),
            y=compact(medians[row]),
            customdata=compact(np.column_stack([lanes.low[row], lanes.high[row]]) / size),
            name=f"rank {rank}",
            mode="lines+markers",
            line={"width": 1.3},
            marker={"size": np.where(marked, 7, 2), "symbol": np.where(marked, "diamond", "circle").tolist()},
            hovertemplate=f"{words_of} %{{customdata[1]:.4g}} {name}<extra></extra>",
        )
        traces.append(line)
    above = medians[medians > 0]
    if above.size and above.max() / above.min() > LOG_BEYOND:
        low = np.floor(np.log10(above.min()))
        high = np.log10(above.max())
        digits = (1, 2, 5) if high - low < 3 else (1,)
        ticks = [digit * 10.0**power for power in np.arange(low, high + 1) for digit in digits]
        # in full: of those between powers plotly writes the first digit alone
        y |= {"type": "log", "tickvals": ticks, "ticktext": [formatting.significant(tick, 3) for tick in ticks]}
    return figure(traces, meta=words, xaxis=x, yaxis=y)


MOST_RANKS = 16
"""Ranks that are drawn: those that lose most time in slow steps, then the first."""
SYMBOLS = {"usual": "circle", "warm-up": "circle-open", "slow": "diamond"}
MOST_STEPS = 2000
"""Steps of a rank that are drawn one by one; of more, the longest of neighbours."""


def step_times(steps: Mapping, table: pa.Table) -> "go.Figure":
    """Return the steps of `steps.json` and of the table `steps`, which has at least one row: a line for each rank; slow
    steps are marked and say why.
    """
    import plotly.graph_objects as go

    frame = steps_of(steps, table, MOST_STEPS)
    name, size = formatting.time_unit(float(frame.duration_ns.median()))
    traces = []
    for rank in ranks_of(steps, frame["rank"].unique().tolist(), MOST_RANKS):
        rows = frame[frame["rank"] == rank]
        words = [f"<br>slow: {words}" if words else "" for words in rows.words]
        lines = go.Scatter(
            x=rows.step.tolist(),
            y=compact(rows.duration_ns.to_numpy() / size),
            text=words,
            name=f"rank {rank}",
            mode="lines+markers",
            line={"width": 1},
            marker={"size": np.where(rows.kind == "slow", 9, 4), "symbol": rows.kind.map(SYMBOLS).tolist()},
        )
        hover = f"rank {rank}, step %{{x}}: %{{y:.4g}} {name}%{{text}}<extra></extra>"
        traces.append(lines.update(hovertemplate=hover))
    y = {"title": f"duration, {name}", "rangemode": "tozero"}
    return figure(traces, meta="Diamonds: slow steps, hollow: warm-up.", xaxis={"title": "step"}, yaxis=y)


PLACES = 2000
"""Places of an axis, more than a screen has pixels: whole numbers of two bytes hold them."""


def parallel_coordinates(chosen: Coordinates) -> "go.Figure":
    """Return the lines of a selection, an axis for each feature and the target last, coloured by its quantile."""
    import plotly.graph_objects as go

    dimensions = [
        {
            "label": "<br>".join(escape(line) for line in (*broken(axis.words), *axis.note.split("\n")) if line),
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


def broken(name: str) -> list[str]:
    """Return a feature's name in lines that fit above an axis."""
    return wrapped(elided(name, 42), 100, theme.SMALL)


def _places(axis: Axis, values: np.ndarray | float) -> np.ndarray:
    return PLACES * (np.asarray(values) - axis.low) / (axis.high - axis.low)


MOST_CAUSES = 8
MOST_LEVELS = 8
"""A cause with more values than these is cut into thirds; names beyond them are one group."""
THIRDS = ("lowest third", "middle third", "highest third")


def distribution_by_cause(
    launches: "pd.DataFrame", contributions: Sequence[Mapping], units: Mapping[str, str], unit: str
) -> "go.Figure":
    """Return boxes of how much launches are above or below the mean of their configuration.

    Parameters
    ----------
    launches : DataFrame
        Rows of `features`, with a column for each cause.
    contributions : sequence of mapping
        Rows of the dataset's `contributions`, of which those with the largest share are drawn.
    units : mapping of str to str
        Of the columns of `launches`.
    unit : str
        Of the measured value.

    Raises
    ------
    CausewayError
        If there is no cause.
    """
    import plotly.graph_objects as go

    rows = sorted(contributions, key=lambda row: (-(row["variance_percent"] or 0.0), row["feature"]))
    columns = [row["feature"] if row["feature"] in launches else row["feature"].rpartition("=")[0] for row in rows]
    causes = [name for name in dict.fromkeys(columns) if name in launches and name != UNEXPLAINED][:MOST_CAUSES]
    if not causes:
        raise CausewayError("the search found no cause, so that there is nothing to group launches by")
    value = launches["signed_deviation"]
    name, size = formatting.time_unit(float(value.abs().max())) if unit == "ns" else (unit, 1.0)
    traces = []
    of_cause = []
    for cause in causes:
        groups, order = groups_of(launches[cause], units.get(cause, ""))
        for group in order:
            of = compact((value[groups == group] / size).to_numpy())
            box = go.Box(x=of, name=label(group), visible=cause == causes[0], boxpoints="outliers", marker={"size": 3})
            traces.append(box)
            of_cause.append(cause)
    seen = {cause: [{"visible": [other == cause for other in of_cause]}] for cause in causes}
    words = {name: feature_words(name, row.get("group") or "") for name, row in zip(columns, rows, strict=True)}
    buttons = [{"label": label(words[name], 40), "method": "restyle", "args": args} for name, args in seen.items()]
    menu = {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    x = {"title": f"deviation{f', {name}' if name else ''}"}
    below = "How far launches are above or below the mean of their configuration, by a cause."
    y = {"type": "category", "autorange": "reversed"}
    menus = [menu] if len(causes) > 1 else []
    return figure(traces, meta=below, xaxis=x, yaxis=y, showlegend=False, updatemenus=menus, margin={"t": 60})


def groups_of(values: "pd.Series", unit: str) -> tuple[np.ndarray, list[str]]:
    """Return the groups of a column.

    Parameters
    ----------
    values : Series, n_rows values
    unit : str

    Returns
    -------
    groups : ndarray of object, shape (n_rows,)
        The group of each value in words: its level, or the third that it is in.
    order : list of str
        The groups, from the lowest or most frequent one on.
    """
    import pandas as pd

    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if values.nunique() <= MOST_LEVELS or not is_number:
        frequent = values.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
        levels = list(frequent.index[:MOST_LEVELS])
        levels = sorted(levels) if is_number else levels
        words = {level: formatting.quantity(float(level), unit) if is_number else str(level) for level in levels}
        groups = values.map(words).astype(object).where(values.isin(levels), "other levels")
    else:
        thirds = (3 * values.rank(pct=True)).clip(upper=2.999) // 1  # equal values are in one third
        ends = values.groupby(thirds).agg(["min", "max"]).astype(float)
        words = {
            third: f"{THIRDS[int(third)]}: {formatting.quantity(low, unit)} to {formatting.quantity(high, unit)}"
            for third, low, high in ends.itertuples()
        }
        groups = thirds.map(words).astype(object)
    groups = groups.where(values.notna(), "none").to_numpy()
    return groups, [*dict.fromkeys(words.values()), *(group for group in ("other levels", "none") if group in groups)]


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
    import pandas as pd
    import plotly.graph_objects as go

    whole = [row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch"]
    shown = [row for row in [*whole, *of_kernels(rows)] if row["change_percent"] is not None][: MOST_KERNELS + 1]
    if not shown:
        raise CausewayError(document["why"] or "no kernel is on both sides with launches that take time")
    y = list(range(len(shown)))[::-1]
    frame = pd.DataFrame(shown, columns=["change_percent", "low_percent", "high_percent", "floor_percent"], dtype=float)
    change = frame.change_percent
    low, high = (frame[f"{end}_percent"].fillna(change) for end in ("low", "high"))
    floor = frame.floor_percent.fillna(0.0)
    band = go.Bar(x=(2 * floor).tolist(), base=(-floor).tolist(), y=y, orientation="h")
    band.update(name="noise floor", marker={"color": FLOOR, "opacity": 0.25}, hoverinfo="skip")
    error = {"array": (high - change).tolist(), "arrayminus": (change - low).tolist()}
    error |= {"symmetric": False, "color": FLOOR}
    points = go.Scatter(
        x=change.tolist(),
        y=y,
        error_x=error,
        text=[f"{label(row['candidate'])}<br>{label(row['verdict'])}" for row in shown],
        customdata=list(zip(low, high, strict=True)),
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
