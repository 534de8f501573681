"""The model of log time behind every stated change, as an estimator that dowhy finds by its name.

    model.estimate_effect(estimand, method_name="backdoor.causeway.causal.models.log_time_estimator.LogTimeEstimator")

It imports dowhy: only a program that has a dowhy model at hand loads it.
"""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from dowhy.causal_estimator import CausalEstimate, CausalEstimator

from causeway.causal.data.observations import Candidate, Feature, Observations
from causeway.causal.data.outcome import Arrow
from causeway.causal.effects.evidence import Evidence
from causeway.causal.effects.interventions import level_donors
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.time_effects import extremes
from causeway.causal.models.scope_model import CONFIGURATION_NODE, IDENTITY
from causeway.causal.preparation.numeric_columns import final_values, numeric_column
from causeway.causal.statistics.basis import GroupCentring, group_means
from causeway.core.errors import CausewayError
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.numeric.block_resampling import block_numbers

SEED = 1


class LogTimeEstimator(CausalEstimator):
    """Total effect by `ScopeTimes`: the change of the mean of the outcome, in its unit.

    The levels are `control_value` and `treatment_value`: of a category two of its levels, of a number dowhy's defaults,
    0 and 1, which stand for the 10th and the 90th percentile within each configuration. Columns of `IDENTITY` in the
    data tell configurations, weights and blocks of dependent launches; without them each launch counts alike, in one
    configuration.
    """

    def fit(self, data: pd.DataFrame, effect_modifier_names: list[str] | None = None) -> "LogTimeEstimator":
        """Fit nothing yet: what the model holds fixed depends on the levels. Returns itself.

        Parameters
        ----------
        data : DataFrame
            One row a launch, in time order, with the columns that `estimate_effect` takes.
        effect_modifier_names : list of str or None
        """
        self.reset_encoders()
        self._set_effect_modifiers(data, effect_modifier_names)
        return self

    def estimate_effect(
        self, data: pd.DataFrame, treatment_value: Any = 1, control_value: Any = 0, target_units: Any = None, **_: Any
    ) -> CausalEstimate:
        """Return the change of the mean from the control to the treatment.

        Parameters
        ----------
        data : DataFrame
            One row a launch, in time order: the columns of the estimand, and of `IDENTITY` those that are known.
        treatment_value, control_value : number or str
        target_units : object
            Not asked.

        Raises
        ------
        CausewayError
            If a number is to have other levels than 0 and 1, or no configuration has both levels.
        """
        estimand = self._target_estimand
        (cause,) = estimand.treatment_variable
        (value,) = estimand.outcome_variable
        names = [cause, *(name for name in estimand.get_adjustment_set() if name != CONFIGURATION_NODE)]
        rows, blocks = _observations(data, value)
        candidates = {name: _candidate(data[name], name, rows) for name in names}
        arrows = [_arrow(candidates[name], str(treatment_value) if name == cause else "") for name in names]
        stand_in = SimpleNamespace(
            columns=[Feature(name, data[name].to_numpy()) for name in names],
            rows=rows,
            candidate_of=lambda name: candidates[name],
            prepared=SimpleNamespace(numbers={}),
            stages=SimpleNamespace(blocks=blocks),
        )
        times = ScopeTimes(cast(Evidence, stand_in), arrows, KERNEL_VARIABILITY, None, SEED)
        low, high = _levels(times, candidates[cause], control_value, treatment_value)
        if np.array_equal(low, high):
            raise CausewayError(f"{cause}: no configuration has launches with both levels")
        change = times.change(arrows[:1], {cause: high}, {cause: low}).mean
        unit = float(np.average(data[value], weights=rows.weight)) / 100.0
        self._interval = np.array([[change.low * unit, change.high * unit]])
        estimate = CausalEstimate(
            data=data,
            treatment_name=estimand.treatment_variable,
            outcome_name=estimand.outcome_variable,
            estimate=change.value * unit,
            control_value=control_value,
            treatment_value=treatment_value,
            target_estimand=estimand,
            realized_estimand_expr=f"log {value} ~ functions and products of {', '.join(names)}",
        )
        estimate.add_estimator(self)
        return estimate

    def _estimate_confidence_intervals(self, confidence_level: float | None = None, method: Any = None) -> np.ndarray:
        """Return the 90 % interval, shape (1, 2), whatever level is asked for."""
        return self._interval


def _observations(data: pd.DataFrame, value: str) -> tuple[Observations, np.ndarray]:
    """Return the rows as the search has them, and their blocks."""
    index = data.index.to_frame(index=False) if set(IDENTITY) <= set(data.index.names) else data
    identity = {name: index[name].to_numpy() for name in IDENTITY if name in index}
    size = len(data)
    measured = data[value].to_numpy(dtype=float)
    weight = identity.get("launch_weight", np.ones(size))
    own = identity.get("launch_configuration", np.zeros(size, dtype=int))
    configuration = np.unique(own, return_inverse=True)[1]
    mean = group_means(measured, configuration, weight)[configuration]
    signed = measured - mean
    std = np.sqrt(group_means(signed**2, configuration, weight))[configuration]
    blocks = identity.get("launch_block", block_numbers(signed, size))
    return Observations(np.abs(signed), signed, mean, std, weight, np.zeros(size, dtype=int), configuration), blocks


def _candidate(column: pd.Series, name: str, rows: Observations) -> Candidate:
    """Return a column as the search takes it; of a category the commonest level has no indicator."""
    if column.dtype == "category" or column.dtype == object:
        levels = [str(level) for level in column.value_counts().index]
        texts = column.astype(str).to_numpy()
        indicators = np.column_stack([(texts == level).astype(float) for level in levels[1:]])
        return Candidate(name, "context", "", "", indicators, (name,), tuple(levels))
    number = numeric_column(Feature(name, column.to_numpy(dtype=float), "context"), name, rows)
    if isinstance(number, str):
        raise CausewayError(f"{name}: {number}")
    number.centred = GroupCentring(rows.configuration, rows.weight).centred(number.values)
    number.searched = number.centred
    return number.candidate(final_values([number])[0])


def _arrow(candidate: Candidate, level: str) -> Arrow:
    """Return an arrow as the times need it: what it is called, and the level that is compared."""
    facts = {"name": candidate.name, "stage": "mean", "role": "exposure", "level": level}
    return cast(Arrow, SimpleNamespace(**facts, node=SimpleNamespace(name=candidate.name)))


def _levels(times: ScopeTimes, candidate: Candidate, control: Any, treatment: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows whose values stand for the control and for the treatment, shape (n_used,) each."""
    if not candidate.levels:
        if (control, treatment) != (0, 1):
            raise CausewayError(f"{candidate.name}: its 10th and its 90th percentile are compared, 0 and 1 for dowhy")
        return extremes(times, candidate)
    codes = candidate.codes[times.used]
    levels = [candidate.levels.index(str(level)) for level in (control, treatment)]
    low, high = (level_donors(codes, level, times.configuration) for level in levels)
    own = np.arange(codes.size)
    is_known = (low >= 0) & (high >= 0)
    return np.where(is_known, low, own), np.where(is_known, high, own)
