"""Attribution of target leakage: which of the columns in an exact relation with the measured value was calculated from
it.

The relation itself is symmetric: of rate, amount and time each follows from the other two. What tells them apart is how
they were made. The amount was there before the time, and the rate was calculated from both. So:

* of two columns the one that alone is nearly the time is the leaked feature (`nearly_measured`);
* a column on a coarse grid (counts, two decimals) that the others and the time give exactly was not calculated from
  them (`calculated_from`);
* a third column that resembles the amount carries no incremental information about the time once the amount is known,
  but it does once the rate is known: it determines the amount, and with the rate the amount determines the time. A
  leaked feature, with others, explains the time better than any cause could (`leaked_among`);
* an amount need not correlate with the time beyond its causes; a rate does.

All but the second are judged on what the causes that are found without the related columns leave of the time: a common
cause makes an amount correlate with the time as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from causeway.causal.data.observations import CLIP_MEAN, robust_scale
from causeway.causal.preparation.exact_images import affine_images, are_images, decimal_step
from causeway.causal.preparation.target_leakage import LEAK_R2
from causeway.causal.selection.linear_model import UNRELATED, VERY_STRONG, forward
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import SIMILARITY, GroupCentring, build_basis, normal_scores, unit_length

MOST_OF_THIRD = 0.5
"""Share of a third column from which it follows from others, and tells nothing more: of its variance by the causes, or
of what a related column leaves of it by the measured value.
"""
THIRD_COLUMNS = 10
MOST_CONSIDERED = 30
NEAREST = 100
"""So many columns, those nearest to the measured value, are searched for its causes."""
OFF_GRID = 0.05
"""Rounding leaves a median error of a quarter of the grid; an error below this share of it is no rounding."""
SMALLEST_GRID = -6
LARGEST_GRID = 3


@dataclass(frozen=True, kw_only=True)
class ResidualColumns:
    """What surrounds related columns: the causes of the measured value, whose residuals attribution compares, and third
    columns; all arrays centred within configurations and weighted alike.

    Attributes
    ----------
    measured : ndarray of float, shape (n_rows,)
        Measured value or its logarithm.
    causes : ndarray of float, shape (n_rows, k)
        Orthonormal basis of the causes of the measured value that are found without the related columns.
    thirds : ndarray of float, shape (n_rows, m)
        Columns in no exact relation.
    size : float
        Effective number of rows.
    """

    measured: np.ndarray
    causes: np.ndarray
    thirds: np.ndarray
    size: float


@dataclass(kw_only=True)
class LeakAttribution:
    """Says which of related columns is the leaked feature; causes of the measured value are searched only if it comes
    to that.

    Attributes
    ----------
    measured : ndarray of float, shape (n_rows,)
        Measured value or its logarithm, centred within configurations.
    columns : ndarray of float, shape (n_rows, p)
        Counters or their logarithms, centred likewise.
    further : list of ndarray
        What else is known: numbers, centred, of shape (n_rows,), and indicators of categories, shape (n_rows, n_levels
        - 1).
    raw : list of ndarray, shape (n_rows,)
        The counters as they were measured.
    raw_measured : ndarray of float, shape (n_rows,)
        Measured value.
    centring : GroupCentring
    size : float
        Effective number of rows.
    """

    measured: np.ndarray
    columns: np.ndarray
    further: list[np.ndarray]
    raw: list[np.ndarray]
    raw_measured: np.ndarray
    centring: GroupCentring
    size: float
    _residuals: dict[tuple[int, ...], ResidualColumns] = field(default_factory=dict, init=False)
    _images: np.ndarray | None = field(default=None, init=False)

    def leaked_member(self, members: list[int], related: np.ndarray) -> int | None:
        """Return the leaked feature among `members`, positions of columns; None if nothing tells.

        `related` says of all columns, shape (p,), which are in an exact relation and cannot tell.
        """
        columns = self.centring.weighted(self.columns[:, members].astype(float))
        measured = self.centring.weighted(self.measured)
        index = leaked_by_itself(measured, columns, [self.raw[i] for i in members], self.raw_measured)
        if index is None:
            index = leaked_among(columns, self._beside(members, self._with_images(related)))
        return None if index is None else members[index]

    def exact_as_measured(self, members: list[int]) -> bool:
        """Tell whether one of two members times or divided by the time is an affine function of the other."""
        return are_images([np.asarray(self.raw[i], dtype=float) for i in members], self.raw_measured)

    def _with_images(self, related: np.ndarray) -> np.ndarray:
        """Return which columns are related, or affine images of such: these tell no more than they do, shape (p,)."""
        if self._images is None:
            rest = np.flatnonzero(~related)
            parts = ([self.raw[i] for i in some] for some in (rest, np.flatnonzero(related)))
            self._images = related.copy()
            self._images[rest] = [source is not None for source in affine_images(*parts)]
        return self._images

    def _beside(self, members: list[int], related: np.ndarray) -> ResidualColumns:
        own = tuple(sorted(i for i in members if not related[i]))
        if own not in self._residuals:
            values = [self.columns[:, i] for i in np.flatnonzero(~related) if i not in own] + self.further
            causes = causes_without(self.measured, values, self.centring, self.size)
            numbers = [column for column in values if column.ndim == 1]
            thirds = np.column_stack(numbers).astype(float) if numbers else causes[:, :0]
            self._residuals[own] = ResidualColumns(
                measured=self.centring.weighted(self.measured),
                causes=causes,
                thirds=self.centring.weighted(thirds),
                size=self.size,
            )
        return self._residuals[own]


def causes_without(
    measured: np.ndarray, values: Sequence[np.ndarray], centring: GroupCentring, size: float
) -> np.ndarray:
    """Return an orthonormal basis of what causes the measured value among some columns, shape (n_rows, k).

    Parameters
    ----------
    measured : ndarray of float, shape (n_rows,)
        Measured value or its logarithm, centred within configurations.
    values : sequence of ndarray
        Columns without the related ones: centred numbers of shape (n_rows,), and indicators of categories, shape
        (n_rows, n_levels - 1).
    centring : GroupCentring
    size : float
        Effective number of rows.
    """
    unit = robust_scale(measured, centring.weights) or 1.0
    response = centring.weighted(np.clip(measured / unit, -CLIP_MEAN, CLIP_MEAN))
    near = np.ones(len(values))
    for i, column in enumerate(values):
        if column.ndim == 1:
            both = centring.weighted(np.column_stack([column, np.abs(column)]).astype(float))
            near[i] = np.abs(
                response @ both / np.maximum(np.sqrt((both**2).sum(axis=0) * (response @ response)), 1e-300)
            ).max()
    some = [
        values[i] for i in np.argsort(-near, kind="stable")[:NEAREST] if values[i].ndim > 1 or near[i] <= SIMILARITY
    ]
    problem = Problem(build_basis(some, centring), len(some), size, max(len(values), 1))
    bases = [
        problem.basis.columns[:, problem.basis.of(i)].astype(float)
        for i in (forward(problem, response) if some else [])
    ]
    return _orthonormal(np.hstack([np.zeros((measured.size, 0)), *bases]))


def leaked_by_itself(
    measured: np.ndarray, related: np.ndarray, raw: Sequence[np.ndarray], raw_measured: np.ndarray
) -> int | None:
    """Return which of two related columns is the leaked feature by what they are without other columns; None if that
    does not tell.

    An amount that determines the time, and the amount over the time: the rate hardly varies, and is the leaked feature.
    A column that determines the time and was calculated from it is not told from one that causes it, so its arrow says
    that it determines the time. Where neither or both do, rounding tells (`calculated_from`).

    Parameters
    ----------
    measured : ndarray of float, shape (n_rows,)
        Centred and weighted.
    related : ndarray of float, shape (n_rows, 2)
        Likewise.
    raw : sequence of ndarray of float, shape (n_rows,)
        Both columns as they were measured.
    raw_measured : ndarray of float, shape (n_rows,)
        The value as it was measured.
    """
    determining = _correlations(measured, related) ** 2 > LEAK_R2
    return int(np.argmin(determining)) if determining.sum() == 1 else calculated_from(raw[0], raw[1], raw_measured)


def nearly_measured(measured: np.ndarray, related: np.ndarray) -> int | None:
    """Return which of the related columns, shape (n_rows, 2), follows the measured value closely by itself when the
    other does not; None if that is not so.
    """
    own = np.abs(_correlations(measured, related))
    return int(np.argmax(own)) if own.min() < SIMILARITY < own.max() else None


def leaked_among(related: np.ndarray, beside: ResidualColumns) -> int | None:
    """Tell which of two related columns is the leaked feature; None if nothing tells.

    Parameters
    ----------
    related : ndarray of float, shape (n_rows, 2)
        The columns or their logarithms, centred and weighted like `beside`.
    beside : ResidualColumns

    Returns
    -------
    int or None
        Position in `related`.
    """
    left = replace(
        beside,
        measured=_residual(beside.causes, beside.measured),
        thirds=_residual(beside.causes, beside.thirds),
        size=beside.size - beside.causes.shape[1] - related.shape[1],
    )
    related_left = _residual(beside.causes, related)
    close = nearly_measured(left.measured, related_left)
    if close is not None:
        return close
    left = replace(left, thirds=_nearest_thirds(related_left, left, beside.thirds))
    own, incremental = np.transpose([_of_original(related_left[:, 1 - leak], left) for leak in (0, 1)])
    best = int(np.argmin(incremental))
    evidence = incremental[1 - best] - incremental[best]
    against = own[best] - own[1 - best] if own.min() < VERY_STRONG else 0.0
    if evidence > VERY_STRONG and evidence > 2 * against:
        return best
    rate = _rate(related, beside.measured)  # what it is a rate of need not correlate with the time
    return rate if rate is not None and own[rate] < VERY_STRONG else None


def _of_original(column: np.ndarray, left: ResidualColumns) -> tuple[float, float]:
    """Return how a related column, taken for the original, explains the measured value, and what third columns add;
    twice the log-likelihood. All are what the causes leave.
    """
    measured = left.measured
    total = float(measured @ measured)
    linear = _orthonormal(column[:, None])
    own = left.size * np.log(total / max(total - float(((measured @ linear) ** 2).sum()), 1e-12 * total))
    nonlinear = _orthonormal(_residual(left.causes, _functions(column)))
    rest = measured - nonlinear @ (nonlinear.T @ measured)
    further = _orthonormal(_residual(nonlinear, left.thirds))
    explained = float(((rest @ further) ** 2).sum())
    before = float(rest @ rest)
    gain = left.size * np.log(before / max(before - explained, 1e-12 * total)) - further.shape[1]
    return own, gain


def _functions(column: np.ndarray) -> np.ndarray:
    """Return functions of a column by which an original may act on the measured value, shape (n_rows, 4)."""
    scores = normal_scores(column)
    return _without_mean(np.column_stack([column, scores, np.abs(scores), np.maximum(scores - 0.5, 0.0)]))


def _nearest_thirds(related: np.ndarray, left: ResidualColumns, before: np.ndarray) -> np.ndarray:
    """Return the third columns, less the causes, that most resemble the related ones, less the causes, too; none that
    is nearly the measured value, or related as well. `before` are the third columns themselves.
    """
    thirds = left.thirds
    alive = ((thirds**2).sum(axis=0) > MOST_OF_THIRD * (before**2).sum(axis=0)) & (
        np.abs(_correlations(left.measured, thirds)) <= SIMILARITY
    )
    strength = np.abs(unit_length(thirds).T @ unit_length(related)).max(axis=1, initial=0.0) * alive
    nearest = np.argsort(-strength, kind="stable")[:MOST_CONSIDERED]
    kept = [
        index
        for index in nearest[strength[nearest] ** 2 * left.size > UNRELATED]
        if not any(_needs_measured(thirds[:, index], member, left.measured) for member in related.T)
    ]
    return thirds[:, kept[:THIRD_COLUMNS]]


def _needs_measured(third: np.ndarray, member: np.ndarray, measured: np.ndarray) -> bool:
    """Tell whether the measured value explains much of what a related column leaves of a third one."""
    rest = _residual(unit_length(member[:, None]), np.column_stack([third, measured]))
    return bool(_correlations(rest[:, 1], rest[:, :1])[0] ** 2 > MOST_OF_THIRD)


def _rate(related: np.ndarray, measured: np.ndarray) -> int | None:
    """Return the only one of two columns that falls with the measured value if the other is held: amount / time; None
    if there is not one.
    """
    slopes = [
        np.linalg.lstsq(np.column_stack([related[:, 1 - i], measured]), related[:, i], rcond=None)[0][-1]
        for i in (0, 1)
    ]
    falling = np.flatnonzero(np.less(slopes, 0))
    return int(falling[0]) if falling.size == 1 else None


def calculated_from(column: np.ndarray, other: np.ndarray, measured: np.ndarray) -> int | None:
    """Tell which of two columns in an exact relation was calculated from the other: 0, 1, or None if rounding does not
    tell.

    Rounding comes last. A column on a grid, e.g. of whole numbers, that the other and the measured value give far more
    exactly than its grid, was not calculated from them.

    Parameters
    ----------
    column, other, measured : ndarray of float, shape (n_rows,)
        As they were measured.
    """
    with np.errstate(all="ignore"):
        rows = np.isfinite(column) & np.isfinite(other) & (column > 0) & (other > 0) & (measured > 0)
        logs = [np.log(series[rows]) for series in (column, other, measured)]
    if rows.sum() < 2:
        return None
    original = []
    for index, series in enumerate((column, other)):
        grid = decimal_step(series[np.isfinite(series)], LARGEST_GRID, SMALLEST_GRID)
        errors = [logs[index] - power * logs[1 - index] - times * logs[2] for power in (1, -1) for times in (1, -1)]
        misfit = min(float(np.median(np.abs(np.expm1(error - np.median(error))) * series[rows])) for error in errors)
        original.append(grid > 0 and misfit < OFF_GRID * grid)
    return int(original[0]) if original[0] != original[1] else None


def _without_mean(columns: np.ndarray) -> np.ndarray:
    return columns - columns.mean(axis=0)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of columns, without directions that the others already span."""
    if columns.shape[1] == 0:
        return columns
    block, triangle = np.linalg.qr(unit_length(columns))
    return block[:, np.abs(np.diag(triangle)) > 1e-4]


def _residual(basis: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return columns minus their projection on an orthonormal basis."""
    return columns - basis @ (basis.T @ columns)


def _correlations(series: np.ndarray, columns: np.ndarray) -> np.ndarray:
    length = np.sqrt(series @ series)
    return unit_length(columns).T @ series / (length if length > 0 else 1.0)
