"""Steps: how long each took, per rank over the run; warm-up, slow steps and why."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.vocabulary import SLOW_STEP_CAUSES
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_RANKS = 8
"""Ranks that are drawn: those that lose most time in slow steps, then the first."""
MOST_LABELS = 3
"""Slow steps of a rank that get a label, those with the largest excess."""
COLUMNS = 900
"""Steps of a rank that are drawn one by one; of more, the longest of each column."""


def draw_steps(steps: Mapping, table: "pa.Table", name: str) -> "Figure":
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
    frame = steps_of(steps, table)
    ranks = _ranks(steps, sorted(frame["rank"].unique().tolist()))
    usual = frame[~frame.warm_up] if not frame.warm_up.all() else frame
    top = 1.15 * float(usual.duration_ns.max())
    with theme.drawing():
        figure, axes = charts.sheet(
            title, _words(steps, ranks), 0.95 * len(ranks) + 0.4, len(ranks), squeeze=False, sharex=True, sharey=True
        )
        for rank, axis in zip(ranks, axes[:, 0], strict=True):
            _panel(axis, frame[frame["rank"] == rank], top, [one for one in steps["slow"] if one["rank"] == rank])
            axis.set_ylabel(f"rank {rank}", rotation=0, ha="right", va="center", color=theme.INK)
        axes[0, 0].set_ylim(0, top * 1.04)
        axes[0, 0].set_xlim(0, frame.end_ns.max())
        charts.time_axis(axes[0, 0], float(frame.end_ns.max()))
        charts.time_axis(axes[0, 0], top, "y", 3)
    return figure


def steps_of(steps: Mapping, table: "pa.Table") -> "pd.DataFrame":
    """Return the steps with `end_ns` from the first start on, `middle_ns`, `slow` and the words on hover; of more than
    `COLUMNS` steps of a rank the longest of each column of the panel.
    """
    frame = table.select(["rank", "step", "start_ns", "duration_ns", "warm_up"]).to_pandas()
    start = frame.start_ns - frame.start_ns.min()
    frame["end_ns"] = start + frame.duration_ns
    frame["middle_ns"] = start + frame.duration_ns / 2
    slow = {(one["rank"], one["step"]) for one in steps["slow"]}
    frame["slow"] = [key in slow for key in zip(frame["rank"], frame.step, strict=True)]
    if frame.groupby("rank").size().max() > COLUMNS:
        column = (frame.middle_ns / max(frame.end_ns.max(), 1) * COLUMNS).astype(int)
        frame = frame.loc[frame.groupby(["rank", column]).duration_ns.idxmax()]
    words = [
        f"step {step}: {formatting.time(ns)}" for step, ns in zip(frame.step, frame.duration_ns.tolist(), strict=True)
    ]
    return frame.assign(hover=words)


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


def _panel(axis: "Axes", frame: "pd.DataFrame", top: float, slow: Sequence[Mapping]) -> None:
    """Draw one rank: a line, a point for each step, words beside the slowest that do not cover each other."""
    axis.plot(frame.middle_ns, frame.duration_ns.clip(upper=top), color=theme.FAINT, linewidth=0.8, zorder=1)
    for rows, size, face, edge in (
        (frame[~frame.slow & ~frame.warm_up], 7, theme.CLASSES["compute"], "none"),
        (frame[frame.warm_up], 14, theme.PAPER, theme.MUTED),
        (frame[frame.slow], 36, theme.LOWERS, "none"),
    ):
        style = {"s": size, "color": face, "edgecolor": edge, "linewidth": 0.8, "zorder": 2, "clip_on": False}
        charts.hover(axis.scatter(rows.middle_ns, rows.duration_ns.clip(upper=top), **style), rows.hover)
    taken: list[tuple[float, float]] = []
    places = frame.set_index("step")
    for one in sorted(slow, key=lambda step: (-step["excess_ns"], step["step"]))[:MOST_LABELS]:
        words = f"step {one['step']}: +{100 * (one['duration_ns'] / one['usual_ns'] - 1):,.0f} %"
        words += f", {SLOW_STEP_CAUSES[one['cause']]}" if one["cause"] else ""
        words += f", waits for rank {one['waits_for']}" if one["waits_for"] is not None else ""
        at = places.middle_ns[one["step"]]
        share = at / axis.dataLim.x1
        long = 0.0062 * len(words)  # a letter's share of a panel
        left, right = (share, share + long) if share + long < 1 else (share - long, share)
        if all(left > high or right < low for low, high in taken):
            taken.append((left, right))
            style = {"ha": "left" if left == share else "right", "va": "center"}
            offset = (6 if left == share else -6, 0)
            height = min(places.duration_ns[one["step"]], top)
            axis.annotate(words, (at, height), offset, textcoords="offset points", **style)
