"""Why devices wait: the idle time of each device by reason, and what is behind it."""

from collections import Counter
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import WAITING_REASONS
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

if TYPE_CHECKING:
    import pyarrow as pa

WIDTH = 1180.0
ROW = 24.0
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


def draw_waiting(table: "pa.Table", *, dataset: str, why: str | None = None) -> Markup:
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
    title = "Why devices wait"
    each = waiting_by_device(table)
    most = max((sum(reasons.values()) for reasons in each.values()), default=0)
    if not most:
        return notice(
            title, dataset, [f"Nothing was measured: {why}." if why else "No device is idle between its work."]
        )
    chosen = sorted(sorted(each, key=lambda key: -sum(each[key].values()))[:MOST_ROWS])
    used = [reason for reason in WAITING_REASONS if any(each[key][reason] for key in chosen)]
    below = f"{elided(dataset, 60)}: time in which neither a launch nor a transfer ran, by reason"
    below += f"; the {MOST_ROWS} of {len(each)} devices that wait longest" if len(each) > MOST_ROWS else ""
    drawn = [
        text(MARGIN, 26, title, 15, font_weight="bold"),
        text(MARGIN, 45, below, theme.SMALL, colour=theme.MUTED),
        *_legend(used),
    ]
    left = 150.0
    top = 92.0
    scale = (WIDTH - left - 130) / most
    for number, key in enumerate(chosen):
        y = top + ROW * number
        drawn.append(text(left - 10, y + 13, f"rank {key[0]}, device {key[1]}", theme.SMALL, "end"))
        x = left
        for reason in used:
            if each[key][reason]:
                words = f"{LABELS[reason]}: {formatting.time(each[key][reason])}"
                width = each[key][reason] * scale
                drawn.append(tag("rect", tag("title", words), x=x, y=y, width=width, height=18, fill=COLOURS[reason]))
                x += width
        drawn.append(text(x + 6, y + 13, formatting.time(sum(each[key].values())), theme.SMALL))
    return document(WIDTH, top + ROW * len(chosen) + 14, f"{title}, {dataset}", *drawn)


def _legend(reasons: list[str]) -> list[Markup]:
    drawn = []
    x = MARGIN
    for reason in reasons:
        drawn.append(tag("rect", x=x, y=60, width=12, height=12, fill=COLOURS[reason]))
        drawn.append(text(x + 17, 70, LABELS[reason], theme.SMALL))
        x += 34 + text_width(LABELS[reason], theme.SMALL)
    return drawn
