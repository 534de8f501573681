"""Efficiency as tables, one cell per ratio, coloured by thresholds: trees of devices and hosts; and series of runs."""

import math
import textwrap
from collections.abc import Mapping, Sequence

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import (
    COMPUTATION_SCALABILITY,
    DEVICE_RATIOS,
    FLAVOUR_NAMES,
    FLAVOURS,
    GLOBAL,
    HOST_RATIOS,
    PARALLEL,
    SERIES_RATIOS,
    TREE_LEVELS,
    factors_of,
)
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.drawn import Axes, DataFrame, Figure
from causeway.plotting.drawing.markup import plain

MOST_SHOWN = {"node": 8, "rank": 16, "device": 16, "region": 12}
GROUPS = tuple((key, level, MOST_SHOWN[level]) for level, key in TREE_LEVELS.items())
"""Parts of a dataset: their key, what one is called, and how many are shown."""
MOST_SHARED = 8
STEPS = (
    (0.9, theme.DIVERGING[2], theme.INK, ".90 and more"),
    (0.8, theme.DIVERGING[3], theme.INK, ".80 to .90"),
    (0.6, theme.DIVERGING[5], theme.INK, ".60 to .80"),
    (0.4, theme.DIVERGING[6], theme.INK, ".40 to .60"),
    (-1.0, theme.DIVERGING[8], theme.PAPER, "below .40"),
)
"""Least ratio, colour of a cell and of its text, and what the key says; POP takes .80 for acceptable (POP CoE, "POP
metrics").
"""
ABOVE = ("#dcdfe4", theme.INK, "above 1: no share, see TALP")


def groups_of(device: Mapping) -> list[tuple[str, str, int]]:
    """Return the groups of `GROUPS` that have rows: those that say no more than the rows above them have none."""
    single = {"devices": len(device["devices"]) == len(device["ranks"])}
    single["ranks"] = len(device["ranks"]) == len(device["devices"]) == 1
    return [group for group in GROUPS if not single.get(group[0])]


def _rows(trees: Mapping[str, Mapping], groups: Sequence[tuple[str, str, int]]) -> list[tuple[str, Mapping]]:
    """Return the rows of a table: name and the trees by flavour, of which `trees` has the whole dataset's."""
    rows = [("whole dataset", trees)]
    first = next(iter(trees.values()))
    for group, level, most in groups:
        for name in shown_names(first[group], group, most):
            label = name if group == "regions" else f"{level} {name}"
            rows.append((label, {flavour: tree[group][name] for flavour, tree in trees.items()}))
        if (more := len(first[group]) - most) > 0:
            chosen = "longest" if group == "regions" else "least efficient"
            rows.append((f"… and {more} more {level}s; these are the {chosen}", {}))
    return rows


