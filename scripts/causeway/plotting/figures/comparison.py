"""Two datasets side by side: changes by kernel with intervals and noise floor, the way from one total to the other,
ratios of both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import FOR_THE_BETTER, FOR_THE_WORSE, GONE, NEW, SAME
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.kernel_labels import full_name, short_names
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

WORSE = theme.DIVERGING[-2]
BETTER = theme.DIVERGING[1]
UNDECIDED = theme.UNKNOWN
COLOURS = {
    **dict.fromkeys(FOR_THE_WORSE, WORSE),
    **dict.fromkeys(FOR_THE_BETTER, BETTER),
    SAME: theme.STATUS["ok"],
}
"""Orange for worse, blue for better, green for the same, grey where the data do not decide; the words beside say it,
too.
"""
NOT_COMPARED = "the runs were not compared"
ROWS = 25
MOST_RUNS = 60
CHANGE_AXIS = "change, % (left: faster, right: slower)"
STEPS = 8
PER_LAUNCH = "per launch: "
"""How the labels of steps begin that kernels of both runs make by longer or shorter launches."""
ROW = 26.0
PLOT = 380.0
LABEL = 44
FLOOR = "#e3e7ec"


def pair_words(comparison: Mapping) -> str:
    """Return the pair in words: `before → after`."""
    return f"{comparison['baseline']['dataset']} → {comparison['candidate']['dataset']}"


def unit_of(row: Mapping) -> str:
    """Return the unit of a row's change."""
    return "points" if row["metric"] == "efficiency" else "%"


def change_words(row: Mapping) -> str:
    """Return a change with its interval in words: `+4.0 % [+3.8, +4.2]`."""
    if row["change_percent"] is None:
        return "–"
    change, *ends = formatting.signed(row["change_percent"], row["low_percent"], row["high_percent"])
    words = f"{change} {unit_of(row)}"
    return f"{words} [{ends[0]}, {ends[1]}]" if ends else words


def of_kernels(rows: Sequence[Mapping], metric: str = "time_per_launch") -> list[Mapping]:
    """Return the rows of kernels on both sides, those with the most time first."""
    found = [
        row
        for row in rows
        if row["level"] == "kernel" and row["metric"] == metric and row["change_percent"] is not None
    ]
    return sorted(found, key=lambda row: (-max(row["baseline_total_ns"], row["candidate_total_ns"]), row["candidate"]))


def _head(title: str, below: str) -> list[Markup]:
    return [text(MARGIN, 24, title, 15, font_weight="bold"), text(MARGIN, 43, below, theme.SMALL, colour=theme.MUTED)]


def draw_changes(comparison: Mapping, rows: Sequence[Mapping]) -> Markup:
    """Return the change of every kernel's time for the same launches, with interval and noise floor, and of the whole
    run above.

    Parameters
    ----------
    comparison : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`.
    """
    title = f"Time for the same launches, {pair_words(comparison)}"
    if comparison["why"] is not None:
        return notice(title, NOT_COMPARED, [comparison["why"]])
    kernels = of_kernels(rows)
    whole = [row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch"]
    shown = [*whole, *kernels[:ROWS]]
    below = f"change in percent; whole run, then the {len(kernels[:ROWS])} kernels with the most time"
    below += f" of {len(kernels)}" if len(kernels) > ROWS else ""
    if not shown:
        return notice(title, below, ["No kernel is on both sides with launches that take time."])
    short = short_names([row["candidate"] for row in kernels[:ROWS]], LABEL)
    labels = [row["candidate"] if row["level"] == "run" else short[row["candidate"]] for row in shown]
    return _forest(shown, labels, title, below, CHANGE_AXIS)


def draw_history(comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]]) -> Markup:
    """Return the change of the whole run's time for the same launches, one row for each run against one baseline.

    Parameters
    ----------
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of pairs with one baseline; the last `MOST_RUNS` are
        drawn.
    """
    title = f"Time for the same launches, against {comparisons[0][0]['baseline']['dataset']}"
    shown = [
        (row, document["candidate"]["dataset"])
        for document, rows in comparisons
        for row in rows
        if row["level"] == "run" and row["metric"] == "time_per_launch" and row["change_percent"] is not None
    ]
    below = f"change in percent; {len(shown[-MOST_RUNS:])} of {len(comparisons)} runs, the latest last"
    if not shown:
        return notice(title, below, ["No run has launches in common with the baseline that take time."])
    rows, runs = zip(*shown[-MOST_RUNS:], strict=True)
    return _forest(rows, [elided(run, LABEL) for run in runs], title, below, CHANGE_AXIS)


