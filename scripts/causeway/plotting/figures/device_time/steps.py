"""Steps: how long each took, per rank over the run; warm-up, slow steps and why."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.vocabulary import SLOW_STEP_CAUSES
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

if TYPE_CHECKING:
    import pyarrow as pa

WIDTH = 1180.0
LEFT = 120.0
HEIGHT = 84.0
MOST_RANKS = 8
"""Ranks that are drawn: those that lose most time in slow steps, then the first."""
MOST_LABELS = 3
"""Slow steps of a rank that get a label, those with the largest excess."""
COLUMNS = 900
"""Steps of a rank that are drawn one by one; of more, the longest of each column."""


def draw_steps(steps: Mapping, table: "pa.Table", name: str) -> Markup:
    """Return the duration of each step, a panel for each rank.

    Parameters
    ----------
    steps : mapping
        The document `steps.json`.
    table : Table
        The table `steps`.
    name : str
        The dataset, for the title.
    """
    title = f"Duration of each step, {name}"
    if not table.num_rows:
        return notice(title, "0 steps", [f"No steps were found: {steps['reason'] or 'no rank has any'}."])
    columns = {key: table.column(key).to_numpy(zero_copy_only=False) for key in table.column_names}
    ranks = _ranks(steps, np.unique(columns["rank"]).tolist())
    zero = int(columns["start_ns"].min())
    span = max(int((columns["start_ns"] + columns["duration_ns"]).max()) - zero, 1)
    usual = columns["duration_ns"][~columns["warm_up"]]
    top = 1.15 * float(usual.max() if usual.size else columns["duration_ns"].max())
    parts = [text(MARGIN, 26, title, 15, font_weight="bold")]
    parts.append(text(MARGIN, 46, _words(steps, ranks), theme.SMALL, colour=theme.MUTED))
    y = 64.0
    for rank in ranks:
        mine = columns["rank"] == rank
        rows = {key: values[mine] for key, values in columns.items()}
        slow = [one for one in steps["slow"] if one["rank"] == rank]
        parts += _panel(rank, rows, slow, (zero, span), top, y)
        y += HEIGHT + 22
    parts.append(text(LEFT, y, "0", theme.SMALL, colour=theme.MUTED))
    parts.append(text(WIDTH - MARGIN, y, formatting.time(span), theme.SMALL, "end", theme.MUTED))
    return document(WIDTH, y + 14, title, *parts)


def _ranks(steps: Mapping, ranks: Sequence[int]) -> list[int]:
    lost = dict.fromkeys(ranks, 0)
    for one in steps["slow"]:
        lost[one["rank"]] = lost.get(one["rank"], 0) + one["excess_ns"]
    return sorted(sorted(ranks, key=lambda rank: (-lost[rank], rank))[:MOST_RANKS])


def _words(steps: Mapping, ranks: Sequence[int]) -> str:
    found = sum(rank["steps"] > 0 for rank in steps["ranks"])
    others = {"graphs": "executions of a CUDA graph"}.get(steps["source"], "repeats of the launches")
    source = f"ranges {formatting.elided(steps['ranges'], 60)}" if steps["ranges"] else others
    words = f"Steps from {source}. Filled: slow steps; hollow: warm-up, cut at the top."
    return words + (f" {len(ranks)} of {found} ranks." if found > len(ranks) else "")


def _panel(
    rank: int, rows: Mapping[str, np.ndarray], slow: Sequence[Mapping], time: tuple[int, int], top: float, y: float
) -> list[Markup]:
    """Return one rank's panel, whose upper edge is at `y`."""
    x = LEFT + (rows["start_ns"] + rows["duration_ns"] / 2 - time[0]) / time[1] * (WIDTH - MARGIN - LEFT)
    height = y + HEIGHT * (1 - np.minimum(rows["duration_ns"] / top, 1.0))
    is_slow = np.isin(rows["step"], [one["step"] for one in slow])
    drawn = _longest(x, rows["duration_ns"]) if x.size > COLUMNS else np.arange(x.size)
    line = "M" + "L".join(f"{x[at]:.1f} {height[at]:.1f}" for at in drawn.tolist())
    parts = [
        tag("rect", x=LEFT, y=y, width=WIDTH - MARGIN - LEFT, height=HEIGHT, fill="none", stroke=theme.GRID),
        text(LEFT - 10, y + HEIGHT / 2, f"rank {rank}", theme.SMALL, "end"),
        text(LEFT - 10, y + 12, formatting.time(top), theme.SMALL, "end", theme.MUTED),
        text(LEFT - 10, y + HEIGHT, "0", theme.SMALL, "end", theme.MUTED),
        tag("path", d=line, fill="none", stroke=theme.FAINT),
    ]
    for at in drawn.tolist():
        hint = tag("title", f"step {rows['step'][at]}: {formatting.time(int(rows['duration_ns'][at]))}")
        hollow = bool(rows["warm_up"][at])
        fill = theme.LOWERS if is_slow[at] else theme.PAPER if hollow else theme.CLASSES["compute"]
        size = 4 if is_slow[at] else 2.6 if hollow else 1.8
        parts.append(
            tag(
                "circle",
                hint,
                cx=float(x[at]),
                cy=float(height[at]),
                r=size,
                fill=fill,
                stroke=theme.MUTED if hollow else None,
            )
        )
    return parts + _labels(rows, slow, x, height)


def _longest(x: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """Return the position of the longest step of each column of the panel."""
    column = np.minimum((x - LEFT) / (WIDTH - MARGIN - LEFT) * COLUMNS, COLUMNS - 1).astype(int)
    order = np.lexsort((duration, column))
    return order[np.flatnonzero(np.append(np.diff(column[order]) > 0, True))]


def _labels(rows: Mapping[str, np.ndarray], slow: Sequence[Mapping], x: np.ndarray, height: np.ndarray) -> list[Markup]:
    """Return words beside the slowest steps, where they do not cover each other."""
    found = []
    taken: list[tuple[float, float]] = []
    for one in sorted(slow, key=lambda step: (-step["excess_ns"], step["step"]))[:MOST_LABELS]:
        at = int(np.searchsorted(rows["step"], one["step"]))
        words = f"step {one['step']}: +{100 * (one['duration_ns'] / one['usual_ns'] - 1):,.0f} %"
        words += f", {SLOW_STEP_CAUSES[one['cause']]}" if one["cause"] else ""
        words += f", waits for rank {one['waits_for']}" if one["waits_for"] is not None else ""
        width = text_width(words, theme.SMALL)
        left = float(x[at]) + 8
        left = left if left + width < WIDTH - MARGIN else float(x[at]) - 8 - width
        if all(left > high or left + width < low for low, high in taken):
            taken.append((left - 6, left + width + 6))
            found.append(text(left, float(height[at]) + 4, words, theme.SMALL))
    return found
