"""Which of the columns that the measured value ties together (rate = amount / time) is the leak.

The tie itself is symmetric: of rate, amount and time each follows from the other two. What tells them apart is how they were made. The
amount was there before the time, and the rate was calculated from both. So:

* of two columns the one that alone is nearly the time is the leak;
* a column that holds a coarse grid (counts, two decimals) although the others and the time give it exactly was not calculated from them;
* a third column that resembles the amount has no news about the time once the amount is known, but it has once the rate is known: it tells
  the amount, and with the rate the amount tells the time. A leak, with others, tells the time better than any cause could;
* an amount need not go with the time beyond its causes; a rate does.

All but the second are judged on what the causes that are found without the tied columns leave of the time: a common cause makes an amount
go with the time as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.causal.basis import GroupCentring, build_basis, normal_scores
from causeway.causal.deviation import robust_scale
from causeway.causal.search import Problem, forward

CLOSE, OTHER = 0.9, 0.7
"""Of tied columns of which one follows the measured value this closely by itself and the others do not, that one is the leak."""
EVIDENCE = 8.0
"""Difference of twice the log-likelihood (less the number of parameters) from which third columns decide."""
UNRELATED = 10.0
"""Below this (twice the log-likelihood), a column's relation to the measured value may be chance, and no search would choose it."""
THIRD_COLUMNS, MOST_ASKED = 10, 30
THIRD_CORRELATION = 0.15
LEFT_SHARE = 0.5
"""A third column of which the causes explain more than the rest has nothing left to say."""
NEAREST = 100
"""So many columns, those nearest to the measured value, are searched for its causes."""
CLIP = 2.5
"""Robust standard deviations at which the measured value is clipped when its causes are searched."""
OFF_GRID = 0.05
"""Rounding leaves a median error of a quarter of the grid; an error below this share of it is no rounding."""
SMALLEST_GRID, LARGEST_GRID = -6, 3


@dataclass(frozen=True)
class Bystanders:
    """What surrounds tied columns; all arrays centred within configurations and weighted alike.

    Attributes
    ----------
    time : ndarray of float, shape (n_rows,)
        Measured value or its logarithm.
    frame : ndarray of float, shape (n_rows, k)
        Orthonormal: the causes of the measured value that are found without the tied columns.
    thirds : ndarray of float, shape (n_rows, m)
        Columns that are not tied.
    size : float
        Effective number of rows.
    """

    time: np.ndarray
    frame: np.ndarray
    thirds: np.ndarray
    size: float

    def on(self, rows: np.ndarray) -> "Bystanders":
        """Return the same on a mask of rows."""
        if rows.all():
            return self
        return Bystanders(
            _without_mean(self.time[rows]),
            _orthonormal(_without_mean(self.frame[rows])),
            _without_mean(self.thirds[rows]),
            self.size * float(rows.mean()),
        )


class Judge:
    """Says which of tied columns is the leak; causes of the measured value are searched only if it comes to that.

    Parameters
    ----------
    time : ndarray of float, shape (n_rows,)
        Measured value or its logarithm, centred within configurations.
    columns : ndarray of float, shape (n_rows, p)
        Counters or their logarithms, centred likewise.
    raw : list of ndarray
        The counters as they were measured.
    measured : ndarray of float, shape (n_rows,)
        Measured value.
    further : list of ndarray
        What else is known: numbers, centred, of shape (n_rows,), and indicators of categories, shape (n_rows, n_levels - 1).
    centring : GroupCentring
    size : float
        Effective number of rows.
    """

    def __init__(
        self,
        time: np.ndarray,
        columns: np.ndarray,
        raw: list[np.ndarray],
        measured: np.ndarray,
        further: list[np.ndarray],
        centring: GroupCentring,
        size: float,
    ) -> None:
        self.time, self.columns, self.raw, self.measured, self.further = time, columns, raw, measured, further
        self.centring, self.size = centring, size
        self.surroundings: dict[tuple[int, ...], Bystanders] = {}

    def leak(self, members: list[int], tied: np.ndarray) -> int | None:
        """Return the leak's place among `members`; `tied` tells of all columns, shape (p,), which cannot be asked."""
        columns = self.centring.weighted(self.columns[:, members].astype(float))
        place = nearly_the_time(self.centring.weighted(self.time), columns)
        if place is None and len(members) == 2:
            place = calculated_from(*(self.raw[i] for i in members), self.measured)
        return leak_among(columns, self._beside(members, tied)) if place is None else place

    def _beside(self, members: list[int], tied: np.ndarray) -> Bystanders:
        own = tuple(sorted(i for i in members if not tied[i]))
        if own not in self.surroundings:
            values = [self.columns[:, i] for i in np.flatnonzero(~tied) if i not in own] + self.further
            frame = causes_without(self.time, values, self.centring, self.size)
            numbers = [column for column in values if column.ndim == 1]
            thirds = np.column_stack(numbers).astype(float) if numbers else frame[:, :0]
            self.surroundings[own] = Bystanders(self.centring.weighted(self.time), frame, self.centring.weighted(thirds), self.size)
        return self.surroundings[own]


