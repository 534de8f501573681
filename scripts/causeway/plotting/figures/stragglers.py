"""Which rank: who waits for whom, and components of variance."""

from collections.abc import Mapping

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width, wrapped
from causeway.plotting.drawing.svg import MARGIN, document, text

WIDTH = 1180.0
MOST_RANKS = 32
"""Mean deviations of log durations below this are not worth a sentence."""
PARTS = tuple((key, key, colour) for key, colour in zip(VARIANCE_PARTS, theme.PARTS, strict=True))
"""Components of variance: key, words, colour."""


def sentences(stragglers: Mapping) -> list[str]:
    """Return the verdict of each communicator, why its stragglers are late, and what could not be matched."""
    found = []
    for group in stragglers["groups"]:
        label = f"Collectives of sequence {group['sequence']}" if group.get("sequence") else "Collectives"
        if group["communicator"] is not None:
            label = f"Communicator {elided(group['communicator'], 40)}"
        found.append(
            f"{label}, {group['collectives']:,} on {group['n_ranks']} ranks: {group['verdict']}; {group['reason']}."
        )
        found += [
            f"Rank {entry['rank']}, {entry['pattern']}: {_why(entry['why'])}."
            for entry in group["ranks"]
            if "why" in entry
        ]
    return found + [f"{note[:1].upper()}{note[1:]}." for note in stragglers["notes"]]


def _why(why: Mapping) -> str:
    if why["cause"] == "other_ranks":
        excess = formatting.time(max(why["excess_communication_ns"], 0))
        return f"it waits {excess} more for ranks of other communicators before a late collective"
    if why["cause"] != "compute":
        excess = formatting.time(max(why["excess_idle_ns" if why["cause"] == "host" else "excess_copies_ns"], 0))
        if why["cause"] == "copies":
            return f"its device copies for {excess} more before a late collective"
        return f"its device is idle for {excess} more before a late collective: it is launched late" + _clock(
            why["clock"]
        )
    words = f"its kernels run for {formatting.time(max(why['excess_compute_ns'], 0))} more before a late collective"
    if why["kernels"]:
        words += f", most of all {_kernel(why['kernels'][0])}"
    if why["only_here"]:
        words += f"; {elided(why['only_here'][0]['kernel'], 50)} runs on no other rank then"
    return words + _clock(why["clock"])


def _kernel(kernel: Mapping) -> str:
    """Return which kernel is slower, and whether in the same launch configurations or because of other ones."""
    ratio = kernel["mean_ns"] / max(kernel["others_mean_ns"], 1)
    words = f"{elided(kernel['kernel'], 50)}, {formatting.percent(100 * (ratio - 1))} slower than on other ranks"
    if 2 * kernel["same_configuration_ns"] < kernel["excess_ns"]:
        return f"{words}, because it is launched in other configurations"
    if not kernel["configurations"]:
        return words
    first = kernel["configurations"][0]
    sizes = [
        " × ".join(str(first[f"{part}_{axis}"]) for axis in "xyz" if first[f"{part}_{axis}"] is not None)
        for part in ("grid", "block")
    ]
    where = ", ".join(f"{part} {size}" for part, size in zip(("grid", "block"), sizes, strict=True) if size)
    return f"{words} in the same configuration" + (f" ({where})" if where else "")


def _clock(clock: Mapping | None) -> str:
    if not clock or not clock["slower"]:
        return ""
    return (
        f"; its {clock['metric'].removesuffix('_hz')} is"
        f" {formatting.percent(100 * (1 - clock['mean_hz'] / clock['others_hz']))} lower"
    )


def draw_stragglers(stragglers: Mapping, name: str) -> Markup:
    """Return the matrix of waits of the largest communicator, where somebody is waited for, and the components of
    variance as bars.
    """
    groups = sorted(stragglers["groups"], key=lambda group: -group["waiting_ns"])
    parts = [text(MARGIN, 26, "Which rank", 15, font_weight="bold")]
    y = 52.0
    for sentence in sentences(stragglers)[:6]:
        for line in wrapped(sentence, WIDTH - 2 * MARGIN, theme.SMALL):
            parts.append(text(MARGIN, y, line, theme.SMALL, colour=theme.MUTED))
            y += 17
    if groups and any(entry["pattern"] != "none" for entry in groups[0]["ranks"]):
        y = _matrix(groups[0], parts, y + 12)
    elif groups:
        parts.append(
            text(MARGIN, y + 8, "No rank is named as a straggler, so there is no table of who waits for whom.")
        )
        y += 16
    return document(
        WIDTH, _variance(stragglers["variance"], parts, y + 14), f"Stragglers and variance of {name}", *parts
    )


