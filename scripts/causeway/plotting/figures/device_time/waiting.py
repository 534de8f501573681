"""Why devices wait: the idle time of each device by reason, and what is behind it."""

from collections import Counter
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import WAITING_REASONS
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

MOST_ROWS = 48
LABELS = {
    "launch_starved": "launch-starved",
    "dependency_stalled": "dependency-stalled",
    "blocked_host": "blocked host",
    "start_up": "start-up latency",
    "graph_internal": "inside graphs",
    "profiler": "the profiler",
    "unknown": "unknown",
    "before_first": "before first work",
    "after_last": "after last work",
    "other_process": "another process",
    "shared_gpu": "another rank's turn",
}
"""Reasons in few words."""
COLOURS = dict(
    zip(
        WAITING_REASONS,
        (*theme.PARTS[:6], theme.UNKNOWN, theme.GRID, theme.GRID, theme.DIVERGING[6], theme.DIVERGING[5]),
        strict=True,
    )
)


def waiting_by_device(table: "pa.Table") -> dict[tuple[int, int], Counter]:
    """Return ns by reason of the whole run, by rank and device; `table` has the columns of `waiting`."""
    found: dict[tuple[int, int], Counter] = {}
    for row in rows_of_run(table):
        found.setdefault((row["rank"], row["device"]), Counter())[row["reason"]] += row["wait_ns"]
    return found


def draw_waiting(table: "pa.Table", *, dataset: str, why: str | None = None) -> "Figure":
    """Return one bar for each device, split by reason; of more than `MOST_ROWS` devices those that wait longest.

    Parameters
    ----------
    table : Table
        `waiting`.
    dataset : str
        For the title.
    why : str or None
        Why nothing was measured, where that is so.
    """
    import pandas as pd

    title = "Why devices wait"
    each = waiting_by_device(table)
    if not any(sum(reasons.values()) for reasons in each.values()):
        return notice(
            title, dataset, [f"Nothing was measured: {why}." if why else "No device is idle between its work."]
        )
    chosen = sorted(sorted(each, key=lambda key: -sum(each[key].values()))[:MOST_ROWS])
    frame = pd.DataFrame([each[key] for key in chosen], [f"rank {rank}, device {device}" for rank, device in chosen])
    frame = frame.reindex(columns=[reason for reason in WAITING_REASONS if reason in frame]).fillna(0).astype("int64")
    frame = frame.loc[:, frame.sum() > 0].rename(columns=LABELS)
    below = f"{elided(dataset, 60)}: time in which neither a launch nor a transfer ran, by reason"
    below += f"; the {MOST_ROWS} of {len(each)} devices that wait longest" if len(each) > MOST_ROWS else ""
    with theme.drawing():
        figure, axis = charts.sheet(title, below, charts.ROW * len(frame) + 0.62)
        colours = {LABELS[reason]: COLOURS[reason] for reason in WAITING_REASONS}
        charts.stacked(axis, frame, colours, lambda reason, ns: f"{reason}: {formatting.time(int(ns))}")
        whole = frame.sum(axis=1)
        charts.words_at(axis, whole, [formatting.time(ns) for ns in whole.tolist()])
        charts.time_axis(axis, whole.max())
        charts.key(axis, colours, list(frame.columns), 6)
    return figure
