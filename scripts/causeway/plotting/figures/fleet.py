"""Fleet mode's figures: coverage over the day, and the error that noise makes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.plotting.drawing import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODES = {"share2": theme.SEQUENTIAL[7], "ahe": theme.SEQUENTIAL[5], "ldp": theme.DIVERGING[-2]}
DASHES = {"share2": (0, ()), "ahe": (0, (1, 1)), "ldp": (0, (4, 2))}
WHAT = {
    "applications": "Applications",
    "kernels by time": "Kernels, weighted by GPU time",
    "kernels": "Kernels, each alike",
}
NAMES = {"share2": "two servers (share2)", "ahe": "additive encryption (ahe)", "ldp": "local noise (ldp)"}
GOAL = 0.02
"""Total variation aimed at; drawn as a line."""


def draw_coverage(rows: Sequence[Mapping]) -> "Figure":
    """Return coverage over the day: what agents sampled, and what could be released of it, by mode."""
    import matplotlib.pyplot as plt

    modes = [mode for mode in MODES if any(row["mode"] == mode for row in rows)]
    title = "Coverage over the day, sampled and released"
    with theme.drawing():
        figure, axes = plt.subplots(1, 3, figsize=(11.6, 4.3), sharey=True)
        figure.subplots_adjust(left=0.06, right=0.985, top=0.8, bottom=0.27, wspace=0.08)
        for axis, (what, name) in zip(axes, WHAT.items(), strict=True):
            _coverage(axis, [row for row in rows if row["what"] == what], modes, name)
        axes[0].set_ylabel("share covered")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.05, 0.0), ncols=4)
        figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=11.5, fontweight="bold")
        figure.text(
            0.012,
            0.9,
            "Released: beyond the noise; falls where later hours bring more noise than reports. All is handed out"
            " after the day.",
            color=theme.MUTED,
        )
    return figure


def _coverage(axis: "Axes", rows: Sequence[Mapping], modes: Sequence[str], name: str) -> None:
    hours = sorted({row["hour"] for row in rows})
    sampled = {row["hour"]: row["sampled"] for row in rows if row["sampled"] is not None}
    places = [hours.index(hour) for hour in sampled]
    axis.plot(places, list(sampled.values()), color=theme.UNKNOWN, lw=3, alpha=0.8, label="sampled")
    for mode in modes:
        shown = {row["hour"]: row["released"] for row in rows if row["mode"] == mode and row["released"] is not None}
        if name != WHAT["applications"]:
            shown = {hour: value for hour, value in shown.items() if hour == hours[-1]}
        style = {
            "color": MODES[mode],
            "linestyle": DASHES[mode],
            "marker": "o",
            "markersize": 4,
            "label": f"released, {NAMES[mode]}",
        }
        axis.plot([hours.index(hour) for hour in shown], list(shown.values()), lw=1.6, **style)
    axis.set_xticks(range(len(hours)), [str(hour) for hour in hours])
    axis.set_xlabel("hours since the day began")
    axis.set_ylim(0, 1.03)
    axis.set_title(name)
    axis.grid(axis="y")


def draw_errors(evaluation: Mapping) -> "Figure":
    """Return the error that noise alone makes: total variation of each kind of histogram, by mode."""
    import matplotlib.pyplot as plt

    modes = [mode for mode in MODES if mode in evaluation["modes"]]
    sections = sorted(evaluation["alone"])
    title = "Error of released histograms that noise alone makes"
    with theme.drawing():
        figure, axis = plt.subplots(figsize=(11.6, 0.8 + 0.62 * max(len(sections), 1) + 1.4))
        figure.subplots_adjust(left=0.12, right=0.93, top=0.82, bottom=0.25)
        high = 0.8 / (len(modes) + 1)
        behind = {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 0.5}
        for place, name in enumerate(sections):
            bars = [("whole budget, two servers", theme.UNKNOWN, evaluation["alone"][name])]
            for mode in modes:
                value = evaluation["modes"][mode]["total_variation"].get(name)
                bars.append((NAMES[mode], MODES[mode], value["by_traffic"] if value else None))
            for row, (label, colour, value) in enumerate(bars):
                y = place - 0.4 + high * (row + 0.5)
                if value is not None:
                    axis.barh(
                        y, value, high * 0.86, color=colour, label=label if place == 0 or name == "durations" else None
                    )
                    axis.text(value, y, f" {value:.3f}", va="center", ha="left", color=theme.INK, bbox=behind, zorder=3)
        axis.axvline(GOAL, color=theme.INK, lw=1, ls=(0, (3, 2)))
        axis.text(GOAL, len(sections) - 0.5, " goal .02", ha="left", va="bottom", color=theme.INK)
        axis.set_yticks(range(len(sections)), sections)
        axis.set_ylim(len(sections) - 0.45, -0.65)
        axis.set_xscale("symlog", linthresh=0.05)
        axis.set_xlim(0, 1)
        axis.set_xticks([0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0", ".01", ".02", ".05", ".1", ".2", ".5", "1"])
        axis.set_xlabel("total variation, 0 (equal) to 1, weighted by traffic; logarithmic from .05")
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique.keys(), loc="lower left", bbox_to_anchor=(0.1, 0.0), ncols=4)
        figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=11.5, fontweight="bold")
        note = (
            f"{formatting.count(evaluation['reports'])} reports. Coloured: each histogram with its part of the budget,"
            " all released together."
        )
        figure.text(0.012, 0.885, note, color=theme.MUTED)
    return figure
