"""User-specified interventions, from the configuration's list `causes/what_if`: answered by the fitted model with an
interval, or refused with the reason.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.causal.data.feature_labels import called
from causeway.causal.data.observations import Candidate
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate, Outcome, WhatIf
from causeway.causal.effects.counterfactuals import counterfactual_deviation, own_where_missing
from causeway.causal.effects.evidence import ConfigurationEffect
from causeway.causal.effects.intervention_values import (
    MIN_SHARE,
    NONE,
    SUPPORT_SLACK,
    measured_values,
    zero_donors,
)
from causeway.causal.effects.interventions import (
    MAX_OUTSIDE,
    MOMENTS,
    NO_LEVER,
    InterventionModel,
    intervention_verdict,
    launch_parameter_values,
    most_frequent_value,
    out_of_support_reason,
    slope_interval,
)
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
    values : mapping of str to object
        By feature the value to set: a number, a level of a category, `none`, `{"quantile": q}`, or `{"configuration":
        number}` for the value in that configuration.
    """

    name: str
    kernel: str | None
    values: Mapping[str, object]

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
    found: dict[int, dict[str, float]] = {}
    for number, row in zip(*np.unique(numbers, return_index=True), strict=True):
        found[int(number)] = {feature: table.column(feature)[int(row)].as_py() for feature in wanted}
    return found


def without_scope(interventions: Sequence[UserIntervention], scopes: Sequence[tuple[str, str | None]]) -> list[WhatIf]:
    """Return the refusals of the interventions that are for none of the scopes, given by id and full name."""
    left = [one for one in interventions if not any(one.applies_to(*scope) for scope in scopes)]
    return [_refused(one, f"no analysed kernel is called {one.kernel}") for one in left]


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
    found = []
    for intervention in interventions:
        if any(intervention.applies_to(*one) for one in outcome.scope.answered):
            try:
                found.append(_answer(intervention, outcome, model, by_configuration))
            except RefusedError as refusal:
                found.append(_refused(intervention, str(refusal)))
    return found


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
    donors: dict[int, np.ndarray] = {}
    moves = []
    used = []
    befores = []
    afters = []
    for feature, wanted in intervention.values.items():
        value = _resolved(feature, wanted, by_configuration)
        arrow = _arrow(feature, model)
        used.append(arrow)
        if arrow.stage == CONFIGURATION:
            effect = model.evidence.effect_of(arrow)
            move, before, after = _launched(feature, effect, value, model)
            moves.append((effect, move))
        else:
            donor, before, after = _within(feature, arrow, value, model)
            donors[model.within.index(arrow)] = donor
        befores.append(before)
        afters.append(after)
    change = _change(donors, moves, model)
    verdict, reason = intervention_verdict(used, change.low, change.high)
    return WhatIf(
        features=tuple(intervention.values),
        causes=tuple(arrow.name for arrow in used),
        before=tuple(befores),
        after=tuple(afters),
        change=change,
        verdict=verdict,
        reason=reason,
        user_intervention=intervention.name,
    )


def _resolved(feature: str, wanted: object, by_configuration: Mapping[int, Mapping[str, float | None]]) -> object:
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
    found = next((arrow for arrow in arrows if feature in arrow.node.members), None)
    if feature in MOMENTS:
        raise RefusedError(NO_LEVER.removeprefix("refused: "))
    if found is None:
        if all(column.name != feature for column in model.evidence.columns):
            raise RefusedError(f"nothing called {feature} was measured")
        causes = first_of(arrow.name for arrow in arrows) or "none"
        raise RefusedError(
            f"{called(feature)} is no cause that was found here, so that setting it tells nothing; causes are {causes}"
        )
    return found


def _launched(
    feature: str, effect: ConfigurationEffect, value: object, model: InterventionModel
) -> tuple[np.ndarray, str, str]:
    """Return how far a launch parameter moves in each configuration, shape (n_configurations,), and the value before
    and after in words.
    """
    natural, kernel_of, _ = launch_parameter_values(effect, model.evidence.rows)
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
        mine = np.flatnonzero(kernel_of == kernel)
        low = float(natural[mine].min())
        high = float(natural[mine].max())
        if not low - TOLERANCE * abs(low) <= value <= high + TOLERANCE * abs(high):
            had = f"launches{'' if np.ptp(kernel_of) == 0 else ' of one of the kernels'} had {_span(low, high, unit)}"
            raise RefusedError(f"{called(feature)} of {setting_value(value, unit)} was not observed; {had}")
        order = mine[np.argsort(natural[mine], kind="stable")]
        moved[mine] = _between(value, natural[order], position[order]) - position[mine]
    return moved, setting_value(most_frequent_value(natural, model.target_size), unit), setting_value(value, unit)


def _between(value: float, natural: np.ndarray, position: np.ndarray) -> float:
    """Return the position of a value between observed ones, on the logarithmic scale of sizes where all are
    positive.
    """
    if natural[0] > 0:
        return float(np.interp(np.log(value), np.log(natural), position))
    return float(np.interp(value, natural, position))


