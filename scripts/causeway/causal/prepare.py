"""Columns to candidates: every column either becomes a candidate, stands behind one, or is dropped with its reason.

Order of the steps: categories to indicators, missing values, constants, aliases by name, logarithms of bytes, centring within
configurations, aliases by data, clusters, deterministic columns, winsorising. A column that is constant within every configuration cannot
move the deviation from the configuration's mean; it may only act on its scale and goes to the configuration level (`between.py`).
"""

from dataclasses import dataclass, field

import numpy as np

from causeway.causal.basis import AT_ONCE, GroupCentring, normal_scores
from causeway.causal.categories import category_candidates
from causeway.causal.clusters import cluster_columns, medoids
from causeway.causal.determinism import computed_name, derived_name, determined_columns, precedence
from causeway.causal.effective_size import kish_size
from causeway.causal.leaks import alias_by_name, aliases_by_data, correlation_matrix
from causeway.causal.readings import better_relative, relative_to_usual
from causeway.causal.rows import Candidate, Column, Dropped, Rows
from causeway.causal.which_leak import Judge

MAX_MISSING = 0.5
MIN_POSITIVE = 0.2
"""A column with fewer positive values than this share has no logarithm to speak of."""
RELATIVE_UNITS = frozenset({"ratio", "%", "percent", "pct"})
"""A column in such a unit is computed from others, whatever its name."""
WINSOR_SHARE = 0.002
CLIP_SD = 6.0
CONTROL_NAMES = frozenset({"previous_deviation"})
"""Nuisance columns: entered like candidates so that they take away what they explain, never reported as causes."""


@dataclass
class Prepared:
    """Candidates of a scope.

    Attributes
    ----------
    within : list of Candidate
        Vary within configurations.
    between : list of Candidate
        Constant within configurations; `values` has one entry per configuration.
    dropped : list of Dropped
    notes : list of str
        What a reader should know, e.g. imputed values.
    merged : dict of str to Candidate
        The columns that another one stands for.
    numbers : dict of str to Number
        Numeric columns that vary within configurations and passed the first look for aliases.
    determined : dict of str to list of str
        Deterministic columns: the columns that determine them.
    reserve : dict of str to Candidate
        Deterministic columns as the candidates that they may yet become.
    tried : set of str
        Columns whose cluster was represented by another member after a search.
    read_twice, relative : set of str
        Counters of which two readings were compared, and those that are read relative to what is usual in their configuration.
    """

    within: list[Candidate] = field(default_factory=list)
    between: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    merged: dict[str, Candidate] = field(default_factory=dict)
    numbers: "dict[str, Number]" = field(default_factory=dict)
    determined: dict[str, list[str]] = field(default_factory=dict)
    reserve: dict[str, Candidate] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    read_twice: set[str] = field(default_factory=set)
    relative: set[str] = field(default_factory=set)


@dataclass
class Number:
    """A numeric column on its way."""

    column: Column
    name: str
    values: np.ndarray  # float64, no missing values, on the scale of the analysis (log1p for bytes)
    known: np.ndarray  # where the value was measured and not filled in
    centred: np.ndarray | None = None
    usual: np.ndarray | None = None  # centred, relative to what is usual in the configuration; centred where there is one reading
    read: np.ndarray | None = None  # as the search reads it: `centred` or `usual`
    logs: np.ndarray | None = None  # logarithms, None if a value is negative or few are positive; zeros at a floor
    positive: np.ndarray | None = None  # where the value is known and above 0

    @property
    def log_scale(self) -> np.ndarray | None:
        """The centred logarithms; of bytes, whose values are logarithms already, the values."""
        return self.centred if self.column.unit == "bytes" else self.logs


