"""What devices do: the waterfall of all their time, its map over ranks and time, why they wait, and a step of median
length.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.results import rows_of_run, rows_of_step
from causeway.core.vocabulary import WAITING_REASONS, WATERFALL
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import cells_together, merged_rows, notice, rank_labels
from causeway.plotting.drawing.drawn import DataFrame, Figure

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


def lost_shares(table: pa.Table) -> LostShares | None:
    """Return the lost shares that a table with the columns of `efficiency.parquet` holds, None without bins of
    ranks.
    """
    frame = table.select(["level", "rank", "bin", "elapsed_ns", "n_devices", "kernel_ns"]).to_pandas()
    frame = frame[(frame.level == "bin") & frame["rank"].notna()]
    if frame.empty:
        return None
    whole = frame.elapsed_ns * frame.n_devices
    ranks, row = np.unique(frame["rank"].astype(int), return_inverse=True)
    column = frame.bin.astype(int)
    shares = np.full((len(ranks), column.max() + 1), np.nan)
    shares[row, column] = (1 - frame.kernel_ns / whole).where(whole > 0)
    return LostShares(ranks=ranks.tolist(), shares=shares, bin_ns=int(frame.elapsed_ns.iloc[0]))


def bars_of(parts: Mapping[str, int], total: int) -> DataFrame:
    """Return the bars with the columns label, start and length (ns), colour, words, hover; `total` in ns."""
    import pandas as pd

    shown = shown_parts(parts)
    bars = pd.DataFrame({"label": [words for _, words, _ in shown], "length": [parts[key] for key, _, _ in shown]})
    bars["start"] = bars.length.cumsum() - bars.length
    bars["colour"] = [colour for _, _, colour in shown]
    bars["words"] = [f"{formatting.time(ns)}, {formatting.percent(100 * ns / total)}" for ns in bars.length.tolist()]
    return bars.assign(hover=bars.label + ": " + bars.words)


def draw_lost_time(efficiency: Mapping, name: str) -> Figure:
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


def draw_rank_map(table: pa.Table, name: str, note: str) -> Figure:
    """Return the map of rank by time: the share of each bin in which no kernel runs, light for none and dark for all
    of it.
    """
    from matplotlib.ticker import FixedLocator

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
        axis.yaxis.set_major_locator(FixedLocator(range(0, n_rows, cells_together(n_rows, 30))))
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


MOST_DEVICES = 48
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
OUTSIDE = (theme.UNKNOWN, theme.GRID, theme.GRID, *theme.DIVERGING[6:4:-1])
REASON_COLOURS = dict(zip(WAITING_REASONS, (*theme.PARTS[:6], *OUTSIDE), strict=True))


def waiting_by_device(table: pa.Table) -> dict[tuple[int, int], Counter]:
    """Return ns by reason of the whole run, by rank and device; `table` has the columns of `waiting`."""
    waits: dict[tuple[int, int], Counter] = {}
    for row in rows_of_run(table):
        waits.setdefault((row["rank"], row["device"]), Counter())[row["reason"]] += row["wait_ns"]
    return waits


def draw_waiting(table: pa.Table, *, dataset: str, why: str | None = None) -> Figure:
    """Return one bar for each device, split by reason; of more than `MOST_DEVICES` devices those that wait longest.

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
    chosen = sorted(sorted(each, key=lambda key: -sum(each[key].values()))[:MOST_DEVICES])
    frame = pd.DataFrame([each[key] for key in chosen], [f"rank {rank}, device {device}" for rank, device in chosen])
    frame = frame.reindex(columns=[reason for reason in WAITING_REASONS if reason in frame]).fillna(0).astype("int64")
    frame = frame.loc[:, frame.sum() > 0].rename(columns=LABELS)
    below = f"{elided(dataset, 60)}: time in which neither a launch nor a transfer ran, by reason"
    below += f"; the {MOST_DEVICES} of {len(each)} devices that wait longest" if len(each) > MOST_DEVICES else ""
    with theme.drawing():
        figure, axis = charts.sheet(title, below, charts.ROW * len(frame) + 0.62)
        colours = {LABELS[reason]: REASON_COLOURS[reason] for reason in WAITING_REASONS}
        charts.stacked(axis, frame, colours, lambda reason, ns: f"{reason}: {formatting.time(int(ns))}")
        whole = frame.sum(axis=1)
        charts.words_at(axis, whole, [formatting.time(ns) for ns in whole.tolist()])
        charts.time_axis(axis, whole.max())
        charts.key(axis, colours, list(frame.columns), 6)
    return figure


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


def usual_step(steps: pa.Table) -> int | None:
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


def parts_of(steps: pa.Table, waiting: pa.Table, step: int) -> list[RankStep]:
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
    ranks = []
    for row in rows_of_step(steps, step):
        exposed = {"communication": row["exposed_communication_ns"], "copies": row["exposed_copies_ns"]}
        work = {"compute": row["busy_ns"] - sum(exposed.values())} | exposed
        reasons = idle.get(row["rank"], Counter())
        left = row["idle_ns"] - sum(reasons.values())
        waits = {reason: reasons[reason] + (left if reason == "unknown" else 0) for reason in WAITING_REASONS}
        parts = [(part, ns) for part, ns in (work | waits).items() if ns > 0]
        ranks.append(RankStep(rank=row["rank"], parts=parts, duration_ns=row["duration_ns"]))
    return sorted(ranks, key=lambda rank: (-rank.lost_ns, rank.rank))


def bars_of_step(shown: Sequence[RankStep]) -> DataFrame:
    """Return the bars with the columns label, start and length (ns), colour, words, hover; a row without a colour heads
    those of a rank.
    """
    import pandas as pd

    rows = []
    for rank in shown:
        whole = sum(ns for _, ns in rank.parts)
        heading = f"rank {rank.rank}: {formatting.time(rank.duration_ns)}"
        heading += f"; its devices together {formatting.time(whole)}" if whole > rank.duration_ns else ""
        rows.append((heading, 0, 0, "", "", ""))
        before = 0
        for part, ns in rank.parts:
            label, colour = WORK.get(part) or (f"idle: {LABELS[part]}", REASON_COLOURS[part])
            words = formatting.time(ns)
            rows.append((label, before, ns, colour, words, f"{label}: {words}"))
            before += ns
    return pd.DataFrame(rows, columns=["label", "start", "length", "colour", "words", "hover"])


def draw_step_waterfall(steps: pa.Table, waiting: pa.Table, *, dataset: str) -> Figure:
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
    if not any(ns for rank in shown for _, ns in rank.parts):
        return notice("Where the time of a step goes", dataset, ["No step was found, or none that takes time."])
    below = f"{elided(dataset, 60)}: a step of median length; each bar begins where the one above it ends"
    if len(every) > MOST_RANKS:
        below += f"; the {MOST_RANKS} of {len(every)} ranks that lose most time"
    elif len(every) > 1:
        below += "; the rank that loses most time first"
    bars = bars_of_step(shown)
    with theme.drawing():
        figure, axis = charts.sheet(f"Where the time of step {step} goes", below, charts.ROW * len(bars) + 0.35)
        charts.cascade(axis, bars)
        charts.time_axis(axis, float((bars.start + bars.length).max()))
        for label, colour in zip(axis.get_yticklabels(), bars.colour, strict=True):
            label.set_fontweight("normal" if colour else "bold")
    return figure
