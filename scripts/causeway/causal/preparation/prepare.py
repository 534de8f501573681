"""Columns to candidates: every column either becomes a candidate, stands behind one, or is dropped with its reason.

Order of the steps: categories to indicators, missing values, constants, leaked features by name, logarithms of bytes,
centring within configurations, leaked features by data, scales of counters, clusters, winsorising. A column that is
constant within every configuration cannot move the deviation from the configuration's mean; it may only act on its
scale and goes to the configuration level (`discovery.between_configurations`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_names import divided_by_time, leaked_by_name
from causeway.causal.data.observations import Drop, Feature, Observations
from causeway.causal.preparation.categorical import category_candidates, differing_rows, is_repeated, ranks_of
from causeway.causal.preparation.exact_images import IMAGE, has_time_unit, images_of_leaked, keeps_order, product_images
from causeway.causal.preparation.leak_attribution import LeakAttribution, calculated_from
from causeway.causal.preparation.numeric_columns import (
    NumericColumn,
    better_standardised,
    each_winsorised,
    final_values,
    numeric_column,
    standardised_within_configuration,
    winsorised,
)
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.preparation.target_leakage import ExactRelations, correlation_matrix, leaked_features
from causeway.causal.statistics.basis import GroupCentring, cluster_columns, medoids, normal_scores
from causeway.core.feature_registry import FEATURES, feature_words
from causeway.core.formatting import counted
from causeway.numeric.effective_size import kish_size

CONTROL_NAMES = frozenset(feature.name for feature in FEATURES if feature.is_control)
"""Nuisance columns: entered like candidates so that they take away what they explain, never reported as causes."""
LEAKED = "follows from the measured value itself (exactly, with at most one other column)"
"""Why a leaked feature that the data gave away is no candidate."""


def prepare(
    columns: Sequence[Feature], rows: Observations, target: str, excluded: Mapping[str, tuple[str, Drop]] | None = None
) -> Prepared:
    """Turn measured columns into candidates.

    Parameters
    ----------
    columns : sequence of Feature
        In any order; equal names are told apart by `#2`, `#3`.
    rows : Observations
    target : str
        The target's name, e.g. `gpu_time`: a counter of that name is the target itself.
    excluded : mapping of str to (str, Drop), optional
        Columns that must be no candidates, with the reason.

    Returns
    -------
    Prepared
        The same for any order of the columns but for ties between equal columns.
    """
    names = unique_names(str(column.name) for column in columns)
    prepared = Prepared(names)
    centring = GroupCentring(rows.configuration, rows.weight)
    numbers: list[NumericColumn] = []
    categories: list[tuple[str, Feature]] = []
    by_name: list[NumericColumn] = []
    for name, column in zip(names, columns, strict=True):
        if (reason := (excluded or {}).get(column.name)) is not None:
            prepared.drop(name, *reason)
        elif column.tier == "counter" and leaked_by_name(column.name, target):
            what = "its name says that it is the measured time itself, cycles, or a rate per time"
            prepared.drop(name, what, Drop.LEAKED_BY_NAME)
            by_name += _numbers_of(column, name, rows)
        elif column.tier == "counter" and divided_by_time(column.raw):
            what = f"its name in the export, {column.raw}, says that it was divided by the measured time"
            prepared.drop(name, what, Drop.LEAKED_BY_NAME)
            by_name += _numbers_of(column, name, rows)
        elif column.values.dtype == object:
            categories.append((name, column))
        else:
            number = numeric_column(column, name, rows)
            if isinstance(number, str):
                prepared.drop(name, number)
                continue
            numbers.append(number)
            missing = int((~number.recorded).sum())
            if missing and name not in CONTROL_NAMES:  # the first launch of each kernel has none before it
                words = counted(missing, "missing or infinite value")
                what = feature_words(name, column.group)
                prepared.notes.append(f"{what}: {words} set to the mean of their configuration")
    ranks = ranks_of(columns, len(rows))
    _add_categories(categories, rows, centring, ranks, prepared)
    numbers = _varying_within(numbers, rows, centring, ranks, prepared)
    if numbers:
        numbers = _without_leaked(numbers, by_name, rows, centring, prepared)
    if numbers:
        _choose_scales(numbers, rows, prepared)
        _cluster(numbers, prepared)
    return prepared.complete()


def leaked_columns(columns: Sequence[Feature], rows: Observations, target: str) -> list[str]:
    """Return the names of the columns that follow from the measured value itself, in order; arguments as of
    `prepare`.
    """
    return [drop.feature for drop in prepare(columns, rows, target).dropped if drop.kind == Drop.LEAKED]


def _numbers_of(column: Feature, name: str, rows: Observations) -> list[NumericColumn]:
    """Return a column that is no candidate as a number; nothing if it is text or of no use."""
    number = name if column.values.dtype == object else numeric_column(column, name, rows)
    return [] if isinstance(number, str) else [number]


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names, equal ones told apart by `#2`, `#3`."""
    unique: dict[str, None] = {}
    seen: dict[str, int] = {}
    for name in names:
        own = name
        while own in unique:
            seen[name] = seen.get(name, 1) + 1
            own = f"{name}#{seen[name]}"
        unique[own] = None
    return list(unique)


