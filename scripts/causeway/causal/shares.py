"""Structural shares and slopes: how much of the target's variance each cause carries, which way it moves it, and what nothing explains.

With the fitted model `y = exp(g) |mu(x) + sigma(x) N|` (mu and sigma of the causes within configurations, g of those at the configuration
level, N the standardised rest), the share of a cause is the variance of y when it alone varies and all else, N included, is held:
`S_j = E[Var over x_j of y]`; likewise `S_noise` for N. Contributions are `100 S_j / (sum S + S_noise)`. The slope is that of y on x_j when
x_j alone is set.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.location_scale import Causes, LocationScale

FOLDS = 5
MAX_ROWS = 5000
SWAPS = 6
"""Times each cause is exchanged between rows; more changes no share by more than a tenth of a percent."""
DRAWS = 60
WINSOR = 8.0
"""The deviation is clipped at so many standard deviations, so that one outage does not own the variance."""


@dataclass(frozen=True)
class Slope:
    """How y moves with a cause: in standard deviations of y per standard deviation of a number, or for a level against all others.

    Attributes
    ----------
    value, low, high : float
        With a 95 % interval.
    agreement : float
        Share of resamples with the same sign.
    direction : int
        0 for a number; for a category the position of the level that stands out.
    """

    value: float
    low: float
    high: float
    agreement: float
    direction: int = 0


@dataclass(frozen=True)
class Shares:
    """Contributions in percent; all with the unexplained rest sum to 100.

    Attributes
    ----------
    percent, low, high : ndarray, shape (n_causes,)
        Contribution with a 95 % interval.
    unexplained, unexplained_low, unexplained_high : float
    slopes : list of Slope
    """

    percent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unexplained: float
    unexplained_low: float
    unexplained_high: float
    slopes: list[Slope]


@dataclass
class _Sums:
    """Sums over exchanged pairs: squared changes per cause and for the noise, and changes along each direction of each cause."""

    squares: np.ndarray
    cross: list[np.ndarray]
    moved: list[np.ndarray]

    @classmethod
    def empty(cls, directions: list[np.ndarray]) -> "_Sums":
        zeros = [np.zeros(columns.shape[1]) for columns in directions]
        return cls(np.zeros(len(directions) + 1), zeros, [zero.copy() for zero in zeros])

    def add(self, cause: int, change: np.ndarray, weights: np.ndarray, step: np.ndarray) -> None:
        """Add one exchange of a cause; `step` is how far each pair moved along the cause's directions."""
        self.squares[cause] += weights @ change**2
        self.cross[cause] += (weights * change) @ step
        self.moved[cause] += weights @ step**2

    def percent(self) -> np.ndarray:
        total = self.squares.sum()
        return 100.0 * self.squares / total if total > 0 else np.append(np.zeros(self.squares.size - 1), 100.0)

    def slopes(self) -> list[np.ndarray]:
        return [cross / np.where(moved > 0, moved, 1.0) for cross, moved in zip(self.cross, self.moved, strict=True)]


class Exchange:
    """Exchanges the values of one cause at a time between rows.

    Parameters
    ----------
    within : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes that vary within configurations.
    gains, positions : lists of ndarray, shape (n_rows,)
        For each cause at the configuration level, its part of g, and its value in standard deviations.
    deviation : ndarray, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray, shape (n_rows,), positive
    folded : bool
        y is the absolute value of the deviation; else the deviation itself.
    """

    def __init__(self, within, gains, positions, deviation, weights, folded: bool) -> None:
        self.causes = Causes(within, deviation.size)
        self.gains, self.deviation, self.weights = gains, deviation, weights
        self.fold = np.abs if folded else np.positive
        self.n_within = len(within)
        self.directions = [_directions(values) for values in (*within, *positions)]

    def sums(self, model: LocationScale, rows: np.ndarray, rng: np.random.Generator, swaps: int, into: _Sums | None = None) -> _Sums:
        """Exchange among `rows`, whose noise is what the model leaves of them."""
        into = _Sums.empty(self.directions) if into is None else into
        g = np.sum([gain[rows] for gain in self.gains], axis=0) if self.gains else np.zeros(rows.size)
        mean, sigma = model.predict(rows)
        noise = (self.deviation[rows] - mean) / sigma
        y = np.exp(g) * self.fold(mean + sigma * noise)
        own = self.weights[rows]
        for _ in range(swaps):
            local = rng.choice(rows.size, size=rows.size, p=own / own.sum())
            partners = rows[local]
            for cause, columns in enumerate(self.directions):
                step = columns[partners] - columns[rows]
                if cause < self.n_within:
                    other_mean, other_sigma = model.predict(rows, cause, partners)
                    change = np.exp(g) * self.fold(other_mean + other_sigma * noise) - y
                else:
                    gain = self.gains[cause - self.n_within]
                    change = (np.exp(gain[partners] - gain[rows]) - 1) * y
                into.add(cause, change, own, step)
            into.squares[-1] += own @ (np.exp(g) * self.fold(mean + sigma * noise[local]) - y) ** 2
        return into