def _within(feature: str, arrow: Arrow, value: object, model: InterventionModel) -> tuple[np.ndarray, str, str]:
    """Return for each row the donor row whose value of the cause it takes (-1 for none), shape (n_rows,), and the value
    before and after in words.
    """
    candidate = model.evidence.candidate_of(arrow)
    pick = model.pick
    weight = model.target_size.weight
    values = candidate.values[pick]
    if values.ndim > 1:
        return _level(candidate, values, value, weight), "as it was", str(value)
    raw = measured_values(next(column for column in model.evidence.columns if column.name == feature), pick)
    unit = next(column.unit for column in model.evidence.columns if column.name == feature)
    if isinstance(value, Mapping):
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weight[order]) / weight.sum()
        row = int(order[min(np.searchsorted(reached, value["quantile"]), order.size - 1)])
        return np.full(pick.size, row), "as it was", f"its {100 * value['quantile']:g}th percentile"
    if value == NONE:
        value = 0.0
    if isinstance(value, str) or raw is None:
        raise RefusedError(f"{called(feature)} is a number, not {value}")
    known = raw[np.isfinite(raw)]
    low = float(known.min())
    high = float(known.max())
    if not low <= value <= high:
        raise RefusedError(
            f"{called(feature)} of {setting_value(value, unit)} was not observed; launches had {_span(low, high, unit)}"
        )
    before = f"as it was (median {setting_value(float(np.median(known)), unit)})"
    configuration = model.target_size.configuration
    if value == 0:
        return zero_donors(values, raw, configuration, weight), before, NONE
    return _nearest(raw, float(value), configuration), before, setting_value(value, unit)


def _level(candidate: Candidate, values: np.ndarray, value: object, weight: np.ndarray) -> np.ndarray:
    level = (values * np.arange(1, values.shape[1] + 1)).sum(axis=1).astype(int)
    names = list(candidate.levels)
    wanted = f"{value:g}" if isinstance(value, int | float) else str(value)
    shares = np.bincount(level, weight, len(names)) / weight.sum()
    seen = sorted(name for name, share in zip(names, shares, strict=True) if share >= MIN_SHARE)
    if wanted not in seen:
        raise RefusedError(
            f"{called(candidate.name)} {wanted} was not observed, or hardly; observed were {first_of(seen)}"
        )
    return np.full(level.size, int(np.flatnonzero(level == names.index(wanted))[0]))


def _nearest(raw: np.ndarray, value: float, configuration: np.ndarray) -> np.ndarray:
    """Return for each row the donor row of its configuration whose value is nearest, -1 where none is near or the value
    outside their range.
    """
    donors = np.full(raw.size, -1)
    for number in np.unique(configuration):
        mine = np.flatnonzero((configuration == number) & np.isfinite(raw))
        if mine.size and raw[mine].min() <= value <= raw[mine].max():
            row = mine[np.argmin(np.abs(raw[mine] - value))]
            if abs(raw[row] - value) <= SUPPORT_SLACK * raw[mine].std():
                donors[configuration == number] = row
    return donors


def _change(
    donors: dict[int, np.ndarray], moves: list[tuple[ConfigurationEffect, np.ndarray]], model: InterventionModel
) -> Estimate:
    """Return the change of the target's mean size in percent.

    Parameters
    ----------
    donors : dict of int to ndarray, shape (n_rows,)
        By position among `model.within`, the donor row of each row.
    moves : list of (ConfigurationEffect, ndarray of shape (n_configurations,))
        How far each launch parameter moves.
    model : InterventionModel
    """
    target_size = model.target_size
    now = target_size.mean(target_size.deviation)
    if now == 0:
        raise RefusedError("the target is zero as it is")
    if donors:
        outside = model.support.outside(donors, target_size.weight)
        if outside > MAX_OUTSIDE:
            raise RefusedError(out_of_support_reason(outside).removeprefix("refused: "))
        donors = {cause: own_where_missing(rows) for cause, rows in donors.items()}
    slopes = [slope_interval(effect, launch_parameter_values(effect, model.evidence.rows)[2]) for effect, _ in moves]
    ends = []
    for end in range(3):  # the slopes of launch parameters, and both ends of their intervals
        gain = sum((own[end] * move for own, (_, move) in zip(slopes, moves, strict=True)), np.zeros(1))
        factor = np.exp(gain)[target_size.configuration] if moves else 1.0
        after = counterfactual_deviation(model.models, donors) if donors else target_size.deviation
        change = 100 * (target_size.mean(after, None, factor) / now - 1)
        low = high = change
        if donors:
            linear, around = model.resampled.changes(target_size, donors, factor)
            low = float(min(change, linear) + np.quantile(around, 0.025))
            high = float(max(change, linear) + np.quantile(around, 0.975))
        ends.append((change, low, high))
    return Estimate(
        value=ends[0][0], low=max(min(low for _, low, _ in ends), -100.0), high=max(high for _, _, high in ends)
    )
