"""Definitional parents: what a target is computed from is taken out of it before its causes are searched.

The memory stall is |duration of the launch - duration of its linked transfer|. How long a transfer takes follows from
its bytes and its direction, so these two explain most of the target by arithmetic, with a sign that depends on which
of the two lasts longer. They are half of the definition and no causes. What they explain of the deviation is predicted
by a flexible model and taken out; the search then asks why this launch's transfer is exposed beyond what its bytes and
direction explain.

The predictions are cross-fitted: those of a block of time come from a model of the other blocks, or the model would
take out a part of what the causes did (V. Chernozhukov et al., Double/debiased machine learning, Econom. J. 21 (2018)
C1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.statistics.basis import GroupCentring, quantile_levels
from causeway.core.vocabulary import MEMORY_STALL
from causeway.events.distinct_texts import distinct_texts
from causeway.numeric.process import single_threaded

DEFINED_BY: Mapping[str, tuple[str, ...]] = {MEMORY_STALL: ("transfer_bytes", "transfer_copy_kind")}
"""The features that define a target of the form |a - b|: those that a or b is a function of by arithmetic."""
REASON = "part of the target's definition: what it explains was taken out before the search"
FOLDS = 5
"""Parts of the rows, each predicted by a model of the others: the usual number of cross-fitting."""
BLOCKS_PER_FOLD = 4
"""Stretches of time that a fold consists of, so that a drift does not separate it from the others. Chosen."""
TREES = 50
RATE = 0.2
"""How much of each tree counts. Fifty trees explain what a hundred at 0.1 do, within .01 of the variance, in launches
of the H100 job, of the demo and of simulated runs, in 50 to 80 % of the time.
"""
LEAVES = 15
LEAST_ROWS = 20
"""Rows of a leaf, as scikit-learn has it."""
LEVELS = 255
"""Quantile levels of a number, as many as scikit-learn would make of it for each model: made once for all of them."""


@dataclass(frozen=True, kw_only=True)
class WithoutDefinition:
    """A scope whose target was freed of its definitional parents.

    Attributes
    ----------
    rows : Observations
        The deviation, and the spread of each configuration, are those of what is left.
    dropped : tuple of str
        The definitional parents that the table has.
    explained : float or None
        Share of the deviation's variance that they explain, 0 .. 1, each configuration in its own standard deviations;
        None if there are none.
    """

    rows: Observations
    dropped: tuple[str, ...] = ()
    explained: float | None = None


def without_definition(columns: Sequence[Feature], rows: Observations, target: str, seed: int) -> WithoutDefinition:
    """Take out of the deviation what the columns that define the target explain of it.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
        In time order.
    target : str
    seed : int
        Of the model's trees.
    """
    defining = [column for column in columns if column.name in DEFINED_BY.get(target, ())]
    if not defining:
        return WithoutDefinition(rows=rows)
    names = tuple(sorted({column.name for column in defining}))
    centring = GroupCentring(rows.configuration, rows.weight)
    deviation = centring.centred(rows.signed)
    unit = _units(deviation, rows)
    design = [*map(_numbers, defining), rows.mean, rows.configuration.astype(float)]
    predicted = unit * _cross_fitted(design, deviation / unit, rows.weight, seed)
    left = centring.centred(deviation - predicted)
    before = float(rows.weight @ (deviation / unit) ** 2)
    after = float(rows.weight @ (left / unit) ** 2)
    if after >= before:  # they vary too little to explain anything, and noise would be added
        return WithoutDefinition(rows=rows, dropped=names, explained=0.0)
    freed = replace(
        rows,
        signed=left,
        target=np.abs(left) if rows.absolute else rows.mean + left,
        std=_spread_of_configurations(left, rows),
        taken_out=rows.signed - left,
    )
    return WithoutDefinition(rows=freed, dropped=names, explained=1.0 - after / before)


def _numbers(column: Feature) -> np.ndarray:
    """Return a column as numbers, a category by the codes of its levels, NaN where missing."""
    if column.values.dtype != object:
        return np.asarray(column.values, dtype=float)
    known = np.asarray([value is not None for value in column.values])
    codes = distinct_texts(column.values.tolist())[1]
    return np.where(known, codes.astype(float), np.nan)


def _for_trees(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a column in as many levels as the trees tell apart."""
    return values if np.unique(values).size <= LEVELS else quantile_levels(values, LEVELS, weight)


def _cross_fitted(features: Sequence[np.ndarray], response: np.ndarray, weight: np.ndarray, seed: int) -> np.ndarray:
    """Return the prediction of the response for each row by trees that have not seen its block of time."""
    with single_threaded(["sklearn.ensemble"]):  # takes a second to load
        return _out_of_fold(features, response, weight, seed)


def _out_of_fold(features: Sequence[np.ndarray], response: np.ndarray, weight: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    design = np.column_stack([_for_trees(values, weight) for values in features])
    n_rows = response.size
    fold = np.arange(n_rows) * FOLDS * BLOCKS_PER_FOLD // max(n_rows, 1) % FOLDS
    found = np.zeros(n_rows)
    for one in range(FOLDS):
        mine = fold == one
        if mine.any() and not mine.all():
            model = HistGradientBoostingRegressor(
                max_iter=TREES,
                learning_rate=RATE,
                max_leaf_nodes=LEAVES,
                min_samples_leaf=LEAST_ROWS,
                early_stopping=False,
                random_state=seed % 2**32,
            )
            known = np.isfinite(design[~mine]).any(axis=0)  # the trees refuse a column without any value
            model.fit(design[~mine][:, known], response[~mine], sample_weight=weight[~mine])
            found[mine] = model.predict(design[mine][:, known])
    return found


def _units(deviation: np.ndarray, rows: Observations) -> np.ndarray:
    """Return what a deviation counts as one in, by row: the standard deviation of its configuration, as in the search.

    In nanoseconds the trees would explain the kernel whose stalls scatter most, and little of the others.
    """
    totals = np.bincount(rows.configuration, rows.weight)
    variance = np.bincount(rows.configuration, rows.weight * deviation**2) / totals
    return np.sqrt(np.where(variance > 0, variance, 1.0))[rows.configuration]


def _spread_of_configurations(left: np.ndarray, rows: Observations) -> np.ndarray:
    """Return the standard deviation of what is left in each row's configuration; NaN where it was not known before."""
    totals = np.bincount(rows.configuration, rows.weight)
    variance = np.bincount(rows.configuration, rows.weight * left**2) / totals
    counts = np.bincount(rows.configuration)
    corrected = np.sqrt(variance * counts / np.maximum(counts - 1, 1))[rows.configuration]
    return np.where(np.isfinite(rows.std), corrected, np.nan)
