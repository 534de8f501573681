"""The fitted model of the deviation: mu and sigma given the causes.

mu and log sigma are each a linear model on the causes' bases, and boosted trees on what that leaves: the linear part finds the bulk with
few rows, the trees find bends and interactions when there are enough.
"""

import itertools
from collections.abc import Mapping

import numpy as np

from causeway.causal.basis import numeric_functions

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
MIN_SIGMA = 0.1
"""Residuals below this share of the median count as that: the logarithm of a lucky hit says nothing about sigma."""
RIDGE = 1e-3


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
        Intercept and bases; `slices` tells which columns belong to which cause.
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
    """Return a cause's basis, centred and in standard deviations."""
    columns = numeric_functions(values.astype(float)) if values.ndim == 1 else values.astype(float)
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
    seed : int or None
        Of the trees; None leaves them out, which is quick enough for resampling.
    """

    def __init__(self, causes: Causes, rows: np.ndarray, deviation: np.ndarray, weights: np.ndarray, seed: int | None) -> None:
        self.causes, self.seed = causes, seed
        design, features, own = causes.design[rows], causes.features[rows], weights[rows]
        self.mean_linear = _ridge(design, deviation[rows], own)
        mean = design @ self.mean_linear
        self.mean_trees = self._grown(features, deviation[rows] - mean, own)
        mean = mean + self._of(self.mean_trees, features)
        size = np.abs(deviation[rows] - mean)
        logs = np.log(np.maximum(size, MIN_SIGMA * max(float(np.median(size)), 1e-12)))
        self.scale_linear = _ridge(design, logs, own)
        log_sigma = design @ self.scale_linear
        self.scale_trees = self._grown(features, logs - log_sigma, own)
        log_sigma = log_sigma + self._of(self.scale_trees, features)
        self.low, self.high = np.quantile(log_sigma, [0.005, 0.995])

    def predict(self, rows: np.ndarray, cause: int | None = None, partners: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma (up to a factor that is the same everywhere) of `rows`, with one cause as in the rows of `partners`."""
        return self.predict_set(rows, {} if cause is None else {cause: partners})

    def predict_set(self, rows: np.ndarray, partners: Mapping[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma of `rows`, with each cause of `partners` as in the rows given there."""
        design, features = self.causes.design[rows], self.causes.features[rows]
        for cause, others in partners.items():
            columns, span = self.causes.slices[cause], self.causes.spans[cause]
            design[:, columns] = self.causes.design[others, columns]
            features[:, span] = self.causes.features[others, span]
        mean = design @ self.mean_linear + self._of(self.mean_trees, features)
        log_sigma = design @ self.scale_linear + self._of(self.scale_trees, features)
        return mean, np.exp(np.clip(log_sigma, self.low, self.high))

    def _grown(self, features: np.ndarray, response: np.ndarray, weights: np.ndarray):
        """Return boosted trees, or None without a seed or features."""
        if self.seed is None or features.shape[1] == 0:
            return None
        from sklearn.ensemble import HistGradientBoostingRegressor

        equal = np.all(weights == weights[0])
        trees = HistGradientBoostingRegressor(random_state=self.seed, **TREES)
        return trees.fit(features, response, sample_weight=None if equal else weights)

    @staticmethod
    def _of(trees, features: np.ndarray) -> np.ndarray:
        return trees.predict(features) if trees is not None else np.zeros(features.shape[0])


def _ridge(design: np.ndarray, response: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weighted least squares coefficients; the first column of `design` is the intercept and is not shrunk."""
    scaled = design * weights[:, None]
    penalty = np.full(design.shape[1], RIDGE * weights.sum())
    penalty[0] = 0.0
    return np.linalg.solve(design.T @ scaled + np.diag(penalty), scaled.T @ response)
