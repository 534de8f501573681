"""Efficiency trees of devices and hosts as a table: one cell per ratio, coloured by thresholds."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import (
    DEVICE_RATIOS,
    FLAVOUR_NAMES,
    FLAVOURS,
    HOST_RATIOS,
    PARALLEL,
    TREE_LEVELS,
    factors_of,
)
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

MOST_SHOWN = {"node": 8, "rank": 16, "device": 16, "region": 12}
GROUPS = tuple((key, one, MOST_SHOWN[one]) for one, key in TREE_LEVELS.items())
"""Parts of a dataset: their key, what one is called, and how many are shown."""
WIDTH = 1180.0
CELL = 62.0
ROW = 24.0
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


def _named(document_: Mapping) -> list[tuple[str, str, Mapping]]:
    """Return the rows of the table: group, name and the trees by flavour."""
    rows = [("", "whole dataset", {key: document_[key] for key in FLAVOUR_NAMES})]
    for group, one, most in GROUPS:
        names = document_["device"][group]
        if group == "devices" and len(names) == len(document_["device"]["ranks"]):
            continue  # one device per rank: the ranks' rows say it all
        if group == "ranks" and len(names) == 1 and len(document_["device"]["devices"]) == 1:
            continue
        rows += [
            (
                group,
                f"{one} {name}" if group != "regions" else name,
                {f: document_[f][group][name] for f in FLAVOUR_NAMES},
            )
            for name in _shown(document_["device"][group], group, most)
        ]
        if len(names) > most:
            rows.append((group, _more(len(names) - most, one, group), {}))
    return rows


def _more(count: int, one: str, group: str) -> str:
    return f"… and {count} more {one}s; these are the {'longest' if group == 'regions' else 'least efficient'}"


def _shown(trees: Mapping, group: str, most: int) -> list[str]:
    """Return the names of a group's rows: the longest regions, longest first; of others the least efficient, in
    order of their numbers.
    """
    if group == "regions":
        return sorted(trees, key=lambda name: (-trees[name]["elapsed_ns"], name))[:most]

    def number(name: str) -> list:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split("/")]

    def efficiency(name: str) -> float:
        return trees[name][PARALLEL] or 0.0

    return sorted(sorted(trees, key=lambda name: (efficiency(name), number(name)))[:most], key=number)


def draw_efficiency_trees(efficiency: Mapping, name: str) -> Markup:
    """Return the trees of a dataset and its parts as a table, devices and then hosts: one cell per ratio, coloured
    by thresholds.
    """
    if efficiency["why"]:
        return notice("Efficiency", name, [f"Nothing was measured: {efficiency['why']}."])
    rows = _named(efficiency)
    left = WIDTH - MARGIN - len(FLAVOURS) * (len(DEVICE_RATIOS) * CELL + 14)
    top = 92.0
    factors = " × ".join(ratio.label for ratio in factors_of(PARALLEL, DEVICE_RATIOS))
    words = elided(f"{name}: {DEVICE_RATIOS[0].label} = {factors}, in each flavour", 150)
    parts = [
        text(MARGIN, 26, "Efficiency of devices", 15, font_weight="bold"),
        text(MARGIN, 45, words, theme.SMALL, colour=theme.MUTED),
    ]
    for number, flavour in enumerate(FLAVOURS):
        x = left + number * (len(DEVICE_RATIOS) * CELL + 14)
        parts.append(
            text(x + len(DEVICE_RATIOS) * CELL / 2, top - 24, flavour.label, theme.SIZE, "middle", font_weight="bold")
        )
        parts += [
            text(x + (at + 0.5) * CELL, top - 7, ratio.short, theme.SMALL, "middle", theme.MUTED)
            for at, ratio in enumerate(DEVICE_RATIOS)
        ]
    parts.append(text(left - 12, top - 7, "time", theme.SMALL, "end", theme.MUTED))
    group = ""
    y = top
    for kind, label, trees in rows:
        if kind != group:
            y = y + 8
            group = kind
        parts += _tree_row(label, trees, left, y)
        y += ROW
    y = _key(parts, y + 12)
    y = _shared(efficiency.get("shared", []), parts, y)
    y = _hosts(efficiency["host"], parts, y + 36)
    return document(WIDTH, y + MARGIN, f"Efficiency trees of {name}", *parts)


def _tree_row(label: str, trees: Mapping, left: float, y: float) -> list[Markup]:
    parts = [
        text(
            MARGIN,
            y + 16,
            _fitting(label, (left if trees else WIDTH) - MARGIN - 90),
            theme.SMALL,
            colour=theme.INK if trees else theme.MUTED,
        )
    ]
    if not trees:
        return parts
    parts.append(
        text(left - 12, y + 16, formatting.time(trees["device"]["elapsed_ns"]), theme.SMALL, "end", theme.MUTED)
    )
    for number, flavour in enumerate(FLAVOUR_NAMES):
        for at, ratio in enumerate(DEVICE_RATIOS):
            x = left + number * (len(DEVICE_RATIOS) * CELL + 14) + at * CELL
            parts += _cell(trees[flavour][ratio.name], x, y, bold=at == 0)
    return parts


def _fitting(label: str, width: float) -> str:
    """Return a label that is elided where it does not fit."""
    fits = 0
    most = min(len(label), int(width / 3))
    while fits < most:
        middle = (fits + most + 1) // 2
        wide = text_width(elided(label, middle), theme.SMALL) > width
        fits, most = (fits, middle - 1) if wide else (middle, most)
    return elided(label, max(fits, 8))


def _cell(value: float | None, x: float, y: float, bold: bool) -> list[Markup]:
    """Return a cell with its ratio; white where that is not defined."""
    fill = theme.PAPER
    ink = theme.MUTED
    if value is not None:
        fill, ink = (
            ABOVE[:2] if value > 1 else next((colour, text_) for least, colour, text_, _ in STEPS if value >= least)
        )
    weight = {"font_weight": "bold"} if bold else {}
    box = tag("rect", x=x, y=y, width=CELL - 2, height=ROW - 2, fill=fill)
    return [box, text(x + CELL / 2 - 1, y + 16, formatting.ratio(value), theme.SMALL, "middle", ink, **weight)]


def _key(parts: list[Markup], y: float) -> float:
    """Draw what colours mean; return where it ends."""
    x = MARGIN
    for fill, words in [(colour, words) for _, colour, _, words in STEPS] + [
        (ABOVE[0], ABOVE[2]),
        (theme.PAPER, "–: not defined"),
    ]:
        parts.append(tag("rect", x=x, y=y, width=14, height=14, fill=fill))
        parts.append(text(x + 20, y + 11, words, theme.SMALL, colour=theme.MUTED))
        x += 20 + text_width(words, theme.SMALL) + 18
    return y + 14


def _shared(gpus: Sequence[Mapping], parts: list[Markup], y: float) -> float:
    """Draw a row for each GPU that several ranks share: what runs on it together, and on behalf of each; return
    where they end.
    """
    if not gpus:
        return y
    columns = (330.0, 430.0, 530.0, 640.0, 660.0)
    parts.append(text(MARGIN, y + 36, "GPUs that several ranks share", 15, font_weight="bold"))
    heads = ("time", "kernels", "efficiency", "at once", "kernels of each rank/device")
    parts += [
        text(x, y + 60, words, theme.SMALL, "end" if x < columns[-1] else "start", theme.MUTED)
        for x, words in zip(columns, heads, strict=True)
    ]
    y += 62
    for number, gpu in enumerate(gpus[:MOST_SHARED]):
        y += 20
        each = ", ".join(f"{name}: {formatting.time(one['kernel_ns'])}" for name, one in gpu["devices"].items())
        cells = (
            formatting.time(gpu["elapsed_ns"]),
            formatting.time(gpu["kernel_ns"]),
            formatting.ratio(gpu[PARALLEL]),
            formatting.time(gpu["at_once_ns"]),
        )
        parts.append(text(MARGIN, y, f"GPU {number + 1}, {len(gpu['devices'])} ranks", theme.SMALL))
        parts += [text(x, y, words, theme.SMALL, "end") for x, words in zip(columns, cells, strict=False)]
        parts.append(
            text(columns[-1], y, _fitting(each, WIDTH - MARGIN - columns[-1]), theme.SMALL, colour=theme.MUTED)
        )
    if len(gpus) > MOST_SHARED:
        y += 20
        parts.append(text(MARGIN, y, f"… and {len(gpus) - MOST_SHARED} more", theme.SMALL, colour=theme.MUTED))
    return y + 6


def _hosts(host: Mapping, parts: list[Markup], y: float) -> float:
    """Draw the trees of hosts, or say why there are none; return where they end."""
    parts.append(text(MARGIN, y, "Efficiency of hosts", 15, font_weight="bold"))
    if not host["possible"]:
        parts.append(text(MARGIN, y + 20, f"Not measured: {host['why']}.", theme.SMALL, colour=theme.MUTED))
        return y + 24
    words = (
        "parallel: time of threads outside calls of the GPU runtime and MPI; offload: outside runtime calls; MPI ="
        " balance × communication"
    )
    parts.append(
        text(MARGIN, y + 19, words + (f"; {host['why']}" if host["why"] else ""), theme.SMALL, colour=theme.MUTED)
    )
    left = WIDTH - MARGIN - len(FLAVOURS) * (len(DEVICE_RATIOS) * CELL + 14)
    y = y + 50
    parts += [
        text(left + (at + 0.5) * CELL, y - 7, ratio.short, theme.SMALL, "middle", theme.MUTED)
        for at, ratio in enumerate(HOST_RATIOS)
    ]
    parts.append(text(left - 12, y - 7, "time", theme.SMALL, "end", theme.MUTED))
    rows = [("", "whole dataset", host)]
    for group, one, most in GROUPS:
        if group in host and (group != "ranks" or len(host[group]) > 1):
            names = _shown(host[group], group, most)
            rows += [(group, f"{one} {name}" if group != "regions" else name, host[group][name]) for name in names]
            if len(host[group]) > most:
                rows.append((group, _more(len(host[group]) - most, one, group), {}))
    before = ""
    for group, label, tree in rows:
        y = y + 8 * (group != before)
        before = group
        width = (left if tree else WIDTH) - MARGIN - 90
        parts.append(
            text(MARGIN, y + 16, _fitting(label, width), theme.SMALL, colour=theme.INK if tree else theme.MUTED)
        )
        if not tree:
            y += ROW
            continue
        parts.append(text(left - 12, y + 16, formatting.time(tree["elapsed_ns"]), theme.SMALL, "end", theme.MUTED))
        for at, ratio in enumerate(HOST_RATIOS):
            parts += _cell(tree[ratio.name], left + at * CELL, y, bold=at == 0)
        y += ROW
    return y
