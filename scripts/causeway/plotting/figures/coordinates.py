"""Axes and lines of parallel coordinates: which features, in which order, on which scale, and which launches.

A line is one launch of a kept bin; where those are few, launches of control bins join them. Axes stand in the order of
share of the variance, the target last. Codes become names, a missing value has a tick of its own below the axis.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core import formatting
from causeway.core.codes import COPY_KINDS
from causeway.core.feature_registry import FEATURES, feature_words
from causeway.core.formatting import elided
from causeway.core.tables import SCHEMAS, read_table, take_rows, unit_of
from causeway.core.vocabulary import UNEXPLAINED, target_name
from causeway.numeric.seeds import generator_of_path
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import short_names
from causeway.plotting.drawing.markup import plain

MOST_AXES = 7
FEWEST_AXES = 5
FEWEST_ROWS = 300
MOST_LEVELS = 12
JITTER = 0.14
"""Lines through one name are spread by up to this part of the distance between two names, so that their number
shows.
"""
WIDE = 100.0
"""Ratio of the largest to the smallest positive value from which an axis is logarithmic."""
FILL = ("context", "counter", "launch")
"""Tiers in the order in which features that are no cause fill the axes, numbers before names: the launch configuration
mostly repeats the kernel's name.
"""
CROWDED = 0.045
"""Part of an axis that a tick's text takes: ticks nearer to the one below are left out."""
LABELLED = {feature.name for feature in FEATURES if feature.is_category} | {"range", "configuration", "kernel"}
"""Numbers that are names: they get one tick each, never a scale."""
NO_CAUSE = "no cause found"
LEVEL_CHARACTERS = 16
"""So much of a level's name is written on an inner axis, where more would reach into the next; the kernels' axis is
the first, where there is room.
"""
KERNEL_CHARACTERS = 26
MOST_SAID = 2
"""So many wanted columns without an axis are named in the selection, which is one line of the figure."""
NOT_AXES = frozenset(SCHEMAS["kept"].names)
"""Columns that identify and weigh a row; one of them is an axis only where it is also a feature, which its tier
tells.
"""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis. `values` (shape (n_rows,)) are positions between `low` and `high`; ticks are (position, text) from
    below upwards. `name` is the column, `words` what pages call it.

    `named`: its places are names, one apart, not numbers.
    """

    name: str
    note: str
    values: np.ndarray
    ticks: list[tuple[float, str]]
    low: float
    high: float
    named: bool = False
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """A finished selection: axes from left to right, quantile of the target of each line (0 to 1), and what was
    selected in words.
    """

    axes: list[Axis]
    quantile: np.ndarray
    quartiles: list[tuple[float, str]]
    lines: int
    selection: str


def choose_rows(kept: np.ndarray, most: int, generator: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return the rows to draw, ascending, and in words which they are.

    Parameters
    ----------
    kept : ndarray of bool, shape (n_rows,)
        Whether a launch lies in a kept bin; the others lie in control bins.
    most : int
        At most this many rows, drawn without replacement.
    generator : numpy.random.Generator
    """
    rows = np.flatnonzero(kept)
    wanted = min(FEWEST_ROWS, most)
    number = formatting.count(len(rows))
    if len(rows) < wanted and len(rows) < len(kept):
        controls = np.flatnonzero(~kept)
        if len(controls) > wanted - len(rows):
            controls = generator.choice(controls, wanted - len(rows), replace=False)
        parts = f"all {number} of the kept bins and {formatting.count(len(controls))} of control bins"
        words = f"{formatting.count(len(rows) + len(controls))} launches: {parts}"
        return np.sort(np.concatenate([rows, controls])), words
    if len(rows) > most:
        words = f"{formatting.count(most)} of {number} launches of the kept bins, drawn at random"
        return np.sort(generator.choice(rows, most, replace=False)), words
    return rows, f"{'the only launch' if len(rows) == 1 else f'all {number} launches'} of the kept bins"


def chosen_launches(
    features: str | Path, dataset: str, target: str, most: int, seed: int
) -> tuple[pa.Table, str, np.random.Generator]:
    """Return the launches that figures draw one by one, in words which they are, and the generator that drew them;
    parameters as of `coordinates_of`.
    """
    kept = read_table(features, "features", ["kept"]).column("kept").to_numpy(zero_copy_only=False)
    generator = generator_of_path(seed, dataset, target, "parallel_coordinates")
    rows, selection = choose_rows(kept, most, generator)
    return take_rows(features, "features", rows), selection, generator


