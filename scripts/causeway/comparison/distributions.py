"""What means do not show: each kernel's median and 99th percentile on both sides, and the mix of a table's settings."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from causeway.comparison.change_estimates import Choices
from causeway.comparison.groups import configuration_pairs, shape_words
from causeway.comparison.runs.counter_means import CountedMetric
from causeway.comparison.runs.matching import Match
from causeway.comparison.runs.settings import Settings
from causeway.comparison.sides import Side
from causeway.core.tables import LAUNCH_SHAPE
from causeway.core.vocabulary import EXACT

QUANTILES = {"median": 0.5, "p99": 0.99}
WORDS = ("baseline", "candidate")
LEAST_SHARE = 0.01
"""Share of the GPU time from which it is told with which grid, setting or rank a kernel changed."""


def kernel_quantiles(
    sides: Sequence[Side], matches: Sequence[Match], rows: Sequence[Mapping], choices: Choices
) -> list[dict]:
    """Return median and 99th percentile of the launches of each kernel of both sides, ns, and whether they differ
    beyond noise: the intervals of both, by the launches that are independent, do not overlap, and the change is no less
    than what runs of one program have differed by, where that was not measured.

    Parameters
    ----------
    sides : (baseline, candidate)
    matches : sequence of Match
    rows : sequence of mapping
        Of `comparison.parquet`.
    choices : Choices
    """
    effective = {
        (row["baseline"], row["candidate"]): [row[f"{word}_effective"] for word in WORDS]
        for row in rows
        if row["level"] == "kernel" and row["metric"] == "time_per_launch" and row["low_percent"] is not None
    }
    reach = stats.norm.isf((1 - choices.confidence) / 2)
    kernels = []
    for match in matches:
        numbers = [number for number in (match.baseline, match.candidate) if number is not None]
        launched = [side.main.quantiles(number, [0]) for side, number in zip(sides, numbers, strict=False)]
        if len(numbers) < 2 or not all(launched):
            continue  # kernels of a table need not have launches
        names = [side.main.kernels.names[number] for side, number in zip(sides, numbers, strict=True)]
        launches = effective.get((names[0], names[1]))
        kernel: dict = {"kernel": names[1]}
        for word, share in QUANTILES.items():
            ends = []
            for side, number, independent, of_side in zip(sides, numbers, launches or (None, None), WORDS, strict=True):
                half = np.inf if not independent else reach * _error(share, independent)
                low, value, high = side.main.quantiles(number, [max(share - half, 0), share, min(share + half, 1)])
                kernel[f"{of_side}_{word}_ns"] = value
                ends.append((low, high) if share + half <= 1 else (low, np.inf))
            before, after = (kernel[f"{of_side}_{word}_ns"] for of_side in WORDS)
            is_apart = ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]
            kernel[f"{word}_differs"] = bool(is_apart and abs(np.log(after / before)) >= choices.unmeasured)
        kernels.append(kernel)
    return kernels


def _error(share: float, launches: float) -> float:
    """Return the standard error of the share of launches below their quantile at `share`."""
    return float(np.sqrt(share * (1 - share) / launches))


def settings_document(settings: Settings, sides: Sequence[Side]) -> dict | None:
    """Return the settings of two tables with how often each value occurs; None where no table was compared.

    Parameters
    ----------
    settings : Settings
    sides : (baseline, candidate)
    """
    if not settings.counts:
        return None
    before, after = (settings.counts[side.main.dataset] for side in sides)
    named = settings.raw_names
    values = [
        {"column": named[column], "value": value, "baseline": before[column][value], "candidate": after[column][value]}
        for column in before
        if column in after
        for value in dict.fromkeys([*before[column], *after[column]])
    ]
    return {"columns": [named[column] for column in settings.columns], "values": values}


def kernel_effects(
    columns: Sequence[str], sides: Sequence[Side], matches: Sequence[Match], rows: Sequence[Mapping]
) -> list[dict]:
    """Return by how much the same launches of each kernel changed with each grid, each value of a table's setting, and
    on each rank of both sides: what the candidate's launches take over what they would at the baseline's means, of
    grids and values on all ranks. Kernels with one value, or with little time, are left out, and so are grids and
    values without an interval.

    Parameters
    ----------
    columns : sequence of str
        Settings of tables.
    sides : (baseline, candidate)
    matches : sequence of Match
    rows : sequence of mapping
        Of `comparison.parquet`.
    """
    timed = [row for row in rows if row["metric"] == "time_per_launch"]
    intervals = {
        row["candidate"]: np.log1p(row["high_percent"] / 100) - np.log1p(row["low_percent"] / 100)
        for row in timed
        if row["level"] == "configuration" and row["low_percent"] is not None
    }
    run = sides[1].main
    least = LEAST_SHARE * max(side.main.total_ns for side in sides)
    kernels = {
        row["candidate"]
        for row in timed
        if row["level"] == "kernel" and max(row["baseline_total_ns"] or 0, row["candidate_total_ns"] or 0) >= least
    }
    totals = [side.main.totals_by_rank() for side in sides]
    ranks = sorted(set(sides[0].main.ranks) & set(run.ranks))
    whole_totals = [_over_ranks(own) for own in totals]
    cells: dict[tuple[str, str], dict[str, list[tuple[float, float, float | None]]]] = {}
    for own, (other, _, _) in configuration_pairs(sides, matches).items():
        kernel, shape = run.configurations[other]
        name = run.kernels.names[kernel]
        whole = _charged(whole_totals[0].get(own), whole_totals[1].get(other))
        if name not in kernels or whole is None:
            continue
        width = intervals.get(f"{name} | {shape_words(shape)}")
        values = _values(columns, shape) if width is not None else {}
        parts = [(column, value, whole, width) for column, value in values.items()]
        for rank in ranks if len(ranks) > 1 else ():
            time = _charged(totals[0].get((own, rank)), totals[1].get((other, rank)))
            if time is not None:
                parts.append(("rank", str(rank), time, None))
        for column, value, (charged, spent), half in parts:
            cells.setdefault((name, column), {}).setdefault(value, []).append((charged, spent, half))
    return [
        _effect(name, column, value, by_value[value])
        for (name, column), by_value in cells.items()
        for value in (by_value if len(by_value) > 1 else ())
    ]


def _over_ranks(totals: Mapping[tuple[int, int], tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return launches and time, ns, by configuration, of `Run.totals_by_rank`."""
    sums: dict[int, tuple[int, int]] = {}
    for (configuration, _), (launches, time) in totals.items():
        before = sums.get(configuration, (0, 0))
        sums[configuration] = before[0] + launches, before[1] + time
    return sums


