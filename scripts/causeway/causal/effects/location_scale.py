"""The fitted model of the deviation: mu and sigma given the causes.

mu is additive in functions of the causes, weighted by 1 / sigma^2; log sigma is additive too, fitted to the mean of the
absolute residual as a gamma regression, which uses all of it: logarithms of residuals mostly show how close launches
came to the mean by luck. How far each cause's coefficients shrink is estimated from the data. Boosted trees on the
residual find nonlinear effects and interactions; they stay where they predict unseen launches better.
"""

import itertools
import math

import numpy as np

from causeway.causal.statistics.basis import normal_scores, numeric_functions, quantile_levels
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
    codes : list of ndarray of int, shape (n_rows,)
        Which of its values in `features` each cause has, of so many as `sizes` says.
    combinations : ndarray of float, shape (k, m), or None
        All combinations of these values, the last cause's changing first; None where they are more than the rows.
    """

    def __init__(self, within: list[np.ndarray], n_rows: int) -> None:
        functions = [_additive_functions(values) for values in within]
        plain = [_tree_columns(values) for values in within]
        self.slices = _spans(functions, 1)
        self.spans = _spans(plain, 0)
        self.design = np.hstack([np.ones((n_rows, 1)), *functions])
        self.features = np.hstack([np.zeros((n_rows, 0)), *plain])
        levels = [_distinct_rows(block) for block in plain]
        self.codes = [codes for _, codes in levels]
        self.sizes = [len(distinct) for distinct, _ in levels]
        self.combinations = None
        if levels and math.prod(self.sizes) <= n_rows:
            numbers = np.indices(self.sizes).reshape(len(levels), -1)
            self.combinations = np.hstack([distinct[own] for (distinct, _), own in zip(levels, numbers, strict=True)])

    def combination(self, rows: np.ndarray, cause: int | None, donors: np.ndarray | None) -> np.ndarray:
        """Return the number of each row's combination, one cause's value taken from donors.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
        cause : int or None
        donors : ndarray of int, shape (m,), or None

        Returns
        -------
        ndarray of int, shape (m,)
            Positions in `combinations`.
        """
        own = [codes[donors if cause == place else rows] for place, codes in enumerate(self.codes)]
        return np.ravel_multi_index(own, self.sizes)


def _distinct_rows(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a cause's columns for the trees (one number, or the indicators of its levels, of
    which at most one is 1) and where each row stands among them.
    """
    place = block @ np.arange(1.0, block.shape[1] + 1.0)
    _, first, codes = np.unique(place, return_index=True, return_inverse=True)
    return block[first], codes


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


def _tree_columns(values: np.ndarray) -> np.ndarray:
    """Return a cause's columns for the trees, numbers as one of `QUANTILE_LEVELS` quantile levels: what trees would
    make of them, but quicker.
    """
    return values.astype(float) if values.ndim > 1 else quantile_levels(values, QUANTILE_LEVELS)[:, None]


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
        own = weights[rows]
        if self.causes.features.shape[1] == 0:
            return
        mean, sigma = self.predict(rows)
        fitted = self.causes, rows, seed
        self.mean_trees = _Trees(*fitted, deviation[rows] - mean, own * self._precision(rows), "squared_error")
        size = np.abs(deviation[rows] - self.predict(rows)[0]) / sigma
        if size.max() > 0:
            self.scale_trees = _Trees(*fitted, np.maximum(size, 1e-6 * size.mean()), own, "gamma")

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
        mean = mean if self.mean_trees is None else mean + self.mean_trees.predict(rows, cause, donors)
        return mean, sigma if self.scale_trees is None else sigma * self.scale_trees.predict(rows, cause, donors)


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


class _Trees:
    """Boosted trees of the causes' values; where these combine in few ways, each is predicted once."""

    def __init__(
        self, causes: Causes, rows: np.ndarray, seed: int, response: np.ndarray, weights: np.ndarray, loss: str
    ) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        trees = HistGradientBoostingRegressor(loss=loss, random_state=seed, **TREES)
        self._trees = trees.fit(causes.features[rows], response, sample_weight=weights)
        self._causes = causes
        self._table = None if causes.combinations is None else self._trees.predict(causes.combinations)

    def predict(self, rows: np.ndarray, cause: int | None = None, donors: np.ndarray | None = None) -> np.ndarray:
        """Return what the trees say of rows, one cause's value taken from donors.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
        cause : int or None
        donors : ndarray of int, shape (m,), or None

        Returns
        -------
        ndarray of float, shape (m,)
        """
        if self._table is not None:
            return self._table[self._causes.combination(rows, cause, donors)]
        features = self._causes.features[rows]
        if cause is not None:
            span = self._causes.spans[cause]
            features[:, span] = self._causes.features[donors, span]
        return self._trees.predict(features)


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
