"""What identifies the effect of each cause, and a second estimate of it, both by dowhy."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from causeway.causal.data.observations import FEWEST_LAUNCHES
from causeway.causal.data.outcome import Arrow, Estimate, Identified, Outcome, to_six_digits
from causeway.causal.effects.scope_times import CONFIDENCE
from causeway.causal.effects.time_effects import HIGH, LOW
from causeway.causal.models.scope_model import CONFIGURATION_NODE, ScopeModel
from causeway.core.logs import LOG

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from dowhy.causal_identifier.identified_estimand import IdentifiedEstimand

ALIKE = 0.5
"""The smaller of two estimates whose intervals do not meet is at least so much of the larger, if they agree."""
NOT_INSTALLED = "identification and the second estimate need dowhy, which supports Python up to 3.13"


def with_identification(outcome: Outcome, model: ScopeModel) -> Outcome:
    """Return an outcome whose causes say what identifies their effects, with a second estimate of each.

    A failure of dowhy leaves out what it fails at; where it is not installed, the outcome's examination says so.

    Parameters
    ----------
    outcome : Outcome
    model : ScopeModel
        Of the same scope.
    """
    if not model.causes:
        return outcome
    try:
        with quiet():
            identified = {name: _identified(model, outcome, name) for name in model.causes}
        arrows = tuple(replace(arrow, identified=identified.get(arrow.name)) for arrow in outcome.arrows)
        return to_six_digits(replace(outcome, arrows=arrows))
    except ImportError:
        words = NOT_INSTALLED
    except Exception as error:
        LOG.warning("%s: identification failed", outcome.scope.scope, exc_info=True)
        words = f"identification could not be computed: {type(error).__name__}: {error}"[:300]
    failures = (*outcome.examination.failures, words)
    return replace(outcome, examination=replace(outcome.examination, failures=failures))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what dowhy and its libraries warn and log from the user's log."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def estimand_of(graph: "nx.DiGraph", cause: str, value: str, observed: Sequence[str]) -> "IdentifiedEstimand":
    """Return what dowhy identifies of a total effect: by which sets of columns, the largest one among them.

    Parameters
    ----------
    graph : DiGraph
        With its unmeasured causes.
    cause, value : str
    observed : sequence of str
        The measured columns.
    """
    from dowhy.causal_identifier.auto_identifier import BackdoorAdjustment, EstimandType, identify_effect_auto

    return identify_effect_auto(
        graph,
        [cause],
        [value],
        list(observed),
        EstimandType.NONPARAMETRIC_ATE,
        backdoor_adjustment=BackdoorAdjustment.BACKDOOR_MAX,
    )


def _identified(model: ScopeModel, outcome: Outcome, cause: str) -> Identified:
    from dowhy.causal_identifier.auto_identifier import BackdoorAdjustment, identify_backdoor

    graph = model.with_unmeasured()
    estimand = estimand_of(graph, cause, model.value, list(model.graph))
    sets = [sorted(held) for held in (estimand.backdoor_variables or {}).values() if held is not None]
    if not sets:
        return Identified(adjustment=None)
    adjustment = max(sets, key=len)
    arrow = next(arrow for arrow in outcome.arrows if arrow.name == cause)
    # rows of several kernels are no sample of the launches of all of them, of which changes are percentages
    second = _second(model, arrow, estimand, adjustment) if outcome.n_kernels == 1 else None
    direct: tuple[str, ...] = ()
    if any(target != model.value for target in model.graph.successors(cause)):
        of_direct = identify_backdoor(
            graph, [cause], [model.value], list(model.graph), BackdoorAdjustment.BACKDOOR_MAX, direct_effect=True
        )
        direct = tuple(sorted(max((held.get_adjustment_variables() for held in of_direct), key=len, default=())))
    stated = arrow.in_time.mean if arrow.in_time else None
    return Identified(
        adjustment=tuple(adjustment),
        direct_adjustment=direct,
        second=second,
        agrees=None if stated is None or second is None else alike(stated, second),
    )


def alike(first: Estimate, second: Estimate) -> bool:
    """Tell whether two estimates of one effect agree.

    >>> alike(Estimate(value=5.0, low=4.0, high=6.0), Estimate(value=6.5, low=5.9, high=7.1))
    True
    >>> alike(Estimate(value=5.0, low=4.0, high=6.0), Estimate(value=12.0, low=11.0, high=13.0))
    False
    """
    if first.low <= second.high and second.low <= first.high:
        return True
    small, large = sorted((first.value, second.value), key=abs)
    return small * large > 0 and small / large >= ALIKE


def _second(
    model: ScopeModel, arrow: Arrow, estimand: "IdentifiedEstimand", adjustment: Sequence[str]
) -> Estimate | None:
    """Return the change of the mean by dowhy's linear regression: of the time, in percent of the mean of its
    configuration, on which of both levels a launch is near, given the adjustment set.
    """
    from dowhy.causal_estimator import estimate_effect
    from dowhy.causal_estimators.linear_regression_estimator import LinearRegressionEstimator

    rows, level = levels_of(model, arrow)
    if min(np.count_nonzero(level == 0), np.count_nonzero(level == 1)) < FEWEST_LAUNCHES:
        return None
    data = _within(model, rows, level, arrow.name)
    estimand.set_identifier_method("backdoor")
    estimand.set_backdoor_variables([name for name in adjustment if name in data])
    estimator = LinearRegressionEstimator(estimand, confidence_intervals=True, confidence_level=CONFIDENCE)
    effect = estimate_effect(data, [arrow.name], [model.value], "backdoor", estimator, method_params={})
    low, high = estimator._estimate_confidence_intervals(CONFIDENCE)[0]
    share = _share_compared(model, rows, level)
    return Estimate(value=share * float(effect.value), low=share * float(low), high=share * float(high))


def _share_compared(model: ScopeModel, rows: np.ndarray, level: np.ndarray) -> float:
    """Return which part of the time is that of configurations with launches near both levels: elsewhere the cause
    changes nothing, and changes are in percent of all.
    """
    configuration = model.frame.index.get_level_values("launch_configuration").to_numpy()
    both = np.intersect1d(configuration[rows[level == 0]], configuration[rows[level == 1]])
    time = model.frame[model.value].to_numpy() * model.frame.index.get_level_values("launch_weight").to_numpy()
    return float(time[np.isin(configuration, both)].sum() / time.sum()) if time.sum() else 1.0


def levels_of(model: ScopeModel, arrow: Arrow) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that are near the levels which are compared, and which of both each is near.

    Parameters
    ----------
    model : ScopeModel
    arrow : Arrow
        A category's slowest levels are compared with the fastest ones, else with the commonest other one.

    Returns
    -------
    rows : ndarray of int, shape (n,)
        Ascending.
    level : ndarray of int, shape (n,)
        0 or 1.
    """
    column = model.frame[arrow.name]
    configuration = model.frame.index.get_level_values("launch_configuration").to_numpy()
    level = np.full(len(column), -1)
    if column.dtype == "category":
        others = column[~column.isin(arrow.levels)].value_counts()
        ends = arrow.in_time.ends if arrow.in_time else None
        level[column.isin(ends.levels_low if ends else others.index[:1]).to_numpy()] = 0
        level[column.isin(arrow.levels).to_numpy()] = 1
    else:
        values = column.to_numpy()
        tail = arrow.in_time.ends.tail if arrow.in_time and arrow.in_time.ends else 0.0
        for code in np.unique(configuration):
            own = np.flatnonzero(configuration == code)
            level[own] = _of_tail(values[own], tail) if tail else _of_percentiles(values[own])
    rows = np.flatnonzero(level >= 0)
    return rows, level[rows]


