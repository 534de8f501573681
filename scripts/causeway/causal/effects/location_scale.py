"""The fitted model of the deviation: mu and sigma given the causes.

mu is additive in functions of the causes, weighted by 1 / sigma^2; log sigma is additive too, fitted to the mean of the
absolute residual as a gamma regression, which uses all of it: logarithms of residuals mostly show how close launches
came to the mean by luck. How far each cause's coefficients shrink is estimated from the data. Boosted trees on the
residual find nonlinear effects and interactions; they stay where they predict unseen launches better.
"""

import itertools
import math

import numpy as np

from causeway.causal.statistics.basis import normal_scores, numeric_functions
from causeway.causal.statistics.ridge import Penalties, evidence_ridge, ridge_solver

TREES = {
    "max_iter": 60,
    "learning_rate": 0.12,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 25,
    "l2_regularization": 2.0,
    "early_stopping": False,
}
"""Many small trees, grown slowly; each leaf holds enough rows for a mean. Twice as many at half the rate take a fifth
more of a search, and move 31 shares of the demonstration and of the H100 job by .26 % at most, a sixtieth of their
intervals.
"""
QUANTILE_LEVELS = 50
"""Quantile levels of a number for the trees."""
KNOTS = (0.3, 0.6, 0.85)
"""Quantiles of a number at which its effect may change its slope."""
LEAST_PENALTY = 1e-5
"""Of one slow run of eight, whose rows weigh as little as a hundredth of others, a larger one takes a tenth away."""
ALTERNATIONS = 4
"""Times mu and sigma are fitted in turn; further rounds change shares by a tenth of a percent."""
SCORING_STEPS = 12
"""Most steps of Fisher scoring."""
PENALTY_STEPS = (0, 2, 6)
"""Steps in which the penalties are estimated; between and after them they are held."""
CONVERGED = 1e-3
"""Largest change of the linear predictor of log sigma at which the steps end."""
FEWEST_TRAINED = 20
"""A fold with fewer rows outside it is predicted by the model of all rows."""
MOST_EXCESS = 4.0
"""A residual counts at most so many times above what was expected in a step towards sigma: one outage must not own
it.
"""
LARGEST_LOG_RATIO = np.log(10.0)
"""log sigma within so much of its median weighs as it is."""


class Causes:
    """The causes' columns as the model takes them.

    Parameters
    ----------
    within : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Numbers, and indicators of categories.
    n_rows : int

    Attributes
    ----------
    design : ndarray of float, shape (n_rows, 1 + k)
        Intercept and functions; `slices` says which columns belong to which cause.
    features : ndarray of float, shape (n_rows, m)
        For the trees; `spans` likewise.
    """

    def __init__(self, within: list[np.ndarray], n_rows: int) -> None:
        functions = [_additive_functions(values) for values in within]
        plain = [_quantile_levels(values) for values in within]
        self.slices = _spans(functions, 1)
        self.spans = _spans(plain, 0)
        self.design = np.hstack([np.ones((n_rows, 1)), *functions])
        self.features = np.hstack([np.zeros((n_rows, 0)), *plain])


def _spans(blocks: list[np.ndarray], first: int) -> list[slice]:
    bounds = np.cumsum([first, *(block.shape[1] for block in blocks)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]


def _additive_functions(values: np.ndarray) -> np.ndarray:
    """Return functions of a cause, centred and in standard deviations: its basis, and for numbers a hinge at each
    knot.
    """
    columns = values.astype(float)
    if values.ndim == 1:
        scores = normal_scores(columns)
        hinges = np.maximum(scores[:, None] - np.unique(np.quantile(scores, KNOTS)), 0.0)
        columns = np.hstack([numeric_functions(columns), hinges])
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return columns[:, spread > 1e-9] / spread[spread > 1e-9]


def _quantile_levels(values: np.ndarray) -> np.ndarray:
    """Return a cause's columns for the trees, numbers as one of `QUANTILE_LEVELS` quantile levels: what trees would
    make of them, but quicker.
    """
    if values.ndim > 1:
        return values.astype(float)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, QUANTILE_LEVELS + 1)[1:-1]))
    return np.searchsorted(cuts, values).astype(float)[:, None]


