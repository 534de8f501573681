"""Contributions and slopes: how much of the target's variance each cause carries, which way it moves the target, and
what nothing explains.

With the fitted model `y = exp(g) |mu(x) + sigma(x) N|` (mu and sigma of the causes within configurations, g of those at
the configuration level, N the standardised residual), a cause counts by its unnormalised total-effect index: the
variance of y when it alone varies and all else, N included, is held, `S_j = E[Var over x_j of y]`; likewise `S_noise`
for N. Contributions are `100 S_j / (sum S + S_noise)`. The same index of the signed deviation, whose variance is that
of the measured value, gives the shares of the value: a cause of two equally frequent levels hardly changes how large
deviations are, and may yet be all that the value varies by. The slope is that of y on x_j when x_j alone is set, and
beside it that of the signed deviation, which moves as the measured value itself does.

References
----------
M. J. W. Jansen, Analysis of variance designs for model output, Comput. Phys. Commun. 117 (1999) 35: by pick-freeze,
`S_j` is half the mean squared change of y when x_j is picked from another row and all else is frozen.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from causeway.causal.effects.location_scale import Causes, LocationScale, cross_fitted
from causeway.causal.statistics.draw_weights import DrawWeights
from causeway.numeric.block_resampling import fold_numbers

FOLDS = 5
MAX_ROWS = 5000
"""Rows that are used, drawn at random."""
PICK_FREEZE_DRAWS = 6
"""Times each cause is picked from another row; more changes no contribution by more than a tenth of a percent."""
PICK_FREEZE_DRAWS_IN_DRAW = 2
DRAWS = 60
"""Draws behind an interval, each with other weights of the blocks."""
NORMAL_QUANTILE = 1.645
"""Half width of a 90 % interval in standard errors."""
WIDER = 1.5
"""Widening of the intervals of shares for bends that neither model has: with it they cover .89 to .98 in four cases of
the validation, .62 where causes act differently in each of 17 kernels; without it .38 to .88.
"""
ROUNDING = 1e-6
"""Values that differ by less than this share of the largest are one: columns are held in single precision."""
WINSOR = 8.0
"""The deviation is clipped at so many standard deviations, so that one outage does not own the variance."""


@dataclass(frozen=True)
class Slope:
    """How y, or the value, moves with a cause: in its standard deviations per one of a numeric cause, or for a level
    against all others.

    Attributes
    ----------
    value, low, high : float
        With a 90 % interval.
    agreement : float
        Share of draws with the same sign.
    direction : int
        0 for a number; for a category the position of the level that stands out.
    """

    value: float
    low: float
    high: float
    agreement: float
    direction: int = 0


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of a variance in percent; all with the unexplained rest sum to 100.

    Attributes
    ----------
    percent, low, high : ndarray of float, shape (n_causes,)
        Share with a 90 % interval, 0 to 100.
    unexplained, unexplained_low, unexplained_high : float
    """

    percent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unexplained: float
    unexplained_low: float
    unexplained_high: float


@dataclass(frozen=True, kw_only=True)
class Contributions(Shares):
    """Contributions, the shares of the variance of y.

    Attributes
    ----------
    of_value : Shares
        Of the variance of the signed deviation, which is that of the measured value; the contributions where y is the
        signed deviation.
    slopes, moves : list of Slope
        Of y, and of the signed deviation; of a category both are about one level. The same where y is the signed
        deviation.
    """

    of_value: Shares
    slopes: list[Slope]
    moves: list[Slope]


@dataclass(frozen=True, kw_only=True)
class ShareMethod:
    """A way to estimate contributions.

    Attributes
    ----------
    label : str
        Names it in the `method` of `graph.json`.
    estimate : callable
        Takes the parameters of `estimate_contributions` and returns `Contributions`; the same ones for the same `rng`.
    """

    label: str
    estimate: Callable[..., Contributions]


