"""Fleet mode's page and its figures: what the designer may know of a simulated fleet, how good it is, and what
attackers can do.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.page import rendered, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MODE_COLOURS = {"share2": theme.SEQUENTIAL[7], "ahe": theme.SEQUENTIAL[5], "ldp": theme.DIVERGING[-2]}
DASHES = {"share2": (0, ()), "ahe": (0, (1, 1)), "ldp": (0, (4, 2))}
WHAT = {
    "applications": "Applications",
    "kernels by time": "Kernels, weighted by GPU time",
    "kernels": "Kernels, each alike",
}
NAMES = {"share2": "two servers (share2)", "ahe": "additive encryption (ahe)", "ldp": "local noise (ldp)"}
MS_PER_HOUR = 3.6e6
MIB_IN_TB = 2**20 / 1e12
STATES = {True: ("met", "ok"), False: ("missed", "caution"), None: ("not measured", "absent")}
"""What a goal's state reads like, and the class of its label."""
OUTCOMES = {True: ("as expected", "ok"), False: ("not as expected", "blocked"), None: ("cannot tell", "absent")}
"""What an attack's outcome reads like, and the class of its label."""
MODES = NAMES | {"clear": "no protection (clear)"}
APPLICATION_COLUMNS = (
    "application",
    "reports",
    "median launch",
    "busy",
    "occupancy",
    "vary by over 10 %",
    "GPU time sampled, h",
    "launches sampled, billion",
    "moved in samples, TB",
)
GOAL = 0.02
"""Total variation aimed at; drawn as a line."""


def draw_coverage(rows: Sequence[Mapping]) -> "Figure":
    """Return coverage over the day: what agents sampled, and what could be released of it, by mode."""
    modes = [mode for mode in MODE_COLOURS if any(row["mode"] == mode for row in rows)]
    title = "Coverage over the day, sampled and released"
    below = "Released: beyond the noise; falls where later hours bring more noise than reports. All is handed out after"
    with theme.drawing():
        figure, axes = charts.sheet(title, f"{below} the day.", 3.6, 1, 3, sharey=True)
        for axis, (what, name) in zip(axes, WHAT.items(), strict=True):
            _coverage(axis, [row for row in rows if row["what"] == what], modes, name)
        axes[0].set_ylabel("share covered")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=4)
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
            "color": MODE_COLOURS[mode],
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
            known = [(sections.index(name) - 0.4 + high * (row + 0.5), value) for name, value in values.items()]
            axis.barh(*zip(*known, strict=True), high * 0.86, color=colour, label=label) if known else None
            for y, value in known:
                axis.text(value, y, f" {value:.3f}", va="center", bbox=behind, zorder=3)
        axis.axvline(GOAL, color=theme.INK, lw=1, ls=(0, (3, 2)))
        axis.text(GOAL, len(sections) - 0.5, " goal .02", ha="left", va="bottom", color=theme.INK)
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
    return rendered(
        "fleet.html",
        title="Causeway: fleet",
        facts=_facts(evaluation),
        summary=_summary(evaluation),
        exact=evaluation["shown"]["mode"] == "clear",
        goals=[_goal(goal) for goal in evaluation["goals"]],
        figures=[
            (heading, _as_wide_as_the_page(_with_own_ids(svg_of(figure), f"figure{number}-")))
            for number, (heading, figure) in enumerate(figures.items())
        ],
        application_columns=APPLICATION_COLUMNS,
        applications=_applications(applications),
        attacks=[
            {**attack, "state": OUTCOMES[attack["held"]], "figures": _named_numbers(attack["figures"])}
            for attack in attacks["attacks"]
        ],
    )


def _with_own_ids(figure: Markup, prefix: str) -> Markup:
    """Return a figure whose ids begin with `prefix`: two drawings on one page may have the same ones."""
    named = re.sub(r'(\sid="|(?:xlink:)?href="#|url\(#)', rf"\g<1>{prefix}", str(figure))
    return Markup(named)  # noqa: S704 - the prefix is ours, all else is the figure's


