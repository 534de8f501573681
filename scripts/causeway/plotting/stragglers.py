"""Which rank: who waits for whom, and components of variance, drawn and in words."""

from collections.abc import Mapping, Sequence

from causeway.plotting import theme
from causeway.plotting.marks import MARGIN, document, text
from causeway.plotting.markup import Markup, tag
from causeway.plotting.names import elided

WIDTH = 1180.0
MOST_RANKS = 32
PARTS = (
    ("configuration", "configuration", "#3b6fb6"),
    ("node", "node", "#8d6bb1"),
    ("rank", "rank", "#e08214"),
    ("device", "device", "#f5ad66"),
    ("time", "time", "#1b9e8a"),
    ("rest", "rest: within a configuration", "#c9ced6"),
)


def sentences(stragglers: Mapping) -> list[str]:
    """Return the verdict of each communicator, why its stragglers are late, and what could not be matched."""
    found = []
    for group in stragglers["groups"]:
        label = "Collectives" if group["communicator"] is None else f"Communicator {elided(group['communicator'], 40)}"
        found.append(f"{label}, {group['collectives']:,} on {group['n_ranks']} ranks: {group['verdict']}; {group['reason']}.")
        found += [f"Rank {entry['rank']}, {entry['pattern']}: {_why(entry['why'])}." for entry in group["ranks"] if "why" in entry]
    return found + [f"{note[:1].upper()}{note[1:]}." for note in stragglers["notes"]]


def _why(why: Mapping) -> str:
    if why["cause"] == "host":
        return f"its device is idle for {theme.time(max(why['excess_idle_ns'], 0))} more before a late collective: it is launched late"
    words = f"its kernels run for {theme.time(max(why['excess_compute_ns'], 0))} more before a late collective"
    if why["kernels"]:
        first = why["kernels"][0]
        ratio = first["mean_ns"] / max(first["others_mean_ns"], 1)
        words += f", most of all {elided(first['kernel'], 50)}, {theme.percent(100 * (ratio - 1))} slower than on other ranks"
    clock = why["clock"]
    return words + (
        f"; its clock is {theme.percent(100 * (1 - clock['mean_hz'] / clock['others_hz']))} lower" if clock and clock["slower"] else ""
    )


def drawing(stragglers: Mapping, name: str) -> Markup:
    """Return the matrix of waits of the largest communicator, and the components of variance as one bar."""
    groups = sorted(stragglers["groups"], key=lambda group: -group["waiting_ns"])
    parts = [text(MARGIN, 26, "Which rank", 15, font_weight="bold")]
    y = 52.0
    for sentence in sentences(stragglers)[:6]:
        parts.append(text(MARGIN, y, elided(sentence, 165), theme.SMALL, colour=theme.MUTED))
        y += 17
    if groups:
        y = _matrix(groups[0], parts, y + 12)
    return document(WIDTH, _variance(stragglers["variance"], parts, y + 14), f"Stragglers and variance of {name}", *parts)


def _matrix(group: Mapping, parts: list[Markup], top: float) -> float:
    """Draw who waits for whom; return where it ends."""
    waits, ranks = group["matrix_ns"], group["ranks"]
    order = sorted(range(len(ranks)), key=lambda at: -ranks[at]["waiting_for_it_ns"])[:MOST_RANKS]
    shown = sorted(order)
    largest = max((waits[i][j] for i in shown for j in shown), default=0)
    cell = min(max(420.0 / len(shown), 13.0), 34.0)
    left, high = MARGIN + 90, top + 40
    parts.append(text(MARGIN, top + 4, "Rows wait for columns", theme.SIZE, font_weight="bold"))
    for place, j in enumerate(shown):
        if place % max(1, round(22 / cell + 0.4)) == 0:
            parts.append(text(left + (place + 0.5) * cell, high - 6, ranks[j]["rank"], theme.SMALL, "middle", theme.MUTED))
    for row, i in enumerate(shown):
        if cell >= 14 or row % 2 == 0:
            parts.append(text(left - 8, high + (row + 0.5) * cell + 4, f"rank {ranks[i]['rank']}", theme.SMALL, "end", theme.MUTED))
        for column, j in enumerate(shown):
            value = waits[i][j]
            fill = theme.shade(value / largest) if value else "#f4f6f8"
            place = {"x": left + column * cell, "y": high + row * cell, "width": cell - 1, "height": cell - 1}
            parts.append(
                tag("rect", tag("title", f"rank {ranks[i]['rank']} for rank {ranks[j]['rank']}: {theme.time(value)}"), fill=fill, **place)
            )
    x = left + cell * len(shown) + 60
    parts.append(text(x, top + 4, "Share of collectives in which a rank is the straggler", theme.SIZE, font_weight="bold"))
    for row, i in enumerate(shown):
        y = high + row * cell
        if cell >= 14 or row % 2 == 0:
            share = ranks[i]["share"]
            parts.append(
                tag("rect", x=x, y=y + 2, width=max(240 * share, 0.6), height=min(cell - 4, 16), fill=theme.CLASSES["communication"])
            )
            label = f"{theme.percent(100 * share)} {ranks[i]['pattern'] if ranks[i]['pattern'] != 'none' else ''}"
            parts.append(text(x + 240 * share + 6, y + min(cell - 4, 16), label, theme.SMALL))
    bottom = high + cell * len(shown) + 12
    words = (
        f"white: nobody waited; darkest: {theme.time(largest)}"
        if largest
        else "no rank was named as a straggler, so nobody waits for anybody"
    )
    parts.append(text(left, bottom + 8, words, theme.SMALL, colour=theme.MUTED))
    return bottom + 16


def _variance(variance: Mapping | None, parts: list[Markup], top: float) -> float:
    """Draw the components of variance; return the figure's height."""
    if variance is None:
        return top + MARGIN
    parts.append(text(MARGIN, top + 12, "Components of the variance of log durations", theme.SIZE, font_weight="bold"))
    words = f"{variance['launches']:,} launches, {variance['configurations']:,} configurations; outliers cut at four scales"
    parts.append(text(MARGIN, top + 30, words, theme.SMALL, colour=theme.MUTED))
    x, y, width = MARGIN, top + 40, WIDTH - 2 * MARGIN
    for key, _, colour in PARTS:
        value = variance["shares"][key]["value"] or 0
        parts.append(tag("rect", x=x, y=y, width=width * value, height=22, fill=colour))
        x += width * value
    x, y = MARGIN, y + 42
    for key, label, colour in PARTS:
        share = variance["shares"][key]
        known = "cannot be told" if share["value"] is None else theme.percent(*(100 * share[end] for end in ("value", "low", "high")))
        line = f"{label} {known}"
        if x + 8 * len(line) > WIDTH - MARGIN:
            x, y = MARGIN, y + 20
        parts.append(tag("rect", x=x, y=y - 10, width=10, height=10, fill=colour))
        parts.append(text(x + 15, y, line, theme.SMALL))
        x += 15 + 7.4 * len(line) + 18
    return y + MARGIN


def facts(variance: Mapping | None) -> Sequence[str]:
    """Return sentences on time: trend and change points."""
    if variance is None:
        return []
    trend, changes = variance["trend_per_hour"], variance["change_points_ns"]
    found = []
    if trend["low"] is not None and (trend["low"] > 0 or trend["high"] < 0):
        words = "grow" if trend["value"] > 0 else "shrink"
        found.append(f"Durations {words} over time, by {theme.significant(abs(trend['value']))} in their logarithm per hour.")
    if changes:
        found.append(f"Their level changes {len(changes)} time{'s' if len(changes) > 1 else ''} during the run.")
    return found
