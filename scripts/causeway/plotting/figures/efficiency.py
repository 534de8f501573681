"""Where the time goes, drawn: the efficiency trees as a coloured table, the waterfall of device time, the map of ranks over time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causeway.plotting import theme
from causeway.plotting.marks import MARGIN, document, notice, text
from causeway.plotting.markup import Markup, tag, text_width
from causeway.plotting.names import elided

if TYPE_CHECKING:
    import pyarrow as pa

FLAVOURS = (("device", "device"), ("talp", "TALP"), ("comm_aware", "communication-aware"))
RATIOS = (
    ("parallel_efficiency", "parallel"),
    ("load_balance", "balance"),
    ("communication_efficiency", "comm."),
    ("orchestration_efficiency", "orch."),
)
GROUPS = (("nodes", "node", 8), ("ranks", "rank", 16), ("devices", "device", 16), ("regions", "region", 12))
"""Parts of a dataset: their key, what one is called, and how many are shown."""
PARTS = (
    ("useful", "useful: computing kernels", theme.CLASSES["compute"]),
    ("load_imbalance", "load imbalance", theme.UNKNOWN),
    ("communication", "communication outside compute", theme.CLASSES["communication"]),
    ("transfers", "copies and sets outside both", theme.CLASSES["copy"]),
    ("orchestration", "orchestration: nothing runs on the busiest device", theme.CLASSES["idle"]),
)
WIDTH, CELL, ROW = 1180.0, 62.0, 24.0
MOST_ROWS = 48
MOST_SHARED = 8
STEPS = (
    (0.9, theme.DIVERGING[2], theme.INK, ".90 and more"),
    (0.8, theme.DIVERGING[3], theme.INK, ".80 to .90"),
    (0.6, theme.DIVERGING[5], theme.INK, ".60 to .80"),
    (0.4, theme.DIVERGING[6], theme.INK, ".40 to .60"),
    (-1.0, theme.DIVERGING[8], theme.PAPER, "below .40"),
)
"""Least ratio, colour of a cell and of its text, and what the key says; POP takes .80 for acceptable (POP CoE, "POP metrics")."""
ABOVE = ("#dcdfe4", theme.INK, "above 1: no share, see TALP")
HOST_RATIOS = (
    ("parallel_efficiency", "parallel"),
    ("device_offload_efficiency", "offload"),
    ("mpi_parallel_efficiency", "MPI"),
    ("mpi_load_balance", "balance"),
    ("mpi_communication_efficiency", "comm."),
)


def _named(document_: Mapping) -> list[tuple[str, str, Mapping]]:
    """Return the rows of the table: group, name and the trees by flavour."""
    rows = [("", "whole dataset", {key: document_[key] for key, _ in FLAVOURS})]
    for group, one, most in GROUPS:
        names = document_["device"][group]
        if group == "devices" and len(names) == len(document_["device"]["ranks"]):
            continue  # one device per rank: the ranks' rows say it all
        if group == "ranks" and len(names) == 1 and len(document_["device"]["devices"]) == 1:
            continue
        rows += [
            (group, f"{one} {name}" if group != "regions" else name, {f: document_[f][group][name] for f, _ in FLAVOURS})
            for name in _shown(document_["device"][group], group, most)
        ]
        if len(names) > most:
            rows.append((group, _more(len(names) - most, one, group), {}))
    return rows


def _more(count: int, one: str, group: str) -> str:
    return f"… and {count} more {one}s; these are the {'longest' if group == 'regions' else 'least efficient'}"


def _shown(trees: Mapping, group: str, most: int) -> list[str]:
    """Return the names of a group's rows: the longest regions, longest first; of others the least efficient, in order of their numbers."""
    if group == "regions":
        return sorted(trees, key=lambda name: (-trees[name]["elapsed_ns"], name))[:most]

    def number(name: str) -> list:
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split("/")]

    def efficiency(name: str) -> float:
        return 0 if trees[name]["parallel_efficiency"] is None else trees[name]["parallel_efficiency"]

    return sorted(sorted(trees, key=lambda name: (efficiency(name), number(name)))[:most], key=number)


