"""Target leakage: columns that hold the measured value itself and would explain it perfectly without causing it.

A column is a leaked feature if it was calculated from the measured value: the time in other units, cycles = time x
clock, a rate = amount / time. Such columns are found in four steps:

1. *by name* (`data.feature_names`): names that profilers give to times, cycles and rates per time;
2. *by data* (`leaked_features`, here): within configurations the column follows from the measured value and at most
   one other column, does not without the measured value, and gives the time back but for rounding
   (`preparation.exact_images`). This is an exact relation. What merely determines the time is no leak: it may be its
   cause;
3. *attribution* (`preparation.leak_attribution`): an exact relation is symmetric. Of rate, amount and time each follows
   from the other two, and only one was calculated from the time: which of the columns is it?
4. *recheck after selection* (`discovery.leakage_recheck`): what gaps and zeros had hidden, on the rows where the
   columns that were chosen are known and positive.

References
----------
S. Kaufman, S. Rosset, C. Perlich, O. Stitelman, Leakage in data mining: formulation, detection, and avoidance, ACM
Trans. Knowl. Discov. Data 6 (2012) 15.

Examples
--------
Twelve launches with five counters: `bytes` and `clock` were measured, `speed`, `ticks` and `wall` were calculated from
the time. docs/causes.md shows the same numbers.

>>> from causeway.causal.preparation.leak_attribution import calculated_from
>>> time = 100 * np.exp([0.04, -0.09, 0.25, -0.03, 0.1, -0.15, 0.17, 0.01, -0.06, 0.28, 0.07, -0.12])
>>> bytes_ = np.array([512, 96, 288, 640, 160, 416, 224, 768, 352, 128, 576, 192.0])
>>> clock = np.array([1.12, 1.41, 1.02, 1.35, 0.93, 1.2, 1.38, 0.99, 1.29, 1.41, 1.08, 1.26])
>>> table = np.column_stack([bytes_, clock, bytes_ / time, time * clock, 1000 * time + 7])
>>> logs = np.log(table) - np.log(table).mean(axis=0)
>>> relations = ExactRelations(np.log(time) - np.log(time).mean(), logs, logarithmic=True)

What the time alone leaves of each column, 1 - R^2. Only `wall` follows from it:

>>> [float(round(residual, 3)) for residual in relations.residual]
[0.96, 0.977, 0.852, 0.6, 0.0]

Which other column leaves least of each of the first four together with the time, and how much. `speed` follows from the
time and `bytes`, `ticks` from the time and `clock`; but the relations are symmetric, so the originals follow as well:

>>> [int(np.argmin(relations.with_one_other(j))) for j in range(4)]
[2, 3, 0, 1]
>>> [float(round(relations.with_one_other(j).min(), 3)) for j in range(4)]
[0.0, 0.0, 0.0, 0.0]

Attribution: `bytes` holds whole numbers and `clock` two decimals, which no division or product with the time gives. So
the other column of each pair is the leaked feature:

>>> def attribute(members, related):
...     return members[calculated_from(*table[:, members].T, time)]
>>> leaked_features(relations, np.zeros(5, bool), attribute).tolist()
[False, False, True, True, True]
"""

from collections.abc import Callable

import numpy as np

from causeway.causal.preparation.exact_images import is_exact, is_unit_copy

LEAK_R2 = 0.99
"""Squared multiple correlation below which no relation is exact, and from which a column determines the time."""
STILL_LEFT = 0.1
"""What the measured value leaves of a column must be less than this share of what is left without it."""
OFF_PROPORTION = 0.1
"""How far a slope between logarithms lies from 1 at most; twice as far beside a third column."""
ROUNDING = 1e-5
"""More than single precision takes from a squared correlation: of what copies leave of each other nothing is told."""
AT_ONCE = 256
"""So many rows of a matrix of correlations are gone through in one go."""