@dataclass
class _PickFreezeSums:
    """Sums over pick-freeze pairs: squared changes per cause and for the noise, and changes along each direction of
    each cause.

    `squares` and `cross` have two rows: of y, and of the signed deviation.
    """

    squares: np.ndarray
    cross: list[np.ndarray]
    moved: list[np.ndarray]

    @classmethod
    def empty(cls, directions: list[np.ndarray]) -> "_PickFreezeSums":
        zeros = [np.zeros((2, columns.shape[1])) for columns in directions]
        return cls(np.zeros((2, len(directions) + 1)), zeros, [zero[0].copy() for zero in zeros])

    def add(self, cause: int, change: np.ndarray, moved: np.ndarray, weights: np.ndarray, step: np.ndarray) -> None:
        """Add one draw of a cause: changes of y and of the deviation, and how far each pair moved along the
        cause's directions.
        """
        self.add_squares(cause, change, moved, weights)
        self.cross[cause] += (weights * np.stack([change, moved])) @ step
        self.moved[cause] += weights @ step**2

    def add_squares(self, cause: int, change: np.ndarray, moved: np.ndarray, weights: np.ndarray) -> None:
        """Add the squares of one draw of a cause, or of the noise at -1."""
        self.squares[:, cause] += np.stack([change, moved]) ** 2 @ weights

    def percent(self) -> np.ndarray:
        """Return the shares in percent of y, then of the deviation, the unexplained last, shape (2, n_causes + 1)."""
        total = self.squares.sum(axis=1, keepdims=True)
        nothing = np.append(np.zeros(self.squares.shape[1] - 1), 100.0)
        return np.where(total > 0, 100.0 * self.squares / np.where(total > 0, total, 1.0), nothing)

    def slopes(self) -> list[np.ndarray]:
        """Return for each cause the slopes of y and of the deviation, shape (2, n_directions)."""
        return [cross / np.where(moved > 0, moved, 1.0) for cross, moved in zip(self.cross, self.moved, strict=True)]


class PickFreeze:
    """Picks the values of one cause at a time from other rows, and freezes all else.

    Parameters
    ----------
    within : list of ndarray of float, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes that vary within configurations.
    gains, positions : list of ndarray of float, shape (n_rows,)
        For each cause at the configuration level, its part of g, and its value in standard deviations.
    deviation : ndarray of float, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray of float, shape (n_rows,), positive
    absolute : bool
        y is the absolute value of the deviation; else the deviation itself.
    kernel : ndarray of int, shape (n_rows,)
        Codes of the kernels. Values are picked from rows of the same kernel: one in which a cause does not vary is none
        in which it acts.
    """

    def __init__(
        self,
        within: list[np.ndarray],
        gains: list[np.ndarray],
        positions: list[np.ndarray],
        deviation: np.ndarray,
        weights: np.ndarray,
        absolute: bool,
        kernel: np.ndarray,
    ) -> None:
        self.causes = Causes(within, deviation.size)
        self.gains = gains
        self.deviation = deviation
        self.weights = weights
        self.kernel = kernel
        self.target = np.abs if absolute else np.positive
        self.n_within = len(within)
        self.directions = [_slope_directions(values) for values in (*within, *positions)]

    def sums(
        self,
        model: LocationScale,
        rows: np.ndarray,
        rng: np.random.Generator,
        n_draws: int,
        totals: _PickFreezeSums | None = None,
        weights: np.ndarray | None = None,
    ) -> _PickFreezeSums:
        """Return the sums over pick-freeze pairs among some rows, whose noise is the model's standardised residual.

        Parameters
        ----------
        model : LocationScale
        rows : ndarray of int, shape (m,)
        rng : Generator
        n_draws : int
            Times each cause is picked from another row.
        totals : _PickFreezeSums or None
            Sums to add to.
        weights : ndarray of float, shape (n_rows,), positive, or None
            Those of a draw; None for the rows' own.
        """
        totals = _PickFreezeSums.empty(self.directions) if totals is None else totals
        g = np.sum([gain[rows] for gain in self.gains], axis=0) if self.gains else np.zeros(rows.size)
        mean, sigma = model.predict(rows)
        scale = np.exp(g)
        deviation = self.deviation[rows]
        noise = (deviation - mean) / sigma
        y = scale * self.target(deviation)
        own = (self.weights if weights is None else weights)[rows]
        picks = self._picks(rows, own, rng, n_draws)
        donors = rows[picks]
        again = np.tile(rows, n_draws)  # of all draws at once: trees cost most by the call
        for cause, columns in enumerate(self.directions):
            if cause < self.n_within:
                other_mean, other_sigma = (
                    values.reshape(picks.shape) for values in model.predict(again, cause, donors.ravel())
                )
                other = other_mean + other_sigma * noise
                change = scale * self.target(other) - y
                moved = scale * (other - deviation)
            else:
                gain = self.gains[cause - self.n_within]
                factor = np.exp(gain[donors] - gain[rows]) - 1
                change = factor * y
                moved = factor * scale * deviation
            for draw, picked in enumerate(donors):
                totals.add(cause, change[draw], moved[draw], own, columns[picked] - columns[rows])
        for picked in picks:
            other = mean + sigma * noise[picked]
            totals.add_squares(-1, scale * self.target(other) - y, scale * (other - deviation), own)
        return totals

    def _picks(self, rows: np.ndarray, own: np.ndarray, rng: np.random.Generator, n_draws: int) -> np.ndarray:
        """Return for each draw and row the position of another one of its kernel, by chance as the weights `own` are;
        int, shape (n_draws, m).
        """
        picks = np.empty((n_draws, rows.size), dtype=np.int64)
        kernel = self.kernel[rows]
        for code in np.unique(kernel):
            mine = np.flatnonzero(kernel == code)
            chances = own[mine] / own[mine].sum()
            for draw in range(n_draws):
                picks[draw, mine] = mine[rng.choice(mine.size, size=mine.size, p=chances)]
        return picks


