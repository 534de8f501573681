"""Structural shares: how much of the target's variance each cause carries, and how much none of them explains.

With the fitted model `y = exp(g) |mu(x) + sigma(x) N|` (mu and sigma of the causes within configurations, g of those at the configuration
level, N the standardised rest), the share of a cause is the variance of y when it alone varies and all else, N included, is held:
`S_j = E[Var over x_j of y]`; likewise `S_noise` for N. Contributions are `100 S_j / (sum S + S_noise)`.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.basis import numeric_functions
from causeway.causal.stability import block_numbers

FOLDS = 5
MAX_ROWS = 5000
SWAPS = 6
"""Times each cause is exchanged between rows; more changes no share by more than a tenth of a percent."""
TREES = dict(max_iter=120, learning_rate=0.06, max_leaf_nodes=8, min_samples_leaf=25, l2_regularization=2.0, early_stopping=False)
LEVELS = 50
WINSOR = 8.0
"""The deviation is clipped at so many standard deviations, so that one outage does not own the variance."""
MIN_SIGMA = 0.1


@dataclass(frozen=True)
class Shares:
    """Contributions in percent; all with the unexplained rest sum to 100.

    Attributes
    ----------
    percent, low, high : ndarray, shape (n_causes,)
        Contribution with a 95 % interval.
    unexplained, unexplained_low, unexplained_high : float
    """

    percent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unexplained: float
    unexplained_low: float
    unexplained_high: float


class LocationScale:
    """mu and log sigma of the deviation given the causes: a linear model on their bases, and boosted trees on what it leaves.

    Parameters
    ----------
    causes : list of ndarray
        Shape (n_rows,) for numbers, (n_rows, n_levels - 1) for categories.
    seed : int
    boosted : bool
        Without trees it is the linear model alone, quick enough for resampling.
    """

    def __init__(self, seed: int, boosted: bool) -> None:
        self.seed, self.boosted = seed, boosted

    def fit(self, design: np.ndarray, features: np.ndarray, deviation: np.ndarray, weights: np.ndarray) -> "LocationScale":
        """Fit to `design` (bases, shape (n, k)) and `features` (columns, shape (n, m)) the deviation, shape (n,)."""
        self.mean_linear = _ridge(design, deviation, weights)
        mean = design @ self.mean_linear
        self.mean_trees = self._trees(features, deviation - mean, weights)
        mean = mean + self._of(self.mean_trees, features)
        size = np.abs(deviation - mean)
        # log of |N| has mean -0.635 and sd 1.11 for normal N: a constant that drops out, since sigma is scaled below
        logs = np.log(np.maximum(size, MIN_SIGMA * max(float(np.median(size)), 1e-12)))
        self.scale_linear = _ridge(design, logs, weights)
        log_sigma = design @ self.scale_linear
        self.scale_trees = self._trees(features, logs - log_sigma, weights)
        log_sigma = log_sigma + self._of(self.scale_trees, features)
        self.low, self.high = np.quantile(log_sigma, [0.005, 0.995])
        sigma = np.exp(np.clip(log_sigma, self.low, self.high))
        self.factor = float(np.sqrt(np.average(np.minimum(size / sigma, 20.0) ** 2, weights=weights)))
        return self

    def predict(self, design: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma."""
        mean = design @ self.mean_linear + self._of(self.mean_trees, features)
        log_sigma = design @ self.scale_linear + self._of(self.scale_trees, features)
        return mean, self.factor * np.exp(np.clip(log_sigma, self.low, self.high))

    def _trees(self, features: np.ndarray, response: np.ndarray, weights: np.ndarray):
        if not self.boosted or features.shape[1] == 0:
            return None
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(random_state=self.seed % (1 << 31), **TREES).fit(features, response, sample_weight=weights)

    @staticmethod
    def _of(trees, features: np.ndarray) -> np.ndarray:
        return trees.predict(features) if trees is not None else np.zeros(features.shape[0])


