"""The scaling study: time against ranks, throughput, efficiency and phases, with the published curve and a
projection named as such.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.plotting.drawing import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRONG = theme.SEQUENTIAL[7]
WEAK = theme.SEQUENTIAL[3]
PUBLISHED = theme.DIVERGING[-2]
PROJECTED = theme.UNKNOWN
BUSY = 0.5
"""Load before the study from which the machine counts as busy with other work."""
PHASES = tuple(theme.SEQUENTIAL[step] for step in (7, 5, 3, 1, 8, 6, 4, 2))


def draw_scaling(study: Mapping) -> "Figure":
    """Return the study, drawn.

    Parameters
    ----------
    study : mapping
        The document `scaling.json`.
    """
    import matplotlib.pyplot as plt

    title = f"Scaling of {study['program']}"
    with theme.drawing():
        figure, axes = plt.subplots(2, 2, figsize=(10.4, 10.6))
        figure.subplots_adjust(left=0.075, right=0.985, top=0.895, bottom=0.2, hspace=0.62, wspace=0.2)
        _draw_times(axes[0, 0], study)
        _draw_throughput(axes[0, 1], study)
        _draw_efficiency(axes[1, 0], study)
        _draw_phases(axes[1, 1], study["strong"], study["phases"])
        figure.suptitle(title, x=0.012, y=0.988, ha="left", va="top", fontsize=11.5, fontweight="bold")
        figure.text(0.012, 0.958, _subtitle(study), ha="left", va="top", color=theme.MUTED)
        figure.text(0.012, 0.012, "\n".join(_notes(study)), ha="left", va="bottom", color=theme.MUTED)
    return figure


def _subtitle(study: Mapping) -> str:
    machine = study["machine"]
    where = machine["processor"] or "processor unknown"
    cores = f"{machine['cores']} cores shared by all ranks" if machine["cores"] else "a core for each rank"
    if machine["load_before"] > BUSY:
        cores += f", busy with other work (load {formatting.significant(machine['load_before'], 2)})"
    runs = f"medians of {study['settings']['repetitions']} runs, bars from the fastest to the slowest"
    return f"{where}, {cores}, {machine['launcher']}; {runs}."


def _notes(study: Mapping) -> list[str]:
    notes = []
    if any(point["shares_cores"] for point in study["strong"]):
        notes.append(
            "Hollow: more ranks than cores, which cannot be faster. Diamonds: CPU time of the busiest rank: wall"
            " time with a core each and free messages; serial fraction and projection are of it."
        )
    fractions = [
        f"{name} {formatting.significant(100 * value, 2)} %"
        for name, value in (
            ("measured", study["serial_fraction"]),
            ("published", study["published"]["serial_fraction"]),
        )
        if value is not None
    ]
    if fractions:
        notes.append(f"Serial fraction (Amdahl, of the work on the fewest ranks): {', '.join(fractions)}.")
    if study["no_projection"]:
        notes.append(f"No projection: {study['no_projection']}.")
    elif study["projection"]:
        notes.append(
            "Projection: fitted phases, extrapolated far beyond what was measured; its band: scatter and errors of the"
            " fit only."
        )
    return notes


def _large_count(value: int) -> str:
    """Return a number with its power of a thousand as a word: `372 million`."""
    word, size = formatting.unit_for(value, ((" billion", 1e9), (" million", 1e6), ("", 1.0)))
    return f"{formatting.significant(value / size)}{word}"


def _axis(axis: "Axes", ranks: Iterable[int], title: str, log_ticks: Sequence[int] = ()) -> None:
    """Prepare an axis over ranks; its values are logarithmic if `log_ticks` says which multiples of the powers of
    ten to name.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    shown = sorted(set(ranks))
    axis.set_xscale("log", base=2)
    if log_ticks:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=log_ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    ticks = shown if len(shown) <= 7 else [rank for rank in shown if rank in (shown[0], 4, 16, 64, 256, 1024)]
    axis.set_xticks(ticks, [formatting.count(rank) for rank in ticks])
    axis.set_xlim(shown[0] / 1.4, shown[-1] * 1.4)
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formatting.significant(value, 3)))
    axis.set_xlabel("MPI ranks")
    axis.set_title(title)
    axis.grid(visible=True, which="major")
    axis.spines[["top", "right"]].set_visible(False)


def _legend(axis: "Axes") -> None:
    """Put the legend below the axis, where it hides nothing."""
    axis.legend(
        loc="upper left", bbox_to_anchor=(-0.03, -0.17), fontsize=theme.SMALL * 72 / 96, ncols=1, labelspacing=0.25
    )


def _measured(axis: "Axes", points: Sequence[Mapping], key: str, colour: str, label: str, scale: float = 1.0) -> None:
    """Draw measured points, hollow where ranks share cores, with bars from the fastest to the slowest run if `key`
    is a time.
    """
    ranks = [point["ranks"] for point in points]
    values = [point[key] * scale for point in points]
    axis.plot(ranks, values, "o-", color=colour, markersize=6, linewidth=1.4, label=label)
    for point, value in zip(points, values, strict=True):
        if key == "wall_s":
            axis.vlines(point["ranks"], point["wall_low_s"], point["wall_high_s"], color=colour, linewidth=1.4)
        if point["shares_cores"]:
            axis.plot(point["ranks"], value, "o", color=colour, markersize=6, markerfacecolor=theme.PAPER)


