"""User-specified interventions, from the configuration's list `causes/what_if`: answered by the fitted model with an
interval, or refused with the reason.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.causal.data.feature_names import called
from causeway.causal.data.observations import FEWEST_LAUNCHES, Candidate
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate, Outcome, WhatIf
from causeway.causal.effects.evidence import ConfigurationEffect
from causeway.causal.effects.interventions import (
    BEYOND_NEAREST,
    MOMENTS,
    MOST_OUTSIDE,
    NO_LEVER,
    NONE,
    InterventionModel,
    answer,
    intervention_verdict,
    launch_parameter_values,
    level_donors,
    measured_values,
    most_frequent_value,
    out_of_support_reason,
    own_where_missing,
    scaled_target,
    zero_donors,
)
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.time_effects import quantile_donors
from causeway.core.formatting import first_of, setting_value

TOLERANCE = 1e-9


class RefusedError(Exception):
    """An intervention that cannot be answered; the message says why."""


@dataclass(frozen=True, kw_only=True)
class UserIntervention:
    """One entry of `causes/what_if`.

    Attributes
    ----------
    name : str
    kernel : str or None
        The kernels it is for: an id, a part of a full name, or a regular expression; all and the whole dataset if None.
    values : mapping of str to str, number or mapping
        By feature the value to set: a number, a level of a category, `none`, `{"quantile": q}`, or `{"configuration":
        number}` for the value in that configuration.
    """

    name: str
    kernel: str | None
    values: Mapping[str, str | float | Mapping]

    def applies_to(self, scope: str, name: str | None) -> bool:
        """Tell whether the intervention is for a scope, a kernel's id or `dataset`; `name` is a kernel's full name."""
        if self.kernel is None:
            return True
        if name is None:
            return scope == self.kernel
        try:
            expression = re.search(self.kernel, name) is not None
        except re.error:
            expression = False
        return scope == self.kernel or self.kernel in name or expression


def user_interventions_of(entries: Sequence[Mapping]) -> list[UserIntervention]:
    """Return the interventions of the configuration's list."""
    return [
        UserIntervention(name=entry["name"], kernel=entry.get("kernel"), values=dict(entry["set"])) for entry in entries
    ]


def configuration_values(
    table: pa.Table, interventions: Sequence[UserIntervention]
) -> dict[int, dict[str, float | None]]:
    """Return by configuration the values that interventions refer to; nothing where none names a configuration.

    Parameters
    ----------
    table : Table
        `features.parquet` of a scope.
    interventions : sequence of UserIntervention
    """
    wanted = {
        feature
        for intervention in interventions
        for feature, value in intervention.values.items()
        if isinstance(value, Mapping) and "configuration" in value
    }
    wanted &= set(table.column_names)
    if not wanted:
        return {}
    numbers = table.column("configuration").to_numpy()
    values_of: dict[int, dict[str, float | None]] = {}
    for number, row in zip(*np.unique(numbers, return_index=True), strict=True):
        values_of[int(number)] = {feature: table.column(feature)[int(row)].as_py() for feature in wanted}
    return values_of


def without_scope(interventions: Sequence[UserIntervention], scopes: Sequence[tuple[str, str | None]]) -> list[WhatIf]:
    """Return the refusals of the interventions that are for none of the scopes, given by id and full name."""
    left = [
        intervention for intervention in interventions if not any(intervention.applies_to(*scope) for scope in scopes)
    ]
    return [_refused(intervention, f"no analysed kernel is called {intervention.kernel}") for intervention in left]


def user_what_ifs(
    interventions: Sequence[UserIntervention],
    outcome: Outcome,
    model: InterventionModel | None,
    by_configuration: Mapping[int, Mapping[str, float | None]],
) -> list[WhatIf]:
    """Return what the user-specified interventions would change, those that are for the scope.

    Parameters
    ----------
    interventions : sequence of UserIntervention
    outcome : Outcome
    model : InterventionModel or None
        None where no cause was found or the search was refused.
    by_configuration : mapping
        `configuration_values` of the scope.
    """
    rows = []
    for intervention in interventions:
        if any(intervention.applies_to(*scope) for scope in outcome.scope.answered):
            try:
                rows.append(_answer(intervention, outcome, model, by_configuration))
            except RefusedError as refusal:
                rows.append(_refused(intervention, str(refusal)))
    return rows


def _refused(intervention: UserIntervention, why: str) -> WhatIf:
    return WhatIf(
        features=tuple(intervention.values),
        before=("as it was",),
        after=tuple(map(_plain, intervention.values.values())),
        reason=f"refused: {why}",
        user_intervention=intervention.name,
    )