def _ridge(design: np.ndarray, response: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weighted least squares coefficients; the first column of `design` is the intercept and is not shrunk."""
    scaled = design * weights[:, None]
    penalty = np.full(design.shape[1], 1e-3 * weights.sum())
    penalty[0] = 0.0
    return np.linalg.solve(design.T @ scaled + np.diag(penalty), scaled.T @ response)


class _Causes:
    """Designs and features of the causes, with one cause at a time taken from other rows."""

    def __init__(self, within: list[np.ndarray]) -> None:
        functions = [_functions(values) for values in within]
        self.n_rows = within[0].shape[0] if within else 0
        self.slices, self.spans, start, span = [], [], 1, 0
        for values, columns in zip(within, functions, strict=True):
            self.slices.append(slice(start, start + columns.shape[1]))
            width = 1 if values.ndim == 1 else values.shape[1]
            self.spans.append(slice(span, span + width))
            start, span = start + columns.shape[1], span + width
        self.design = np.hstack([np.ones((self.n_rows, 1)), *functions]) if within else np.ones((0, 1))
        self.features = np.hstack([_coarse(values) for values in within]) if within else np.zeros((0, 0))

    def swapped(self, cause: int, rows: np.ndarray, partners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return design and features of `rows` with the cause's columns of `partners`."""
        design, features = self.design[rows].copy(), self.features[rows].copy()
        design[:, self.slices[cause]] = self.design[partners, self.slices[cause]]
        features[:, self.spans[cause]] = self.features[partners, self.spans[cause]]
        return design, features


def _coarse(values: np.ndarray) -> np.ndarray:
    """Return a cause's columns for the trees, numbers as one of `LEVELS` quantile levels: what trees would make of them, but quicker."""
    if values.ndim > 1:
        return values.astype(float)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, LEVELS + 1)[1:-1]))
    return np.searchsorted(cuts, values).astype(float)[:, None]


def _functions(values: np.ndarray) -> np.ndarray:
    """Return a cause's basis, centred and in standard deviations."""
    columns = numeric_functions(values.astype(float)) if values.ndim == 1 else values.astype(float)
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return columns[:, spread > 1e-9] / spread[spread > 1e-9]