def varying_kernels(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return in which kernels a cause varies, bool, shape (n_kernels,).

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,) or (n_rows, n_levels - 1)
    kernel : ndarray of int, shape (n_rows,)
        Codes 0, 1, ..., each with a row.
    """
    columns = values.reshape(len(values), -1)
    first = columns[np.unique(kernel, return_index=True)[1]]
    differs = np.abs(columns - first[kernel]).max(axis=1) > ROUNDING * np.abs(columns).max(initial=1.0)
    return np.bincount(kernel, differs) > 0


def _slope_directions(values: np.ndarray) -> np.ndarray:
    """Return the columns along which a cause's slope is taken, shape (n_rows, k): itself in standard deviations, or an
    indicator per level.
    """
    if values.ndim == 1:
        spread = float(values.std())
        return ((values - values.mean()) / (spread if spread > 0 else 1.0))[:, None].astype(float)
    return np.column_stack([1.0 - values.sum(axis=1), values])


def estimate_contributions(
    within: list[np.ndarray],
    gains: list[np.ndarray],
    positions: list[np.ndarray],
    deviation: np.ndarray,
    weights: np.ndarray,
    blocks: np.ndarray,
    rng: np.random.Generator,
    absolute: bool = True,
    kernel: np.ndarray | None = None,
) -> Contributions:
    """Estimate contributions and slopes of all causes, those within configurations first.

    Parameters
    ----------
    within : list of ndarray of float, shape (n_rows,) or (n_rows, n_levels - 1)
    gains, positions : list of ndarray of float, shape (n_rows,)
    deviation : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive
        All as of `PickFreeze`.
    blocks : ndarray of int, shape (n_rows,)
        Blocks of rows, longer than the residual is autocorrelated.
    rng : Generator
    absolute : bool
        As of `PickFreeze`.
    kernel : ndarray of int, shape (n_rows,), or None
        Codes of the kernels, 0, 1, ...; None for one. No share is more than the share of the weight that the kernels
        have in which the cause varies.

    Notes
    -----
    Where boosted trees predict unseen rows better than the additive model alone, both are cross-fitted in five folds of
    whole blocks (`fold_numbers`): what must be learnt has to lie in all folds. Else the additive model of all rows is
    taken, which shrinks as far as the rows are few. The intervals are those of the additive model with other
    weights of blocks, around the point estimate: its standard error and the distance of both models, widened.
    """
    kernel = np.zeros(deviation.size, np.int64) if kernel is None else kernel
    by_kernel = np.bincount(kernel, weights) / weights.sum()
    most = np.array([100.0 * by_kernel[varying_kernels(one, kernel)].sum() for one in (*within, *positions)])
    if deviation.size > MAX_ROWS:
        pick = np.sort(rng.permutation(deviation.size)[:MAX_ROWS])
        within, gains, positions = ([values[pick] for values in columns] for columns in (within, gains, positions))
        deviation = deviation[pick]
        weights = weights[pick]
        blocks = np.unique(blocks[pick], return_inverse=True)[1]
        kernel = kernel[pick]
    spread = np.sqrt(np.average(deviation**2, weights=weights))
    deviation = np.clip(deviation, -WINSOR * spread, WINSOR * spread)
    pick_freeze = PickFreeze(within, gains, positions, deviation, weights, absolute, kernel)
    everything = np.arange(deviation.size)
    model = LocationScale(pick_freeze.causes, everything, deviation, weights)
    centre = pick_freeze.sums(model, everything, rng, PICK_FREEZE_DRAWS)
    seed = int(rng.integers(1 << 31))
    folds = fold_numbers(blocks, FOLDS, np.random.default_rng(seed))
    parts = cross_fitted(pick_freeze.causes, folds, deviation, weights, seed)
    point = centre
    if parts[0][1].has_trees:
        point = _PickFreezeSums.empty(pick_freeze.directions)
        for rows, part in parts:
            pick_freeze.sums(part, rows, rng, PICK_FREEZE_DRAWS, point)
    drawn = DrawWeights(weights, blocks, [*within, *positions], DRAWS, rng)
    draws = [_weighted(pick_freeze, model, own, rng) for own in drawn.of_rows().T]
    of_target, of_value = (
        _shares(*ends, drawn.widening, most)
        for ends in zip(point.percent(), centre.percent(), np.stack([one.percent() for one in draws], 1), strict=True)
    )
    value = np.exp(np.sum(gains, axis=0)) * deviation if gains else deviation
    units = [_spread(one, weights) for one in (pick_freeze.target(value), value)]
    slopes, moves = _slopes(point, centre, draws, units, pick_freeze, drawn.widening)
    return Contributions(**vars(of_target), of_value=of_value, slopes=slopes, moves=moves)


def _shares(
    percent: np.ndarray, centre: np.ndarray, draws: np.ndarray, widening: np.ndarray, most: np.ndarray
) -> Shares:
    """Return shares with intervals: the standard error of the draws and the distance to the additive model, widened.

    The unexplained rest is the last of `percent` and `centre`, shape (n_causes + 1,), and of each of the draws; `most`
    are the largest shares that causes may have.
    """
    errors = draws.std(axis=0, ddof=1)
    more = errors[:-1] * np.sqrt(widening**2 - 1.0)
    errors = np.hypot(errors, np.append(more, np.sqrt(more @ more)))  # what a share may have more, the rest has less
    half = NORMAL_QUANTILE * WIDER * np.hypot(errors, percent - centre)
    over = np.maximum(percent[:-1] - most, 0.0)
    percent = percent + np.append(-over, over.sum())
    ceiling = np.append(most, 100.0)
    low = np.clip(percent - half, 0.0, ceiling)
    high = np.minimum(percent + half, ceiling)
    return Shares(
        percent=percent[:-1],
        low=low[:-1],
        high=high[:-1],
        unexplained=float(percent[-1]),
        unexplained_low=float(low[-1]),
        unexplained_high=float(high[-1]),
    )


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted standard deviation, or 1 if there is none."""
    spread = float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
    return spread if spread > 0 else 1.0