def _plain(value: object) -> str:
    """Return a wanted value in words, before its unit is known."""
    if isinstance(value, Mapping):
        ((kind, number),) = value.items()
        return f"as in configuration {number}" if kind == "configuration" else f"its {100 * number:g}th percentile"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _answer(
    intervention: UserIntervention,
    outcome: Outcome,
    model: InterventionModel | None,
    by_configuration: Mapping[int, Mapping[str, float | None]],
) -> WhatIf:
    if model is None:
        raise RefusedError(outcome.refusal or "no cause was found here that could be set")
    donors: dict[str, np.ndarray] = {}
    moves = []
    used = []
    befores = []
    afters = []
    for feature, wanted in intervention.values.items():
        value = _resolved(feature, wanted, by_configuration)
        arrow = _arrow(feature, model)
        used.append(arrow)
        if arrow.stage == CONFIGURATION:
            effect = model.evidence.effect_of(arrow.name)
            move, before, after = _launched(feature, effect, value, model)
            moves.append((effect, move))
        else:
            donor, before, after = _within(feature, arrow, value, model)
            donors[arrow.name] = donor
        befores.append(before)
        afters.append(after)
    if model.constant_target():
        raise RefusedError("the target is zero as it is")
    return WhatIf(
        features=tuple(intervention.values),
        causes=tuple(arrow.name for arrow in used),
        before=tuple(befores),
        after=tuple(afters),
        user_intervention=intervention.name,
        **_change(used, donors, moves, model),
    )


def _resolved(
    feature: str, wanted: str | float | Mapping, by_configuration: Mapping[int, Mapping[str, float | None]]
) -> str | float | Mapping:
    """Return the value meant by `configuration: N`, other values as they are."""
    if not isinstance(wanted, Mapping) or "configuration" not in wanted:
        return wanted
    number = wanted["configuration"]
    if number not in by_configuration:
        raise RefusedError(
            f"configuration {number} has no launches here; those that have are {first_of(by_configuration)}"
        )
    value = by_configuration[number].get(feature)
    if value is None:
        raise RefusedError(f"configuration {number} has no {feature}")
    return value


def _span(low: float, high: float, unit: str) -> str:
    """Return a range in words."""
    return setting_value(low, unit) if low == high else f"{setting_value(low, unit)} to {setting_value(high, unit)}"


def _arrow(feature: str, model: InterventionModel) -> Arrow:
    """Return the cause that a feature is, or that stands for it."""
    arrows = (*model.within, *model.configured)
    cause = next((arrow for arrow in arrows if feature in arrow.node.members), None)
    if feature in MOMENTS:
        raise RefusedError(NO_LEVER[feature])
    if cause is None:
        if all(column.name != feature for column in model.evidence.columns):
            raise RefusedError(f"nothing called {feature} was measured")
        causes = first_of(arrow.name for arrow in arrows) or "none"
        raise RefusedError(
            f"{called(feature)} is no cause that was found here, so that setting it tells nothing; causes are {causes}"
        )
    return cause


def _launched(
    feature: str, effect: ConfigurationEffect, value: str | float | Mapping, model: InterventionModel
) -> tuple[np.ndarray, str, str]:
    """Return how far a launch parameter moves in each configuration, shape (n_configurations,), and the value before
    and after in words.
    """
    natural, kernel_of = launch_parameter_values(effect, model.evidence.rows)
    position = effect.position
    unit = effect.candidate.unit
    if feature != effect.candidate.name:
        raise RefusedError(f"{called(feature)} changes together with {called(effect.candidate.name)}; set that one")
    if isinstance(value, Mapping):
        value = float(np.quantile(natural, value["quantile"], method="nearest"))
    if isinstance(value, str):
        raise RefusedError(f"{called(feature)} is a number, not {value}")
    moved = np.empty(natural.size)
    for kernel in np.unique(kernel_of):
        of_kernel = np.flatnonzero(kernel_of == kernel)
        low = float(natural[of_kernel].min())
        high = float(natural[of_kernel].max())
        if not low - TOLERANCE * abs(low) <= value <= high + TOLERANCE * abs(high):
            had = f"launches{'' if np.ptp(kernel_of) == 0 else ' of one of the kernels'} had {_span(low, high, unit)}"
            raise RefusedError(f"{called(feature)} of {setting_value(value, unit)} was not observed; {had}")
        order = of_kernel[np.argsort(natural[of_kernel], kind="stable")]
        moved[of_kernel] = _between(value, natural[order], position[order]) - position[of_kernel]
    return moved, setting_value(most_frequent_value(natural, model.times), unit), setting_value(value, unit)


def _between(value: float, natural: np.ndarray, position: np.ndarray) -> float:
    """Return the position of a value between observed ones, on the logarithmic scale of sizes where all are
    positive.
    """
    if natural[0] > 0:
        return float(np.interp(np.log(value), np.log(natural), position))
    return float(np.interp(value, natural, position))


