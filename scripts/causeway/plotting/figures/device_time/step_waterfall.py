"""The waterfall of a step: the time of its devices by class, one bar after the other, for the ranks that lose most."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.results import rows_of_step
from causeway.core.vocabulary import WAITING_REASONS
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag
from causeway.plotting.drawing.svg import MARGIN, document, text
from causeway.plotting.figures.device_time.waiting import COLOURS, LABELS

if TYPE_CHECKING:
    import pyarrow as pa

WIDTH = 1180.0
LEFT = 230.0
RIGHT = 150.0
ROW = 22.0
MOST_RANKS = 4
"""Ranks that are drawn; those that lose most."""
WORK = {
    "compute": ("compute", theme.CLASSES["compute"]),
    "communication": ("exposed communication", theme.CLASSES["communication"]),
    "copies": ("exposed copies and memsets", theme.CLASSES["copy"]),
}
"""Label and colour of the classes of work."""


@dataclass(frozen=True, kw_only=True)
class RankStep:
    """A step of one rank: ns by class, of all its devices together, in the order in which they are drawn.

    Attributes
    ----------
    rank : int
    duration_ns : int
        How long the step lasts on the rank.
    parts : list of (str, int)
        Keys of `WORK`, then reasons of `vocabulary.WAITING_REASONS`; they add up to the step's duration times devices.
    """

    rank: int
    parts: list[tuple[str, int]]
    duration_ns: int

    @property
    def lost_ns(self) -> int:
        """Time without compute, ns."""
        return sum(ns for part, ns in self.parts if part != "compute")


def usual_step(steps: "pa.Table") -> int | None:
    """Return the step of median length (the lower of two), by its longest rank and without warm-up; None without any.

    Parameters
    ----------
    steps : Table
        `steps.parquet`.
    """
    warm = steps.select(["step", "duration_ns", "warm_up"]).filter(~pc.field("warm_up"))
    longest = warm.group_by("step").aggregate([("duration_ns", "max")]).to_pydict()
    order = [step for _, step in sorted(zip(longest["duration_ns_max"], longest["step"], strict=True))]
    return order[(len(order) - 1) // 2] if order else None


def parts_of(steps: "pa.Table", waiting: "pa.Table", step: int) -> list[RankStep]:
    """Return the parts of a step for each rank, the rank that loses most first.

    Parameters
    ----------
    steps, waiting : Table
        `steps.parquet` and `waiting.parquet`.
    step : int
    """
    idle: dict[int, Counter] = {}
    for row in rows_of_step(waiting, step):
        idle.setdefault(row["rank"], Counter())[row["reason"]] += row["wait_ns"]
    found = []
    for row in rows_of_step(steps, step):
        exposed = {"communication": row["exposed_communication_ns"], "copies": row["exposed_copies_ns"]}
        work = {"compute": row["busy_ns"] - sum(exposed.values())} | exposed
        reasons = idle.get(row["rank"], Counter())
        left = row["idle_ns"] - sum(reasons.values())
        waits = {reason: reasons[reason] + (left if reason == "unknown" else 0) for reason in WAITING_REASONS}
        parts = [(part, ns) for part, ns in (work | waits).items() if ns > 0]
        found.append(RankStep(rank=row["rank"], parts=parts, duration_ns=row["duration_ns"]))
    return sorted(found, key=lambda one: (-one.lost_ns, one.rank))


def draw_step_waterfall(steps: "pa.Table", waiting: "pa.Table", *, dataset: str) -> Markup | None:
    """Return the usual step as bars of which each begins where the one above it ends; None without steps.

    Parameters
    ----------
    steps, waiting : Table
        `steps.parquet` and `waiting.parquet`.
    dataset : str
        For the title.
    """
    step = usual_step(steps)
    if step is None:
        return None
    every = parts_of(steps, waiting, step)
    shown = every[:MOST_RANKS]
    longest = max(sum(ns for _, ns in one.parts) for one in shown)
    if not longest:
        return None
    title = f"Where the time of step {step} goes"
    below = f"{elided(dataset, 60)}: a step of median length; each bar begins where the one above it ends"
    if len(every) > MOST_RANKS:
        below += f"; the {MOST_RANKS} of {len(every)} ranks that lose most time"
    elif len(every) > 1:
        below += "; the rank that loses most time first"
    scale = (WIDTH - LEFT - RIGHT) / longest
    drawn = [
        text(MARGIN, 26, title, 15, font_weight="bold"),
        text(MARGIN, 45, below, theme.SMALL, colour=theme.MUTED),
    ]
    top = 62.0
    for one in shown:
        drawn += _rank(one, top, scale)
        top += ROW * (len(one.parts) + 1) + 12
    return document(WIDTH, top + 4, f"{title}, {dataset}", *drawn)


def _rank(one: RankStep, top: float, scale: float) -> list[Markup]:
    """Return the heading and the bars of a rank."""
    whole = sum(ns for _, ns in one.parts)
    heading = f"rank {one.rank}: {formatting.time(one.duration_ns)}"
    if whole > one.duration_ns:
        heading += f"; its devices together {formatting.time(whole)}"
    drawn = [text(MARGIN, top + 15, heading, theme.SMALL, font_weight="bold")]
    before = 0
    for number, (part, ns) in enumerate(one.parts, 1):
        y = top + ROW * number
        label, colour = WORK.get(part) or (f"idle: {LABELS[part]}", COLOURS[part])
        x = LEFT + before * scale
        width = max(ns * scale, 1.0)
        words = f"{formatting.time(ns)} ({formatting.percent(100 * ns / whole)})"
        drawn += [
            text(LEFT - 10, y + 14, label, theme.SMALL, "end"),
            tag("rect", tag("title", f"{label}: {words}"), x=x, y=y + 2, width=width, height=ROW - 5, fill=colour),
            text(x + width + 6, y + 14, formatting.time(ns), theme.SMALL, colour=theme.MUTED),
        ]
        if before:
            drawn.append(tag("line", x1=x, x2=x, y1=y - 3, y2=y + 2, stroke=theme.FAINT))
        before += ns
    return drawn