def _reach(rows: Sequence[Mapping]) -> float:
    """Return the largest change that the axis shows: all estimates, and intervals unless a few wide ones would
    squeeze the rest.
    """
    sizes = sorted(
        max(abs(row["low_percent"]), abs(row["high_percent"])) for row in rows if row["low_percent"] is not None
    )
    most = max(abs(row["change_percent"]) for row in rows)
    typical = sizes[int(0.8 * (len(sizes) - 1))] if sizes else 0.0
    return 1.08 * max(most, min(typical, 3 * most), 0.1)


def _forest(rows: Sequence[Mapping], labels: Sequence[str], title: str, below: str, axis: str) -> Markup:
    reach = _reach(rows)
    left = MARGIN + max(text_width(label, theme.SIZE) for label in labels) + 14
    words = [f"{change_words(row)}  {row['verdict']}" for row in rows]
    top = 66.0
    bottom = 66.0 + ROW * len(rows)

    def x(value: float) -> float:
        return left + PLOT * (min(max(value, -reach), reach) + reach) / (2 * reach)

    ticks = [tick for tick in theme.nice_ticks(-reach, reach, 6) if abs(tick) <= reach]
    parts: list[object] = []
    drawn = [
        _row(row, label, said, x, reach, top + ROW * (place + 0.5))
        for place, (row, label, said) in enumerate(zip(rows, labels, words, strict=True))
    ]
    parts += [one[0] for one in drawn]
    parts += [tag("line", x1=x(tick), x2=x(tick), y1=top - 4, y2=bottom, stroke=theme.GRID) for tick in ticks]
    parts += [
        text(x(tick), bottom + 16, formatting.significant(round(tick, 9)), theme.SMALL, "middle", theme.MUTED)
        for tick in ticks
    ]
    parts.append(tag("line", x1=x(0.0), x2=x(0.0), y1=top - 4, y2=bottom, stroke=theme.FAINT, stroke_width=1.4))
    parts += [one[1] for one in drawn]
    parts += [
        text(
            left - 10,
            top + ROW * (place + 0.5) + 4.5,
            label,
            anchor="end",
            font_weight="bold" if rows[place]["level"] == "run" else None,
        )
        for place, label in enumerate(labels)
    ]
    key = "dot: estimate; whisker: interval (an arrow: it goes on); grey band: noise floor; hollow: no interval"
    foot = [
        text(left + PLOT / 2, bottom + 36, axis, theme.SMALL, "middle", theme.MUTED),
        text(MARGIN, bottom + 60, key, theme.SMALL, colour=theme.MUTED),
    ]
    width = (
        max(
            left + PLOT + 14 + max(text_width(said, theme.SMALL) for said in words),
            *(
                text_width(line, size, bold=size > 14) + MARGIN
                for line, size in ((title, 15), (below, theme.SMALL), (key, theme.SMALL))
            ),
        )
        + MARGIN
    )
    return document(width, bottom + 74, title, _head(title, below), parts, foot)


def _row(
    row: Mapping, label: str, said: str, x: Callable[[float], float], reach: float, y: float
) -> tuple[Markup | None, Markup]:
    """Return the band of a row, which lies behind the grid, and what stands before it."""
    band = None
    colour = COLOURS.get(row["verdict"], UNDECIDED)
    if row["floor_percent"] is not None:
        low = x(-row["floor_percent"])
        high = x(row["floor_percent"])
        band = tag("rect", x=low, y=y - 9, width=max(high - low, 1.0), height=18, fill=FLOOR)
    parts: list[object] = []
    if row["low_percent"] is not None:
        low = x(row["low_percent"])
        high = x(row["high_percent"])
        parts.append(tag("line", x1=low, x2=high, y1=y, y2=y, stroke=colour, stroke_width=2.2))
        for end, place, way in ((row["low_percent"], low, 1), (row["high_percent"], high, -1)):
            cut = abs(end) > reach
            mark = (
                f"M{place + way * 6:.1f} {y - 4:.1f}L{place:.1f} {y:.1f}L{place + way * 6:.1f} {y + 4:.1f}"
                if cut
                else f"M{place:.1f} {y - 4:.1f}v8"
            )
            parts.append(tag("path", d=mark, fill="none", stroke=colour, stroke_width=1.6))
    solid = row["low_percent"] is not None
    parts.append(
        tag(
            "circle",
            cx=x(row["change_percent"]),
            cy=y,
            r=4.6,
            fill=colour if solid else theme.PAPER,
            stroke=colour,
            stroke_width=1.6,
        )
    )
    parts.append(text(x(reach) + 14, y + 4.5, said, theme.SMALL, colour=theme.MUTED))
    floor = "" if row["floor_percent"] is None else f"; noise floor {formatting.significant(row['floor_percent'], 2)} %"
    hover = f"{full_name(row['candidate'])}: {said}; {row['reason']}{floor}"
    return band, tag("g", tag("title", hover), *parts)


