"""What-if: how much smaller the target would be with one cause set to a value that was observed.

Which values are tried, whether they were observed, and what follows for the target; `counterfactuals` holds the models
that predict the deviations. After an intervention the configuration has a new mean, and launches deviate from that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.causal.data.observations import Observations
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate, WhatIf
from causeway.causal.effects.contributions import MAX_ROWS, WINSOR
from causeway.causal.effects.counterfactuals import (
    CrossFittedModels,
    ResampledModels,
    TargetSize,
    counterfactual_deviation,
    dowhy_counterfactual,
    own_where_missing,
)
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.intervention_values import NONE, Setting, Support, settings_of
from causeway.core.feature_registry import FEATURES
from causeway.core.formatting import setting_value
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED
from causeway.numeric.block_resampling import resampled_rows

DRAWS = 40
"""Resamples of blocks behind an interval."""
MAX_OUTSIDE = 0.1
"""Share of the launches that an intervention may bring where none was observed."""
NORMAL_QUANTILE = 1.96
"""Half width of a 95 % interval in standard errors."""
MOMENTS = frozenset(feature.name for feature in FEATURES if not feature.is_lever)
NO_LEVER = "refused: a moment cannot be set; it stands for whatever changes with time"


@dataclass
class InterventionModel:
    """What the what-ifs of a scope are computed from.

    Attributes
    ----------
    evidence : Evidence
    pick : ndarray of int, shape (n_rows,)
        The rows of the evidence that are used.
    within : list of Arrow
        Causes that vary within configurations; `models`, `resampled` and `support` are of them and None without any.
    configured : list of Arrow
        Causes at the configuration level.
    target_size : TargetSize
    """

    evidence: Evidence
    pick: np.ndarray
    within: list[Arrow]
    configured: list[Arrow]
    target_size: TargetSize
    models: CrossFittedModels | None = None
    resampled: ResampledModels | None = None
    support: Support | None = None


def intervention_model_of(evidence: Evidence, arrows: Sequence[Arrow], seed: int) -> InterventionModel:
    """Fit the structural model of a scope to its causes."""
    rng = np.random.default_rng(seed)
    blocks = evidence.stages.blocks
    pick = np.arange(len(evidence.rows))
    if pick.size > MAX_ROWS:
        pick = np.sort(rng.permutation(pick.size)[:MAX_ROWS])
    deviation = evidence.deviation[pick]
    rows = evidence.rows
    bound = WINSOR * np.sqrt(np.average(deviation**2, weights=rows.weight[pick]))
    deviation = np.clip(deviation, -bound, bound)
    unit = _units(rows)[pick]
    target_size = TargetSize(
        deviation,
        evidence.spread[pick] / unit,
        rows.target[pick] / unit,
        rows.weight[pick],
        rows.configuration[pick],
        rows.absolute,
    )
    within = [arrow for arrow in arrows if arrow.stage != CONFIGURATION]
    model = InterventionModel(
        evidence, pick, within, [arrow for arrow in arrows if arrow.stage == CONFIGURATION], target_size
    )
    if within:
        blocks = np.unique(blocks[pick], return_inverse=True)[1]
        values = [evidence.candidate_of(arrow).values[pick] for arrow in within]
        model.models = CrossFittedModels(values, deviation, target_size.weight, blocks, int(rng.integers(1 << 31)))
        model.support = Support(values)
        model.resampled = ResampledModels(
            model.models.causes, target_size, [resampled_rows(blocks, rng) for _ in range(DRAWS)]
        )
    return model


def what_ifs(model: InterventionModel, arrows: Sequence[Arrow]) -> list[WhatIf]:
    """Return for each cause what setting it would change.

    Each cause is set to its best observed typical level (numbers: 10th percentile, median or 90th percentile within the
    configuration; categories: each level but the one that raises the target; launch parameters: each value with which
    the kernel was launched), and, where it counts what else is in flight, to none. What names a moment (`MOMENTS`) is
    no lever and is refused.

    Returns
    -------
    list of WhatIf
        By arrow. `change` is that of the mean absolute deviation (of the mean, where the target is measured and not a
        deviation); `verdict` is `refused` for a value outside the observed range.

    Notes
    -----
    The interval holds the estimate of the full model and that of its additive part, each with the spread of the
    additive part under resampling of blocks: which of two models one takes matters as much as which rows, above all for
    the best of several levels.
    """
    found: dict[str, list[WhatIf]] = {}
    for cause, arrow in enumerate(model.within):
        if arrow.name in MOMENTS:
            found[arrow.name] = [_row(arrow, "as it was", "another time", reason=NO_LEVER)]
            continue
        settings = _chosen(settings_of(arrow, model.evidence, model.pick), cause, model)
        found[arrow.name] = [_what_if(arrow, cause, setting, model) for setting in settings]
    for arrow in model.configured:
        found[arrow.name] = _configuration_rows(arrow, model)
    return [row for arrow in arrows for row in found[arrow.name]]


def _units(rows: Observations) -> np.ndarray:
    """Return for each row the mean size of its kernel's target: several kernels count alike, however long they take."""
    sums = np.bincount(rows.kernel, rows.weight * np.abs(rows.target))
    totals = np.bincount(rows.kernel, rows.weight)
    means = sums / totals
    return np.where(means > 0, means, 1.0)[rows.kernel]


