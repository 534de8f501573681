"""Structural shares and slopes: how much of the target's variance each cause carries, which way it moves it, and what nothing explains.

With the fitted model `y = exp(g) |mu(x) + sigma(x) N|` (mu and sigma of the causes within configurations, g of those at the configuration
level, N the standardised rest), the share of a cause is the variance of y when it alone varies and all else, N included, is held:
`S_j = E[Var over x_j of y]`; likewise `S_noise` for N. Contributions are `100 S_j / (sum S + S_noise)`. The slope is that of y on x_j when
x_j alone is set, and beside it that of the signed deviation, which moves as the measured value itself does.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.location_scale import Causes, LocationScale, cross_fitted

FOLDS = 5
MAX_ROWS = 5000
SWAPS = 6
"""Times each cause is exchanged between rows; more changes no share by more than a tenth of a percent."""
DRAWS = 60
WINSOR = 8.0
"""The deviation is clipped at so many standard deviations, so that one outage does not own the variance."""


@dataclass(frozen=True)
class Slope:
    """How y, or the value, moves with a cause: in its standard deviations per one of a number, or for a level against all others.

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
    slopes, moves : list of Slope
        Of y, and of the signed deviation; of a category both are about one level. The same where y is the signed deviation.
    """

    percent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unexplained: float
    unexplained_low: float
    unexplained_high: float
    slopes: list[Slope]
    moves: list[Slope]


@dataclass
class _Sums:
    """Sums over exchanged pairs: squared changes of y per cause and for the noise, and changes along each direction of each cause.

    `cross` has two rows: of y, and of the signed deviation.
    """

    squares: np.ndarray
    cross: list[np.ndarray]
    moved: list[np.ndarray]

    @classmethod
    def empty(cls, directions: list[np.ndarray]) -> "_Sums":
        zeros = [np.zeros((2, columns.shape[1])) for columns in directions]
        return cls(np.zeros(len(directions) + 1), zeros, [zero[0].copy() for zero in zeros])

    def add(self, cause: int, change: np.ndarray, moved: np.ndarray, weights: np.ndarray, step: np.ndarray) -> None:
        """Add one exchange of a cause: changes of y and of the deviation, and how far each pair moved along the cause's directions."""
        self.squares[cause] += weights @ change**2
        self.cross[cause] += (weights * np.stack([change, moved])) @ step
        self.moved[cause] += weights @ step**2

    def percent(self) -> np.ndarray:
        total = self.squares.sum()
        return 100.0 * self.squares / total if total > 0 else np.append(np.zeros(self.squares.size - 1), 100.0)

    def slopes(self) -> list[np.ndarray]:
        """Return for each cause the slopes of y and of the deviation, shape (2, n_directions)."""
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
        scale, deviation = np.exp(g), self.deviation[rows]
        noise, y = (deviation - mean) / sigma, scale * self.fold(deviation)
        own = self.weights[rows]
        for _ in range(swaps):
            local = rng.choice(rows.size, size=rows.size, p=own / own.sum())
            partners = rows[local]
            for cause, columns in enumerate(self.directions):
                step = columns[partners] - columns[rows]
                if cause < self.n_within:
                    other_mean, other_sigma = model.predict(rows, cause, partners)
                    other = other_mean + other_sigma * noise
                    change, moved = scale * self.fold(other) - y, scale * (other - deviation)
                else:
                    gain = self.gains[cause - self.n_within]
                    factor = np.exp(gain[partners] - gain[rows]) - 1
                    change, moved = factor * y, factor * scale * deviation
                into.add(cause, change, moved, own, step)
            into.squares[-1] += own @ (scale * self.fold(mean + sigma * noise[local]) - y) ** 2
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
    Where boosted trees predict unseen rows better than the additive model alone, both are cross-fitted in five folds of whole blocks, dealt
    in turn: an episode in time must lie in all folds to be learnt. Else the additive model of all rows is taken, which shrinks as far as
    the rows are few. `E[Var over x_j]` is half the mean squared change of y when x_j is exchanged for that of another row (M. Jansen,
    Comput. Phys. Commun. 117 (1999) 35). The intervals are those of the additive model under resampling of blocks, moved to the point
    estimate: refitting trees 60 times would cost a minute and changes their width little.
    """
    if deviation.size > MAX_ROWS:
        pick = np.sort(rng.permutation(deviation.size)[:MAX_ROWS])
        within, gains, positions = ([values[pick] for values in columns] for columns in (within, gains, positions))
        deviation, weights, blocks = deviation[pick], weights[pick], np.unique(blocks[pick], return_inverse=True)[1]
    spread = np.sqrt(np.average(deviation**2, weights=weights))
    deviation = np.clip(deviation, -WINSOR * spread, WINSOR * spread)
    exchange = Exchange(within, gains, positions, deviation, weights, folded)
    everything = np.arange(deviation.size)
    model = LocationScale(exchange.causes, everything, deviation, weights)
    centre = exchange.sums(model, everything, rng, SWAPS)
    parts = cross_fitted(exchange.causes, blocks % FOLDS, deviation, weights, int(rng.integers(1 << 31)))
    point = centre
    if parts[0][1].has_trees:
        point = _Sums.empty(exchange.directions)
        for rows, part in parts:
            exchange.sums(part, rows, rng, SWAPS, point)
    draws = [_resampled(exchange, model, blocks, rng) for _ in range(DRAWS)]
    percent = point.percent()
    around = np.asarray([draw.percent() for draw in draws]) - centre.percent()
    low = np.clip(percent + np.quantile(around, 0.025, axis=0), 0.0, percent)
    high = np.clip(percent + np.quantile(around, 0.975, axis=0), percent, 100.0)
    value = np.exp(np.sum(gains, axis=0)) * deviation if gains else deviation
    units = [_spread(one, weights) for one in (exchange.fold(value), value)]
    slopes, moves = _slopes(point, centre, draws, units, exchange)
    return Shares(percent[:-1], low[:-1], high[:-1], float(percent[-1]), float(low[-1]), float(high[-1]), slopes, moves)


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted standard deviation, or 1 if there is none."""
    spread = float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
    return spread if spread > 0 else 1.0


