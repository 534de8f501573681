"""Device time that is lost: the waterfall of all of it, and its map over ranks and time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import WATERFALL
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.merged_cells import merged_rows, rank_labels

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure

COLOURS = {
    "useful": theme.CLASSES["compute"],
    "communication": theme.CLASSES["communication"],
    "transfers": theme.CLASSES["copy"],
    "orchestration": theme.CLASSES["idle"],
    "outside": theme.UNKNOWN,
}
PARTS = tuple((part.name, part.label, COLOURS[part.name]) for part in WATERFALL)
ALIGNMENTS = {
    "collective_ends": "clocks aligned by ends of collectives",
    "session_start": "clocks by session starts, unchecked",
    "one_export": "one clock",
    "zero": "each export begins at 0: ranks are not aligned",
}
MOST_ROWS = 48


@dataclass(frozen=True, kw_only=True)
class LostShares:
    """Shares of the time in which no kernel runs, by rank and bin.

    Attributes
    ----------
    ranks : list of int
    shares : ndarray of float, shape (n_ranks, n_bins)
        0 to 1; NaN where a rank has no time in a bin.
    bin_ns : int
        Length of a bin.
    """

    ranks: list[int]
    shares: np.ndarray
    bin_ns: int


def shown_parts(times: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Return name, label and colour of the parts of the device time to show, ns by name: without time outside of all
    ranks' work where there is none.
    """
    return [part for part in PARTS if part[0] != "outside" or times[part[0]]]


def lost_shares(table: "pa.Table") -> LostShares | None:
    """Return the lost shares that `efficiency.parquet` holds, None without bins of ranks."""
    names = ["level", "rank", "bin", "elapsed_ns", "n_devices", "kernel_ns"]
    rows = [row for row in table.select(names).to_pylist() if row["level"] == "bin" and row["rank"] is not None]
    if not rows:
        return None
    ranks = sorted({row["rank"] for row in rows})
    index = {rank: number for number, rank in enumerate(ranks)}
    shares = np.full((len(ranks), 1 + max(row["bin"] for row in rows)), np.nan)
    for row in rows:
        if row["elapsed_ns"] * row["n_devices"] > 0:
            lost = 1 - row["kernel_ns"] / (row["elapsed_ns"] * row["n_devices"])
            shares[index[row["rank"]], row["bin"]] = lost
    return LostShares(ranks=ranks, shares=shares, bin_ns=rows[0]["elapsed_ns"])


def bars_of(parts: Mapping[str, int], total: int) -> "pd.DataFrame":
    """Return the bars with the columns label, start and length (ns), colour, words, hover; `total` in ns."""
    import pandas as pd

    shown = shown_parts(parts)
    bars = pd.DataFrame({"label": [words for _, words, _ in shown], "length": [parts[key] for key, _, _ in shown]})
    bars["start"] = bars.length.cumsum() - bars.length
    bars["colour"] = [colour for _, _, colour in shown]
    bars["words"] = [f"{formatting.time(ns)}, {formatting.percent(100 * ns / total)}" for ns in bars.length.tolist()]
    return bars.assign(hover=bars.label + ": " + bars.words)


def draw_lost_time(efficiency: Mapping, name: str) -> "Figure":
    """Return the waterfall: device time from what is useful to all that there was, in GPU-seconds."""
    total = efficiency["elapsed_ns"] * efficiency["device"]["n_devices"]
    if efficiency["why"] or not total:
        return notice("Device time", name, [f"Nothing was measured: {efficiency['why'] or 'no time passed'}."])
    devices = formatting.counted(efficiency["device"]["n_devices"], "device")
    below = f"{elided(name, 60)}: {formatting.time(total)} of GPU time on {devices}"
    bars = bars_of(efficiency["waterfall_ns"], total)
    with theme.drawing():
        figure, axis = charts.sheet("Where the device time goes", below, charts.ROW * len(bars) + 0.4)
        charts.cascade(axis, bars)
        axis.set_xlim(0, total)
        charts.time_axis(axis, total)
    return figure


def draw_rank_map(table: "pa.Table", name: str, note: str) -> "Figure":
    """Return the map of rank by time: the share of each bin in which no kernel runs, light for none and dark for all
    of it.
    """
    lost = lost_shares(table)
    if lost is None:
        return notice("Efficiency over time", name, ["There are no events with times."])
    shown, groups = merged_rows(lost.shares, MOST_ROWS)
    n_rows, bins = shown.shape
    below = f"{elided(name, 60)}: share of each slice of time in which no kernel runs"
    below += f", largest of {len(groups[0])} ranks a row" if n_rows < len(lost.ranks) else ""
    with theme.drawing():
        title = "Time lost, over time and ranks"
        figure, axis = charts.sheet(title, f"{below}; {note}", 1.15 + max(0.16 * n_rows, 0.6))
        span = bins * lost.bin_ns
        image = axis.imshow(
            shown, cmap=theme.colormap(), vmin=0, vmax=1, aspect="auto", extent=(0, span, n_rows - 0.5, -0.5)
        )
        charts.labels(axis, rank_labels(lost.ranks, groups))
        axis.yaxis.set_major_locator(charts.every_row(n_rows, 30))
        axis.set_ylim(n_rows - 0.5, -0.5)
        charts.time_axis(axis, span)
        figure.colorbar(
            image,
            ax=axis,
            location="bottom",
            format=lambda share, _: f"{100 * share:.0f} %",
            label="without a kernel; 0 %: kernels run all the time",
            aspect=40,
            shrink=0.4,
            anchor=(0, 1),
        ).outline.set_visible(False)
    return figure


def aligned_by(clocks: Mapping) -> str:
    """Return in a few words how ranks were put on one time line."""
    residual = clocks["residual_ns"]
    method = ALIGNMENTS.get(clocks["method"], clocks["method"])
    return method + (f", residual {formatting.time(residual)}" if residual is not None else "")