def causes_without(time: np.ndarray, values: Sequence[np.ndarray], centring: GroupCentring, size: float) -> np.ndarray:
    """Return an orthonormal frame of what causes the measured value among some columns, shape (n_rows, k).

    Parameters
    ----------
    time : ndarray of float, shape (n_rows,)
        Measured value or its logarithm, centred within configurations.
    values : sequence of ndarray
        Columns without the tied ones: centred numbers of shape (n_rows,), and indicators of categories, shape (n_rows, n_levels - 1).
    centring : GroupCentring
    size : float
        Effective number of rows.
    """
    unit = robust_scale(time, centring.weights) or 1.0
    response = centring.weighted(np.clip(time / unit, -CLIP, CLIP))
    near = np.ones(len(values))
    for i, column in enumerate(values):
        if column.ndim == 1:
            both = centring.weighted(np.column_stack([column, np.abs(column)]).astype(float))
            near[i] = np.abs(response @ both / np.maximum(np.sqrt((both**2).sum(axis=0) * (response @ response)), 1e-300)).max()
    some = [values[i] for i in np.argsort(-near, kind="stable")[:NEAREST] if values[i].ndim > 1 or near[i] <= CLOSE]
    problem = Problem.of(build_basis(some, centring), len(some), size, max(len(values), 1))
    bases = [problem.basis.columns[:, problem.basis.of(i)].astype(float) for i in (forward(problem, response) if some else [])]
    return _orthonormal(np.hstack([np.zeros((time.size, 0)), *bases]))


def nearly_the_time(time: np.ndarray, tied: np.ndarray) -> int | None:
    """Return which of the tied columns follows the measured value closely by itself when the others do not; None if that is not so."""
    own = np.abs(_correlations(time, tied))
    first, second = np.sort(own)[::-1][:2]
    return int(np.argmax(own)) if first > CLOSE and second < OTHER else None


def leak_among(tied: np.ndarray, beside: Bystanders) -> int | None:
    """Tell which of two or three tied columns is the leak; None if nothing tells.

    Parameters
    ----------
    tied : ndarray of float, shape (n_rows, 2 or 3)
        The columns or their logarithms, centred and weighted like `beside`.
    beside : Bystanders

    Returns
    -------
    int or None
        Position in `tied`.
    """
    left = [_less(beside.frame, part) for part in (beside.time, tied, beside.thirds)]
    close = nearly_the_time(left[0], left[1])
    if close is not None:
        return close
    size = beside.size - beside.frame.shape[1] - tied.shape[1]
    thirds = _nearest_thirds(left[2], beside.thirds, left[1], left[0])
    everyone = range(tied.shape[1])
    own, news = np.transpose([_of_originals([i for i in everyone if i != leak], left, thirds, beside.frame, size) for leak in everyone])
    best, second = np.argsort(news)[:2]
    told = news[second] - news[best]
    against = own[best] - own[second] if min(own[best], own[second]) < UNRELATED else 0.0
    if told > EVIDENCE and told > 2 * against:
        return int(best)
    rate = _rate(tied, beside.time)
    return rate if rate is not None and own[rate] < UNRELATED else None  # what it is a rate of need not go with the time


def _of_originals(originals: list[int], left: list[np.ndarray], thirds: np.ndarray, frame: np.ndarray, size: float) -> tuple[float, float]:
    """Return how the originals go with the time, and what third columns add; twice the log-likelihood."""
    time = left[0]
    total = float(time @ time)
    columns = left[1][:, originals]
    straight = _orthonormal(columns)
    own = size * np.log(total / max(total - float(((time @ straight) ** 2).sum()), 1e-12 * total))
    bent = _orthonormal(_less(frame, np.hstack([_bent(column) for column in columns.T])))
    rest = time - bent @ (bent.T @ time)
    further = _orthonormal(_less(bent, thirds))
    explained, before = float(((rest @ further) ** 2).sum()), float(rest @ rest)
    gain = size * np.log(before / max(before - explained, 1e-12 * total)) - further.shape[1]
    return own, gain


