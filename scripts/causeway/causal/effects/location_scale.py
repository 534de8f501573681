"""The fitted model of the deviation: mu and sigma given the causes.

mu is additive in functions of the causes, weighted by 1 / sigma^2; log sigma is additive too, fitted to the mean of the absolute residual
as a gamma regression, which uses all of it: logarithms of residuals mostly tell how close launches came to the mean by luck. How far each
cause's coefficients shrink is estimated from the data. Boosted trees on what that leaves find bends and interactions; they stay
where they predict launches better that they have not seen.
"""

import itertools
from collections.abc import Mapping

import numpy as np

from causeway.causal.basis import normal_scores, numeric_functions
from causeway.causal.shrinkage import Penalties, shrunk, solved

TREES = {
    "max_iter": 120,
    "learning_rate": 0.06,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 25,
    "l2_regularization": 2.0,
    "early_stopping": False,
}
LEVELS = 50
"""Quantile levels of a number for the trees."""
KNOTS = (0.3, 0.6, 0.85)
"""Quantiles of a number at which its effect may bend."""
ROUNDS = 4
"""Times mu and sigma are fitted in turn; further rounds change shares by a tenth of a percent."""
STEPS = 12
FARTHEST = 4.0
"""A residual counts at most so many times above what was expected in a step towards sigma: one outage must not own it."""
STEEPEST = np.log(10.0)
"""log sigma within so much of its median weighs as it is."""


class Causes:
    """The causes' columns as the model takes them.

    Parameters
    ----------
    within : list of ndarray
        Shape (n_rows,) for numbers, (n_rows, n_levels - 1) for categories.
    n_rows : int

    Attributes
    ----------
    design : ndarray, shape (n_rows, 1 + k)
        Intercept and functions; `slices` tells which columns belong to which cause.
    features : ndarray, shape (n_rows, m)
        For the trees; `spans` likewise.
    """

    def __init__(self, within: list[np.ndarray], n_rows: int) -> None:
        functions = [_functions(values) for values in within]
        plain = [_coarse(values) for values in within]
        self.slices = _spans(functions, 1)
        self.spans = _spans(plain, 0)
        self.design = np.hstack([np.ones((n_rows, 1)), *functions])
        self.features = np.hstack([np.zeros((n_rows, 0)), *plain])


def _spans(blocks: list[np.ndarray], first: int) -> list[slice]:
    bounds = np.cumsum([first, *(block.shape[1] for block in blocks)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]


def _functions(values: np.ndarray) -> np.ndarray:
    """Return functions of a cause, centred and in standard deviations: its basis, and for numbers a bend at each knot."""
    columns = values.astype(float)
    if values.ndim == 1:
        scores = normal_scores(columns)
        bends = np.maximum(scores[:, None] - np.unique(np.quantile(scores, KNOTS)), 0.0)
        columns = np.hstack([numeric_functions(columns), bends])
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return columns[:, spread > 1e-9] / spread[spread > 1e-9]


def _coarse(values: np.ndarray) -> np.ndarray:
    """Return a cause's columns for the trees, numbers as one of `LEVELS` quantile levels: what trees would make of them, but quicker."""
    if values.ndim > 1:
        return values.astype(float)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, LEVELS + 1)[1:-1]))
    return np.searchsorted(cuts, values).astype(float)[:, None]