def prepare(columns: list[Column], rows: Rows, target: str) -> Prepared:
    """Turn measured columns into candidates.

    Parameters
    ----------
    columns : list of Column
        In any order; equal names are told apart by `#2`, `#3`.
    rows : Rows
    target : str
        The target's name, e.g. `gpu_time`: a counter of that name is the target itself.

    Returns
    -------
    Prepared
        The same for any order of the columns but for ties between equal columns.
    """
    prepared = Prepared()
    centring = GroupCentring(rows.configuration, rows.weight)
    numbers: list[Number] = []
    categories: list[tuple[str, Column]] = []
    seen: dict[str, int] = {}
    for column in columns:
        seen[column.name] = seen.get(column.name, 0) + 1
        name = str(column.name) if seen[column.name] == 1 else f"{column.name}#{seen[column.name]}"
        if column.tier == "counter" and alias_by_name(column.name, target):
            prepared.dropped.append(Dropped(name, "its name says that it is the measured time itself, cycles, or a rate per time"))
        elif column.values.dtype == object:
            categories.append((name, column))
        else:
            number = _number(column, name, rows, centring, prepared)
            if number is not None:
                numbers.append(number)
    found, dropped = category_candidates(categories)
    prepared.dropped += dropped
    for candidate in found:
        if _constant_within(candidate.values @ np.arange(1, candidate.values.shape[1] + 1), rows, centring):
            _add_between(candidate, candidate.values, rows, prepared)
        else:
            prepared.within.append(candidate)
    numbers = _split(numbers, rows, centring, prepared)
    if numbers:
        numbers = _without_aliases(numbers, rows, centring, prepared)
        _read(numbers, rows, prepared)
        _merge_and_finish(numbers, prepared)
    prepared.within.sort(key=lambda candidate: candidate.name)
    prepared.between.sort(key=lambda candidate: candidate.name)
    prepared.dropped.sort(key=lambda dropped: dropped.feature)
    return prepared


def _number(column: Column, name: str, rows: Rows, centring: GroupCentring, prepared: Prepared) -> Number | None:
    """Check a numeric column and fill its gaps with the mean of the configuration."""
    values = np.asarray(column.values, dtype=float)
    known = np.isfinite(values)
    infinite = int(np.isinf(values).sum())
    if not known.any():
        prepared.dropped.append(Dropped(name, "holds no value" + (f" ({infinite} infinite)" if infinite else "")))
        return None
    if known.mean() < 1 - MAX_MISSING:
        prepared.dropped.append(Dropped(name, f"missing in {100 * (1 - known.mean()):.0f} % of the rows"))
        return None
    if values[known].min() == values[known].max():
        prepared.dropped.append(Dropped(name, "constant"))
        return None
    if column.unit == "bytes" and values[known].min() >= 0:
        values = np.where(known, np.log1p(np.where(known, values, 0.0)), np.nan)
    largest = np.abs(values[known]).max()
    if not 1e-150 < largest < 1e150:  # squares would overflow or vanish
        values = values / largest
    if not known.all():
        if name not in CONTROL_NAMES:  # the first launch of each kernel has none before it
            prepared.notes.append(f"{name}: {np.sum(~known)} missing or infinite values set to the mean of their configuration")
        values = _filled(values, known, rows)
    return Number(column, name, values, known)


def _filled(values: np.ndarray, known: np.ndarray, rows: Rows) -> np.ndarray:
    """Return values with gaps set to the weighted mean of the configuration's known values, or of all known values."""
    weights = np.where(known, rows.weight, 0.0)
    safe = np.where(known, values, 0.0)
    sums = np.bincount(rows.configuration, weights * safe)
    totals = np.bincount(rows.configuration, weights)
    overall = float((weights * safe).sum() / weights.sum())
    means = np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), overall)
    return np.where(known, values, means[rows.configuration])


def _constant_within(values: np.ndarray, rows: Rows, centring: GroupCentring) -> bool:
    """Tell whether a column never varies within a configuration (exactly, by minima and maxima)."""
    ordered = values[centring.order]
    low = np.minimum.reduceat(ordered, centring.starts)
    return bool(np.all(low == np.maximum.reduceat(ordered, centring.starts)))


def _add_between(candidate: Candidate, values: np.ndarray, rows: Rows, prepared: Prepared) -> None:
    """Keep one value per configuration of a column that is constant within configurations."""
    first = np.unique(rows.configuration, return_index=True)[1]
    prepared.between.append(Candidate(**{**candidate.__dict__, "values": values[first]}))