def order_of(names: Sequence[str], contributions: Sequence[Mapping]) -> list[tuple[str, str]]:
    """Return features in the order of their share of the variance of the measured value, which is the share that the
    note for the axis states; features that are no cause fill up to five axes.

    A cause named `feature=level` (a category's level) is drawn on the axis of its feature.
    """
    chosen = dict(list(_causes_among(names, contributions).items())[:MOST_AXES])
    for name in names:
        if len(chosen) >= FEWEST_AXES:
            break
        chosen.setdefault(name, NO_CAUSE)
    return list(chosen.items())


def wanted_axes(
    wanted: Sequence[str], names: Sequence[str], contributions: Sequence[Mapping]
) -> tuple[list[tuple[str, str]], str]:
    """Return the wanted features with a note for each axis, in their own order, and in words those that have none.

    Parameters
    ----------
    wanted : sequence of str
        As the configuration names them.
    names : sequence of str
        Features that differ among the drawn lines.
    contributions : sequence of mappings
        Rows of the dataset's `contributions`.
    """
    causes = _causes_among(names, contributions)
    missing = [name for name in wanted if name not in names]
    listed = ", ".join(elided(name, 26) for name in missing[:MOST_SAID])
    if len(missing) > MOST_SAID:
        listed += f" and {len(missing) - MOST_SAID} more"
    said = f" (no axis for {listed}: absent, or the same in all lines)" if missing else ""
    return [(name, causes.get(name, NO_CAUSE)) for name in wanted if name in names], said


def _causes_among(names: Sequence[str], contributions: Sequence[Mapping]) -> dict[str, str]:
    """Return the note of each cause that is one of the features, the largest share first."""
    rows = [row for row in contributions if row["feature"] != UNEXPLAINED]
    rows.sort(key=lambda row: (-(row["variance_percent"] or 0.0), row["feature"]))
    chosen: dict[str, str] = {}
    for row in rows:
        name = row["feature"] if row["feature"] in names else row["feature"].rpartition("=")[0]
        if name in names and name not in chosen:
            word = {"+": "raises", "-": "lowers"}.get(row["sign"], "undecided")
            word += " value\n" if row.get("sign_of") == "value" else " "  # in lines of their own: axes stand close
            share = row["variance_percent"]
            chosen[name] = f"{word}{'' if share is None else formatting.percent(share)}".strip()
    return chosen


def coordinates_of(
    features: str | Path,
    contributions: Sequence[Mapping],
    names: Mapping[str, str],
    *,
    dataset: str,
    target: str,
    unit: str,
    most: int,
    seed: int,
    wanted: Sequence[str] = (),
) -> Coordinates | None:
    """Return what is to be drawn, or None where no launch was kept.

    Parameters
    ----------
    features : str or Path
        The table of that name, of which only the drawn rows are read; its fields carry unit and tier.
    contributions : sequence of mappings
        Rows of the dataset's `contributions`.
    names : mapping of str to str
        Full kernel names by kernel id.
    dataset, target, unit : str
        What is drawn, and the unit of the target.
    most : int
        At most this many lines.
    seed : int
        The configuration's seed.
    wanted : sequence of str, optional
        Columns to draw, from left to right, instead of those in the order of their shares. One that is absent or the
        same in all lines gets no axis, and the selection says so.
    """
    sample, selection, generator = chosen_launches(features, dataset, target, most, seed)
    if not sample.num_rows:
        return None
    usable = [
        field.name
        for field in sample.schema
        if (field.name not in NOT_AXES or _tier(field)) and len(sample.column(field.name).unique()) > 1
    ]
    axes = []
    kernels = sample.column("kernel").to_pylist()
    if len(set(kernels)) > 1:
        axes.append(_categories("kernel", "", _kernel_names(kernels, names), KERNEL_CHARACTERS))
    tiers = {name: _tier(sample.schema.field(name)) for name in usable}
    usable.sort(key=lambda name: (FILL.index(tiers[name]) if tiers[name] in FILL else len(FILL), name in LABELLED))
    drawn = order_of(usable, contributions)
    if wanted:
        drawn, without = wanted_axes(wanted, usable, contributions)
        selection += without
    axes += [_axis(sample.schema.field(name), note, sample.column(name)) for name, note in drawn]
    groups = {row["feature"]: row.get("group") or "" for row in contributions}
    for number, axis in enumerate(axes):
        spread = generator.uniform(-JITTER, JITTER, sample.num_rows) if axis.named else 0.0
        words = feature_words(axis.name, groups.get(axis.name, ""))
        axes[number] = replace(axis, values=axis.values + spread, words=words)
    values = sample.column("target").to_numpy()
    last = replace(_numbers(target, "the target", values.astype(float), unit), words=target_name(target))
    places = np.linspace(0, 1, 5)
    cuts = np.quantile(values, places)
    marks = [(float(place), formatting.quantity(float(cut), unit)) for place, cut in zip(places, cuts, strict=True)]
    return Coordinates(
        axes=[*axes, last], quantile=quantiles(values), quartiles=marks, lines=sample.num_rows, selection=selection
    )


