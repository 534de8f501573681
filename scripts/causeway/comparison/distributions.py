"""What means do not show: each kernel's median and 99th percentile on both sides, and the mix of a table's settings."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from causeway.comparison.change_estimates import Choices
from causeway.comparison.groups import configuration_pairs, shape_words
from causeway.comparison.runs.matching import Match
from causeway.comparison.runs.settings import Settings
from causeway.comparison.sides import Side

QUANTILES = {"median": 0.5, "p99": 0.99}
WORDS = ("baseline", "candidate")


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
        if match.baseline is None or match.candidate is None:
            continue
        numbers = match.baseline, match.candidate
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


def settings_document(settings: Settings, sides: Sequence[Side], effects: Sequence[dict]) -> dict | None:
    """Return the settings of two tables with how often each value occurs; None where no table was compared.

    Parameters
    ----------
    settings : Settings
    sides : (baseline, candidate)
    effects : sequence of dict
        Of `settings_effects`.
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
    effects = [effect | {"column": named[effect["column"]]} for effect in effects]
    return {"columns": [named[column] for column in settings.columns], "values": values, "effects": effects}


def settings_effects(
    columns: Sequence[str], sides: Sequence[Side], matches: Sequence[Match], rows: Sequence[Mapping]
) -> list[dict]:
    """Return by how much the same launches of each kernel with each value of a setting changed: the mean over its
    configurations by their time, with an interval.

    Parameters
    ----------
    columns : sequence of str
        Settings.
    sides : (baseline, candidate)
    matches : sequence of Match
    rows : sequence of mapping
        Of `comparison.parquet`.
    """
    by_name = {
        row["candidate"]: row
        for row in rows
        if row["level"] == "configuration" and row["metric"] == "time_per_launch" and row["low_percent"] is not None
    }
    run = sides[1].main
    changes: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    for other, _, _ in configuration_pairs(sides, matches).values() if columns else ():
        kernel, shape = run.configurations[other]
        name = run.kernels.names[kernel]
        row = by_name.get(f"{name} | {shape_words(shape)}")
        if row is not None:
            change, low, high = (np.log1p(row[key] / 100) for key in ("change_percent", "low_percent", "high_percent"))
            for column, value in zip(columns, shape[-1 - len(columns) : -1], strict=True):
                of_value = changes.setdefault((name, column, value), [])
                of_value.append((row["candidate_total_ns"], change, (high - low) / 2))
    effects = []
    for (name, column, value), each in changes.items():
        weights, middles, halves = np.array(each).T
        weights = weights / weights.sum()
        middle = weights @ middles
        half = np.sqrt(weights**2 @ halves**2)
        ends = zip(("change", "low", "high"), (middle, middle - half, middle + half), strict=True)
        percents = {f"{key}_percent": float(100 * np.expm1(end)) for key, end in ends}
        effects.append({"kernel": name, "column": column, "value": value, **percents})
    return effects