def _row(arrow: Arrow, before: str, after: str, **result) -> WhatIf:
    """Return what setting one cause would change; refused with a `reason` if `change` and `verdict` are not given."""
    return WhatIf(features=(arrow.name,), causes=(arrow.name,), before=(before,), after=(after,), **result)


def _chosen(settings: list[Setting], cause: int, model: InterventionModel) -> list[Setting]:
    """Return the setting with the smallest target, and what one would ask for by name: none in flight."""
    target_size = model.target_size
    possible = [
        setting
        for setting in settings
        if model.support.outside({cause: setting.donor}, target_size.weight) <= MAX_OUTSIDE
    ]
    best = min(
        possible,
        key=lambda setting: target_size.mean(
            counterfactual_deviation(model.models, {cause: own_where_missing(setting.donor)})
        ),
        default=settings[0] if settings else None,
    )
    return [setting for setting in settings if setting is best or setting.after == NONE]


def _what_if(arrow: Arrow, cause: int, setting: Setting, model: InterventionModel) -> WhatIf:
    """Return the row of one setting."""
    target_size = model.target_size
    outside = model.support.outside({cause: setting.donor}, target_size.weight)
    now = target_size.mean(target_size.deviation)
    if outside > MAX_OUTSIDE:
        return _row(arrow, setting.before, setting.after, reason=out_of_support_reason(outside))
    if now == 0:
        return _row(arrow, setting.before, setting.after, reason="refused: the target is zero as it is")
    donor = own_where_missing(setting.donor)
    change = 100 * (target_size.mean(dowhy_counterfactual(model.models, cause, donor)) / now - 1)
    linear, around = model.resampled.changes(target_size, {cause: donor})
    low, high = np.quantile(around, [0.025, 0.975])
    low = max(float(min(change, linear) + low), -100.0)
    high = float(max(change, linear) + high)
    verdict, reason = intervention_verdict([arrow], low, high)
    found = Estimate(value=change, low=low, high=high)
    return _row(arrow, setting.before, setting.after, change=found, verdict=verdict, reason=reason)


def out_of_support_reason(outside: float) -> str:
    """Return the reason of a refusal: what share of the launches would be unlike any."""
    return (
        f"refused: outside what was observed, alone or together with the other causes, for {100 * outside:.0f} % of the"
        " launches"
    )


def intervention_verdict(arrows: list[Arrow], low: float, high: float) -> tuple[str, str | None]:
    """Return the verdict of a what-if that rests on some causes, and its reason."""
    weak = next((arrow for arrow in arrows if arrow.verdict != SUPPORTED), None)
    if weak is not None:
        return weak.verdict, "the cause itself is not supported"
    if low <= 0 <= high:
        return INCONCLUSIVE, "the interval holds no change"
    return SUPPORTED, None


def launch_parameter_values(effect: ConfigurationEffect, rows: Observations) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a launch parameter's value in each configuration, the kernel of each, and the error of the slope.

    Returns
    -------
    natural : ndarray of float, shape (n_configurations,)
        In the parameter's unit.
    kernel_of : ndarray of int, shape (n_configurations,)
    error : float
        Standard error of the slope.
    """
    natural = np.asarray(effect.candidate.values, dtype=float)
    if effect.candidate.unit == "bytes":
        natural = np.expm1(natural)
    kernel_of = np.zeros(natural.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    n = effect.n_configurations
    r2 = effect.partial_r2
    return natural, kernel_of, abs(effect.slope) * np.sqrt(max(1 - r2, 0.0) / max(r2, 1e-9) / max(n - 2, 1))


def slope_interval(effect: ConfigurationEffect, error: float) -> tuple[float, float, float]:
    """Return the slope of a launch parameter, and the ends of its interval."""
    half = NORMAL_QUANTILE * error
    return effect.slope, effect.slope - half, effect.slope + half


def most_frequent_value(natural: np.ndarray, target_size: TargetSize) -> float:
    """Return the value, of `natural`, shape (n_configurations,), of the configuration with most launches."""
    return float(natural[np.argmax(np.bincount(target_size.configuration, target_size.weight, natural.size))])


def _configuration_rows(arrow: Arrow, model: InterventionModel) -> list[WhatIf]:
    """Return the what-if of a launch parameter: every launch with the value, of those its kernel was launched with,
    that varies least.
    """
    target_size = model.target_size
    effect = model.evidence.effect_of(arrow)
    unit = effect.candidate.unit
    natural, kernel_of, error = launch_parameter_values(effect, model.evidence.rows)
    best = np.zeros(natural.size, dtype=int)
    for kernel in np.unique(kernel_of):
        mine = np.flatnonzero(kernel_of == kernel)
        best[mine] = mine[np.argmin(effect.slope * effect.position[mine])]
    moved = effect.position[best] - effect.position
    now = target_size.mean(target_size.deviation)
    if now == 0 or not moved.any():
        return [_row(arrow, "as it was", "as it was", reason="every kernel was launched with one value only")]
    ends = [
        100
        * (target_size.mean(target_size.deviation, None, np.exp(slope * moved)[target_size.configuration]) / now - 1)
        for slope in slope_interval(effect, error)
    ]
    change = ends[0]
    low = min(ends)
    high = max(ends)
    before = setting_value(most_frequent_value(natural, target_size), unit)
    after = ", ".join(setting_value(value, unit) for value in sorted(set(natural[best].tolist()))[:3])
    verdict, reason = intervention_verdict([arrow], low, high)
    found = Estimate(value=change, low=low, high=high)
    return [_row(arrow, before, after, change=found, verdict=verdict, reason=reason)]