class LocationScale:
    """mu and sigma of the deviation.

    Parameters
    ----------
    causes : Causes
    rows : ndarray of int, shape (n_fitted,)
        Rows to fit; one that is there twice counts twice.
    deviation : ndarray of float, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray of float, shape (n_rows,), positive
    template : LocationScale or None
        A model of much the same rows, whose penalties and weights are taken over: quick enough for resampling.
    """

    def __init__(
        self,
        causes: Causes,
        rows: np.ndarray,
        deviation: np.ndarray,
        weights: np.ndarray,
        template: "LocationScale | None" = None,
    ) -> None:
        self.causes = causes
        self.mean_trees = self.scale_trees = None
        design = causes.design[rows]
        y = deviation[rows]
        own = weights[rows]
        precision = own if template is None else own * template._precision(rows)
        self.penalties: list[Penalties] = []
        for _ in range(ALTERNATIONS if template is None else 1):
            mean, of_mean = _fitted(design, y, precision, causes.slices, template and template.penalties[0])
            size = np.abs(y - design @ mean)
            scale, of_scale = _log_scale(design, size, own, causes.slices, template and template.penalties[1])
            self.penalties = [of_mean, of_scale]
            self._keep(mean, scale, rows)
            precision = own * self._precision(rows)

    def _keep(self, mean: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> None:
        """Keep what each cause adds to mu and log sigma of each row, the intercept first."""
        parts = [slice(0, 1), *self.causes.slices]
        self.mean_parts, self.scale_parts = (
            np.column_stack([self.causes.design[:, part] @ coefficients[part] for part in parts])
            for coefficients in (mean, scale)
        )
        self._mean, self._log_sigma = (part.sum(axis=1) for part in (self.mean_parts, self.scale_parts))
        low, middle, self.high = np.quantile(self._log_sigma[rows], [0.005, 0.5, 0.995])
        self.low = max(low, middle - LARGEST_LOG_RATIO)  # rows that are all alike have no sigma to divide by

    def _precision(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 / sigma^2, which is nowhere out of all proportion."""
        log_sigma = np.clip(self._log_sigma[rows], self.low, self.high)
        return np.exp(-2.0 * np.clip(log_sigma - np.median(log_sigma), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))

    @property
    def has_trees(self) -> bool:
        """Whether boosted trees are part of the model."""
        return self.mean_trees is not None or self.scale_trees is not None

    def add_trees(self, rows: np.ndarray, deviation: np.ndarray, weights: np.ndarray, seed: int) -> None:
        """Add boosted trees, fitted to the residuals of the additive part.

        Parameters
        ----------
        rows : ndarray of int, shape (n_fitted,)
            Rows to fit.
        deviation : ndarray of float, shape (n_rows,)
        weights : ndarray of float, shape (n_rows,), positive
        seed : int
        """
        features = self.causes.features[rows]
        own = weights[rows]
        if features.shape[1] == 0:
            return
        mean, sigma = self.predict(rows)
        self.mean_trees = _boosted_trees(
            features, deviation[rows] - mean, own * self._precision(rows), seed, "squared_error"
        )
        size = np.abs(deviation[rows] - mean - self._of_mean(features)) / sigma
        if size.max() > 0:
            self.scale_trees = _boosted_trees(features, np.maximum(size, 1e-6 * size.mean()), own, seed, "gamma")

    def predict(
        self, rows: np.ndarray, cause: int | None = None, donors: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma (up to a factor that is the same everywhere).

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
        cause : int or None
            One that is set; None for none.
        donors : ndarray of int, shape (m,), or None
            The rows whose values of that cause are taken.

        Returns
        -------
        mean, sigma : ndarray of float, shape (m,)
        """
        mean = self._mean[rows]
        log_sigma = self._log_sigma[rows]
        if cause is not None:
            mean += self.mean_parts[donors, cause + 1] - self.mean_parts[rows, cause + 1]
            log_sigma += self.scale_parts[donors, cause + 1] - self.scale_parts[rows, cause + 1]
        sigma = np.exp(np.clip(log_sigma, self.low, self.high))
        if not self.has_trees:
            return mean, sigma
        features = self.causes.features[rows]
        if cause is not None:
            span = self.causes.spans[cause]
            features[:, span] = self.causes.features[donors, span]
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
        return ridge_solver(design, weights, penalties)(response), penalties
    return evidence_ridge(design, response, weights, slices, LEAST_PENALTY)


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
    solve = None if estimated else ridge_solver(design, weights, penalties)
    for step in range(SCORING_STEPS):
        working = eta + np.minimum(size / np.exp(eta) - 1.0, MOST_EXCESS)
        if estimated and step in PENALTY_STEPS:
            coefficients, penalties = evidence_ridge(design, working, weights, slices, LEAST_PENALTY)
            solve = ridge_solver(design, weights, penalties)
        else:
            coefficients = solve(working)
        eta, before = design @ coefficients, eta
        if step > PENALTY_STEPS[-1] and np.max(np.abs(eta - before)) < CONVERGED:
            break
    return coefficients, penalties


def _boosted_trees(features: np.ndarray, response: np.ndarray, weights: np.ndarray, seed: int, loss: str):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(loss=loss, random_state=seed, **TREES).fit(
        features, response, sample_weight=weights
    )


def cross_fitted(
    causes: Causes, folds: np.ndarray, deviation: np.ndarray, weights: np.ndarray, seed: int
) -> list[tuple[np.ndarray, LocationScale]]:
    """Return for each fold its rows and the model of all other rows, with trees where these predict unseen rows better.

    Parameters
    ----------
    causes : Causes
    folds : ndarray of int, shape (n_rows,)
        The number of each row's fold.
    deviation : ndarray of float, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray of float, shape (n_rows,), positive
    seed : int
        Of the trees.

    Returns
    -------
    list of (ndarray of int, shape (m,), LocationScale)
        By fold, ascending.

    Notes
    -----
    Trees of mu must lower the squared error over sigma^2, trees of sigma the gamma deviance of the absolute residual.
    """
    everything = np.arange(deviation.size)
    parts: list[tuple[np.ndarray, LocationScale]] = []
    for fold in np.unique(folds):
        train = np.flatnonzero(folds != fold)
        test = np.flatnonzero(folds == fold)
        train = train if train.size >= FEWEST_TRAINED else everything
        model = LocationScale(causes, train, deviation, weights)
        model.add_trees(train, deviation, weights, seed)
        parts.append((test, model))
    for trees, loss in (("mean_trees", _squared_error), ("scale_trees", _gamma_deviance)):
        fitted = [getattr(model, trees) for _, model in parts]
        losses = []
        for kept in (fitted, [None] * len(parts)):
            for (_, model), one in zip(parts, kept, strict=True):
                setattr(model, trees, one)
            losses.append(
                math.fsum(float(weights[test] @ loss(deviation[test], *model.predict(test))) for test, model in parts)
            )
        if losses[0] < losses[1]:
            for (_, model), one in zip(parts, fitted, strict=True):
                setattr(model, trees, one)
    return parts


def _squared_error(y: np.ndarray, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return ((y - mean) / sigma) ** 2


def _gamma_deviance(y: np.ndarray, mean: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return np.abs(y - mean) / sigma + np.log(sigma)