def _add_categories(
    categories: list[tuple[str, Feature]],
    rows: Observations,
    centring: GroupCentring,
    ranks: np.ndarray,
    prepared: Prepared,
) -> None:
    """Add the candidates of text columns, those that group the rows alike merged."""
    candidates, dropped = category_candidates(categories, ranks)
    for drop in dropped:
        prepared.drop(drop.feature, drop.reason, drop.kind)
    for candidate in candidates:
        constant = not centring.varies(candidate.codes)
        values = candidate.values[_first_rows(rows)] if constant else candidate.values
        prepared.add(replace(candidate, values=values, members=(candidate.name,)), between=constant)
        others = [name for name in candidate.members if name != candidate.name]
        prepared.merge(candidate.name, dict.fromkeys(others), "it groups the rows alike")


def _first_rows(rows: Observations) -> np.ndarray:
    """Return the position of the first row of each configuration."""
    return np.unique(rows.configuration, return_index=True)[1]


def _varying_within(
    numbers: list[NumericColumn], rows: Observations, centring: GroupCentring, ranks: np.ndarray, prepared: Prepared
) -> list[NumericColumn]:
    """Send columns that are constant within configurations to the configuration level, drop those that differ in a few
    launches only; centre and return the others.
    """
    kept = []
    for number in numbers:
        if not centring.varies(number.values):
            prepared.add(number.candidate(number.values[_first_rows(rows)]), between=True)
            continue
        differing = differing_rows(number.values, number.recorded, rows)
        if not is_repeated(differing, ranks):
            few = counted(int(np.count_nonzero(differing)), "launch")
            prepared.drop(number.name, f"constant within configurations but for {few}")
        else:
            number.centre(centring)
            kept.append(number)
    return kept


def _without_leaked(
    numbers: list[NumericColumn],
    by_name: list[NumericColumn],
    rows: Observations,
    centring: GroupCentring,
    prepared: Prepared,
) -> list[NumericColumn]:
    """Drop counters that follow from the measured value; facts known at the launch's start cannot. `by_name` are those
    that were dropped for their names.
    """
    measured = rows.mean + rows.signed
    counters = [i for i, number in enumerate(numbers) if number.is_counter]
    leaked = _products_with_time(numbers, measured) | _in_order_of_time(numbers, measured)
    size = kish_size(rows.weight) * (1 - centring.n_groups / len(rows))
    in_levels: list[np.ndarray | None] = [n.centred for n in numbers]
    scales = [(False, centring.centred(measured), in_levels)]
    if np.all(measured > 0):  # before levels, in which a rate is tied to its amount only nearly
        scales.insert(0, (True, centring.centred(np.log(measured)), [n.logs for n in numbers]))
    for logarithmic, centred, series in scales:
        held = {i: column for i in counters if (column := series[i]) is not None and not leaked[i]}
        positions = list(held)
        if positions:
            columns = np.column_stack([column.astype(np.float32) for column in held.values()])
            further = [n.centred for i, n in enumerate(numbers) if i not in positions and not leaked[i]]
            attribution = LeakAttribution(
                measured=centred,
                columns=columns,
                further=[*further, *(candidate.values for candidate in prepared.within)],
                raw=[numbers[i].column.values for i in positions],
                raw_measured=measured,
                centring=centring,
                size=size,
            )
            relations = ExactRelations(
                centred,
                columns,
                logarithmic=logarithmic,
                level=1.0 if logarithmic else float(np.average(measured, weights=rows.weight)),
                in_time_unit=np.asarray([has_time_unit(numbers[i].column.unit) for i in positions]),
                as_measured=attribution.exact_as_measured,
            )
            computed = np.asarray([numbers[i].is_computed for i in positions])
            leaked[positions] |= leaked_features(relations, computed, attribution.leaked_member)
    for i in np.flatnonzero(leaked):
        prepared.drop(numbers[i].name, LEAKED, Drop.LEAKED)
    sources = [*by_name, *(number for number, drop in zip(numbers, leaked, strict=True) if drop)]
    kept = [number for number, drop in zip(numbers, leaked, strict=True) if not drop]
    images = images_of_leaked(kept, sources)
    for name, source in images.items():
        prepared.drop(name, f"{IMAGE}: {source}", Drop.LEAKED)
    return [number for number in kept if number.name not in images]


