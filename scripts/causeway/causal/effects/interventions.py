"""What-if: what setting one cause to a value that was observed would do to the time, and to the target.

Which values are tried, whether they were observed, and which of them is stated; `scope_times` says what follows. The
target is mostly a deviation: after an intervention the configuration has a new mean, from which launches deviate.

A cause may be set to values that were observed, alone and together with the other causes (`Support`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from causeway.causal.data.feature_names import PROGRAM_ORDER
from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate, Verdict, WhatIf
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.scope_times import Change, RowDonors, ScopeTimes
from causeway.causal.effects.time_effects import TAIL_Z, quantile_donors
from causeway.causal.preparation.categorical import LEAST_SHARE, listed
from causeway.core.feature_registry import FEATURES, MISSING_VALUES
from causeway.core.formatting import setting_value
from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.schemas.launch_threads import thread_sizes
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED

MOST_OUTSIDE = 0.1
"""Share of the launches that an intervention may bring where none was observed: farther from the nearest launch than
all but such a share are from theirs.
"""
BEYOND_NEAREST = 0.5
"""Standard deviations that a setting may lie from the nearest launch beyond that distance."""
SUPPORT_ROWS = 1000
"""So many launches, evenly spread, are asked whether an intervention brings them where none was observed."""
QUANTILES = {0.1: "10th percentile", 0.5: "median", 0.9: "90th percentile"}
NONE_OF = frozenset(feature.name for feature in FEATURES if feature.at_zero)
"""Features that one would set to zero: nothing else in flight."""
NONE = "none"


@dataclass(frozen=True)
class Setting:
    """One value that a cause is set to.

    Attributes
    ----------
    before, after : str
        The value as it was and as it is set, in words.
    donor : ndarray of int, shape (n_rows,)
        For each row the row whose value it takes, or -1 where the value lies outside what was observed.
    """

    before: str
    after: str
    donor: np.ndarray


class Support:
    """What was observed of all causes together: an intervention may not combine them as no launch ever did.

    Parameters
    ----------
    values : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes as candidates hold them.
    """

    def __init__(self, values: list[np.ndarray]) -> None:
        from scipy.spatial import cKDTree

        self.parts = [
            value[:, None].astype(float) if value.ndim == 1 else TAIL_Z * value.astype(float) for value in values
        ]
        self.points = np.hstack(self.parts)
        self.own = np.arange(0, len(self.points), max(1, len(self.points) // SUPPORT_ROWS))
        self.tree = cKDTree(self.points)
        near = self.tree.query(self.points[self.own], k=2)[0][:, 1]
        self.limit = float(np.quantile(near, 1 - MOST_OUTSIDE)) + BEYOND_NEAREST

    def outside(self, donors: Mapping[int, np.ndarray], weight: np.ndarray) -> float:
        """Return the share of the launches, 0 to 1, that an intervention would make unlike any launch.

        Parameters
        ----------
        donors : mapping of int to ndarray of int, shape (n_rows,)
            For each cause that is set, by its position: the row whose value each row takes, -1 for none.
        weight : ndarray of float, shape (n_rows,), positive
        """
        missing = np.any([donor < 0 for donor in donors.values()], axis=0)
        parts = [
            part[donors[cause][self.own]] if cause in donors else part[self.own]
            for cause, part in enumerate(self.parts)
        ]
        far = (self.tree.query(np.hstack(parts))[0] > self.limit) | missing[self.own]
        return float(weight[self.own][far].sum() / weight[self.own].sum())


def measured_values(column: Feature, pick: np.ndarray) -> np.ndarray | None:
    """Return a feature's values in some rows as measured, None for text.

    Parameters
    ----------
    column : Feature
    pick : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of float, shape (n_rows,), or None
        NaN where missing.
    """
    values = np.asarray(column.values)
    return None if values.dtype == object else values[pick].astype(float)


def settings_of(arrow: Arrow, times: ScopeTimes) -> list[Setting]:
    """Return what a cause that varies within configurations may be set to.

    Values are those that launches of the same configuration had; donor rows are positions among the used rows.
    """
    candidate = times.candidates[arrow.name]
    values = candidate.values[times.used]
    if values.ndim > 1:
        groups = times.compared[arrow.name].groups
        return [Setting("as it was", listed(groups.fast), groups.low)] if groups.fast else []
    weight = times.weight * times.known(arrow.name)
    column = next((column for column in times.evidence.columns if column.name == candidate.name), None)
    raw = None if column is None else measured_values(column, times.used)
    alone = np.unique(times.configuration).size == 1
    middle = None if raw is None else float(np.median(raw[np.isfinite(raw)]))
    before = "as it was" if middle is None else f"as it was (median {setting_value(middle, candidate.unit)})"
    settings = []
    seen: list[np.ndarray] = []
    for share, name in QUANTILES.items():
        donor = quantile_donors(values, times.configuration, weight, share)
        zero = raw is not None and candidate.name in NONE_OF and not np.any(raw[donor])
        if zero or any(np.array_equal(values[donor], other) for other in seen):
            continue
        seen.append(values[donor])
        after = (
            f"{setting_value(float(raw[donor[0]]), candidate.unit)} ({name})"
            if alone and raw is not None and np.isfinite(raw[donor[0]])
            else f"the {name} within each configuration"
        )
        settings.append(Setting(before, after, donor))
    if candidate.name in NONE_OF and raw is not None:
        settings.append(Setting(before, NONE, zero_donors(values, raw, times.configuration, weight)))
    return settings


def level_donors(numbers: np.ndarray, level: int, configuration: np.ndarray) -> np.ndarray:
    """Return for each row one of its configuration with a level, -1 where no launch of it has that.

    Parameters
    ----------
    numbers : ndarray of int, shape (n_rows,)
        The number of each row's level.
    level : int
    configuration : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    first = np.full(int(configuration.max()) + 1, -1)
    with_level = np.flatnonzero(numbers == level)[::-1]
    first[configuration[with_level]] = with_level
    return first[configuration]


