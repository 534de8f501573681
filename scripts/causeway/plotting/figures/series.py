"""Series of runs drawn: parallel efficiency, computation scalability and global efficiency from the smallest run to
the largest.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import COMPUTATION_SCALABILITY, FLAVOUR_NAMES, FLAVOURS, GLOBAL, PARALLEL, SERIES_RATIOS
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.markup import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {PARALLEL: "#3b6fb6", COMPUTATION_SCALABILITY: "#1b9e8a", GLOBAL: "#c8630f"}
MOST_RUNS = 10
"""Runs side by side; of longer series the first ones and the last."""


def shown_runs(series: Mapping) -> list[Mapping]:
    """Return the runs of a series that are shown: the first ones and the last."""
    runs = list(series["runs"])
    return runs if len(runs) <= MOST_RUNS else [*runs[: MOST_RUNS - 1], runs[-1]]


def words_of(series: Mapping) -> str:
    """Return how a series scales, its reference, and what is left out."""
    reference = series["reference"]
    words = f"{series['scaling']} scaling; "
    words += (
        "no run was measured"
        if reference is None
        else f"reference {elided(reference, 60)}, the run with the fewest devices"
    )
    left_out = len(series["runs"]) - len(shown_runs(series))
    words += f"; {left_out} runs before the last one not shown" if left_out else ""
    if series["not_measured"]:
        names = ", ".join(one["dataset"] for one in series["not_measured"])
        words += f"\n{elided(f'without an efficiency: {names}', 150)}"
    return words


def ratios_of(runs: Sequence[Mapping]) -> "pd.DataFrame":
    """Return the numbers of runs by flavour and ratio; a run without a number has none."""
    import pandas as pd

    columns = pd.MultiIndex.from_product([FLAVOUR_NAMES, [ratio.name for ratio in SERIES_RATIOS]])
    return pd.DataFrame(
        [[run[flavour][name] for flavour, name in columns] for run in runs], columns=columns, dtype=float
    )


def draw_series(document_: Mapping) -> "Figure":
    """Return the figure of `series.json`: per series its lines over the runs, and a table of the three numbers in
    all flavours.
    """
    each = document_["series"]
    heights = []
    for series in each.values():
        n_runs = len(shown_runs(series))
        heights += [2.6 if n_runs else 0.4, 0.22 * (n_runs + 2) + 0.1 if n_runs else 0.1]
    with theme.drawing():
        below = "flavour device in the lines; dashed: 1, as good as the reference; a gap: a run without the number"
        figure, axes = charts.sheet(
            "Series of runs", below, math.fsum(heights) + 0.4 * len(each) + 0.3, len(heights), height_ratios=heights
        )
        for place, (name, series) in enumerate(each.items()):
            lines, table = axes[2 * place : 2 * place + 2]
            lines.set_title(f"{plain(elided(name, 100))}: {plain(words_of(series))}", fontweight="normal")
            table.axis("off")
            if runs := shown_runs(series):
                _lines(lines, runs)
                _table(table, runs)
            else:
                lines.axis("off")
        labels = {
            ratio.label + " = both multiplied" * (ratio.name == GLOBAL): COLOURS[ratio.name] for ratio in SERIES_RATIOS
        }
        charts.key(figure, labels, list(labels))
    return figure


def _lines(axis: "Axes", runs: Sequence[Mapping]) -> None:
    """Draw the lines of the flavour `device`."""
    values = ratios_of(runs)["device"]
    axis.axhline(1.0, color=theme.MUTED, linestyle=(0, (4, 4)), linewidth=0.9)
    for number, (key, colour) in enumerate(COLOURS.items()):
        axis.plot(values.index, values[key], color=colour, marker="o", markersize=6.5 - 1.2 * number, linewidth=1.5)
    counts = [f"{formatting.count(run['n_devices'])} device{'s' if run['n_devices'] != 1 else ''}" for run in runs]
    axis.set_xticks(values.index, counts)
    axis.set(xlim=(-0.5, MOST_RUNS - 0.5), ylim=(0, 1.04 * max(1.0, values.max(skipna=True).max())))
    axis.grid(axis="y")
    axis.tick_params(length=0)


def _table(axis: "Axes", runs: Sequence[Mapping]) -> None:
    """Write one row per run."""
    values = ratios_of(runs)
    heads = ["run", "devices", *(f"{ratio.short}" for _ in FLAVOURS for ratio in SERIES_RATIOS)]
    cells = [
        [plain(elided(run["dataset"], 36)), formatting.count(run["n_devices"]), *map(_ratio, row)]
        for run, row in zip(runs, values.to_numpy().tolist(), strict=True)
    ]
    groups = ["", "", *(flavour.label if at == 1 else "" for flavour in FLAVOURS for at in range(len(SERIES_RATIOS)))]
    widths = [0.26, 0.07, *[0.66 / (len(heads) - 2)] * (len(heads) - 2)]
    table = axis.table([groups, heads, *cells], colWidths=widths, cellLoc="center", edges="open", bbox=(0, 0, 1, 1))
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for (row, column), cell in table.get_celld().items():
        cell.get_text().set(color=theme.INK if row != 1 else theme.MUTED, fontweight="bold" if row == 0 else "normal")
        cell.set_text_props(ha="left" if column == 0 else "center")


def _ratio(value: float) -> str:
    return formatting.ratio(None if math.isnan(value) else value)