def _products_with_time(numbers: list[NumericColumn], measured: np.ndarray) -> np.ndarray:
    """Return which columns times or divided by the time are an affine function of another one, shape (n_columns,)."""
    products = np.zeros(len(numbers), dtype=bool)
    whole = [i for i, number in enumerate(numbers) if number.recorded.all()]
    if np.all(measured > 0):
        raw = [np.asarray(numbers[i].column.values, dtype=float) for i in whole]
        products[whole] = product_images(raw, [numbers[i].is_counter for i in whole], measured, calculated_from)
    return products


def _in_order_of_time(numbers: list[NumericColumn], measured: np.ndarray) -> np.ndarray:
    """Return which counters rise or fall with the time over all launches, shape (n_columns,)."""
    raw = [np.asarray(number.column.values, dtype=float) for number in numbers]
    return np.asarray(
        [
            number.is_counter and keeps_order(values[number.recorded], measured[number.recorded])
            for number, values in zip(numbers, raw, strict=True)
        ],
        dtype=bool,
    )


def _choose_scales(numbers: list[NumericColumn], rows: Observations, prepared: Prepared) -> None:
    """Decide of each counter whether the search takes it in its unit, or standardised within configurations."""
    for number in numbers:
        number.searched = number.standardised = number.centred
    counters = [number for number in numbers if number.is_counter]
    if not counters or np.all(rows.configuration == rows.configuration[0]):
        return
    for number in counters:
        number.standardised = standardised_within_configuration(number.values, number.centred, rows)
    in_unit = [*each_winsorised([number.centred for number in counters])]
    better = better_standardised(in_unit, [*each_winsorised([number.standardised for number in counters])], rows)
    chosen = [number for number, is_better in zip(counters, better, strict=True) if is_better]
    for number in chosen:
        number.searched = number.standardised
    prepared.on_two_scales = frozenset(number.name for number in counters)
    prepared.standardised = frozenset(number.name for number in chosen)
    if chosen:
        prepared.notes.append(
            f"{len(chosen)} of {len(counters)} counters are standardised within their configuration, not taken in their"
            " unit"
        )


def _cluster(numbers: list[NumericColumn], prepared: Prepared) -> None:
    """Merge columns that move together, winsorise; add the candidates."""
    names = [number.name for number in numbers]
    standardised = np.column_stack(
        [number.standardised.astype(np.float32) for number in numbers]
    )  # else the largest kernels alone would decide
    similarity = np.abs(correlation_matrix(winsorised(standardised)))
    scores = np.column_stack([normal_scores(number.standardised).astype(np.float32) for number in numbers])
    np.maximum(similarity, np.abs(correlation_matrix(scores - scores.mean(axis=0))), out=similarity)
    del scores
    clusters = medoids(similarity, cluster_columns(similarity), names)
    del similarity
    members = {_representative(cluster, numbers): cluster for cluster in clusters.values()}
    values = final_values(numbers)
    for head, cluster in members.items():
        prepared.add(numbers[head].candidate(values[head]))
        prepared.merge(names[head], {names[i]: numbers[i].candidate(values[i]) for i in cluster if i != head})
    prepared.keep_numbers({number.name: replace(number, logs=None) for number in numbers})  # as measured: less memory


def _representative(cluster: list[int], numbers: list[NumericColumn]) -> int:
    """Return who stands for a cluster: its medoid, but raw columns go before derived ones and facts known at the
    start before counters.
    """
    return min(cluster, key=lambda i: (numbers[i].is_counter, numbers[i].is_derived, cluster.index(i)))