def zero_donors(values: np.ndarray, raw: np.ndarray, configuration: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each row one of its configuration where the feature is zero.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        The cause as its candidate holds it.
    raw : ndarray of float, shape (n_rows,)
        As measured.
    configuration : ndarray of int, shape (n_rows,)
    weight : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    ndarray of int, shape (n_rows,)
        -1 where too few launches of the configuration (or none) are at zero for that to be observed.
    """
    donor = np.full(values.size, -1)
    for number in np.unique(configuration):
        rows = np.flatnonzero(configuration == number)
        zero = rows[raw[rows] == 0]
        if weight[zero].sum() >= LEAST_SHARE * weight[rows].sum():
            donor[rows] = zero[0]
    return donor


MOMENTS = frozenset(feature.name for feature in FEATURES if not feature.is_lever)
NO_LEVER = dict.fromkeys(MOMENTS, "a moment cannot be set; it stands for whatever changes with time") | dict.fromkeys(
    PROGRAM_ORDER, "the order of the program cannot be set; it stands for what each launch works on"
)
"""Why each of `MOMENTS` is refused."""
GRID = frozenset(name for name in GRID_AND_BLOCK if name.startswith("grid"))
"""Launch parameters that a program mostly takes from the size of its data."""
BLOCK = frozenset(GRID_AND_BLOCK) - GRID
OF_THE_WORK = "refused: the grid follows the size of the work: no launch had as many threads in blocks of another size"
MORE_THREADS = "refused: blocks of another size are more or fewer threads: no launch had as many in such blocks"
NOT_TOLD = "refused: it is not known whether grids count blocks or threads, so not which launches do as much work"
NO_OTHER = "refused: no kernel was launched with another value"


class InterventionModel:
    """What the what-ifs of a scope are computed from.

    Parameters
    ----------
    times : ScopeTimes
    arrows : sequence of Arrow

    Attributes
    ----------
    evidence : Evidence
        What the causes were read from.
    within, configured : list of Arrow
        Causes that vary within configurations, and those at the configuration level. Whether a column is recorded is
        none: nobody sets it, and a launch without a value may be set to any.
    """

    def __init__(self, times: ScopeTimes, arrows: Sequence[Arrow]) -> None:
        self.times = times
        self.evidence = times.evidence
        self.within = [arrow for arrow in arrows if arrow.stage != CONFIGURATION and arrow.node.group != MISSING_VALUES]
        self.configured = [arrow for arrow in arrows if arrow.stage == CONFIGURATION]

    @cached_property
    def support(self) -> Support:
        """What was observed of the causes within configurations, of which there is one."""
        return Support([self.times.values[arrow.name][self.times.used] for arrow in self.within])

    def outside(self, donors: Mapping[str, np.ndarray]) -> float:
        """Return the share of the launches, 0 to 1, that donors would make unlike any launch.

        Parameters
        ----------
        donors : mapping of str to ndarray of int, shape (n_used,)
            By cause the row whose value each row takes, -1 for none.
        """
        positions = {arrow.name: index for index, arrow in enumerate(self.within)}
        return self.support.outside({positions[name]: rows for name, rows in donors.items()}, self.times.weight)

    def constant_target(self) -> bool:
        """Tell whether the target is zero in all used rows."""
        return not np.any(self.evidence.rows.target[self.times.used])


def what_ifs(model: InterventionModel, arrows: Sequence[Arrow]) -> list[WhatIf]:
    """Return for each cause what setting it would change.

    Each cause is set to the observed level that takes least time (numbers: 10th percentile, median or 90th percentile
    within the configuration; categories: each level but the one that raises the target; launch parameters: each value
    with which the kernel was launched), and, where it counts what else is in flight, to none. Where no level is known
    to take less time than was observed, the level with the smallest target is stated. What names a moment (`MOMENTS`)
    is no lever and is refused.

    Returns
    -------
    list of WhatIf
        By arrow. `change` is that of the mean absolute deviation (of the mean, where the target is measured and not a
        deviation); `verdict` is `refused` for a value outside the observed range.
    """
    rows_of: dict[str, list[WhatIf]] = {}
    for arrow in model.within:
        if arrow.name in MOMENTS:
            other = "another order" if arrow.name in PROGRAM_ORDER else "another time"
            rows_of[arrow.name] = [_row(arrow, "as it was", other, reason=f"refused: {NO_LEVER[arrow.name]}")]
        else:
            rows_of[arrow.name] = _rows_within(arrow, model)
    for arrow in model.configured:
        rows_of[arrow.name] = _configuration_rows(arrow, model)
    return [row for arrow in arrows for row in rows_of.get(arrow.name, [])]


def _row(arrow: Arrow, before: str, after: str, **result) -> WhatIf:
    """Return what setting one cause would change; refused with a `reason` if `change` and `verdict` are not given."""
    return WhatIf(features=(arrow.name,), causes=(arrow.name,), before=(before,), after=(after,), **result)


def _rows_within(arrow: Arrow, model: InterventionModel) -> list[WhatIf]:
    """Return the rows of a cause that varies within configurations: the setting that takes least time, or if none is
    known to save any that with the smallest target; and none in flight.
    """
    settings = settings_of(arrow, model.times)
    if not settings:
        return []
    if model.constant_target():
        return [_row(arrow, settings[0].before, settings[0].after, reason="refused: the target is zero as it is")]
    outside = [model.outside({arrow.name: setting.donor}) for setting in settings]
    donors = [{arrow.name: own_where_missing(setting.donor)} for setting in settings]
    possible = [number for number, share in enumerate(outside) if share <= MOST_OUTSIDE]

    @cache
    def change_to(number: int) -> Change:
        return model.times.change([arrow], donors[number])

    means = {number: model.times.mean_changes([arrow], [{}, donors[number]])[0] for number in possible}
    best = min(possible, key=lambda number: means[number].value, default=0)
    if possible and not means[best].high < 0:
        best = min(possible, key=lambda number: change_to(number).target.value)
    rows = []
    for number, setting in enumerate(settings):
        if number == best or setting.after == NONE:
            fields: dict = {"reason": out_of_support_reason(outside[number])}
            if number in possible:
                fields = answer([arrow], change_to(number), model, donors[number])
            rows.append(_row(arrow, setting.before, setting.after, **fields))
    return rows


def own_where_missing(donor: np.ndarray) -> np.ndarray:
    """Return donor rows with the row itself where there is none.

    Parameters
    ----------
    donor : ndarray of int, shape (n_rows,)
        Positions, -1 for none.

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    return np.where(donor < 0, np.arange(donor.size), donor)


def answer(arrows: Sequence[Arrow], change: Change, model: InterventionModel, donors: RowDonors) -> dict:
    """Return what an intervention on some causes changes, as fields of a `WhatIf`; `donors` made `change`."""
    target = change.target
    verdict, reason = intervention_verdict(arrows, target.low, target.high)
    if verdict == INCONCLUSIVE and (change.mean.low > 0 or change.mean.high < 0):
        verdict, reason = intervention_verdict(arrows, change.mean.low, change.mean.high)
    return {
        "change": Estimate(value=target.value, low=max(target.low, -100.0), high=target.high),
        "verdict": verdict,
        "reason": reason,
        "mean_change": change.mean,
        "p99_change": change.p99,
        "saved": model.times.saved([arrow for arrow in arrows if arrow.stage != CONFIGURATION], donors),
    }


def out_of_support_reason(outside: float) -> str:
    """Return the reason of a refusal: what share of the launches would be unlike any."""
    return (
        f"refused: outside what was observed, alone or together with the other causes, for {100 * outside:.0f} % of the"
        " launches"
    )


def intervention_verdict(arrows: Sequence[Arrow], low: float, high: float) -> tuple[Verdict, str | None]:
    """Return the verdict of a what-if that rests on some causes, and its reason."""
    weak = next((arrow for arrow in arrows if arrow.verdict != SUPPORTED), None)
    if weak is not None:
        return weak.verdict, "the cause itself is not supported"
    if low <= 0 <= high:
        return INCONCLUSIVE, "the interval holds no change"
    return SUPPORTED, None


def launch_parameter_values(effect: ConfigurationEffect, rows: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Return a launch parameter's value in each configuration, and the kernel of each.

    Returns
    -------
    natural : ndarray of float, shape (n_configurations,)
        In the parameter's unit.
    kernel_of : ndarray of int, shape (n_configurations,)
    """
    natural = np.asarray(effect.candidate.values, dtype=float)
    if effect.candidate.unit == "bytes":
        natural = np.expm1(natural)
    kernel_of = np.zeros(natural.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    return natural, kernel_of


def most_frequent_value(natural: np.ndarray, times: ScopeTimes, chosen: np.ndarray | None = None) -> float:
    """Return the value of the configuration with most launches.

    Parameters
    ----------
    natural : ndarray of float, shape (n_configurations,)
        In the parameter's unit.
    times : ScopeTimes
    chosen : ndarray of bool, shape (n_configurations,), or None
        The configurations that are looked at; None for all.
    """
    launches = np.bincount(times.configuration, times.weight, natural.size)
    return float(natural[np.argmax(launches if chosen is None else np.where(chosen, launches, -1.0))])


def scaled_target(gain: np.ndarray, model: InterventionModel) -> float:
    """Return the change in percent of the mean target where that of each configuration is scaled.

    Parameters
    ----------
    gain : ndarray of float, shape (n_configurations,)
        Logarithm of the factor. Each kernel counts alike, however long its launches take.
    model : InterventionModel
    """
    times = model.times
    rows = times.evidence.rows
    size = times.weight * np.abs(rows.target[times.used])
    kernel = rows.kernel[times.used]
    totals = np.bincount(kernel, size) / np.bincount(kernel, times.weight)
    parts = size / np.where(totals > 0, totals, 1.0)[kernel]
    return 100.0 * (float(parts @ np.exp(gain)[times.configuration]) / float(parts.sum()) - 1.0)


def _grid_counts(evidence: Evidence) -> str:
    """Return what grids count; empty where none was measured."""
    return next((column.counts for column in evidence.columns if column.name in GRID), "")


def _threads(evidence: Evidence, n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the threads of a launch of each configuration and those of one of its blocks, float, shape (n,), as far as
    they were measured: a size that was not counts as 1. None where grids do not tell threads.
    """
    names = thread_sizes(_grid_counts(evidence))
    if names is None:
        return None
    threads, of_block = np.ones((2, n))
    for column in evidence.columns:
        if column.name in GRID_AND_BLOCK:
            size = np.ones(n)
            size[evidence.rows.configuration] = np.nan_to_num(np.asarray(column.values, float), nan=1.0)
            threads *= size if column.name in names else 1.0
            of_block *= size if column.name in BLOCK else 1.0
    return threads, of_block


def _is_of_work(arrow: Arrow, evidence: Evidence) -> bool:
    """Tell whether a launch parameter says how much work a launch does: a grid, or a block where grids are known."""
    members = set(arrow.node.members)
    return bool(members & GRID) or (bool(members & BLOCK) and _grid_counts(evidence) != "")


def _best_values(arrow: Arrow, kernel_of: np.ndarray, evidence: Evidence) -> np.ndarray:
    """Return for each configuration that whose value of a launch parameter varies least, of the same kernel, and of a
    grid or a block, of those with as many threads, but for less than a block, in blocks of another size; int, shape
    (n_configurations,). Where the threads are not known, a grid or block stays.

    More threads in a larger grid or larger blocks are more data, as far as is known, and as many blocks in other
    directions data of another shape: only where as many threads stand in other blocks does the program set them.
    """
    effect = evidence.effect_of(arrow.name)
    gain = effect.slope * effect.position
    best = np.arange(gain.size)
    is_of_work = _is_of_work(arrow, evidence)
    sizes = _threads(evidence, gain.size) if is_of_work else (best, best)
    if sizes is None:
        return best
    threads, of_block = sizes
    for kernel in np.unique(kernel_of):
        of_kernel = np.flatnonzero(kernel_of == kernel)
        best[of_kernel] = of_kernel[np.argmin(gain[of_kernel])]
        for number in of_kernel if is_of_work else ():
            alike = np.abs(threads[of_kernel] - threads[number]) < np.maximum(of_block[of_kernel], of_block[number])
            free = of_kernel[(alike & (of_block[of_kernel] != of_block[number])) | (of_kernel == number)]
            best[number] = free[np.argmin(gain[free])]
    return best


def _why_none(arrow: Arrow, evidence: Evidence) -> tuple[str, str]:
    """Return what a launch parameter is not set to, and why not."""
    is_grid = not GRID.isdisjoint(arrow.node.members)
    if not _is_of_work(arrow, evidence):
        return "another value", NO_OTHER
    after = "another grid" if is_grid else "another block"
    if thread_sizes(_grid_counts(evidence)) is None:
        return after, NOT_TOLD
    return after, OF_THE_WORK if is_grid else MORE_THREADS


def _configuration_rows(arrow: Arrow, model: InterventionModel) -> list[WhatIf]:
    """Return the what-if of a launch parameter: every launch with the value, of those its kernel was launched with for
    as much work, that varies least.
    """
    effect = model.evidence.effect_of(arrow.name)
    unit = effect.candidate.unit
    natural, kernel_of = launch_parameter_values(effect, model.evidence.rows)
    best = _best_values(arrow, kernel_of, model.evidence)
    moved = effect.position[best] - effect.position
    if model.constant_target():
        return [_row(arrow, "as it was", "as it was", reason="refused: the target is zero as it is")]
    if not moved.any():
        after, why = _why_none(arrow, model.evidence)
        return [_row(arrow, "as it was", after, reason=why)]
    ends = [scaled_target(slope * moved, model) for slope in effect.slopes]
    change = Estimate(value=ends[0], low=min(ends), high=max(ends))
    is_moved = moved != 0
    before = setting_value(most_frequent_value(natural, model.times, is_moved), unit)
    after = ", ".join(setting_value(value, unit) for value in sorted(set(natural[best[is_moved]].tolist()))[:3])
    if after == before:
        return [_row(arrow, before, after, reason="refused: the best value and the usual one agree to three digits")]
    verdict, reason = intervention_verdict([arrow], change.low, change.high)
    return [_row(arrow, before, after, change=change, verdict=verdict, reason=reason)]