def structural_shares(
    within: list[np.ndarray],
    between: list[np.ndarray],
    deviation: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
    folded: bool = True,
    draws: int = 40,
) -> Shares:
    """Estimate the contributions of all causes, those within configurations first, then those between them.

    Parameters
    ----------
    within : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes that vary within configurations.
    between : list of ndarray, shape (n_rows,)
        For each cause at the configuration level, its part of g.
    deviation : ndarray, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray, shape (n_rows,), positive
    rng : Generator
    folded : bool
        y is the absolute value of the deviation; else the deviation itself.
    draws : int
        Resamples of blocks for the intervals.

    Returns
    -------
    Shares

    Notes
    -----
    mu and sigma are cross-fitted in five folds of whole blocks. `E[Var over x_j]` is half the mean squared change of y when x_j is
    exchanged for that of another row (M. Jansen, Comput. Phys. Commun. 117 (1999) 35). The intervals are those of the linear model under
    resampling of blocks, moved to the point estimate: refitting trees 40 times would cost a minute and changes their width little.
    """
    fold_target = np.abs if folded else np.positive
    blocks = block_numbers(deviation, deviation.size)
    if deviation.size > MAX_ROWS:
        pick = np.sort(rng.permutation(deviation.size)[:MAX_ROWS])
        within, between = [values[pick] for values in within], [part[pick] for part in between]
        deviation, weights, blocks = deviation[pick], weights[pick], np.unique(blocks[pick], return_inverse=True)[1]
    spread = np.sqrt(np.average(deviation**2, weights=weights))
    deviation = np.clip(deviation, -WINSOR * spread, WINSOR * spread)
    n_causes = len(within) + len(between)
    causes = _Causes(within)
    folds = (np.arange(blocks.max() + 1) * FOLDS // (blocks.max() + 1))[blocks]
    sums = np.zeros(n_causes + 1)
    seed = int(rng.integers(1 << 31))
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if train.size < 20:
            train = np.arange(deviation.size)
        model = _fitted(causes, deviation, weights, train, seed, boosted=True)
        sums += _sums(model, causes, between, deviation, weights, test, rng, fold_target)
    percent = _percent(sums)
    spreads = np.asarray([_percent(_linear_sums(causes, between, deviation, weights, blocks, rng, fold_target)) for _ in range(draws)])
    low, high = percent, percent
    if draws:
        centre = _percent(_linear_sums(causes, between, deviation, weights, None, rng, fold_target))
        low = np.clip(percent + np.quantile(spreads, 0.025, axis=0) - centre, 0.0, percent)
        high = np.clip(percent + np.quantile(spreads, 0.975, axis=0) - centre, percent, 100.0)
    return Shares(percent[:-1], low[:-1], high[:-1], float(percent[-1]), float(low[-1]), float(high[-1]))


def _percent(sums: np.ndarray) -> np.ndarray:
    total = sums.sum()
    return 100.0 * sums / total if total > 0 else np.append(np.zeros(sums.size - 1), 100.0)


def _fitted(
    causes: _Causes, deviation: np.ndarray, weights: np.ndarray, rows: np.ndarray, seed: int, boosted: bool
) -> LocationScale | None:
    if causes.n_rows == 0:
        return None
    return LocationScale(seed, boosted).fit(causes.design[rows], causes.features[rows], deviation[rows], weights[rows])


def _linear_sums(causes, between, deviation, weights, blocks, rng, fold_target) -> np.ndarray:
    """Return the sums of the linear model, on a resample of blocks or (blocks None) on all rows."""
    rows = np.arange(deviation.size)
    if blocks is not None:
        order = np.argsort(blocks, kind="stable")
        starts = np.searchsorted(blocks[order], np.arange(blocks.max() + 2))
        drawn = rng.integers(0, blocks.max() + 1, blocks.max() + 1)
        rows = np.concatenate([order[starts[b] : starts[b + 1]] for b in drawn])
    model = _fitted(causes, deviation, weights, rows, 0, boosted=False)
    return _sums(model, causes, between, deviation, weights, rows, rng, fold_target, swaps=2)


def _sums(model, causes: _Causes, between, deviation, weights, rows, rng, fold_target, swaps: int = SWAPS) -> np.ndarray:
    """Return the weighted sums of half squared changes over `rows`: one per cause, the last for the noise."""
    g = np.sum([part[rows] for part in between], axis=0) if between else np.zeros(rows.size)
    mean, sigma = model.predict(causes.design[rows], causes.features[rows]) if model else (np.zeros(rows.size), np.ones(rows.size))
    noise = (deviation[rows] - mean) / sigma
    y = np.exp(g) * fold_target(mean + sigma * noise)
    own = weights[rows]
    chance = own / own.sum()
    sums = np.zeros(len(causes.slices) + len(between) + 1)
    for _ in range(swaps):
        local = rng.choice(rows.size, size=rows.size, p=chance)
        partners = rows[local]
        for cause in range(len(causes.slices)):
            other_mean, other_sigma = model.predict(*causes.swapped(cause, rows, partners))
            sums[cause] += own @ (np.exp(g) * fold_target(other_mean + other_sigma * noise) - y) ** 2
        for place, part in enumerate(between):
            moved = g - part[rows] + part[partners]
            sums[len(causes.slices) + place] += own @ (np.exp(moved) * fold_target(mean + sigma * noise) - y) ** 2
        sums[-1] += own @ (np.exp(g) * fold_target(mean + sigma * noise[local]) - y) ** 2
    return sums / (2 * swaps)
