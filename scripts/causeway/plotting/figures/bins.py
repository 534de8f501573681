"""Variability over time: median and quartiles of the target in each bin, one row per rank, or a heat map where ranks
are many.

Bins without launches stay empty: no line crosses them. A screen shows about a thousand columns; beyond that
neighbouring bins share a column, which then spans from the lowest to the highest value of its bins. The figure says so.
"""

import numpy as np
import pyarrow as pa

from causeway.core import formatting
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import cells_together, largest_by_cell, notice
from causeway.plotting.drawing.drawn import Axes, Figure
from causeway.plotting.drawing.labels import stated, target_axis, unit_stated

MOST_LANES = 16
COLUMNS = 900
SHADED = 15
"""Runs of kept bins in a row up to which they are shaded over its whole height."""
LOG_BEYOND = 30.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


def overlap_in_time(first: np.ndarray, last: np.ndarray) -> bool:
    """Return whether the spans [first, last] of the ranks, each of shape (ranks,), form one chain of overlaps."""
    order = np.argsort(first, kind="stable")
    reach = np.maximum.accumulate(last[order])
    return bool(np.all(first[order][1:] <= reach[:-1]))


class Lanes:
    """Bins of a dataset as columns of a figure; NaN in a column without launches.

    Parameters
    ----------
    bins, ranking : pyarrow.Table
        The tables of that name, ordered by rank and bin; `bins` has at least one row.
    columns : int
        At most this many columns.

    Attributes
    ----------
    ranks : list of int
    edges : ndarray, shape (n_columns + 1,)
        Positions on the x axis, in ns or, without start times, in bins.
    low, median_low, median_high, high : ndarray of float, shape (n_ranks, n_columns)
        The lower quartile, the medians and the upper quartile.
    kept : ndarray of bool, shape (n_ranks, n_columns)
    timed, own_start : bool
    merged : int
    width : int
        Of a bin, in ns or, without start times, in launches.
    """

    def __init__(self, bins: pa.Table, ranking: pa.Table, columns: int = COLUMNS) -> None:
        rank, number = (bins.column(name).to_numpy() for name in ("rank", "bin"))
        q1, median, q3 = (bins.column(name).to_numpy() for name in ("q1", "median", "q3"))
        places = zip(*(ranking.column(name).to_pylist() for name in ("rank", "bin")), strict=True)
        marked = dict(zip(places, ranking.column("kept").to_pylist(), strict=True))
        kept = np.array([marked.get(key, False) for key in zip(rank.tolist(), number.tolist(), strict=True)])
        ranks = np.unique(rank)
        self.ranks = ranks.tolist()
        self.timed = bins.column("start_ns").null_count == 0
        self.width = int(stated(bins, "bin_width", "1"))
        row = np.searchsorted(ranks, rank)
        first = np.full(len(ranks), np.iinfo(np.int64).max)
        last = np.zeros(len(ranks), np.int64)
        np.minimum.at(first, row, number)
        np.maximum.at(last, row, number)
        self.own_start = self.timed and len(ranks) > 1 and not overlap_in_time(first, last)
        number = number - first[row] if self.own_start else number - first.min()
        self.merged = cells_together(int(number.max()) + 1, columns)
        column = number // self.merged
        shape = (len(ranks), int(column.max()) + 1)
        self.low, self.median_low = (-largest_by_cell(row, column, -values, shape) for values in (q1, median))
        self.median_high, self.high = (largest_by_cell(row, column, values, shape) for values in (median, q3))
        self.kept = largest_by_cell(row, column, kept, shape) > 0
        self.edges = np.arange(shape[1] + 1, dtype=float) * self.merged * (self.width if self.timed else 1)


def notes_of(lanes: Lanes, clocks: dict) -> list[str]:
    """Return what a reader must know beside the lines: the bins, merging, and how the ranks' clocks lie to each
    other.
    """
    if lanes.timed:
        notes = [f"bins of {formatting.time(lanes.width)}"]
    else:
        notes = [f"bins of {lanes.width} launches in the order of the export, which has no start times"]
    if lanes.merged > 1:
        notes.append(f"each column spans {lanes.merged} bins, from their lowest to their highest value")
    if lanes.own_start:
        notes.append("the exports do not overlap in time: each rank is drawn from its own first bin")
    elif lanes.timed and len(lanes.ranks) > 1 and clocks.get("method") == "zero":
        notes.append("no common clock is known: each export begins at 0")
    return notes


def draw_bins(bins: pa.Table, ranking: pa.Table, clocks: dict, *, dataset: str, target: str) -> Figure:
    """Return the bins of one target of a dataset, drawn.

    Parameters
    ----------
    bins, ranking : pyarrow.Table
        The tables of that name.
    clocks : dict
        The document `clocks.json`.
    dataset, target : str
        For the title and the axis.
    """
    title = f"{target_name(target).capitalize()} over time, {dataset}"
    if not bins.num_rows:
        why = f"No launch of this dataset has a {target_name(target)}; the data quality section says why."
        return notice(title, "0 bins", [why])
    lanes = Lanes(bins, ranking)
    with theme.drawing():
        draw = _draw_lanes if len(lanes.ranks) <= MOST_LANES else _draw_map
        figure = draw(lanes, target, unit_stated(bins), title)
        notes = "; ".join(notes_of(lanes, clocks))
        figure.supxlabel(f"{notes[:1].upper()}{notes[1:]}.", x=0.015, ha="left", fontsize=9, color=theme.MUTED)
    return figure