def _matrix(group: Mapping, parts: list[Markup], top: float) -> float:
    """Draw who waits for whom; return where it ends."""
    waits = group["matrix_ns"]
    ranks = group["ranks"]
    order = sorted(range(len(ranks)), key=lambda at: -ranks[at]["waiting_for_it_ns"])[:MOST_RANKS]
    shown = sorted(order)
    largest = max((waits[i][j] for i in shown for j in shown), default=0)
    cell = min(max(420.0 / len(shown), 15.0), 34.0)
    left = MARGIN + 90
    high = top + 40
    parts.append(text(MARGIN, top + 4, "Rows wait for columns", theme.SIZE, font_weight="bold"))
    taken: list[tuple[float, float]] = []
    for place, j in sorted(
        enumerate(shown), key=lambda item: (ranks[item[1]]["pattern"] == "none", item[0])
    ):  # stragglers first
        middle = left + (place + 0.5) * cell
        half = text_width(str(ranks[j]["rank"]), theme.SMALL) / 2 + 3
        if all(middle + half <= low or middle - half >= high_ for low, high_ in taken):
            taken.append((middle - half, middle + half))
            parts.append(text(middle, high - 6, ranks[j]["rank"], theme.SMALL, "middle", theme.MUTED))
    for row, i in enumerate(shown):
        parts.append(
            text(left - 8, high + (row + 0.5) * cell + 4, f"rank {ranks[i]['rank']}", theme.SMALL, "end", theme.MUTED)
        )
        for column, j in enumerate(shown):
            value = waits[i][j]
            fill = theme.shade(value / largest) if value else "#f4f6f8"
            place = {"x": left + column * cell, "y": high + row * cell, "width": cell - 1, "height": cell - 1}
            parts.append(
                tag(
                    "rect",
                    tag("title", f"rank {ranks[i]['rank']} for rank {ranks[j]['rank']}: {formatting.time(value)}"),
                    fill=fill,
                    **place,
                )
            )
    x = left + cell * len(shown) + 60
    parts.append(text(x, top + 4, "Share of collectives in which a rank is last", theme.SIZE, font_weight="bold"))
    for row, i in enumerate(shown):
        y = high + row * cell
        share = ranks[i]["last_share"]
        parts.append(
            tag(
                "rect",
                x=x,
                y=y + 2,
                width=max(240 * share, 0.6),
                height=min(cell - 4, 16),
                fill=theme.CLASSES["communication"],
            )
        )
        label = f"{formatting.percent(100 * share)} {ranks[i]['pattern'] if ranks[i]['pattern'] != 'none' else ''}"
        parts.append(text(x + 240 * share + 6, y + min(cell - 4, 16), label, theme.SMALL))
    bottom = high + cell * len(shown) + 12
    words = f"white: nobody waited; darkest: {formatting.time(largest)}"
    words += f"; the {len(shown)} of {len(ranks)} ranks that are waited for longest" if len(ranks) > len(shown) else ""
    parts.append(text(left, bottom + 8, words, theme.SMALL, colour=theme.MUTED))
    return bottom + 16


def _variance(variance: Mapping | None, parts: list[Markup], top: float) -> float:
    """Draw the components of variance, of all launches and within configurations; return the figure's height."""
    if variance is None:
        return top + MARGIN
    parts.append(text(MARGIN, top + 12, "Components of the variance of log durations", theme.SIZE, font_weight="bold"))
    words = (
        f"{variance['launches']:,} launches, {variance['configurations']:,} configurations; outliers cut at four scales"
    )
    parts.append(text(MARGIN, top + 30, words, theme.SMALL, colour=theme.MUTED))
    left = MARGIN + 170
    y = top + 42
    for label, shares in (("all launches", variance["shares"]), ("within configurations", variance["within"])):
        parts.append(text(left - 10, y + 15, label, theme.SMALL, "end"))
        x = left
        for key, _, colour in PARTS:
            value = (shares[key]["value"] or 0) * (WIDTH - MARGIN - left) if key in shares else 0
            parts.append(tag("rect", x=x, y=y, width=value, height=22, fill=colour, stroke=theme.PAPER))
            x += value
        if x == left:
            parts.append(text(left, y + 15, "nothing varies", theme.SMALL, colour=theme.MUTED))
        y += 28
    for x, words in ((left + 245, "of all launches"), (left + 420, "within configurations")):
        parts.append(text(x, y + 16, words, theme.SMALL, "end", theme.MUTED))
    y += 36
    for key, label, colour in PARTS:
        parts.append(tag("rect", x=left, y=y - 10, width=10, height=10, fill=colour))
        parts.append(text(left + 16, y, label, theme.SMALL))
        for x, shares in ((left + 245, variance["shares"]), (left + 420, variance["within"])):
            if key in shares:
                parts.append(text(x, y, _share(shares[key]), theme.SMALL, "end"))
        y += 18
    return y + 4


def _share(share: Mapping) -> str:
    return (
        "cannot be told"
        if share["value"] is None
        else formatting.percent(*(100 * share[end] for end in ("value", "low", "high")))
    )