def _bent(column: np.ndarray) -> np.ndarray:
    """Return functions of a column by which an original may act on the time."""
    scores = normal_scores(column)
    return _without_mean(np.column_stack([column, scores, np.abs(scores), np.maximum(scores - 0.5, 0.0)]))


def _nearest_thirds(left: np.ndarray, before: np.ndarray, tied: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the third columns, less the causes, that most resemble the tied ones; none that is nearly the time, or tied by it as well."""
    alive = ((left**2).sum(axis=0) > LEFT_SHARE * (before**2).sum(axis=0)) & (np.abs(_correlations(time, left)) <= CLOSE)
    strength = np.abs(_unit(left).T @ _unit(tied)).max(axis=1, initial=0.0) * alive
    near = [i for i in np.argsort(-strength, kind="stable")[:MOST_ASKED] if strength[i] > THIRD_CORRELATION]
    asked = [i for i in near if not any(_needs_time(left[:, i], member, time) for member in tied.T)]
    return left[:, asked[:THIRD_COLUMNS]]


def _needs_time(third: np.ndarray, member: np.ndarray, time: np.ndarray) -> bool:
    """Tell whether the time explains much of what a tied column leaves of a third one."""
    rest = _less(_unit(member[:, None]), np.column_stack([third, time]))
    return bool(_correlations(rest[:, 1], rest[:, :1])[0] ** 2 > 1 - LEFT_SHARE)


def _rate(tied: np.ndarray, time: np.ndarray) -> int | None:
    """Return the only one of the columns that falls with the time if the others are held: amount / time; None if there is not one."""
    falling = []
    for i in range(tied.shape[1]):
        others = np.column_stack([np.delete(tied, i, axis=1), time])
        if np.linalg.lstsq(others, tied[:, i], rcond=None)[0][-1] < 0:
            falling.append(i)
    return falling[0] if len(falling) == 1 else None


def calculated_from(one: np.ndarray, other: np.ndarray, measured: np.ndarray) -> int | None:
    """Tell which of two columns, tied by the measured value, was calculated from the other: 0, 1, or None if rounding does not tell.

    Rounding comes last. A column on a grid, e.g. of whole numbers, that the other and the measured value give far more exactly than
    its grid, was not calculated from them.

    Parameters
    ----------
    one, other, measured : ndarray of float, shape (n_rows,)
        As they were measured.
    """
    with np.errstate(all="ignore"):
        rows = np.isfinite(one) & np.isfinite(other) & (one > 0) & (other > 0) & (measured > 0)
        logs = [np.log(series[rows]) for series in (one, other, measured)]
    if rows.sum() < 2:
        return None
    first = []
    for place, series in enumerate((one, other)):
        grid = _grid(series[np.isfinite(series)])
        errors = [logs[place] - power * logs[1 - place] - times * logs[2] for power in (1, -1) for times in (1, -1)]
        misfit = min(float(np.median(np.abs(np.expm1(error - np.median(error))) * series[rows])) for error in errors)
        first.append(grid > 0 and misfit < OFF_GRID * grid)
    return int(first[0]) if first[0] != first[1] else None


def _grid(values: np.ndarray) -> float:
    """Return the largest power of ten of which all values are multiples; 0 if there is none."""
    for power in range(LARGEST_GRID, SMALLEST_GRID - 1, -1):
        steps = values / 10.0**power
        if np.abs(steps).max() < 2.0**50 and np.all(np.abs(steps - np.round(steps)) <= 1e-6 * np.minimum(np.abs(steps), 1.0)):
            return 10.0**power
    return 0.0


def _without_mean(columns: np.ndarray) -> np.ndarray:
    return columns - columns.mean(axis=0)


def _unit(columns: np.ndarray) -> np.ndarray:
    lengths = np.sqrt((columns**2).sum(axis=0))
    return columns / np.where(lengths > 0, lengths, 1.0)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of columns, without directions that the others already hold."""
    if columns.shape[1] == 0:
        return columns
    block, triangle = np.linalg.qr(_unit(columns))
    return block[:, np.abs(np.diag(triangle)) > 1e-4]


def _less(frame: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return columns minus their part in an orthonormal frame."""
    return columns - frame @ (frame.T @ columns)


def _correlations(series: np.ndarray, columns: np.ndarray) -> np.ndarray:
    length = np.sqrt(series @ series)
    return _unit(columns).T @ series / (length if length > 0 else 1.0)