def steps_of(comparison: Mapping) -> list[tuple[str, int, str]]:
    """Return the steps from the baseline's total to the candidate's: (label, ns, full name or '')."""
    parts = sorted(comparison["decomposition"], key=lambda row: -abs(row["time_ns"]))
    own = [row for row in parts[:STEPS] if row["time_ns"]]
    short = short_names([row["kernel"] for row in own], 34)
    steps = [(f"{PER_LAUNCH}{short[row['kernel']]}", row["time_ns"], row["kernel"]) for row in own]
    rest = parts[len(own) :]
    if len(rest) and any(row["time_ns"] for row in rest):
        steps.append((f"{PER_LAUNCH}{len(rest)} other kernels", sum(row["time_ns"] for row in rest), ""))
    change = comparison["change_ns"]
    lone = {how: sum(row["lone_ns"] for row in parts if row["match"] == how) for how in (NEW, GONE)}
    others = (("more or fewer launches", change["launches_ns"]), ("other configurations", change["configurations_ns"]))
    others += (("new kernels", lone[NEW]), ("gone kernels", lone[GONE]))
    return steps + [(label, value, "") for label, value in others if value]


@dataclass(frozen=True, kw_only=True)
class _TotalsBar:
    """A bar of `draw_totals` from one sum of time, ns (None: the left end of the axis), to another, with the words
    beside it and those of its hover.
    """

    label: str
    begin: int | None
    end: int
    colour: str
    said: str
    hover: str


def _bars_of_totals(comparison: Mapping) -> list[_TotalsBar]:
    """Return the total of the baseline, the steps, each from where the one before ends, and the candidate's total."""
    before, after = (comparison[side]["gpu_time_ns"] for side in ("baseline", "candidate"))

    def total(side: str, end: int, said: str) -> _TotalsBar:
        label = elided(f"{comparison[side]['dataset']} ({side})", 50)
        hover = f"{label}: {said}"
        return _TotalsBar(label=label, begin=None, end=end, colour=theme.SEQUENTIAL[6], said=said, hover=hover)

    bars = [total("baseline", before, formatting.time(before))]
    for step, value, whole in steps_of(comparison):
        label = elided(step, 50)
        (percent,) = formatting.signed(100 * value / before)
        said = f"{'+' if value > 0 else '−'}{formatting.time(abs(value))} ({percent} %)"
        begin = bars[-1].end
        colour = WORSE if value > 0 else BETTER
        hover = f"{full_name(whole) or label}: {said}"
        bars.append(_TotalsBar(label=label, begin=begin, end=begin + value, colour=colour, said=said, hover=hover))
    (percent,) = formatting.signed(100 * (after - before) / before)
    return [*bars, total("candidate", after, f"{formatting.time(after)} ({percent} %)")]


def draw_totals(comparison: Mapping) -> Markup:
    """Return the way from the baseline's GPU time to the candidate's, step by step."""
    title = f"Where the difference in GPU time comes from, {pair_words(comparison)}"
    if comparison["why"] is not None:
        return notice(title, NOT_COMPARED, [comparison["why"]])
    bars = _bars_of_totals(comparison)
    sums = [bar.end for bar in bars[:-1]]
    unit, size = formatting.time_unit(max(sums))
    span = max(sums) - min(sums) or 0.02 * max(sums) or 1
    broken = min(sums) > 3 * span  # a difference of a percent cannot be seen on an axis from zero
    low, high = (min(sums) - 0.25 * span, max(sums) + 0.1 * span) if broken else (0.0, 1.06 * max(sums))
    left = MARGIN + max(text_width(bar.label, theme.SIZE) for bar in bars) + 14
    top = 66.0
    bottom = top + ROW * len(bars)

    def x(value: float) -> float:
        return left + PLOT * (value - low) / (high - low)

    ticks = theme.nice_ticks(low / size, high / size, 5)
    parts: list[object] = [
        tag("line", x1=x(t * size), x2=x(t * size), y1=top - 4, y2=bottom, stroke=theme.GRID) for t in ticks
    ]
    parts += [
        text(x(t * size), bottom + 16, formatting.significant(round(t, 9), 5), theme.SMALL, "middle", theme.MUTED)
        for t in ticks
    ]
    for place, bar in enumerate(bars):
        y = top + ROW * (place + 0.5)
        first, last = sorted((x(low if bar.begin is None else bar.begin), x(bar.end)))
        box = tag("rect", x=first, y=y - 8, width=max(last - first, 1.2), height=16, fill=bar.colour)
        said = text(left + PLOT + 12, y + 4.5, bar.said, theme.SMALL, colour=theme.MUTED)
        parts.append(tag("g", tag("title", bar.hover), box, said))
        if bar.begin is not None:
            y = top + ROW * place
            parts.append(tag("line", x1=x(bar.begin), x2=x(bar.begin), y1=y - 5, y2=y + 5, stroke=theme.FAINT))
    parts += [
        text(left - 10, top + ROW * (place + 0.5) + 4.5, bar.label, anchor="end") for place, bar in enumerate(bars)
    ]
    axis = f"sum of the durations of all launches, {unit}" + (" (the axis does not begin at zero)" if broken else "")
    below = (
        "exact sums: launches that take longer or shorter, by kernel; then how many launches, and kernels of one side"
        " alone"
    )
    width = MARGIN + max(
        left + PLOT + 12 + max(text_width(bar.said, theme.SMALL) for bar in bars),
        text_width(title, 15, bold=True) + MARGIN,
        text_width(below, theme.SMALL) + MARGIN,
    )
    foot = text(left + PLOT / 2, bottom + 36, axis, theme.SMALL, "middle", theme.MUTED)
    return document(width, bottom + 50, title, _head(title, below), parts, foot)