def _within(
    feature: str, arrow: Arrow, value: str | float | Mapping, model: InterventionModel
) -> tuple[np.ndarray, str, str]:
    """Return for each row the donor row whose value of the cause it takes (-1 for none), shape (n_rows,), and the value
    before and after in words.
    """
    candidate = model.evidence.candidate_of(arrow.name)
    times = model.times
    pick = times.used
    weight = times.weight
    values = candidate.values[pick]
    if values.ndim > 1:
        return _level(candidate, value, times), "as it was", str(value)
    raw = measured_values(next(column for column in model.evidence.columns if column.name == feature), pick)
    unit = next(column.unit for column in model.evidence.columns if column.name == feature)
    if isinstance(value, Mapping):
        donor = quantile_donors(values, times.configuration, weight * times.known(arrow.name), value["quantile"])
        return donor, "as it was", f"its {100 * value['quantile']:g}th percentile"
    if value == NONE:
        value = 0.0
    if isinstance(value, str) or raw is None:
        raise RefusedError(f"{called(feature)} is a number, not {value}")
    measured = raw[np.isfinite(raw)]
    low = float(measured.min())
    high = float(measured.max())
    if not low <= value <= high:
        raise RefusedError(
            f"{called(feature)} of {setting_value(value, unit)} was not observed; launches had {_span(low, high, unit)}"
        )
    before = f"as it was (median {setting_value(float(np.median(measured)), unit)})"
    configuration = times.configuration
    if value == 0:
        return zero_donors(values, raw, configuration, weight), before, NONE
    return _nearest(raw, float(value), configuration), before, setting_value(value, unit)


def _level(candidate: Candidate, value: object, times: ScopeTimes) -> np.ndarray:
    numbers = candidate.codes[times.used]
    names = list(candidate.levels)
    wanted = f"{value:g}" if isinstance(value, int | float) else str(value)
    counts = np.bincount(numbers, minlength=len(names))  # what a few launches took is no estimate of others
    seen = sorted(name for name, count in zip(names, counts, strict=True) if count >= FEWEST_LAUNCHES)
    if wanted not in seen:
        raise RefusedError(
            f"{called(candidate.name)} {wanted} was not observed, or hardly; observed were {first_of(seen)}"
        )
    return level_donors(numbers, names.index(wanted), times.configuration)


def _nearest(raw: np.ndarray, value: float, configuration: np.ndarray) -> np.ndarray:
    """Return for each row the donor row of its configuration whose value is nearest, -1 where none is near or the value
    outside their range.
    """
    donors = np.full(raw.size, -1)
    for number in np.unique(configuration):
        rows = np.flatnonzero((configuration == number) & np.isfinite(raw))
        if rows.size and raw[rows].min() <= value <= raw[rows].max():
            row = rows[np.argmin(np.abs(raw[rows] - value))]
            if abs(raw[row] - value) <= BEYOND_NEAREST * raw[rows].std():
                donors[configuration == number] = row
    return donors


def _change(
    arrows: list[Arrow],
    donors: dict[str, np.ndarray],
    moves: list[tuple[ConfigurationEffect, np.ndarray]],
    model: InterventionModel,
) -> dict:
    """Return what an intervention changes, as fields of a `WhatIf`.

    Parameters
    ----------
    arrows : list of Arrow
    donors : dict of str to ndarray, shape (n_used,)
        By cause the donor row of each row.
    moves : list of (ConfigurationEffect, ndarray of shape (n_configurations,))
        How far each launch parameter moves.
    model : InterventionModel

    Notes
    -----
    A launch parameter scales the deviations that the other causes leave. What it does to the mean time is not known:
    configurations differ by more than it.
    """
    fields: dict = {}
    if donors:
        outside = model.outside(donors)
        if outside > MOST_OUTSIDE:
            raise RefusedError(out_of_support_reason(outside).removeprefix("refused: "))
        within = [arrow for arrow in arrows if arrow.stage != CONFIGURATION]
        set_to = {name: own_where_missing(rows) for name, rows in donors.items()}
        fields = answer(arrows, model.times.change(within, set_to), model, set_to)
    if not moves:
        return fields
    ends = [
        scaled_target(np.sum([effect.slopes[end] * move for effect, move in moves], axis=0), model) for end in range(3)
    ]  # the slopes, and both ends of their intervals
    scaled = Estimate(value=ends[0], low=min(ends), high=max(ends))
    other = fields.get("change", Estimate(value=0.0, low=0.0, high=0.0))
    both = Estimate(
        value=_together(scaled.value, other.value),
        low=_together(scaled.low, other.low),
        high=_together(scaled.high, other.high),
    )
    verdict, reason = intervention_verdict(arrows, both.low, both.high)
    return {"change": both, "verdict": verdict, "reason": reason}


def _together(first: float, second: float) -> float:
    """Return the change in percent of two changes one after the other."""
    return 100.0 * ((1.0 + first / 100.0) * (1.0 + second / 100.0) - 1.0)
