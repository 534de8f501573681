"""Two datasets side by side: changes by kernel with intervals and noise floor, the way from one total to the other,
ratios of both.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import CHANGE_WORDS, FOR_THE_BETTER, FOR_THE_WORSE, GONE, INCONCLUSIVE, NEW, SAME
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.drawn import DataFrame, Figure
from causeway.plotting.drawing.labels import full_name, short_names

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
LABEL = 44
FLOOR = theme.GRID


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
    return formatting.changed_by(row["change_percent"], row["low_percent"], row["high_percent"], unit_of(row))


def of_kernels(rows: Sequence[Mapping], metric: str = "time_per_launch") -> list[Mapping]:
    """Return the rows of kernels on both sides, those with the most time first."""
    own = [row for row in rows if (row["level"], row["metric"]) == ("kernel", metric)]
    own = [row for row in own if row["change_percent"] is not None]
    return sorted(own, key=lambda row: (-max(row["baseline_total_ns"], row["candidate_total_ns"]), row["candidate"]))


def verdicts_of(kernels: Sequence[Mapping]) -> dict[str, int]:
    """Return how many of the rows of kernels have which verdict, of those that any has."""
    counts = Counter(row["verdict"] for row in kernels)
    words = (*CHANGE_WORDS["time_per_launch"], SAME, INCONCLUSIVE)
    return {word: counts[word] for word in words if counts[word]}


def draw_changes(comparison: Mapping, rows: Sequence[Mapping]) -> Figure:
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
    return _forest(shown, labels, title, below)


def draw_history(comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]]) -> Figure:
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
    return _forest(rows, [elided(run, LABEL) for run in runs], title, below)


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


def forest_of(rows: Sequence[Mapping], labels: Sequence[str]) -> DataFrame:
    """Return the changes with the columns label, change, low, high, floor (percent), colour, words, hover, whole."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["change_percent", "low_percent", "high_percent", "floor_percent"], dtype=float)
    frame.columns = ["change", "low", "high", "floor"]
    words = [f"{change_words(row)}  {row['verdict']}" for row in rows]
    hovers = []
    for row, said in zip(rows, words, strict=True):
        floor = row["floor_percent"]
        noise = "" if floor is None else f"; noise floor {formatting.significant(floor, 2)} %"
        hovers.append(f"{full_name(row['candidate'])}: {said}; {row['reason']}{noise}")
    colours = [COLOURS.get(row["verdict"], UNDECIDED) for row in rows]
    wholes = [row["level"] == "run" for row in rows]
    return frame.assign(label=list(labels), colour=colours, words=words, hover=hovers, whole=wholes)


def _forest(rows: Sequence[Mapping], labels: Sequence[str], title: str, below: str) -> Figure:
    frame = forest_of(rows, labels)
    reach = _reach(rows)
    with theme.drawing():
        figure, axes = charts.sheet(title, below, charts.ROW * len(frame) + 0.95)
        floors = frame[frame.floor.notna()]
        axes.barh(floors.index, 2 * floors.floor, left=-floors.floor, height=0.72, color=FLOOR, linewidth=0)
        axes.axvline(0, color=theme.FAINT, linewidth=1)
        axes.grid(axis="x")
        intervals = frame[frame.low.notna()]
        lines = axes.hlines(intervals.index, intervals.low, intervals.high, color=intervals.colour, linewidth=1.7)
        charts.hover(lines, intervals.hover)
        for column, side, arrow in (("low", -1, "<"), ("high", 1, ">")):
            for cut, mark in ((False, "|"), (True, arrow)):
                ends = intervals[(intervals[column] * side > reach) == cut]
                places = ends[column].clip(-reach, reach)
                axes.scatter(places, ends.index, marker=mark, s=30, color=ends.colour, clip_on=False, zorder=3)
        faces = frame.colour.where(frame.low.notna(), theme.PAPER)
        dots = axes.scatter(
            frame.change, frame.index, s=36, color=faces, edgecolor=frame.colour, linewidth=1.2, zorder=4
        )
        charts.hover(dots, frame.hover)
        charts.labels(axes, frame.label.tolist())
        for name, whole in zip(axes.get_yticklabels(), frame.whole, strict=True):
            name.set_fontweight("bold" if whole else "normal")
        charts.words_beside(axes, frame.words)
        axes.set_xlim(-reach, reach)
        axes.set_xlabel(CHANGE_AXIS)
        words = "dot: estimate; whisker: interval (an arrow: it goes on); grey band: noise floor; hollow: no interval"
        figure.supxlabel(words, x=0.015, ha="left", fontsize=9, color=theme.MUTED)
    return figure


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
    others = [("more or fewer launches", change["launches_ns"]), ("other configurations", change["configurations_ns"])]
    others += [("new kernels", lone[NEW]), ("gone kernels", lone[GONE])]
    return steps + [(label, value, "") for label, value in others if value]