class LocationScale:
    """mu and sigma of the deviation.

    Parameters
    ----------
    causes : Causes
    rows : ndarray of int
        Rows to fit.
    deviation, weights : ndarray, shape (n_rows,)
    like : LocationScale or None
        A model of much the same rows, whose penalties and weights are taken over: quick enough for resampling.
    """

    def __init__(self, causes: Causes, rows: np.ndarray, deviation: np.ndarray, weights: np.ndarray, like: "LocationScale | None" = None):
        self.causes = causes
        self.mean_trees = self.scale_trees = None
        design, y, own = causes.design[rows], deviation[rows], weights[rows]
        precision = own if like is None else own * like._precision(rows)
        self.penalties: list[Penalties] = []
        for _ in range(ROUNDS if like is None else 1):
            mean, of_mean = _fitted(design, y, precision, causes.slices, like and like.penalties[0])
            size = np.abs(y - design @ mean)
            scale, of_scale = _log_scale(design, size, own, causes.slices, like and like.penalties[1])
            self.penalties = [of_mean, of_scale]
            self._keep(mean, scale, rows)
            precision = own * self._precision(rows)

    def _keep(self, mean: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> None:
        """Keep what each cause adds to mu and log sigma of each row, the intercept first."""
        parts = [slice(0, 1), *self.causes.slices]
        self.mean_parts, self.scale_parts = (
            np.column_stack([self.causes.design[:, part] @ coefficients[part] for part in parts]) for coefficients in (mean, scale)
        )
        self.low, self.high = np.quantile(self.scale_parts[rows].sum(axis=1), [0.005, 0.995])

    def _precision(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 / sigma^2, which is nowhere out of all proportion."""
        log_sigma = np.clip(self.scale_parts[rows].sum(axis=1), self.low, self.high)
        return np.exp(-2.0 * np.clip(log_sigma - np.median(log_sigma), -STEEPEST, STEEPEST))

    @property
    def has_trees(self) -> bool:
        """Whether boosted trees are part of the model."""
        return self.mean_trees is not None or self.scale_trees is not None

    def grow(self, rows: np.ndarray, deviation: np.ndarray, weights: np.ndarray, seed: int) -> None:
        """Add boosted trees for what the additive part leaves of `rows`."""
        features, own = self.causes.features[rows], weights[rows]
        if features.shape[1] == 0:
            return
        mean, sigma = self.predict(rows)
        self.mean_trees = _grown(features, deviation[rows] - mean, own * self._precision(rows), seed, "squared_error")
        left = np.abs(deviation[rows] - mean - self._of_mean(features)) / sigma
        if left.max() > 0:
            self.scale_trees = _grown(features, np.maximum(left, 1e-6 * left.mean()), own, seed, "gamma")

    def predict(self, rows: np.ndarray, cause: int | None = None, partners: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma (up to a factor that is the same everywhere) of `rows`, with one cause as in the rows of `partners`."""
        return self.predict_set(rows, {} if cause is None else {cause: partners})

    def predict_set(self, rows: np.ndarray, partners: Mapping[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma of `rows`, with each cause of `partners` as in the rows given there."""
        mean, log_sigma = self.mean_parts[rows].sum(axis=1), self.scale_parts[rows].sum(axis=1)
        for cause, others in partners.items():
            mean += self.mean_parts[others, cause + 1] - self.mean_parts[rows, cause + 1]
            log_sigma += self.scale_parts[others, cause + 1] - self.scale_parts[rows, cause + 1]
        sigma = np.exp(np.clip(log_sigma, self.low, self.high))
        if not self.has_trees:
            return mean, sigma
        features = self.causes.features[rows]
        for cause, others in partners.items():
            span = self.causes.spans[cause]
            features[:, span] = self.causes.features[others, span]
        return mean + self._of_mean(features), sigma * self._of_scale(features)

    def _of_mean(self, features: np.ndarray) -> np.ndarray | float:
        return 0.0 if self.mean_trees is None else self.mean_trees.predict(features)

    def _of_scale(self, features: np.ndarray) -> np.ndarray | float:
        return 1.0 if self.scale_trees is None else self.scale_trees.predict(features)


def _fitted(
    design: np.ndarray, response: np.ndarray, weights: np.ndarray, slices: list[slice], penalties: Penalties | None
) -> tuple[np.ndarray, Penalties]:
    """Return coefficients, with given penalties or estimated ones, and the penalties."""
    if penalties is not None:
        return solved(design, weights, penalties)(response), penalties
    return shrunk(design, response, weights, slices)


def _log_scale(
    design: np.ndarray, size: np.ndarray, weights: np.ndarray, slices: list[slice], penalties: Penalties | None
) -> tuple[np.ndarray, Penalties]:
    """Return the coefficients of the logarithm of the mean of `size`, by Fisher scoring of a gamma regression.

    References
    ----------
    P. McCullagh, J. Nelder, Generalized Linear Models, 2nd ed., Chapman and Hall 1989, chapter 8.
    """
    size = np.maximum(size, max(1e-9 * float(size.max(initial=0.0)), 1e-12))
    eta = np.full(size.size, np.log(np.average(size, weights=weights)))
    estimated = penalties is None
    solve = None if estimated else solved(design, weights, penalties)
    for step in range(STEPS):
        working = eta + np.minimum(size / np.exp(eta) - 1.0, FARTHEST)
        if estimated and step in (0, 2, 6):
            coefficients, penalties = shrunk(design, working, weights, slices)
            solve = solved(design, weights, penalties)
        else:
            coefficients = solve(working)
        eta, before = design @ coefficients, eta
        if step > 6 and np.max(np.abs(eta - before)) < 1e-3:
            break
    return coefficients, penalties


def _grown(features: np.ndarray, response: np.ndarray, weights: np.ndarray, seed: int, loss: str):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(loss=loss, random_state=seed, **TREES).fit(features, response, sample_weight=weights)


def cross_fitted(
    causes: Causes, folds: np.ndarray, deviation: np.ndarray, weights: np.ndarray, seed: int
) -> list[tuple[np.ndarray, LocationScale]]:
    """Return for each fold its rows and the model of all other rows, with trees where these predict unseen rows better.

    Parameters
    ----------
    folds : ndarray of int, shape (n_rows,)
    seed : int
        Of the trees.

    Notes
    -----
    Trees of mu must lower the squared error over sigma^2, trees of sigma the gamma deviance of the absolute residual.
    """
    everything = np.arange(deviation.size)
    parts = []
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        train = train if train.size >= 20 else everything
        model = LocationScale(causes, train, deviation, weights)
        model.grow(train, deviation, weights, seed)
        parts.append((test, model))
    for trees, loss in (("mean_trees", _squared_error), ("scale_trees", _gamma_deviance)):
        grown = [getattr(model, trees) for _, model in parts]
        losses = []
        for kept in (grown, [None] * len(parts)):
            for (_, model), one in zip(parts, kept, strict=True):
                setattr(model, trees, one)
            losses.append(sum(float(weights[test] @ loss(deviation[test], *model.predict(test))) for test, model in parts))
        if losses[0] < losses[1]:
            for (_, model), one in zip(parts, grown, strict=True):
                setattr(model, trees, one)
    return parts


def _squared_error(y: np.ndarray, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return ((y - mean) / sigma) ** 2


def _gamma_deviance(y: np.ndarray, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return np.abs(y - mean) / sigma + np.log(sigma)