def tree_table(efficiency: Mapping, name: str) -> Markup:
    """Return the trees of a dataset and its parts as a table, devices and then hosts: one cell per ratio, coloured by thresholds."""
    if efficiency["why"]:
        return notice("Efficiency", name, [f"Nothing was measured: {efficiency['why']}."])
    rows = _named(efficiency)
    left = WIDTH - MARGIN - len(FLAVOURS) * (len(RATIOS) * CELL + 14)
    top = 92.0
    parts = [
        text(MARGIN, 26, "Efficiency of devices", 15, font_weight="bold"),
        text(MARGIN, 45, elided(f"{name}: parallel = balance × communication × orchestration, in each flavour", 150), theme.SMALL,
             colour=theme.MUTED),
    ]  # fmt: skip
    for number, (_, words) in enumerate(FLAVOURS):
        x = left + number * (len(RATIOS) * CELL + 14)
        parts.append(text(x + len(RATIOS) * CELL / 2, top - 24, words, theme.SIZE, "middle", font_weight="bold"))
        parts += [text(x + (at + 0.5) * CELL, top - 7, short, theme.SMALL, "middle", theme.MUTED) for at, (_, short) in enumerate(RATIOS)]
    parts.append(text(left - 12, top - 7, "time", theme.SMALL, "end", theme.MUTED))
    group, y = "", top
    for kind, label, trees in rows:
        if kind != group:
            y, group = y + 8, kind
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
    parts.append(text(left - 12, y + 16, theme.time(trees["device"]["elapsed_ns"]), theme.SMALL, "end", theme.MUTED))
    for number, (flavour, _) in enumerate(FLAVOURS):
        for at, (key, _) in enumerate(RATIOS):
            parts += _cell(trees[flavour][key], left + number * (len(RATIOS) * CELL + 14) + at * CELL, y, bold=at == 0)
    return parts


def _fitting(label: str, width: float) -> str:
    """Return a label that is elided where it does not fit."""
    fits, most = 0, min(len(label), int(width / 3))
    while fits < most:
        middle = (fits + most + 1) // 2
        wide = text_width(elided(label, middle), theme.SMALL) > width
        fits, most = (fits, middle - 1) if wide else (middle, most)
    return elided(label, max(fits, 8))


def _cell(value: float | None, x: float, y: float, bold: bool) -> list[Markup]:
    """Return a cell with its ratio; white where that is not defined."""
    fill, ink = theme.PAPER, theme.MUTED
    if value is not None:
        fill, ink = ABOVE[:2] if value > 1 else next((colour, text_) for least, colour, text_, _ in STEPS if value >= least)
    weight = {"font_weight": "bold"} if bold else {}
    box = tag("rect", x=x, y=y, width=CELL - 2, height=ROW - 2, fill=fill)
    return [box, text(x + CELL / 2 - 1, y + 16, theme.ratio(value), theme.SMALL, "middle", ink, **weight)]


def _key(parts: list[Markup], y: float) -> float:
    """Draw what colours mean; return where it ends."""
    x = MARGIN
    for fill, words in [(colour, words) for _, colour, _, words in STEPS] + [(ABOVE[0], ABOVE[2]), (theme.PAPER, "–: not defined")]:
        parts.append(tag("rect", x=x, y=y, width=14, height=14, fill=fill))
        parts.append(text(x + 20, y + 11, words, theme.SMALL, colour=theme.MUTED))
        x += 20 + text_width(words, theme.SMALL) + 18
    return y + 14