def _split(numbers: list[Number], rows: Rows, centring: GroupCentring, prepared: Prepared) -> list[Number]:
    """Send columns that are constant within configurations to the configuration level; centre the others."""
    kept = []
    for number in numbers:
        column = number.column
        if _constant_within(number.values, rows, centring):
            _add_between(
                Candidate(number.name, column.tier, column.group, column.unit, number.values, (number.name,)), number.values, rows, prepared
            )
            continue
        number.centred = centring.centred(number.values)
        number.positive = (number.values > 0) & number.known
        if number.values.min() >= 0 and number.positive.mean() > MIN_POSITIVE:
            floor = 0.5 * number.values[number.positive].min()
            number.logs = centring.centred(np.log(np.maximum(number.values, floor)))
        kept.append(number)
    return kept


def _without_aliases(numbers: list[Number], rows: Rows, centring: GroupCentring, prepared: Prepared) -> list[Number]:
    """Drop counters that are the measured value in other clothes; facts known at the launch's start cannot be."""
    measured = rows.mean + rows.signed
    alias = np.zeros(len(numbers), dtype=bool)
    counters = [i for i, number in enumerate(numbers) if number.column.tier == "counter"]
    size = kish_size(rows.weight) * (1 - centring.n_groups / len(rows))
    scales = [(False, centring.centred(measured), [n.centred for n in numbers])]
    if np.all(measured > 0):  # before levels, in which a rate is tied to its amount only nearly
        scales.insert(0, (True, centring.centred(np.log(measured)), [n.log_scale if n.positive.all() else None for n in numbers]))
    for logarithmic, time, series in scales:
        positions = [i for i in counters if series[i] is not None and not alias[i]]
        if positions:
            matrix = np.column_stack([series[i].astype(np.float32) for i in positions])
            computed = np.asarray([computed_name(numbers[i].name) or numbers[i].column.unit in RELATIVE_UNITS for i in positions])
            further = [n.centred for i, n in enumerate(numbers) if i not in positions and not alias[i]]
            further += [one.values for one in prepared.within]
            judge = Judge(time, matrix, [numbers[i].column.values for i in positions], measured, further, centring, size)
            alias[positions] |= aliases_by_data(time, matrix, correlation_matrix(matrix), computed, judge.leak, logarithmic)
    for i in np.flatnonzero(alias):
        prepared.dropped.append(
            Dropped(numbers[i].name, "follows from the measured value itself (R² > .99 with at most two other columns)")
        )
    return [number for number, drop in zip(numbers, alias, strict=True) if not drop]


