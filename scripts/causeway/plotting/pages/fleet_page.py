"""Fleet mode's page and its figures: what the designer may know of a simulated fleet, how good it is, and what
attackers can do.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from causeway.core import formatting
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.drawn import Axes, Figure
from causeway.plotting.drawing.page import rendered, svg_of

MODE_COLOURS = {"share2": theme.SEQUENTIAL[7], "ahe": theme.SEQUENTIAL[5], "ldp": theme.DIVERGING[-2]}
DASHES = {"share2": (0, ()), "ahe": (0, (1, 1)), "ldp": (0, (4, 2))}
WHAT = {
    "applications": "Applications",
    "kernels by time": "Kernels, weighted by GPU time",
    "kernels": "Kernels, each alike",
}
NAMES = {"share2": "two servers (share2)", "ahe": "additive encryption (ahe)", "ldp": "local noise (ldp)"}
MODES = NAMES | {"clear": "no protection (clear)"}
GOAL = 0.02
"""Total variation aimed at; drawn as a line."""


def draw_coverage(rows: Sequence[Mapping]) -> Figure:
    """Return coverage over the day: what agents sampled, and what could be released of it, by mode."""
    modes = [mode for mode in MODE_COLOURS if any(row["mode"] == mode for row in rows)]
    title = "Coverage over the day, sampled and released"
    below = "Released: beyond the noise; falls where later hours bring more noise than reports. All is handed out after"
    with theme.drawing():
        figure, axes = charts.panels(title, f"{below} the day.", 3.6, ncols=3, sharey=True)
        for axis, (what, name) in zip(axes[0], WHAT.items(), strict=True):
            _coverage(axis, [row for row in rows if row["what"] == what], modes, name)
        axes[0, 0].set_ylabel("share covered")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower left", ncols=4)
    return figure


def _coverage(axis: Axes, rows: Sequence[Mapping], modes: Sequence[str], name: str) -> None:
    hours = sorted({row["hour"] for row in rows})
    sampled = {row["hour"]: row["sampled"] for row in rows if row["sampled"] is not None}
    places = [hours.index(hour) for hour in sampled]
    axis.plot(places, list(sampled.values()), color=theme.UNKNOWN, lw=3, alpha=0.8, label="sampled")
    for mode in modes:
        shown = {row["hour"]: row["released"] for row in rows if row["mode"] == mode and row["released"] is not None}
        if name != WHAT["applications"]:
            shown = {hour: value for hour, value in shown.items() if hour == hours[-1]}
        x = [hours.index(hour) for hour in shown]
        y = list(shown.values())
        words = f"released, {NAMES[mode]}"
        axis.plot(x, y, lw=1.6, color=MODE_COLOURS[mode], ls=DASHES[mode], marker="o", ms=4, label=words)
    axis.set_xticks(range(len(hours)), [str(hour) for hour in hours])
    axis.set_xlabel("hours since the day began")
    axis.set_ylim(0, 1.03)
    axis.set_title(name)
    axis.grid(axis="y")


def draw_errors(evaluation: Mapping) -> Figure:
    """Return the error that noise alone makes: total variation of each kind of histogram, by mode."""
    modes = [mode for mode in MODE_COLOURS if mode in evaluation["modes"]]
    sections = sorted(evaluation["alone"])
    below = f"{formatting.count(evaluation['reports'])} reports. Coloured: each histogram with its part of the budget,"
    below += " all released together."
    title = "Error of released histograms that noise alone makes"
    with theme.drawing():
        figure, axis = charts.sheet(title, below, 0.62 * max(len(sections), 1) + 1.2)
        bars = {"whole budget, two servers": (theme.UNKNOWN, evaluation["alone"])}
        for mode in modes:
            released = evaluation["modes"][mode]["total_variation"]
            values = {name: released[name]["by_traffic"] for name in sections if released.get(name)}
            bars[NAMES[mode]] = MODE_COLOURS[mode], values
        high = 0.8 / len(bars)
        behind = {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 0.5}
        for row, (label, (colour, values)) in enumerate(bars.items()):
            rows = [sections.index(name) - 0.4 + high * (row + 0.5) for name in values]
            axis.barh(rows, list(values.values()), high * 0.86, color=colour, label=label) if rows else None
            for y, value in zip(rows, values.values(), strict=True):
                axis.text(value, y, f" {value:.3f}", va="center", bbox=behind, zorder=3)
        axis.axvline(GOAL, color=theme.INK, lw=1, ls=(0, (3, 2)))
        axis.text(GOAL, len(sections) - 0.5, "  goal .02", ha="left", va="bottom", color=theme.INK)
        axis.set_yticks(range(len(sections)), sections)
        axis.set_ylim(len(sections) - 0.45, -0.65)
        axis.set_xscale("symlog", linthresh=0.05)
        axis.set_xlim(0, 1)
        axis.set_xticks([0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0", ".01", ".02", ".05", ".1", ".2", ".5", "1"])
        axis.set_xlabel("total variation, 0 (equal) to 1, weighted by traffic; logarithmic from .05")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower left", ncols=4)
    return figure


def draw_fleet(
    evaluation: Mapping, attacks: Mapping, applications: Sequence[Mapping], figures: Mapping[str, Path]
) -> Markup:
    """Return the page.

    Parameters
    ----------
    evaluation, attacks : mapping
        `evaluation.json` and `attacks.json`.
    applications : sequence of mapping
        Rows of the table of applications as released in the protected mode that is shown.
    figures : mapping of str to Path
        SVG files by heading, put into the page.
    """
    drawn = [(head, _with_own_ids(svg_of(path), f"figure{n}-")) for n, (head, path) in enumerate(figures.items())]
    return rendered(
        "fleet.html",
        title="Causeway: fleet",
        evaluation=evaluation,
        modes=MODES,
        met=[goal["met"] for goal in evaluation["goals"] if goal["met"] is not None],
        n_met=sum(bool(goal["met"]) for goal in evaluation["goals"]),
        equal=[mode for mode, same in evaluation["sums_equal"].items() if same],
        figures=drawn,
        applications=sorted((row for row in applications if row["released"]), key=lambda row: -row["reports"]),
        attacks=attacks["attacks"],
        in_hours=lambda ms: formatting.significant(max(ms, 0) / 3.6e6),
        in_billions=lambda launches: formatting.significant(max(launches, 0) / 1e9),
        in_tb=lambda mib: formatting.significant(max(mib, 0) * 2**20 / 1e12),
        digits=formatting.count_or_digits,
    )


def _with_own_ids(figure: Markup, prefix: str) -> Markup:
    """Return a figure whose ids begin with `prefix`: two drawings on one page may have the same ones."""
    named = re.sub(r'(\sid="|(?:xlink:)?href="#|url\(#)', rf"\g<1>{prefix}", str(figure))
    return Markup(named)  # noqa: S704 - the prefix is ours, all else is the figure's