def correlation_matrix(columns: np.ndarray) -> np.ndarray:
    """Return the correlations of columns, float32, shape (p, p); 0 where a column has no variance.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, p)
        Each with mean 0.
    """
    lengths = np.sqrt((columns.astype(np.float64) ** 2).sum(axis=0))
    unit = (columns / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit.T @ unit


class ExactRelations:
    """How well columns follow from the measured value and at most one other column.

    Parameters
    ----------
    measured : ndarray of float, shape (n_rows,)
        Measured value, or its logarithm, centred within configurations.
    columns : ndarray of float, shape (n_rows, p)
        Columns, or their logarithms, centred likewise.
    logarithmic : bool
        They are logarithms: a relation then needs columns that are in proportion to each other.
    level : float
        Mean of the measured value, 1 of logarithms; 0 if not known.
    in_time_unit : ndarray of bool, shape (p,), or None
        Columns whose unit is that of a time, of cycles, or of an amount per time.
    as_measured : callable
        Given the positions of columns, tells whether their relation to the time is exact as they were measured, where
        it is not on this scale.

    Attributes
    ----------
    correlations : ndarray of float32, shape (p, p)
    with_measured : ndarray of float, shape (p,)
        Correlation of each column with the measured value.
    residual : ndarray of float, shape (p,)
        What the measured value alone leaves of each column, 1 - R^2.
    alone : ndarray of bool, shape (p,)
        Of the columns that the measured value alone determines, and that determine it, those that are exact images of
        it, that it is in another unit, or that have the unit of a time.
    partial : ndarray of float32, shape (p, p)
        Correlations given the measured value.

    Notes
    -----
    With t the measured value, the squared multiple correlation grows by partial correlations: 1 - R^2(t, u, v) = (1 -
    r_t^2)(1 - r_u.t^2)(1 - r_v.tu^2).
    """

    def __init__(
        self,
        measured: np.ndarray,
        columns: np.ndarray,
        *,
        logarithmic: bool,
        level: float = 0.0,
        in_time_unit: np.ndarray | None = None,
        as_measured: Callable[[list[int]], bool] = lambda members: False,
    ) -> None:
        self.measured = measured
        self.columns = columns
        self.logarithmic = logarithmic
        self.level = level
        self.as_measured = as_measured
        self.correlations = correlation_matrix(columns)
        square = float(measured @ measured) or 1.0
        self.lengths = np.sqrt((columns.astype(float) ** 2).sum(axis=0))
        self.with_measured = columns.T @ (measured / np.sqrt(square)) / np.where(self.lengths > 0, self.lengths, 1.0)
        self.residual = np.maximum(1.0 - self.with_measured**2, 1e-12)
        self.alone = np.zeros(self.residual.size, bool)
        for j in np.flatnonzero(self.residual < 1 - LEAK_R2):
            by_unit = in_time_unit is not None and in_time_unit[j]
            is_copy = not logarithmic and bool(is_unit_copy(columns[:, j] @ measured / square))
            self.alone[j] = by_unit or is_copy or self.exact([int(j)])
        single = self.with_measured.astype(np.float32)
        self.partial = self.correlations - np.outer(single, single)
        scale = np.sqrt(self.residual).astype(np.float32)
        self.partial /= scale
        self.partial /= scale[:, None]

    def exact(self, members: list[int]) -> bool:
        """Tell whether some columns together give the measured value back but for rounding."""
        columns = self.columns[:, members].astype(float)
        columns /= np.maximum(self.lengths[members], 1e-300)
        residual = self.measured - columns @ np.linalg.lstsq(columns, self.measured, rcond=None)[0]
        return is_exact(residual, self.measured, self.level) or self.as_measured(members)

    def with_one_other(self, j: int) -> np.ndarray:
        """Return what the measured value and each single other column leave of column j, shape (p,); 1 where the
        measured value is not needed for it.
        """
        without = 1.0 - self.correlations[j].astype(float) ** 2
        residual = self.residual[j] * (1.0 - np.minimum(self.partial[j].astype(float) ** 2, 1.0))
        needed = (without > ROUNDING) & (residual < STILL_LEFT * without) & ~self.alone
        needed[j] = False
        if self.logarithmic:
            needed &= in_proportion(
                self.partial[j].astype(float),
                self.lengths[j] * np.sqrt(self.residual[j]),
                self.lengths * np.sqrt(self.residual),
            )
        return np.where(needed, residual, 1.0)

    def related(self) -> np.ndarray:
        """Return which columns follow from the measured value alone or with one other column, shape (p,)."""
        near = self.residual * (1.0 - _nearest(self.partial).astype(float) ** 2) < 1 - LEAK_R2 + ROUNDING
        return np.asarray(
            [self.alone[j] or bool(near[j] and self._exact_with_one_other(j)) for j in range(self.residual.size)]
        )

    def _exact_with_one_other(self, j: int) -> bool:
        residual = self.with_one_other(j)
        best = int(np.argmin(residual))
        return bool(residual[best] < 1 - LEAK_R2 and self.exact([j, best]))


def leaked_features(
    relations: ExactRelations, computed: np.ndarray, attribute: Callable[[list[int], np.ndarray], int | None]
) -> np.ndarray:
    """Return the columns that were calculated from the measured value, by their exact relations.

    Parameters
    ----------
    relations : ExactRelations
        Of p columns.
    computed : ndarray of bool, shape (p,)
        Columns whose names or units say that they are computed from others.
    attribute : callable
        Given the positions of two columns in an exact relation, and `ExactRelations.related`, shape (p,), returns which
        of them is the leaked feature, by its position among all columns; None if nothing tells.

    Returns
    -------
    ndarray of bool, shape (p,)

    Notes
    -----
    Another column is sought among all columns. Columns are judged in turn, raw before computed and less before more
    correlated with the measured value, and only those that passed can help to explain a later one. Of a pair of which
    neither the data nor the names tell the leaked feature, both are found, and what is related to either of them as
    well: a lost cause does less harm than a reported leak.
    """
    p = relations.residual.size
    related = relations.related()
    leaked = relations.alone.copy()
    passed = np.zeros(p, dtype=bool)
    undecided = np.zeros(p, dtype=bool)
    for j in np.lexsort((np.arange(p), np.round(np.abs(relations.with_measured), 6), computed)):
        while not leaked[j]:
            residual = np.where(passed | undecided, relations.with_one_other(j), 1.0) if related[j] else np.ones(p)
            best = int(np.argmin(residual))
            members = [int(j), best]
            if residual[best] >= 1 - LEAK_R2 or not relations.exact(members):
                break
            names = computed[members]
            leak = members[int(np.argmax(names))] if names.sum() == 1 else attribute(members, related)
            if leak is None:
                undecided[members] = leaked[members] = True
            else:
                leaked[leak] = True
                undecided[leak] = False
            passed &= ~leaked
        passed[j] = not leaked[j]
    return leaked


def _nearest(correlations: np.ndarray) -> np.ndarray:
    """Return the largest absolute correlation of each column with another one, shape (p,)."""
    largest = np.zeros(len(correlations), correlations.dtype)
    for start in range(0, len(correlations), AT_ONCE):
        block = np.abs(correlations[start : start + AT_ONCE])
        own = np.arange(len(block))
        block[own, start + own] = 0.0
        largest[start : start + AT_ONCE] = block.max(axis=1)
    return largest


def in_proportion(partial: np.ndarray, own: float | np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell whether a column's slope on each other one, or that one's on it, is nearly 1 or -1.

    Parameters
    ----------
    partial : ndarray, shape (p,)
        Their correlations given the measured value.
    own : float or ndarray, shape (p,)
    others : ndarray, shape (p,)
        Their standard deviations given the measured value, in common units.

    Returns
    -------
    ndarray of bool, shape (p,)
    """
    ratio = own / np.where(others > 0, others, np.inf)
    slopes = np.abs(np.stack([partial * ratio, partial / np.where(ratio > 0, ratio, np.inf)]))
    return np.logical_or.reduce(np.abs(slopes - 1.0) < OFF_PROPORTION)