def _work(axis: "Axes", points: Sequence[Mapping], key: str, colour: str, label: str) -> None:
    """Draw what the busiest rank computed, where ranks share cores: without waiting for one."""
    if any(point["shares_cores"] for point in points):
        ranks = [point["ranks"] for point in points]
        values = [point[key] for point in points]
        axis.plot(ranks, values, "D:", color=colour, markersize=4, linewidth=1.2, label=f"busiest rank, {label}")


def _published(axis: "Axes", study: Mapping, key: str, scale: float = 1.0) -> None:
    points = study["published"]["points"]
    label = f"published, {_large_count(study['published']['launches'])} launches"
    axis.plot(
        [p["ranks"] for p in points],
        [p[key] * scale for p in points],
        "s-",
        color=PUBLISHED,
        markersize=5,
        linewidth=1.2,
        label=label,
    )


def _projected(study: Mapping) -> dict[int, list[Mapping]]:
    """Return the projected points by number of launches."""
    curves: dict[int, list[Mapping]] = {}
    for point in study["projection"]["points"] if study["projection"] else []:
        curves.setdefault(point["launches"], []).append(point)
    return curves


def _draw_times(axis: "Axes", study: Mapping) -> None:
    strong = study["strong"]
    curves = _projected(study)
    first = strong[0]
    ranks = [
        point["ranks"]
        for point in [*strong, *study["published"]["points"], *(p for curve in curves.values() for p in curve)]
    ]
    _axis(axis, ranks, "Time, the same work for all ranks (strong)", log_ticks=(1,))
    ideal = [first["ranks"], strong[-1]["ranks"]]
    axis.plot(
        ideal,
        [first["wall_s"] * first["ranks"] / r for r in ideal],
        "--",
        color=theme.FAINT,
        linewidth=1.0,
        label="ideal",
    )
    _measured(axis, strong, "wall_s", STRONG, f"measured, {_large_count(first['launches'])} launches")
    _work(axis, strong, "work_s", STRONG, "CPU time")
    _published(axis, study, "wall_s")
    for style, (launches, points) in zip((":", "-."), curves.items(), strict=False):
        label = f"projection, {_large_count(launches)} launches"
        axis.plot(
            [p["ranks"] for p in points],
            [p["wall_s"] for p in points],
            style,
            color=PROJECTED,
            linewidth=1.2,
            label=label,
        )
        axis.fill_between(
            [p["ranks"] for p in points],
            [p["low"] for p in points],
            [p["high"] for p in points],
            color=PROJECTED,
            alpha=0.2,
        )
    axis.set_ylabel("wall time (s)")
    _legend(axis)


def _draw_throughput(axis: "Axes", study: Mapping) -> None:
    points = study["strong"]
    _axis(axis, [p["ranks"] for p in [*points, *study["published"]["points"]]], "Throughput", log_ticks=(1, 2, 5))
    _measured(axis, points, "launches_per_s", STRONG, "measured, strong", 1e-6)
    _measured(axis, study["weak"], "launches_per_s", WEAK, "measured, weak", 1e-6)
    _published(axis, study, "launches_per_s", 1e-6)
    axis.set_ylabel("million launches per second")
    _legend(axis)


def _draw_efficiency(axis: "Axes", study: Mapping) -> None:
    points = study["strong"]
    _axis(axis, [p["ranks"] for p in [*points, *study["published"]["points"]]], "Parallel efficiency")
    axis.axhline(1.0, linestyle="--", color=theme.FAINT, linewidth=1.0)
    _measured(axis, points, "efficiency", STRONG, "measured, strong (the same work for all)")
    each = study["weak"][0]
    _measured(
        axis,
        study["weak"],
        "efficiency",
        WEAK,
        f"measured, weak ({_large_count(each['launches'] // each['ranks'])} launches for each rank)",
    )
    _work(axis, points, "work_efficiency", STRONG, "strong")
    _work(axis, study["weak"], "work_efficiency", WEAK, "weak")
    _published(axis, study, "efficiency")
    highest = max(max(point[key] for key in ("efficiency", "work_efficiency")) for point in [*points, *study["weak"]])
    axis.set_ylim(0, max(1.12, 1.05 * highest))
    axis.set_ylabel("against the fewest ranks of its curve")
    _legend(axis)


def _draw_phases(axis: "Axes", points: Sequence[Mapping], names: Sequence[str]) -> None:
    """Draw the phases of the strong runs as stacked bars, with the memory of the largest rank above."""
    bottom = [0.0] * len(points)
    for index, name in enumerate(names):
        heights = [point["phases"].get(name, 0.0) for point in points]
        axis.bar(range(len(points)), heights, bottom=bottom, width=0.62, color=PHASES[index % len(PHASES)], label=name)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    for index, point in enumerate(points):
        if point["peak_rss_mb"] is not None:
            axis.text(
                index,
                bottom[index],
                f"{formatting.count(point['peak_rss_mb'])} MB",
                ha="center",
                va="bottom",
                color=theme.MUTED,
            )
    axis.set_xticks(range(len(points)), [formatting.count(point["ranks"]) for point in points])
    axis.set_xlabel("MPI ranks")
    axis.set_ylabel("wall time (s)")
    axis.set_ylim(0, max(bottom) * 1.12)
    axis.set_title("Time per phase, memory of the largest rank")
    axis.spines[["top", "right"]].set_visible(False)
    _legend(axis)