def draw_ratios(comparison: Mapping, rows: Sequence[Mapping]) -> Markup:
    """Return efficiency and variability of both sides, whole and by rank, as dumbbells from the baseline to the
    candidate.
    """
    title = f"Efficiency and variability, {pair_words(comparison)}"
    below = "hollow: baseline, filled: candidate; efficiency: more is better, variability: less is better"
    found = [
        row
        for metric in ("efficiency", "variability")
        for row in rows
        if row["metric"] == metric and row["level"] in ("run", "rank")
    ]
    shown = [
        row
        for metric in ("efficiency", "variability")
        for row in [one for one in found if one["metric"] == metric][: ROWS // 2]
    ]
    if not shown:
        return notice(title, below, comparison["not_compared"] or ["Neither was measured on both sides."])
    labels = [f"{row['metric']}, {'rank ' if row['level'] == 'rank' else ''}{row['candidate']}" for row in shown]
    words = [
        f"{' → '.join(formatting.ratio_three_decimals(row[f'{side}_value']) for side in ('baseline', 'candidate'))}"
        f"   {change_words(row)}  {row['verdict']}"
        for row in shown
    ]
    left = MARGIN + max(text_width(label, theme.SIZE) for label in labels) + 14
    most = max(max(row["baseline_value"], row["candidate_value"]) for row in shown)
    high = 1.0 if most <= 1.0 else 1.05 * most
    top = 66.0
    bottom = 66.0 + ROW * len(shown)

    def x(value: float) -> float:
        return left + PLOT * value / high

    ticks = theme.nice_ticks(0.0, high, 5)
    parts: list[object] = [tag("line", x1=x(t), x2=x(t), y1=top - 4, y2=bottom, stroke=theme.GRID) for t in ticks]
    parts += [text(x(t), bottom + 16, formatting.significant(t), theme.SMALL, "middle", theme.MUTED) for t in ticks]
    for place, (row, label, said) in enumerate(zip(shown, labels, words, strict=True)):
        y = top + ROW * (place + 0.5)
        colour = COLOURS.get(row["verdict"], UNDECIDED)
        before = x(row["baseline_value"])
        after = x(row["candidate_value"])
        line = tag("line", x1=before, x2=after, y1=y, y2=y, stroke=colour, stroke_width=2.2)
        dots = [
            tag("circle", cx=place_x, cy=y, r=5, fill=fill, stroke=colour, stroke_width=1.6)
            for place_x, fill in ((before, theme.PAPER), (after, colour))
        ]
        parts.append(tag("g", tag("title", f"{label}: {said}; {row['reason']}"), line, dots))
        parts += [
            text(left - 10, y + 4.5, label, anchor="end"),
            text(left + PLOT + 14, y + 4.5, said, theme.SMALL, colour=theme.MUTED),
        ]
    axis = "parallel efficiency of the devices; mean deviation from the configuration's mean over the mean"
    foot = text(left + PLOT / 2, bottom + 36, axis, theme.SMALL, "middle", theme.MUTED)
    width = (
        max(
            left + PLOT + 14 + max(text_width(one, theme.SMALL) for one in words),
            left + PLOT / 2 + text_width(axis, theme.SMALL) / 2,
            text_width(title, 15, bold=True) + MARGIN,
        )
        + MARGIN
    )
    return document(width, bottom + 50, title, _head(title, below), parts, foot)
