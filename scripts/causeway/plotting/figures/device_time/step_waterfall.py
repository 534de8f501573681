"""The waterfall of a step: the time of its devices by class, one bar after the other, for the ranks that lose most."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.results import rows_of_step
from causeway.core.vocabulary import WAITING_REASONS
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.figures.device_time.waiting import COLOURS, LABELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure

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


def bars_of(shown: "Sequence[RankStep]") -> "pd.DataFrame":
    """Return the bars with the columns label, start and length (ns), colour, words, hover; a row without a colour heads
    those of a rank.
    """
    import pandas as pd

    rows = []
    for one in shown:
        whole = sum(ns for _, ns in one.parts)
        heading = f"rank {one.rank}: {formatting.time(one.duration_ns)}"
        heading += f"; its devices together {formatting.time(whole)}" if whole > one.duration_ns else ""
        rows.append((heading, 0, 0, "", "", ""))
        before = 0
        for part, ns in one.parts:
            label, colour = WORK.get(part) or (f"idle: {LABELS[part]}", COLOURS[part])
            words = formatting.time(ns)
            rows.append((label, before, ns, colour, words, f"{label}: {words}"))
            before += ns
    return pd.DataFrame(rows, columns=["label", "start", "length", "colour", "words", "hover"])


def draw_step_waterfall(steps: "pa.Table", waiting: "pa.Table", *, dataset: str) -> "Figure":
    """Return the usual step as bars of which each begins where the one above it ends.

    Parameters
    ----------
    steps, waiting : Table
        `steps.parquet` and `waiting.parquet`.
    dataset : str
        For the title.
    """
    step = usual_step(steps)
    every = [] if step is None else parts_of(steps, waiting, step)
    shown = every[:MOST_RANKS]
    if not any(ns for one in shown for _, ns in one.parts):
        return notice("Where the time of a step goes", dataset, ["No step was found, or none that takes time."])
    below = f"{elided(dataset, 60)}: a step of median length; each bar begins where the one above it ends"
    if len(every) > MOST_RANKS:
        below += f"; the {MOST_RANKS} of {len(every)} ranks that lose most time"
    elif len(every) > 1:
        below += "; the rank that loses most time first"
    bars = bars_of(shown)
    with theme.drawing():
        figure, axis = charts.sheet(f"Where the time of step {step} goes", below, charts.ROW * len(bars) + 0.35)
        charts.cascade(axis, bars)
        charts.time_axis(axis, float((bars.start + bars.length).max()))
        for label, colour in zip(axis.get_yticklabels(), bars.colour, strict=True):
            label.set_fontweight("normal" if colour else "bold")
    return figure