def scale_of(values: np.ndarray, unit: str) -> tuple[float, str, bool, float]:
    """Return the divisor and unit of an axis of values of any shape, whether it is logarithmic, and its least value."""
    finite = values[np.isfinite(values)]
    top = float(finite.max()) if finite.size else 0.0
    name, size = formatting.time_unit(top) if unit == "ns" else (unit, 1.0)
    positive = finite[finite > 0]
    least = float(positive.min()) if positive.size else 1.0
    log = positive.size > 1 and top / least > LOG_BEYOND
    return size, name, log, max(least, top * 1e-6) * 0.7 if log else 0.0


def _axis_x(axis: Axes, lanes: Lanes) -> float:
    """Label the time axis; return its divisor."""
    if not lanes.timed:
        axis.set_xlabel("bin, in the order of the launches")
        return 1.0
    name, size = formatting.time_unit(lanes.edges[-1])
    axis.set_xlabel(f"time since {'the first bin of its rank' if lanes.own_start else 'the first launch'} ({name})")
    return size


def _thousands(value: float, _: int) -> str:
    return formatting.significant(value, 4)


def _draw_lanes(lanes: Lanes, target: str, unit: str, title: str):
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    count = len(lanes.ranks)
    each = min(1.7, max(0.62, 9.0 / count))
    size, name, log, least = scale_of(np.concatenate([lanes.low, lanes.median_high, lanes.high]), unit)
    below = target_axis(target) + (f", in {name}" if name else "") + (" (log axis, 0 at its foot)" if log else "")
    below += "; line: median; band: quartiles; orange: bins kept for the causal analysis"
    figure, axes = charts.panels(title, below, each * count + 0.7, nrows=count, sharex=True, sharey=True)
    x_size = _axis_x(axes[-1, 0], lanes)
    edges = lanes.edges / x_size
    for row, rank in enumerate(lanes.ranks):
        axis = axes[row, 0]
        low, middle_low, middle_high, high = (
            np.maximum(values[row], least) / size
            for values in (lanes.low, lanes.median_low, lanes.median_high, lanes.high)
        )
        axis.grid(axis="y")
        runs = _runs(lanes.kept[row])
        for left, right in runs:
            axis.axvspan(edges[left], edges[right], ymin=0.94, color=theme.DIVERGING[-2], linewidth=0)
            if len(runs) <= SHADED:
                axis.axvspan(edges[left], edges[right], ymax=0.94, color=theme.DIVERGING[6], alpha=0.4, linewidth=0)
        axis.stairs(high, edges, baseline=low, fill=True, color=theme.SEQUENTIAL[4], alpha=0.35, linewidth=0)
        if lanes.merged > 1:
            axis.stairs(middle_high, edges, baseline=middle_low, fill=True, color=theme.SEQUENTIAL[6], linewidth=0.6)
        axis.stairs(middle_high, edges, baseline=None, color=theme.SEQUENTIAL[6], linewidth=1.4)
        axis.set_ylabel(f"rank {rank}", rotation=0, ha="right", va="center", color=theme.INK)
    axis = axes[0, 0]
    top = float(np.nanmax(lanes.high)) / size
    axis.set_xlim(edges[0], edges[-1])
    axis.set_yscale("log" if log else "linear")
    axis.set_ylim(least / size if log else 0, (top * 1.6 if log else top * 1.12) or 1.0)
    axis.yaxis.set_major_locator(LogLocator(numticks=4) if log else MaxNLocator(3))
    axis.yaxis.set_minor_formatter(NullFormatter())
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter(FuncFormatter(_thousands))
    return figure


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return the runs of True as (first, one past the last)."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return list(zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True))


def _draw_map(lanes: Lanes, target: str, unit: str, title: str):
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    size, name, log, least = scale_of(lanes.median_high, unit)
    values = lanes.median_high / size
    top = float(np.nanmax(values)) or 1.0
    below = f"{target_axis(target)}; empty: no launches; orange dots: kept for the causal analysis"
    below += "; colour on a log scale" if log else ""
    figure, axis = charts.sheet(title, below, min(max(0.11 * len(lanes.ranks), 2.6), 9.0) + 0.7)
    label = f"median {target_name(target)}" + (f" ({name})" if name else "")
    charts.seaborn().heatmap(
        np.where(np.isnan(values), np.nan, np.maximum(values, least / size)),
        ax=axis,
        cmap=theme.colormap(),
        norm=LogNorm(least / size, top) if log else Normalize(0, top),
        rasterized=True,
        xticklabels=False,
        yticklabels=False,
        cbar_kws={"label": label, "format": FuncFormatter(_thousands), "aspect": 30},
    )
    rows, columns = np.nonzero(lanes.kept)
    axis.plot(columns + 0.5, rows + 0.5, ls="none", marker=".", ms=3, color=theme.DIVERGING[-2], rasterized=True)
    step = cells_together(len(lanes.ranks), 24)
    axis.set_yticks(np.arange(0, len(lanes.ranks), step) + 0.5, [str(rank) for rank in lanes.ranks[::step]])
    axis.set_ylabel("rank")
    x_size = _axis_x(axis, lanes)
    last = lanes.edges[-1] / x_size
    ticks = [tick for tick in MaxNLocator(8).tick_values(0, last) if 0 <= tick <= last]
    axis.set_xticks(np.array(ticks) * x_size / lanes.edges[1], [_thousands(tick, 0) for tick in ticks], rotation=0)
    return figure