def _tier(field: pa.Field) -> str:
    return (field.metadata or {}).get(b"tier", b"").decode()


def quantiles(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value, shape (n,), between 0 and 1, ties alike; a single value is 0.5."""
    if len(values) == 1:
        return np.array([0.5])
    ordered = np.sort(values)
    middle = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") - 1) / 2
    return middle / (len(values) - 1)


def _kernel_names(kernels: list[str], names: Mapping[str, str]) -> list[str]:
    full = [names.get(kernel, kernel) for kernel in kernels]
    short = short_names(full, limit=24)
    return [short[name] for name in full]


def _axis(field: pa.Field, note: str, column: pa.ChunkedArray) -> Axis:
    import pyarrow as pa

    kind = field.type
    values = column.to_pylist()
    if field.name.endswith("copy_kind") and pa.types.is_integer(kind):
        return _categories(field.name, note, [None if v is None else COPY_KINDS.get(v, f"kind {v}") for v in values])
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind) or field.name in LABELLED:
        return _categories(field.name, note, values)
    return _numbers(field.name, note, np.array([math.nan if v is None else float(v) for v in values]), unit_of(field))


def _categories(name: str, note: str, values: list, characters: int = LEVEL_CHARACTERS) -> Axis:
    """Return an axis with one place for each level, the most frequent twelve by name and the rest together at the
    foot.
    """
    tally = Counter(values)
    levels = sorted((v for v in tally if v is not None), key=lambda v: (-tally[v], str(v)))
    few = levels[:MOST_LEVELS]
    rest = levels[MOST_LEVELS:]
    numeric = all(isinstance(v, (int, float)) for v in few)
    few.sort(key=(lambda v: v) if numeric else str, reverse=not numeric)
    place = {level: float(position) for position, level in enumerate(few)}
    ticks = [(place[level], elided(plain(level), characters)) for level in few]
    below = [(rest, f"{len(rest)} others")] if rest else []
    for foot, (some, words) in enumerate([*below, *([([None], "none")] if None in tally else [])], start=1):
        place |= dict.fromkeys(some, -float(foot))
        ticks.insert(0, (-float(foot), words))
    positions = np.array([place[value] for value in values], float)
    high = max(len(few) - 1, 0) + 0.3
    return Axis(name=name, note=note, values=positions, ticks=ticks, named=True, low=ticks[0][0] - 0.3, high=high)


def _numbers(name: str, note: str, values: np.ndarray, unit: str) -> Axis:
    """Return a linear or logarithmic axis; zero on a logarithmic one, and a missing value, have places of their own
    below.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    positive = finite[finite > 0]
    if finite.size and low >= 0 and positive.size and high / float(positive.min()) > WIDE:
        least = math.log10(float(positive.min()))
        high = math.log10(high)
        room = max(high - least, 1.0)
        zero = least - 0.1 * room
        with np.errstate(divide="ignore"):
            places = np.where(values == 0, zero, np.log10(values))
        powers = range(math.ceil(least), math.floor(high) + 1, max(1, round(room / 5)))
        ticks = [(float(power), formatting.quantity(10.0**power, unit)) for power in powers]
        ticks = [(zero, "0"), *ticks] if low == 0 else ticks
        low = zero if low == 0 else least
    else:
        places = values.copy()
        levels = np.unique(finite)
        marks = levels if len(levels) <= 6 else theme.nice_ticks(low, high)
        ticks = [(float(mark), formatting.quantity(float(mark), unit)) for mark in marks]
    if low == high:
        low -= 0.5
        high += 0.5
    if finite.size < values.size:
        missing = low - 0.12 * (high - low)
        places[~np.isfinite(values)] = missing
        ticks.insert(0, (missing, "none"))
        low = missing
    margin = 0.02 * (high - low)
    apart = ticks[:1]
    for tick in ticks[1:]:
        if tick[0] - apart[-1][0] >= CROWDED * (high - low):
            apart.append(tick)
    return Axis(name=name, note=note, values=places, ticks=apart, low=low - margin, high=high + margin)