def resampled_rows(blocks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of a resample of whole blocks, which are numbered 0, 1, ... per row in `blocks`."""
    order = np.argsort(blocks, kind="stable")
    starts = np.searchsorted(blocks[order], np.arange(blocks.max() + 2))
    drawn = rng.integers(0, blocks.max() + 1, blocks.max() + 1)
    return np.concatenate([order[starts[b] : starts[b + 1]] for b in drawn])


def _resampled(exchange: Exchange, like: LocationScale, blocks: np.ndarray, rng: np.random.Generator) -> _Sums:
    """Return the sums of the additive model on a resample of whole blocks."""
    rows = resampled_rows(blocks, rng)
    model = LocationScale(exchange.causes, rows, exchange.deviation, exchange.weights, like)
    return exchange.sums(model, rows, rng, 2)


def _slopes(point: _Sums, centre: _Sums, draws: list[_Sums], units: list[float], exchange: Exchange) -> tuple[list[Slope], list[Slope]]:
    """Return the slopes of y and of the value with intervals, like the shares'; of a category those of the level that stands out."""
    found: tuple[list[Slope], list[Slope]] = ([], [])
    resampled = [draw.slopes() for draw in draws]
    for cause, (values, middle) in enumerate(zip(point.slopes(), centre.slopes(), strict=True)):
        spread = exchange.directions[cause].std(axis=0)
        direction = int(np.argmax(np.max(np.abs(values) * spread / np.asarray(units)[:, None], axis=0)))
        for about, unit in enumerate(units):
            around = np.asarray([draw[cause][about, direction] for draw in resampled]) - middle[about, direction]
            moved = (values[about, direction] + around) / unit
            low, high = np.quantile(moved, [0.025, 0.975])
            value = float(values[about, direction] / unit)
            agreement = float(np.mean(np.sign(moved) == np.sign(value)))
            found[about].append(Slope(value, float(low), float(high), agreement, direction))
    return found
