"""Device time that is lost: the waterfall of all of it, and its map over ranks and time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import WATERFALL
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.merged_cells import merged_rows, rank_labels
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

if TYPE_CHECKING:
    import pyarrow as pa

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
WIDTH = 1180.0
MOST_ROWS = 48


@dataclass(frozen=True, kw_only=True)
class LostShares:
    """Shares of the time in which no kernel runs, by rank and bin.

    `shares` (shape (n_ranks, n_bins), 0 to 1): NaN where a rank has no time in a bin. `bin_ns`: length of a bin.
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


def draw_lost_time(efficiency: Mapping, name: str) -> Markup:
    """Return the waterfall: device time from what is useful to all that there was, in GPU-seconds."""
    parts = efficiency["waterfall_ns"]
    total = efficiency["elapsed_ns"] * efficiency["device"]["n_devices"]
    if efficiency["why"] or not total:
        return notice("Device time", name, [f"Nothing was measured: {efficiency['why'] or 'no time passed'}."])
    devices = formatting.counted(efficiency["device"]["n_devices"], "device")
    below = f"{elided(name, 60)}: {formatting.time(total)} of GPU time on {devices}"
    left = 330.0
    right = WIDTH - 170.0
    top = 64.0
    scale = (right - left) / total
    drawn = [
        text(MARGIN, 26, "Where the device time goes", 15, font_weight="bold"),
        text(MARGIN, 45, below, theme.SMALL, colour=theme.MUTED),
    ]
    done = 0
    shown = shown_parts(parts)
    for number, (key, words, colour) in enumerate(shown):
        y = top + 30 * number
        value = parts[key]
        x = left + done * scale
        width = value * scale
        drawn.append(text(left - 12, y + 15, words, theme.SMALL, "end"))
        drawn.append(tag("line", x1=x, x2=x, y1=y - 8 if number else y, y2=y + 22, stroke=theme.GRID))
        drawn.append(tag("rect", x=x, y=y, width=max(width, 0.6), height=22, fill=colour))
        label = f"{formatting.time(value)}, {formatting.percent(100 * value / total)}"
        drawn.append(text(x + width + 6, y + 15, label, theme.SMALL))
        done += value
    y = top + 30 * len(shown) + 4
    drawn.append(tag("line", x1=left, x2=right, y1=y, y2=y, stroke=theme.FAINT))
    name_, size = formatting.time_unit(total)
    for tick in theme.nice_ticks(0.0, total / size, 6):
        drawn.append(
            text(
                left + tick * size * scale,
                y + 16,
                f"{formatting.significant(tick)} {name_}",
                theme.SMALL,
                "middle",
                theme.MUTED,
            )
        )
    return document(WIDTH, y + 30, f"Device time of {name}", *drawn)


def draw_rank_map(table: "pa.Table", name: str, note: str) -> Markup:
    """Return the map of rank by time: the share of each bin in which no kernel runs, light for none and dark for all
    of it.
    """
    lost = lost_shares(table)
    if lost is None:
        return notice("Efficiency over time", name, ["There are no events with times."])
    shown, groups = merged_rows(lost.shares, MOST_ROWS)
    n_rows, bins = shown.shape
    labels = rank_labels(lost.ranks, groups)
    left = MARGIN + max(text_width(label, theme.SMALL) for label in labels) + 10
    top = 66.0
    width = (WIDTH - MARGIN - left) / bins
    height = min(max(170.0 / n_rows, 10.0), 34.0)
    drawn = [text(MARGIN, 26, "Time lost, over time and ranks", 15, font_weight="bold")]
    words = f"{name}: share of each slice of time in which no kernel runs"
    words += f", largest of {len(groups[0])} ranks a row" if n_rows < len(lost.ranks) else ""
    drawn.append(text(MARGIN, 45, elided(f"{words}; {note}", 170), theme.SMALL, colour=theme.MUTED))
    drawn += _cells(shown, left, top, width, height)
    every = max(1, round(15 / height + 0.49))
    drawn += [
        text(left - 6, top + (row + 0.5) * height + 4, label, theme.SMALL, "end", theme.MUTED)
        for row, label in enumerate(labels)
        if row % every == 0
    ]
    y = top + height * n_rows
    span = bins * lost.bin_ns
    unit, size = formatting.time_unit(span)
    for tick in theme.nice_ticks(0.0, span / size, 8):
        x = left + tick * size / span * (WIDTH - MARGIN - left)
        anchor = "start" if tick == 0 else "end" if x > WIDTH - 50 else "middle"
        drawn.append(text(x, y + 17, f"{formatting.significant(tick)} {unit}", theme.SMALL, anchor, theme.MUTED))
    drawn += [
        tag("rect", x=left + at * 8, y=y + 34, width=8.2, height=10, fill=theme.shade(at / 31)) for at in range(32)
    ]
    drawn += [
        text(
            left + 64 * quarter, y + 58, f"{25 * quarter} %", theme.SMALL, "middle" if quarter else "start", theme.MUTED
        )
        for quarter in range(5)
    ]
    drawn.append(
        text(left + 290, y + 43, "without a kernel; 0 %: kernels run all the time", theme.SMALL, colour=theme.MUTED)
    )
    return document(WIDTH, y + 70, f"Time lost over time and ranks of {name}", *drawn)


def _cells(values: np.ndarray, left: float, top: float, width: float, height: float) -> list[Markup]:
    """Return cells of one shade as one path; none where a value is not a number."""
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            if math.isnan(value):
                continue
            place = (
                f"M{left + column * width:.1f}"
                f" {top + row * height:.1f}h{width + 0.15:.2f}v{height - 1:.1f}h-{width + 0.15:.2f}z"
            )
            paths.setdefault(round(31 * min(max(value, 0.0), 1.0)), []).append(place)
    return [tag("path", d="".join(places), fill=theme.shade(level / 31)) for level, places in sorted(paths.items())]


def aligned_by(clocks: Mapping) -> str:
    """Return in a few words how ranks were put on one time line."""
    residual = clocks["residual_ns"]
    method = ALIGNMENTS.get(clocks["method"], clocks["method"])
    return method + (f", residual {formatting.time(residual)}" if residual is not None else "")
