"""Steps: how long each took, per rank over the run; warm-up, slow steps and why."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from causeway.core import formatting
from causeway.core.vocabulary import SLOW_STEP_CAUSES
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.drawn import Axes, DataFrame, Figure

MOST_RANKS = 8
"""Ranks that are drawn: those that lose most time in slow steps, then the first."""
MOST_LABELS = 3
"""Slow steps of a rank that get a label, those with the largest excess."""
COLUMNS = 900
"""Steps of a rank that are drawn one by one; of more, the longest of neighbours."""
FACES = {"usual": theme.CLASSES["compute"], "warm-up": theme.PAPER, "slow": theme.LOWERS}
EDGES = {"usual": "none", "warm-up": theme.MUTED, "slow": "none"}
SIZES = {"usual": 7, "warm-up": 14, "slow": 36}
"""Colours and areas of points by the kind of step."""


def draw_steps(steps: Mapping, table: pa.Table, name: str) -> Figure:
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
    ranks = ranks_of(steps, sorted(frame["rank"].unique().tolist()))
    usual = frame[~frame.warm_up] if not frame.warm_up.all() else frame
    top = 1.15 * float(usual.duration_ns.max())
    with theme.drawing():
        height = 0.95 * len(ranks) + 0.4
        figure, axes = charts.panels(title, _words(steps, ranks), height, nrows=len(ranks), sharex=True, sharey=True)
        for rank, axis in zip(ranks, axes[:, 0], strict=True):
            _panel(axis, frame[frame["rank"] == rank], top, [step for step in steps["slow"] if step["rank"] == rank])
            axis.set_ylabel(f"rank {rank}", rotation=0, ha="right", va="center", color=theme.INK, labelpad=10)
        if steps["p99_ns"] is not None:
            _tail(axes[:, 0], steps["p99_ns"])
        axes[0, 0].set_ylim(0, top * 1.04)
        axes[0, 0].set_xlim(0, frame.end_ns.max())
        charts.time_axis(axes[0, 0], float(frame.end_ns.max()))
        charts.time_axis(axes[0, 0], top, "y", 3, most=4)
    return figure


def steps_of(steps: Mapping, table: pa.Table, most: int = COLUMNS) -> DataFrame:
    """Return the steps as both figures draw them, of more than `most` steps of a rank the longest of neighbours.

    Parameters
    ----------
    steps : mapping
        The document `steps.json`.
    table : Table
        The table `steps` with the columns rank, step, start_ns, duration_ns, warm_up.
    most : int

    Returns
    -------
    DataFrame
        With these columns, `end_ns` and `middle_ns` from the first start on, `kind` (usual, warm-up or slow), and in
        `words` how much longer a slow step takes and why.
    """
    frame = table.select(["rank", "step", "start_ns", "duration_ns", "warm_up"]).to_pandas()
    start = frame.start_ns - frame.start_ns.min()
    frame["end_ns"] = start + frame.duration_ns
    frame["middle_ns"] = start + frame.duration_ns / 2
    slow = {(step["rank"], step["step"]): step for step in steps["slow"]}
    keys = list(zip(frame["rank"], frame.step, strict=True))
    frame["kind"] = frame.warm_up.map({True: "warm-up", False: "usual"})
    frame.loc[[key in slow for key in keys], "kind"] = "slow"
    frame["words"] = [slow_words(slow[key]) if key in slow else "" for key in keys]
    if (longest := frame.groupby("rank").size().max()) > most:
        place = frame.groupby("rank").cumcount() // -(-longest // most)
        frame = frame.loc[frame.groupby(["rank", place]).duration_ns.idxmax()]
    return frame


def slow_words(step: Mapping) -> str:
    """Return how much longer a slow step takes than usual, and why."""
    words = f"{100 * (step['duration_ns'] / step['usual_ns'] - 1):+,.0f} %"
    words += f", {SLOW_STEP_CAUSES[step['cause']]}" if step["cause"] else ""
    return words + (f", waits for rank {step['waits_for']}" if step["waits_for"] is not None else "")


def ranks_of(steps: Mapping, ranks: Sequence[int], most: int = MOST_RANKS) -> list[int]:
    """Return the ranks to draw, ascending: those that lose most time in slow steps, then the first."""
    lost = dict.fromkeys(ranks, 0)
    for step in steps["slow"]:
        lost[step["rank"]] = lost.get(step["rank"], 0) + step["excess_ns"]
    return sorted(sorted(ranks, key=lambda rank: (-lost[rank], rank))[:most])


def _tail(axes: "np.ndarray", p99_ns: int) -> None:
    """Draw the 99th percentile of the steps in each panel, and write it at the right end of the first line."""
    for axis in axes:
        axis.axhline(p99_ns, color=theme.MUTED, linestyle=":", linewidth=0.9, zorder=1)
    style = {"ha": "right", "va": "bottom", "color": theme.MUTED}
    place = axes[0].get_yaxis_transform()
    axes[0].annotate(f"p99 {formatting.time(p99_ns)}", (1, p99_ns), (0, 2), place, "offset points", **style)


def _words(steps: Mapping, ranks: Sequence[int]) -> str:
    with_steps = sum(rank["steps"] > 0 for rank in steps["ranks"])
    others = {"graphs": "executions of a CUDA graph"}.get(steps["source"], "repeats of the launches")
    source = f"ranges {formatting.elided(steps['ranges'], 60)}" if steps["ranges"] else others
    words = f"Steps from {source}. Filled: slow steps; hollow: warm-up, cut at the top."
    return words + (f" {len(ranks)} of {with_steps} ranks." if with_steps > len(ranks) else "")


def _panel(axis: Axes, frame: DataFrame, top: float, slow: Sequence[Mapping]) -> None:
    """Draw one rank: a line, a point for each step, words beside the slowest that do not cover each other."""
    shown = frame.assign(height=frame.duration_ns.clip(upper=top))
    axis.plot(shown.middle_ns, shown.height, color=theme.FAINT, linewidth=0.8, zorder=1)
    for kind, rows in shown.groupby("kind"):  # of one size each: the file has the shape of points once
        look = {"color": FACES[kind], "edgecolor": EDGES[kind], "s": SIZES[kind], "linewidth": 0.8}
        charts.seaborn().scatterplot(rows, x="middle_ns", y="height", ax=axis, clip_on=False, zorder=2, **look)
        times = map(formatting.time, rows.duration_ns.tolist())
        charts.hover(axis.collections[-1], [f"step {n}: {time}" for n, time in zip(rows.step, times, strict=True)])
    axis.set_xlabel("")
    taken: list[tuple[float, float]] = []
    places = shown.set_index("step")
    for step in sorted(slow, key=lambda step: (-step["excess_ns"], step["step"]))[:MOST_LABELS]:
        words = f"step {step['step']}: {slow_words(step)}"
        middle = places.middle_ns[step["step"]]
        share = middle / axis.dataLim.x1
        long = 0.0062 * len(words)  # a letter's share of a panel
        left, right = (share, share + long) if share + long < 1 else (share - long, share)
        if all(left > high or right < low for low, high in taken):
            taken.append((left, right))
            side, away = ("left", 6) if left == share else ("right", -6)
            point = (middle, places.height[step["step"]])
            axis.annotate(words, point, (away, 0), textcoords="offset points", ha=side, va="center")