def _shared(gpus: Sequence[Mapping], parts: list[Markup], y: float) -> float:
    """Draw a row for each GPU that several ranks share: what runs on it together, and on behalf of each; return where they end."""
    if not gpus:
        return y
    columns = (330.0, 430.0, 530.0, 640.0, 660.0)
    parts.append(text(MARGIN, y + 36, "GPUs that several ranks share", 15, font_weight="bold"))
    heads = ("time", "kernels", "efficiency", "at once", "kernels of each rank/device")
    parts += [text(x, y + 60, words, theme.SMALL, "end" if x < columns[-1] else "start", theme.MUTED)
              for x, words in zip(columns, heads, strict=True)]  # fmt: skip
    y += 62
    for number, gpu in enumerate(gpus[:MOST_SHARED]):
        y += 20
        each = ", ".join(f"{name}: {theme.time(one['kernel_ns'])}" for name, one in gpu["devices"].items())
        cells = (
            theme.time(gpu["elapsed_ns"]),
            theme.time(gpu["kernel_ns"]),
            theme.ratio(gpu["parallel_efficiency"]),
            theme.time(gpu["at_once_ns"]),
        )
        parts.append(text(MARGIN, y, f"GPU {number + 1}, {len(gpu['devices'])} ranks", theme.SMALL))
        parts += [text(x, y, words, theme.SMALL, "end") for x, words in zip(columns, cells, strict=False)]
        parts.append(text(columns[-1], y, _fitting(each, WIDTH - MARGIN - columns[-1]), theme.SMALL, colour=theme.MUTED))
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
        "parallel: time of threads outside calls of the GPU runtime and MPI; offload: outside runtime calls; MPI = balance × communication"
    )
    parts.append(text(MARGIN, y + 19, words + (f"; {host['why']}" if host["why"] else ""), theme.SMALL, colour=theme.MUTED))
    left, y = WIDTH - MARGIN - len(FLAVOURS) * (len(RATIOS) * CELL + 14), y + 50
    parts += [text(left + (at + 0.5) * CELL, y - 7, short, theme.SMALL, "middle", theme.MUTED) for at, (_, short) in enumerate(HOST_RATIOS)]
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
        y, before = y + 8 * (group != before), group
        width = (left if tree else WIDTH) - MARGIN - 90
        parts.append(text(MARGIN, y + 16, _fitting(label, width), theme.SMALL, colour=theme.INK if tree else theme.MUTED))
        if not tree:
            y += ROW
            continue
        parts.append(text(left - 12, y + 16, theme.time(tree["elapsed_ns"]), theme.SMALL, "end", theme.MUTED))
        for at, (key, _) in enumerate(HOST_RATIOS):
            parts += _cell(tree[key], left + at * CELL, y, bold=at == 0)
        y += ROW
    return y


def lost_time(efficiency: Mapping, name: str) -> Markup:
    """Return the waterfall: device time from what is useful to all that there was, in GPU-seconds."""
    parts, total = efficiency["waterfall_ns"], efficiency["elapsed_ns"] * efficiency["device"]["n_devices"]
    if efficiency["why"] or not total:
        return notice("Device time", name, [f"Nothing was measured: {efficiency['why'] or 'no time passed'}."])
    left, right, top = 330.0, WIDTH - 170.0, 64.0
    scale = (right - left) / total
    drawn = [
        text(MARGIN, 26, "Where the device time goes", 15, font_weight="bold"),
        text(MARGIN, 45, f"{elided(name, 60)}: {theme.time(total)} of GPU time on {efficiency['device']['n_devices']} devices; "
             "each loss as if all devices were like the busiest", theme.SMALL, colour=theme.MUTED),
    ]  # fmt: skip
    done = 0
    for number, (key, words, colour) in enumerate(PARTS):
        y, value = top + 30 * number, parts[key]
        x, width = left + done * scale, value * scale
        drawn.append(text(left - 12, y + 15, words, theme.SMALL, "end"))
        drawn.append(tag("line", x1=x, x2=x, y1=y - 8 if number else y, y2=y + 22, stroke=theme.GRID))
        drawn.append(tag("rect", x=x, y=y, width=max(width, 0.6), height=22, fill=colour))
        label = f"{theme.time(value)}, {theme.percent(100 * value / total)}"
        drawn.append(text(x + width + 6, y + 15, label, theme.SMALL))
        done += value
    y = top + 30 * len(PARTS) + 4
    drawn.append(tag("line", x1=left, x2=right, y1=y, y2=y, stroke=theme.FAINT))
    name_, size = theme.time_unit(total)
    for tick in theme.nice_ticks(0.0, total / size, 6):
        drawn.append(text(left + tick * size * scale, y + 16, f"{theme.significant(tick)} {name_}", theme.SMALL, "middle", theme.MUTED))
    return document(WIDTH, y + 30, f"Device time of {name}", *drawn)