def _as_wide_as_the_page(figure: Markup) -> Markup:
    """Return a figure that is as wide as the page at most."""
    return figure.replace("<svg", Markup('<svg style="max-width:100%;height:auto"'), 1)


def _facts(evaluation: Mapping) -> list[tuple[str, str]]:
    shown = evaluation["shown"]
    facts = [
        ("simulated GPUs", formatting.count(evaluation["gpus"])),
        ("reports of a day", formatting.count(evaluation["reports"])),
        ("cells of a report", formatting.count(evaluation["cells"])),
        ("modes", ", ".join(evaluation["bytes_per_report"])),
        ("goals and applications of", MODES[shown["mode"]]),
    ]
    if unknown := evaluation["unknown_reports"]:
        words = [formatting.count_or_digits(unknown[name]) for name in ("value", "low", "high")]
        facts.append(("reports of unknown applications", f"{words[0]} [{words[1]}, {words[2]}]"))
    if shown["epsilon"] is not None:
        facts.append(("epsilon per user and day", formatting.significant(shown["epsilon"])))
        facts.append(("bytes of a report", formatting.count(evaluation["bytes_per_report"][shown["mode"]])))
    return facts


def _summary(evaluation: Mapping) -> str:
    met = [goal["met"] for goal in evaluation["goals"] if goal["met"] is not None]
    equal = [mode for mode, same in evaluation["sums_equal"].items() if same]
    sums = f" Before noise, the sums of {' and '.join(equal)} equal the unprotected ones cell by cell." if equal else ""
    seeded = evaluation["test_seed"] is not None
    noise = " but for its noise, which comes from a test seed and can be foreseen" if seeded else ""
    return (
        f"A simulation: users, applications and GPUs are made up, the protection is real{noise}."
        f" {sum(met)} of {len(met)} goals are met.{sums}"
    )


def _goal(goal: Mapping) -> dict:
    """Return a goal with its numbers in words and its state as a label."""
    target = f"{'≥' if goal['at_least'] else '≤'} {_size(goal['target'])}"
    return {**goal, "target": target, "value": _size(goal["value"]), "state": STATES[goal["met"]]}


def _size(value: float | None) -> str:
    """Return a goal's number; a share below a thousandth in percent."""
    if value is None or abs(value) >= 0.001 or value == 0:
        return formatting.count_or_digits(value)
    return f"{formatting.significant(100 * value)} %"


def _applications(rows: Sequence[Mapping]) -> list[tuple[str, ...]]:
    """Return the released applications, most reports first, each as the texts of its cells."""
    return [
        (
            row["application"],
            _interval(row, "reports", formatting.count_or_digits),
            _median(row),
            *(_share(row, name) for name in ("busy", "occupancy", "variable_share")),
            _interval(row, "gpu_ms", lambda value: formatting.significant(max(value, 0) / MS_PER_HOUR)),
            _interval(row, "launches", lambda value: formatting.significant(max(value, 0) / 1e9)),
            _interval(row, "mib", lambda value: formatting.significant(max(value, 0) * MIB_IN_TB)),
        )
        for row in sorted((row for row in rows if row["released"]), key=lambda row: -row["reports"])
    ]


def _share(row: Mapping, name: str) -> str:
    ends = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return formatting.percent(*(None if one is None else 100 * one for one in ends))


def _median(row: Mapping) -> str:
    """Return the median launch with the bins that it may lie in; without an upper end, "at least"."""
    value, low, high = (row[f"median_duration_ns{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return formatting.NOT_MEASURED
    words = formatting.quantity(value, "ns")
    start = formatting.quantity(low, "ns") if low else "0"
    if row["median_duration_open"]:
        words = f"≥ {words}"
    return f"{words} [{start}, {'open' if high is None else formatting.quantity(high, 'ns')}]"


def _interval(row: Mapping, name: str, words: Callable[[float], str]) -> str:
    if row[name] is None:
        return formatting.NOT_MEASURED
    return f"{words(row[name])} [{words(row[f'{name}_low'])}, {words(row[f'{name}_high'])}]"


def _named_numbers(numbers: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {formatting.count_or_digits(value)}" for name, value in numbers.items())