def natural(name: str) -> list:
    """Return a key that sorts `rank 10` behind `rank 9`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split("/")]


def shown_names(trees: Mapping, group: str, most: int) -> list[str]:
    """Return the names of a group's rows: the longest regions, longest first; of others the least efficient, in
    order of their numbers.
    """
    if group == "regions":
        return sorted(trees, key=lambda name: (-trees[name]["elapsed_ns"], name))[:most]
    return sorted(sorted(trees, key=lambda name: (trees[name][PARALLEL] or 0.0, natural(name)))[:most], key=natural)


def tree_rows(rows: Sequence[tuple[str, Mapping]], flavours: Sequence[str], ratios: Sequence) -> DataFrame:
    """Return the ratios of each row, named with its time, by flavour and ratio; a row of words alone has none."""
    import pandas as pd

    names = [f"{elided(label, 44)}, {_elapsed(trees)}" if trees else label for label, trees in rows]
    columns = pd.MultiIndex.from_product([flavours, [ratio.name for ratio in ratios]])
    values = [[trees[flavour][name] if trees else None for flavour, name in columns] for _, trees in rows]
    return pd.DataFrame(values, names, columns, dtype=float)


def _elapsed(trees: Mapping) -> str:
    return formatting.time(next(iter(trees.values()))["elapsed_ns"])


def _table(axis: Axes, ratios: DataFrame, heads: Sequence[str], title: str, named: bool) -> None:
    """Draw ratios as a table; `named`: with the names of its rows."""
    import numpy as np

    values = ratios.to_numpy()
    codes = np.digitize(values, [-1, *sorted(least for least, *_ in STEPS if least > 0), np.nextafter(1.0, 2)])
    codes[np.isnan(values)] = 0
    said = [[formatting.ratio(None if np.isnan(value) else value) for value in row] for row in values]
    said = [[""] * len(row) if name.startswith("… and") else row for row, name in zip(said, ratios.index, strict=True)]
    charts.shaded(axis, codes, np.array(said), [theme.PAPER, *(colour for _, colour, *_ in STEPS[::-1]), ABOVE[0]], 0)
    axis.set_xticks(np.arange(len(heads)) + 0.5, heads, color=theme.MUTED)
    axis.set_title(title, fontsize=9.4)
    axis.set_yticks(np.arange(len(ratios)) + 0.5 if named else [], ratios.index if named else [], rotation=0)


def draw_efficiency_trees(efficiency: Mapping, name: str) -> Figure:
    """Return the trees of a dataset and its parts as a table, devices and then hosts: one cell per ratio, coloured
    by thresholds.
    """
    if efficiency["why"]:
        return notice("Efficiency", name, [f"Nothing was measured: {efficiency['why']}."])
    trees = {flavour: efficiency[flavour] for flavour in FLAVOUR_NAMES}
    devices = tree_rows(_rows(trees, groups_of(efficiency["device"])), FLAVOUR_NAMES, DEVICE_RATIOS)
    host = efficiency["host"]
    groups = [group for group in GROUPS if group[0] in host and (group[0] != "ranks" or len(host["ranks"]) > 1)]
    hosts = tree_rows(_rows({"host": host}, groups) if host["possible"] else [], ["host"], HOST_RATIOS)
    lines = shared_lines(efficiency.get("shared", []))
    lines += [] if host["possible"] else [f"Efficiency of hosts. Not measured: {host['why']}."]
    factors = " × ".join(ratio.label for ratio in factors_of(PARALLEL, DEVICE_RATIOS))
    below = elided(f"{name}: {DEVICE_RATIOS[0].label} = {factors}, in each flavour", 150)
    with theme.drawing():
        rows = [len(devices) + 2.2, len(hosts) + 2.6] if len(hosts) else [len(devices) + 2.2]
        height = charts.ROW * math.fsum(rows) + 0.35 + 0.2 * len(lines)
        figure, axes = charts.panels(
            "Efficiency of devices", below, height, nrows=len(rows), ncols=len(FLAVOURS), height_ratios=rows
        )
        for axis, flavour in zip(axes[0], FLAVOURS, strict=True):
            heads = [ratio.short for ratio in DEVICE_RATIOS]
            _table(axis, devices[flavour.name], heads, flavour.label, axis is axes[0, 0])
        if len(hosts):
            _table(axes[1, 0], hosts["host"], [ratio.short for ratio in HOST_RATIOS], "Efficiency of hosts", True)
            for axis in axes[1, 1:]:
                axis.axis("off")
            words = (
                "parallel: time of threads outside calls of the\nGPU runtime and MPI; offload: outside runtime"
                "\ncalls; MPI = balance × communication"
            )
            words += "\n" + "\n".join(textwrap.wrap(host["why"], 50)) if host["why"] else ""
            axes[1, 1].text(0, 1, words, va="top", color=theme.MUTED)
        colours = {words: colour for _, colour, _, words in STEPS} | {ABOVE[2]: ABOVE[0], "–: not defined": theme.PAPER}
        charts.key(figure, colours, list(colours), 7, plain("\n".join(lines)))
    return figure


def shared_lines(gpus: Sequence[Mapping]) -> list[str]:
    """Return a line for each GPU that several ranks share: what runs on it together, and on behalf of each."""
    lines = ["GPUs that several ranks share:"] if gpus else []
    for number, gpu in enumerate(gpus[:MOST_SHARED]):
        each = ", ".join(f"{name}: {formatting.time(device['kernel_ns'])}" for name, device in gpu["devices"].items())
        times = [formatting.time(gpu[f"{name}_ns"]) for name in ("elapsed", "kernel", "at_once")]
        words = f"GPU {number + 1}, {len(gpu['devices'])} ranks: {times[0]}, kernels {times[1]}, efficiency"
        lines.append(elided(f"{words} {formatting.ratio(gpu[PARALLEL])}, at once {times[2]}; kernels of {each}", 165))
    return lines + ([f"… and {len(gpus) - MOST_SHARED} more"] if len(gpus) > MOST_SHARED else [])


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
        names = ", ".join(run["dataset"] for run in series["not_measured"])
        words += f"\n{elided(f'without an efficiency: {names}', 150)}"
    return words


def ratios_of(runs: Sequence[Mapping]) -> DataFrame:
    """Return the numbers of runs by flavour and ratio; a run without a number has none."""
    import pandas as pd

    columns = pd.MultiIndex.from_product([FLAVOUR_NAMES, [ratio.name for ratio in SERIES_RATIOS]])
    return pd.DataFrame(
        [[run[flavour][name] for flavour, name in columns] for run in runs], columns=columns, dtype=float
    )


def draw_series(document_: Mapping) -> Figure:
    """Return the figure of `series.json`: per series its lines over the runs, and a table of the three numbers in
    all flavours.
    """
    each = document_["series"]
    rows = []
    for series in each.values():
        n_runs = len(shown_runs(series))
        rows += [2.6 if n_runs else 0.4, 0.22 * (n_runs + 2) + 0.1 if n_runs else 0.1]
    with theme.drawing():
        below = "flavour device in the lines; dashed: 1, as good as the reference; a gap: a run without the number"
        height = math.fsum(rows) + 0.4 * len(each) + 0.3
        figure, axes = charts.panels("Series of runs", below, height, nrows=len(rows), height_ratios=rows)
        for place, (name, series) in enumerate(each.items()):
            lines, table = axes[2 * place : 2 * place + 2, 0]
            lines.set_title(f"{plain(elided(name, 100))}: {plain(words_of(series))}", fontweight="normal")
            table.axis("off")
            if runs := shown_runs(series):
                _lines(lines, runs)
                _table_of_runs(table, runs)
            else:
                lines.axis("off")
        labels = {
            ratio.label + " = both multiplied" * (ratio.name == GLOBAL): COLOURS[ratio.name] for ratio in SERIES_RATIOS
        }
        charts.key(figure, labels, list(labels))
    return figure


def _lines(axis: Axes, runs: Sequence[Mapping]) -> None:
    """Draw the lines of the flavour `device`."""
    values = ratios_of(runs)["device"]
    axis.axhline(1.0, color=theme.MUTED, linestyle=(0, (4, 4)), linewidth=0.9)
    for number, (key, colour) in enumerate(COLOURS.items()):
        axis.plot(values.index, values[key], color=colour, marker="o", markersize=6.5 - 1.2 * number, linewidth=1.5)
    counts = [f"{formatting.count(run['n_devices'])} device{'s' if run['n_devices'] != 1 else ''}" for run in runs]
    axis.set_xticks(values.index, counts)
    axis.set(xlim=(-0.5, len(runs) - 0.5), ylim=(0, 1.04 * max(1.0, values.max(skipna=True).max())))
    axis.grid(axis="y")
    axis.tick_params(length=0)


def _table_of_runs(axis: Axes, runs: Sequence[Mapping]) -> None:
    """Write one row per run."""
    from matplotlib.transforms import Bbox

    values = ratios_of(runs)
    heads = ["run", "devices", *(f"{ratio.short}" for _ in FLAVOURS for ratio in SERIES_RATIOS)]
    cells = [
        [plain(elided(run["dataset"], 36)), formatting.count(run["n_devices"]), *map(_ratio, row)]
        for run, row in zip(runs, values.to_numpy().tolist(), strict=True)
    ]
    groups = ["", "", *(flavour.label if nth == 1 else "" for flavour in FLAVOURS for nth in range(len(SERIES_RATIOS)))]
    widths = [0.26, 0.07, *[0.66 / (len(heads) - 2)] * (len(heads) - 2)]
    whole = Bbox.unit()
    table = axis.table([groups, heads, *cells], colWidths=widths, cellLoc="center", edges="open", bbox=whole)
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for (row, column), cell in table.get_celld().items():
        cell.get_text().set(color=theme.INK if row != 1 else theme.MUTED, fontweight="bold" if row == 0 else "normal")
        cell.set_text_props(ha="left" if column == 0 else "center")


def _ratio(value: float) -> str:
    return formatting.ratio(None if math.isnan(value) else value)