def _read(numbers: list[Number], rows: Rows, prepared: Prepared) -> None:
    """Decide how each counter is read: by what it counts, or by what is usual in its configuration."""
    for number in numbers:
        number.read = number.usual = number.centred
    counters = [number for number in numbers if number.column.tier == "counter"]
    if not counters or np.all(rows.configuration == rows.configuration[0]):
        return
    for number in counters:
        number.usual = relative_to_usual(number.values, number.centred, rows)
    step = max(1, 10 * AT_ONCE // len(rows))
    readings = [
        list(np.concatenate([winsorised(np.column_stack(part[first : first + step])).T for first in range(0, len(counters), step)]))
        for part in ([number.centred for number in counters], [number.usual for number in counters])
    ]
    for number, better in zip(counters, better_relative(*readings, rows), strict=True):
        prepared.read_twice.add(number.name)
        if better:
            number.read = number.usual
            prepared.relative.add(number.name)
    if prepared.relative:
        prepared.notes.append(
            f"{len(prepared.relative)} of {len(counters)} counters are read in spreads of their configuration, not in their unit"
        )


def _merge_and_finish(numbers: list[Number], prepared: Prepared) -> None:
    """Cluster, drop deterministic columns, winsorise; append the candidates."""
    names = [number.name for number in numbers]
    usual = np.column_stack([number.usual.astype(np.float32) for number in numbers])  # else the largest kernels would tell alone
    similarity = np.abs(correlation_matrix(winsorised(usual)))
    scores = np.column_stack([normal_scores(number.usual).astype(np.float32) for number in numbers])
    np.maximum(similarity, np.abs(correlation_matrix(scores - scores.mean(axis=0))), out=similarity)
    del scores
    clusters = medoids(similarity, cluster_columns(similarity), names)
    del similarity
    heads = [_head(members, numbers) for members in clusters.values()]
    members = dict(zip(heads, clusters.values(), strict=True))
    for head, cluster in members.items():
        for other in cluster:
            if other != head:
                prepared.dropped.append(Dropped(names[other], merged_reason(names[head])))
    values = _final_values(numbers)
    counters = [i for i in heads if numbers[i].column.tier == "counter"]
    determined = _determined(counters, numbers)
    for head in heads:
        others = [i for i in members[head] if i != head]
        candidate = _candidate(numbers[head], (names[head], *sorted(names[i] for i in others)), values[head])
        if head in determined:
            prepared.determined[names[head]] = [names[i] for i in determined[head]]
            prepared.reserve[names[head]] = candidate
            prepared.dropped.append(Dropped(names[head], f"deterministic: follows from {', '.join(prepared.determined[names[head]])}"))
            continue
        prepared.within.append(candidate)
        prepared.merged.update({names[i]: _candidate(numbers[i], (names[i],), values[i]) for i in others})
    prepared.numbers = {number.name: Number(number.column, number.name, number.values, number.known) for number in numbers}


def _determined(heads: list[int], numbers: list[Number]) -> dict[int, list[int]]:
    """Return the counters that follow from others, with these. Features of the context are no sums of each other by construction."""
    if not heads:
        return {}
    levels = np.column_stack([numbers[i].centred for i in heads])
    logs = np.column_stack([np.full(levels.shape[0], np.nan) if numbers[i].logs is None else numbers[i].logs for i in heads])
    positive = np.column_stack([numbers[i].positive for i in heads])
    known = np.column_stack([numbers[i].known for i in heads])
    names = [numbers[i].name for i in heads]
    found = determined_columns(levels, logs, known, positive, names, precedence(names))
    return {heads[i]: [heads[j] for j in others] for i, others in found.items()}


def candidate_of(number: Number, rows: Rows, centring: GroupCentring, prepared: Prepared, members: tuple[str, ...]) -> Candidate:
    """Return the candidate of a numeric column after preparation."""
    again = Number(number.column, number.name, number.values, number.known, centring.centred(number.values))
    again.read = relative_to_usual(again.values, again.centred, rows) if again.name in prepared.relative else again.centred
    return _candidate(again, members, _final_values([again])[0])


def _candidate(number: Number, members: tuple[str, ...], values: np.ndarray) -> Candidate:
    column = number.column
    return Candidate(number.name, column.tier, column.group, column.unit, values, members)


def _final_values(numbers: list[Number]) -> list[np.ndarray]:
    """Return the values of numeric columns: winsorised, in standard deviations."""
    step, found = max(1, AT_ONCE // max(numbers[0].centred.size, 1)), []
    for first in range(0, len(numbers), step):
        block = winsorised(np.column_stack([number.read for number in numbers[first : first + step]]))
        found += list(np.ascontiguousarray(block.T, dtype=np.float32))
    return found


def merged_reason(head: str) -> str:
    """Return the reason of a column that another one stands for."""
    return f"merged into {head}: correlation above .95"


def _head(cluster: list[int], numbers: list[Number]) -> int:
    """Return who stands for a cluster: its medoid, but raw columns go before derived ones and facts known at the start before counters."""

    def rank(i: int) -> tuple[bool, bool, int]:
        column = numbers[i].column
        return column.tier == "counter", derived_name(numbers[i].name) or column.unit in RELATIVE_UNITS, cluster.index(i)

    return min(cluster, key=rank)


def winsorised(columns: np.ndarray) -> np.ndarray:
    """Return columns with `WINSOR_SHARE` of the rows pulled in (half at each end), scaled to standard deviation 1, clipped at `CLIP_SD`."""
    low, high = np.quantile(columns, [WINSOR_SHARE / 2, 1 - WINSOR_SHARE / 2], axis=0)
    found = np.clip(columns, low, high)
    found -= found.mean(axis=0)
    spread = found.std(axis=0)
    rare = spread == 0  # varies in fewer rows than are winsorised
    if rare.any():
        found[:, rare] = columns[:, rare] - columns[:, rare].mean(axis=0)
        spread = found.std(axis=0)
    return np.clip(found / np.where(spread > 0, spread, 1.0), -CLIP_SD, CLIP_SD)