def _of_tail(values: np.ndarray, tail: float) -> np.ndarray:
    """Return for each value 1 at the end that is compared and 0 elsewhere, of the lowest values the other way round."""
    cut = np.quantile(values, 1 - tail if tail > 0 else -tail, method="inverted_cdf")
    return (values > cut if tail > 0 else values >= cut).astype(int)


def _of_percentiles(values: np.ndarray) -> np.ndarray:
    """Return for each value 0 near the 10th percentile, 1 near the 90th, else -1; where both are one value, for the
    lowest and the highest values that enough launches reach.
    """
    level = np.full(values.size, -1)
    edges = np.quantile(values, [LOW - LOW / 2, LOW + LOW / 2, HIGH - LOW / 2, HIGH + LOW / 2], method="inverted_cdf")
    low, high = np.quantile(values, [LOW, HIGH], method="inverted_cdf")
    if low == high:
        share = min(FEWEST_LAUNCHES / values.size, 0.5)
        low, high = np.quantile(values, [share, 1 - share], method="inverted_cdf")
        edges = np.array([-np.inf, low, high, np.inf])
    if low < high and edges[1] < edges[2]:
        level[(values >= edges[0]) & (values <= edges[1])] = 0
        level[(values >= edges[2]) & (values <= edges[3])] = 1
    return level


def _within(model: ScopeModel, rows: np.ndarray, level: np.ndarray, cause: str) -> "pd.DataFrame":
    """Return the data of the regression: all columns centred within configurations, which are held fixed by that.

    A category enters as the mean time of its levels among all launches.
    """
    import pandas as pd

    frame = model.frame.iloc[rows]
    groups = frame.index.get_level_values("launch_configuration")
    whole = model.frame[model.value].groupby(level="launch_configuration").transform("mean")
    relative = 100.0 * (model.frame[model.value] / whole.where(whole != 0, 1.0) - 1.0)
    columns = {cause: level.astype(float), model.value: relative.to_numpy()[rows]}
    for name in frame.columns:
        if name in (cause, model.value, CONFIGURATION_NODE):
            continue
        column = frame[name]
        if column.dtype == "category":
            means = relative.groupby(model.frame[name].to_numpy(), observed=True).mean()
            column = column.map(means).astype(float)
        columns[name] = column.to_numpy(dtype=float)
    data = pd.DataFrame(columns)
    centred = data - data.groupby(np.asarray(groups)).transform("mean")
    spread = centred.std(ddof=0)
    keep = [name for name in centred if name in (cause, model.value) or spread[name] > 0]
    for name in keep:
        if name not in (cause, model.value):
            centred[name] = centred[name] / spread[name]
    return centred[keep]