def rank_map(table: "pa.Table", name: str, note: str) -> Markup:
    """Return the map of rank by time: the share of each bin in which no kernel runs, light for none and dark for all of it."""
    rows = [row for row in table.select(["level", "rank", "bin", "start_ns", "elapsed_ns", "n_devices", "kernel_ns"]).to_pylist()
            if row["level"] == "bin" and row["rank"] is not None]  # fmt: skip
    if not rows:
        return notice("Efficiency over time", name, ["There are no events with times."])
    ranks, bins = sorted({row["rank"] for row in rows}), 1 + max(row["bin"] for row in rows)
    place = {rank: at for at, rank in enumerate(ranks)}
    values = np.zeros((len(ranks), bins))
    for row in rows:
        values[place[row["rank"]], row["bin"]] = 1 - row["kernel_ns"] / max(row["elapsed_ns"] * row["n_devices"], 1)
    together = -(-len(ranks) // MOST_ROWS)
    groups = [range(at, min(at + together, len(ranks))) for at in range(0, len(ranks), together)]
    shown = np.array([values[list(group)].mean(axis=0) for group in groups])
    labels = [_ranks(ranks[group[0]], ranks[group[-1]]) for group in groups]
    left, top = MARGIN + max(text_width(label, theme.SMALL) for label in labels) + 10, 66.0
    width, height = (WIDTH - MARGIN - left) / bins, min(max(170.0 / len(groups), 10.0), 34.0)
    drawn = [text(MARGIN, 26, "Time lost, over time and ranks", 15, font_weight="bold")]
    words = f"{name}: share of each slice of time in which no kernel runs" + (f", mean of {together} ranks a row" if together > 1 else "")
    drawn.append(text(MARGIN, 45, elided(f"{words}; {note}", 170), theme.SMALL, colour=theme.MUTED))
    drawn += _cells(shown, left, top, width, height)
    every = max(1, round(15 / height + 0.49))
    drawn += [text(left - 6, top + (at + 0.5) * height + 4, label, theme.SMALL, "end", theme.MUTED)
              for at, label in enumerate(labels) if at % every == 0]  # fmt: skip
    y, span = top + height * len(groups), bins * rows[0]["elapsed_ns"]
    unit, size = theme.time_unit(span)
    for tick in theme.nice_ticks(0.0, span / size, 8):
        x = left + tick * size / span * (WIDTH - MARGIN - left)
        anchor = "start" if tick == 0 else "end" if x > WIDTH - 50 else "middle"
        drawn.append(text(x, y + 17, f"{theme.significant(tick)} {unit}", theme.SMALL, anchor, theme.MUTED))
    drawn += [tag("rect", x=left + at * 8, y=y + 34, width=8.2, height=10, fill=theme.shade(at / 31)) for at in range(32)]
    drawn += [text(left + 256 * part / 4, y + 58, f"{25 * part} %", theme.SMALL, "middle" if part else "start", theme.MUTED)
              for part in range(5)]  # fmt: skip
    drawn.append(text(left + 290, y + 43, "without a kernel; 0 %: kernels run all the time", theme.SMALL, colour=theme.MUTED))
    return document(WIDTH, y + 70, f"Time lost over time and ranks of {name}", *drawn)


def _ranks(first: int, last: int) -> str:
    return f"rank {first}" if first == last else f"ranks {first}–{last}"


def _cells(values: np.ndarray, left: float, top: float, width: float, height: float) -> list[Markup]:
    """Return cells of one shade as one path."""
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            place = f"M{left + column * width:.1f} {top + row * height:.1f}h{width + 0.15:.2f}v{height - 1:.1f}h-{width + 0.15:.2f}z"
            paths.setdefault(round(31 * min(max(value, 0.0), 1.0)), []).append(place)
    return [tag("path", d="".join(places), fill=theme.shade(level / 31)) for level, places in sorted(paths.items())]


def aligned_by(clocks: Mapping) -> str:
    """Return in a few words how ranks were put on one time line."""
    residual = clocks["residual_ns"]
    ways = {"collective_ends": "clocks aligned by ends of collectives", "session_start": "clocks by session starts, unchecked",
            "one_export": "one clock", "zero": "each export begins at 0: ranks are not aligned"}  # fmt: skip
    return ways.get(clocks["method"], clocks["method"]) + (f", residual {theme.time(residual)}" if residual is not None else "")


def summary(efficiency: Mapping) -> Sequence[str]:
    """Return sentences: what costs most, and what stands out of idle time, launches and copies."""
    if efficiency["why"]:
        return [f"Nothing was measured: {efficiency['why']}."]
    parts, tree = efficiency["waterfall_ns"], efficiency["device"]
    total = sum(parts.values())
    words = {key: name for key, name, _ in PARTS}
    worst = max((key for key, _, _ in PARTS[1:]), key=lambda key: parts[key])
    found = [f"Kernels run for {theme.percent(100 * (tree['parallel_efficiency'] or 0))} of the time of {tree['n_devices']} devices; "
             f"the largest loss is {words[worst].split(':')[0]}, {theme.percent(100 * parts[worst] / total)}."]  # fmt: skip
    sums = {key: sum(one[f"idle_{key}_ns"] for one in efficiency["breakdown"].values()) for key in ("host", "kernel_wait", "other")}
    idle = sum(sums.values())
    if idle:
        share = {key: theme.percent(100 * value / idle) for key, value in sums.items()}
        found.append(f"Of the idle time {share['host']} waits for the host, {share['kernel_wait']} lies between two kernels, "
                     f"{share['other']} has other reasons.")  # fmt: skip
    path = efficiency["launch_path"]
    if path["small_share"]:
        found.append(f"{theme.percent(100 * path['small_share'])} of the launches are shorter than {theme.time(path['small_kernel_ns'])}, "
                     f"with {theme.percent(100 * path['small_time_share'])} of the kernel time.")  # fmt: skip
    return [*found, *_copies(efficiency["copies"]), *[f"{note[:1].upper()}{note[1:]}." for note in efficiency["notes"]]]


def _copies(copies: Sequence[Mapping]) -> list[str]:
    """Return one sentence on the direction over the bus that takes most time."""
    times: dict[str, list[Mapping]] = {}
    for row in copies:
        if row["gb_per_s"] is not None and row["kind"] in (1, 2):
            times.setdefault(row["direction"], []).append(row)
    if not times:
        return []
    direction, rows = max(times.items(), key=lambda item: sum(row["duration_ns"] for row in item[1]))
    rate = sum(row["bytes"] for row in rows) / max(sum(row["sized_ns"] for row in rows), 1)
    limit = next((row for row in rows if row["limit_gb_per_s"]), None)
    beside = f", {theme.percent(100 * rate / limit['limit_gb_per_s'])} of {limit['bus']}" if limit else ""
    return [f"Copies {direction} move {theme.significant(rate)} GB/s{beside}."]