def _charged(before: tuple[int, int] | None, after: tuple[int, int] | None) -> tuple[float, int] | None:
    """Return what the candidate's launches take at the baseline's mean, and what they take, ns; None without either.

    Parameters
    ----------
    before, after : (int, int) or None
        Launches and their time, ns.
    """
    if before is None or after is None or not (before[1] and after[1]):
        return None
    return before[1] / before[0] * after[0], after[1]


def _values(columns: Sequence[str], shape: Sequence) -> dict[str, str]:
    """Return the settings of a shape of a table, or the grid of a launch."""
    if columns:
        return dict(zip(columns, shape[-1 - len(columns) : -1], strict=True))
    grid = [str(size) for size in shape[:3] if size is not None]
    return {"grid": "x".join(grid)} if grid else {}


def _effect(name: str, column: str, value: str, cells: Sequence[tuple[float, float, float | None]]) -> dict:
    """Return the change of a kernel with one value of a column, with its interval where that of each configuration is
    known; `cells` are by configuration the time at the baseline's means, the time, and the width of the interval.
    """
    charged, spent = np.sum([cell[:2] for cell in cells], axis=0)
    change = np.log(spent / charged)
    widths = [width for _, _, width in cells if width is not None]
    half = np.inf
    if len(widths) == len(cells):
        half = np.sqrt(
            math.fsum((time / spent * width / 2) ** 2 for (_, time, _), width in zip(cells, widths, strict=True))
        )
    low, high = (None if half == np.inf else float(100 * np.expm1(change + sign * half)) for sign in (-1, 1))
    ends = {"change_percent": float(100 * np.expm1(change)), "low_percent": low, "high_percent": high}
    return {"kernel": name, "column": column, "value": value, **ends}


def other_shapes(sides: Sequence[Side], matches: Sequence[Match]) -> list[dict]:
    """Return what differs between the launch configurations with most time of each kernel that has no configuration on
    both sides.

    Parameters
    ----------
    sides : (baseline, candidate)
    matches : sequence of Match
    """
    common = {match for _, how, match in configuration_pairs(sides, matches).values() if how == EXACT}
    rows = []
    for match in matches:
        if match in common or match.baseline is None or match.candidate is None:
            continue
        numbers = match.baseline, match.candidate
        totals = [side.totals(0, "kernel", number) for side, number in zip(sides, numbers, strict=True)]
        if not all(totals):
            continue  # kernels of a table need not have launches
        longest = [max(own, key=lambda number, own=own: own[number].time_ns) for own in totals]  # type: ignore[misc]
        whole = [side.main.configurations[number][1] for side, number in zip(sides, longest, strict=True)]
        shapes = [(*shape[: len(LAUNCH_SHAPE)], shape[-1]) for shape in whole]  # settings of tables lie between
        name = sides[1].main.kernels.names[match.candidate]
        rows += [
            {"kernel": name, "column": column, "baseline": before, "candidate": after}
            for column, before, after in zip((*LAUNCH_SHAPE, "configuration"), *shapes, strict=False)
            if before != after and before is not None and after is not None
        ]
    return rows


def kernel_counters(
    means: Sequence[Mapping[str, Mapping[CountedMetric, float]]], names: Sequence[tuple[str, str]]
) -> list[dict]:
    """Return the mean of each counter of each kernel of both sides, before and after.

    Parameters
    ----------
    means : (baseline, candidate)
        From `counter_means`.
    names : sequence of (str, str)
        Of each kernel of both sides.
    """
    before, after = means
    return [
        {
            "kernel": name,
            "counter": counter.name,
            "unit": counter.unit,
            "baseline": value,
            "candidate": after[name][counter],
        }
        for own, name in names
        for counter, value in before.get(own, {}).items()
        if counter in after.get(name, {})
    ]