def bars_of_totals(comparison: Mapping) -> DataFrame:
    """Return the total of the baseline, the steps, each from where the one before ends, and the candidate's total, with
    the columns label, start and length (ns), colour, words, hover.
    """
    import pandas as pd

    before, after = (comparison[side]["gpu_time_ns"] for side in ("baseline", "candidate"))

    def total(side: str, end: int, said: str) -> tuple:
        label = elided(f"{comparison[side]['dataset']} ({side})", 50)
        return label, 0, end, theme.SEQUENTIAL[6], said, f"{label}: {said}"

    bars = [total("baseline", before, formatting.time(before))]
    done = before
    for step, value, whole in steps_of(comparison):
        label = elided(step, 50)
        (percent,) = formatting.signed(100 * value / before)
        said = f"{formatting.difference(value)} ({percent} %)"
        hover = f"{full_name(whole) or label}: {said}"
        bars.append((label, done, value, WORSE if value > 0 else BETTER, said, hover))
        done += value
    (percent,) = formatting.signed(100 * (after - before) / before)
    bars.append(total("candidate", after, f"{formatting.time(after)} ({percent} %)"))
    return pd.DataFrame(bars, columns=["label", "start", "length", "colour", "words", "hover"])


def draw_totals(comparison: Mapping) -> Figure:
    """Return the way from the baseline's GPU time to the candidate's, step by step."""
    title = f"Where the difference in GPU time comes from, {pair_words(comparison)}"
    if comparison["why"] is not None:
        return notice(title, NOT_COMPARED, [comparison["why"]])
    bars = bars_of_totals(comparison)
    sums = (bars.start + bars.length).tolist()
    span = max(sums) - min(sums) or 0.02 * max(sums) or 1
    broken = min(sums) > 3 * span  # a difference of a percent cannot be seen on an axis from zero
    below = (
        "exact sums: launches that take longer or shorter, by kernel; then how many launches, and kernels of one side"
    )
    below += " side alone"
    with theme.drawing():
        figure, axis = charts.sheet(title, below, charts.ROW * len(bars) + 0.6)
        charts.cascade(axis, bars)
        axis.set_xlim(min(sums) - 0.25 * span if broken else 0, max(sums) + 0.1 * span)
        charts.time_axis(axis, max(sums), digits=5)
        axis.set_xlabel(f"sum of the durations of all launches{' (the axis does not begin at zero)' if broken else ''}")
    return figure


def draw_ratios(comparison: Mapping, rows: Sequence[Mapping]) -> Figure:
    """Return efficiency and variability of both sides, whole and by rank, as dumbbells from the baseline to the
    candidate.
    """
    title = f"Efficiency and variability, {pair_words(comparison)}"
    below = "hollow: baseline, filled: candidate; efficiency: more is better, variability: less is better"
    measured = [row for row in rows if row["level"] in ("run", "rank")]
    shown = [row for row in measured if row["metric"] == "efficiency"][: ROWS // 2]
    shown += [row for row in measured if row["metric"] == "variability"][: ROWS // 2]
    if not shown:
        return notice(title, below, comparison["not_compared"] or ["Neither was measured on both sides."])
    labels = [f"{row['metric']}, {'rank ' if row['level'] == 'rank' else ''}{row['candidate']}" for row in shown]
    words = [
        f"{' → '.join(formatting.ratio_three_decimals(row[f'{side}_value']) for side in ('baseline', 'candidate'))}"
        f"   {change_words(row)}  {row['verdict']}"
        for row in shown
    ]
    before, after = ([row[f"{side}_value"] for row in shown] for side in ("baseline", "candidate"))
    colours = [COLOURS.get(row["verdict"], UNDECIDED) for row in shown]
    hovers = [f"{label}: {said}; {row['reason']}" for row, label, said in zip(shown, labels, words, strict=True)]
    most = max(*before, *after)
    with theme.drawing():
        figure, axis = charts.sheet(title, below, charts.ROW * len(shown) + 0.6)
        places = range(len(shown))
        axis.grid(axis="x")
        charts.hover(axis.hlines(places, before, after, color=colours, linewidth=1.7), hovers)
        for values, faces in ((before, theme.PAPER), (after, colours)):
            dots = axis.scatter(
                values, places, s=40, color=faces, edgecolor=colours, linewidth=1.2, zorder=3, clip_on=False
            )
            charts.hover(dots, hovers)
        charts.labels(axis, labels)
        charts.words_beside(axis, words)
        axis.set_xlim(0, 1.0 if most <= 1.0 else 1.05 * most)
        measures = "parallel efficiency of the devices; mean deviation from the configuration's mean over the mean"
        axis.set_xlabel(measures)
    return figure