def _weighted(
    pick_freeze: PickFreeze, template: LocationScale, weights: np.ndarray, rng: np.random.Generator
) -> _PickFreezeSums:
    """Return the sums of the additive model with other weights of the rows."""
    rows = np.arange(weights.size)
    model = LocationScale(pick_freeze.causes, rows, pick_freeze.deviation, weights, template)
    return pick_freeze.sums(model, rows, rng, PICK_FREEZE_DRAWS_IN_DRAW, weights=weights)


def _slopes(
    point: _PickFreezeSums,
    centre: _PickFreezeSums,
    draws: list[_PickFreezeSums],
    units: list[float],
    pick_freeze: PickFreeze,
    widening: np.ndarray,
) -> tuple[list[Slope], list[Slope]]:
    """Return the slopes of y and of the value with intervals, like the contributions'; of a category those of the
    level that stands out.
    """
    found: tuple[list[Slope], list[Slope]] = ([], [])
    resampled = [draw.slopes() for draw in draws]
    for cause, (values, middle) in enumerate(zip(point.slopes(), centre.slopes(), strict=True)):
        spread = pick_freeze.directions[cause].std(axis=0)
        direction = int(np.argmax(np.max(np.abs(values) * spread / np.asarray(units)[:, None], axis=0)))
        for about, unit in enumerate(units):
            around = np.asarray([draw[cause][about, direction] for draw in resampled]) - middle[about, direction]
            moved = (values[about, direction] + widening[cause] * around) / unit
            low, high = np.quantile(moved, [0.05, 0.95])
            value = float(values[about, direction] / unit)
            agreement = float(np.mean(np.sign(moved) == np.sign(value)))
            found[about].append(Slope(value, float(low), float(high), agreement, direction))
    return found


TOTAL_EFFECT = ShareMethod(label="structural shares of a boosted location-scale model", estimate=estimate_contributions)