def _directions(values: np.ndarray) -> np.ndarray:
    """Return along which columns a cause's slope is taken: itself in standard deviations, or an indicator per level."""
    if values.ndim == 1:
        spread = float(values.std())
        return ((values - values.mean()) / (spread if spread > 0 else 1.0))[:, None].astype(float)
    return np.column_stack([1.0 - values.sum(axis=1), values])


def structural_shares(
    within: list[np.ndarray],
    gains: list[np.ndarray],
    positions: list[np.ndarray],
    deviation: np.ndarray,
    weights: np.ndarray,
    blocks: np.ndarray,
    rng: np.random.Generator,
    folded: bool = True,
) -> Shares:
    """Estimate contributions and slopes of all causes, those within configurations first; parameters as of `Exchange`.

    Parameters
    ----------
    blocks : ndarray of int, shape (n_rows,)
        Blocks of rows, longer than what the causes leave is autocorrelated.

    Notes
    -----
    mu and sigma are cross-fitted in five folds of whole blocks, dealt in turn: an episode in time must lie in all folds to be learnt.
    `E[Var over x_j]` is half the mean squared change of y when x_j is exchanged for that of another row (M. Jansen, Comput. Phys. Commun.
    117 (1999) 35). The intervals are those of the linear model under resampling of blocks, moved to the point estimate: refitting trees
    60 times would cost a minute and changes their width little.
    """
    if deviation.size > MAX_ROWS:
        pick = np.sort(rng.permutation(deviation.size)[:MAX_ROWS])
        within, gains, positions = ([values[pick] for values in columns] for columns in (within, gains, positions))
        deviation, weights, blocks = deviation[pick], weights[pick], np.unique(blocks[pick], return_inverse=True)[1]
    spread = np.sqrt(np.average(deviation**2, weights=weights))
    deviation = np.clip(deviation, -WINSOR * spread, WINSOR * spread)
    exchange = Exchange(within, gains, positions, deviation, weights, folded)
    folds = blocks % FOLDS
    point = _Sums.empty(exchange.directions)
    seed = int(rng.integers(1 << 31))
    everything = np.arange(deviation.size)
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        model = LocationScale(exchange.causes, train if train.size >= 20 else everything, deviation, weights, seed)
        exchange.sums(model, test, rng, SWAPS, point)
    centre = exchange.sums(LocationScale(exchange.causes, everything, deviation, weights, None), everything, rng, SWAPS)
    draws = [_resampled(exchange, blocks, rng) for _ in range(DRAWS)]
    percent = point.percent()
    around = np.asarray([draw.percent() for draw in draws]) - centre.percent()
    low = np.clip(percent + np.quantile(around, 0.025, axis=0), 0.0, percent)
    high = np.clip(percent + np.quantile(around, 0.975, axis=0), percent, 100.0)
    size = np.exp(np.sum(gains, axis=0)) * exchange.fold(deviation) if gains else exchange.fold(deviation)
    unit = float(np.sqrt(np.average((size - np.average(size, weights=weights)) ** 2, weights=weights)))
    slopes = _slopes(point, centre, draws, unit if unit > 0 else 1.0, exchange)
    return Shares(percent[:-1], low[:-1], high[:-1], float(percent[-1]), float(low[-1]), float(high[-1]), slopes)


def resampled_rows(blocks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of a resample of whole blocks, which are numbered 0, 1, ... per row in `blocks`."""
    order = np.argsort(blocks, kind="stable")
    starts = np.searchsorted(blocks[order], np.arange(blocks.max() + 2))
    drawn = rng.integers(0, blocks.max() + 1, blocks.max() + 1)
    return np.concatenate([order[starts[b] : starts[b + 1]] for b in drawn])


def _resampled(exchange: Exchange, blocks: np.ndarray, rng: np.random.Generator) -> _Sums:
    """Return the sums of the linear model on a resample of whole blocks."""
    rows = resampled_rows(blocks, rng)
    model = LocationScale(exchange.causes, rows, exchange.deviation, exchange.weights, None)
    return exchange.sums(model, rows, rng, 2)


def _slopes(point: _Sums, centre: _Sums, draws: list[_Sums], unit: float, exchange: Exchange) -> list[Slope]:
    """Return the slopes with intervals, like the shares'; of a category that of the level that stands out."""
    found = []
    resampled = [draw.slopes() for draw in draws]
    for cause, (values, middle) in enumerate(zip(point.slopes(), centre.slopes(), strict=True)):
        spread = exchange.directions[cause].std(axis=0)
        direction = int(np.argmax(np.abs(values) * spread))
        around = np.asarray([draw[cause][direction] for draw in resampled]) - middle[direction]
        moved = (values[direction] + around) / unit
        low, high = np.quantile(moved, [0.025, 0.975])
        value = float(values[direction] / unit)
        found.append(Slope(value, float(low), float(high), float(np.mean(np.sign(moved) == np.sign(value))), direction))
    return found
