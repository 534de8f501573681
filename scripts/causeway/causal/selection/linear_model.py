"""Linear models of groups of basis functions: what each candidate would explain beside those that a model holds.

A candidate enters with all columns of its basis at once. Its partial F test is honest about what rows are worth: Kish's
size for the weights, Bartlett's factor for autocorrelation.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import fdtrc

from causeway.causal.selection.screening_off import CorrelationCache
from causeway.causal.statistics.basis import AT_ONCE, NEW_SHARE, Basis, orthonormal
from causeway.numeric.effective_size import autocorrelations, bartlett_factor, lag_count

SMALL_RESIDUAL = 1e-3
"""Share of a response below which its residual's products are not taken as a difference: they would drown in
rounding.
"""


@dataclass(frozen=True)
class Test:
    """A partial F test of one candidate given the others.

    Attributes
    ----------
    candidate : int
    p_value : float
        Not adjusted for the number of candidates.
    partial_r2 : float
        Share of the others' residual variance that the candidate explains, 0 to 1.
    df : int
        Columns that the candidate adds.
    n_effective : float
        Effective number of rows behind the test.
    """

    __test__ = False  # a name that pytest would collect

    candidate: int
    p_value: float
    partial_r2: float
    df: int
    n_effective: float


@dataclass
class Problem:
    """Candidates, their autocorrelations and what the rows are worth; shared by all searches of a scope.

    Attributes
    ----------
    basis : Basis
    n_candidates : int
    n_independent : float
        Effective number of rows for the weights and the fixed effects, before autocorrelation.
    n_tests : int
        Number that the level is divided by.
    widths : dict of int to (ndarray of int, ndarray of int)
        By number of basis columns: the candidates that have so many, shape (n_members,), and the positions of their
        columns, shape (n_members, width).
    grams : dict of int to ndarray of float
        Likewise the products of each candidate's columns, shape (n_members, width, width).
    correlation_cache : CorrelationCache
        Correlations of the candidates with each other.
    """

    basis: Basis
    n_candidates: int
    n_independent: float
    n_tests: int
    widths: dict[int, tuple[np.ndarray, np.ndarray]] = field(init=False)
    grams: dict[int, np.ndarray] = field(init=False)
    correlation_cache: CorrelationCache = field(init=False)
    _lags: dict[int, np.ndarray] = field(init=False)
    _products: dict[int, np.ndarray] = field(init=False)
    _with_response: tuple[np.ndarray, np.ndarray] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        counts = np.bincount(self.basis.owner, minlength=self.n_candidates)
        first = np.concatenate(([0], np.cumsum(counts)))
        self.correlation_cache = CorrelationCache(self.basis.columns, first[:-1], counts > 0)
        self.widths = {}
        self.grams = {}
        self._lags = {}
        self._products = {}
        for width in np.unique(counts[counts > 0]):
            members = np.flatnonzero(counts == width)
            columns = first[members][:, None] + np.arange(width)
            self.widths[int(width)] = (members, columns)
            step = max(1, AT_ONCE // max(len(self.basis.columns), 1))
            parts = (
                self.basis.columns.T[some].astype(float) for some in np.split(columns, range(step, len(columns), step))
            )
            self.grams[int(width)] = np.concatenate([part @ part.transpose(0, 2, 1) for part in parts])

    @classmethod
    def of(cls, basis: Basis, n_candidates: int, n_independent: float, n_tests: int | None = None) -> "Problem":
        """Return the problem of a basis; autocorrelations are taken in the order of its rows."""
        return cls(basis, n_candidates, n_independent, n_tests or max(n_candidates, 1))

    @property
    def n_lags(self) -> int:
        """How many lags of autocorrelations are summed."""
        return lag_count(self.basis.columns.shape[0])

    @cached_property
    def lags(self) -> np.ndarray:
        """Autocorrelations of all basis columns, float32, shape (n_columns, n_lags)."""
        return autocorrelations(self.basis.columns, self.n_lags)

    def lags_of(self, candidate: int) -> np.ndarray:
        """Return the autocorrelations of a candidate's columns, float32, shape (k, n_lags): few of the candidates are
        ever asked for them.
        """
        if candidate not in self._lags:
            self._lags[candidate] = autocorrelations(self.basis.columns[:, self.basis.of(candidate)], self.n_lags)
        return self._lags[candidate]

    def products_with(self, columns: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with others.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows,) or (n_rows, k)

        Returns
        -------
        ndarray of float32, shape (n_columns,) or (n_columns, k)
        """
        return self.basis.columns.T @ columns.astype(np.float32)

    def products(self, candidate: int) -> np.ndarray:
        """Return the products of all basis columns with a candidate's, float32, shape (n_columns, k): many models
        hold the same few.
        """
        if candidate not in self._products:
            self._products[candidate] = self.products_with(self.basis.columns[:, self.basis.of(candidate)])
        return self._products[candidate]

    def products_with_response(self, response: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with the response of a search, which all its models share.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)

        Returns
        -------
        ndarray of float32, shape (n_columns,)
        """
        if self._with_response is None or self._with_response[0] is not response:
            self._with_response = (response, self.products_with(response))
        return self._with_response[1]


class LinearModel:
    """A linear model that grows by whole candidates.

    Parameters
    ----------
    problem : Problem
    response : ndarray of float, shape (n_rows,)
        Centred and weighted like the basis.

    Attributes
    ----------
    q : ndarray of float, shape (n_rows, k)
        Orthonormal basis of the columns that the model holds.
    residual : ndarray of float, shape (n_rows,)
        The response less its projection on `q`.
    """

    def __init__(self, problem: Problem, response: np.ndarray) -> None:
        self.problem = problem
        self.response = response
        self.residual = response.astype(float)
        self.q = np.zeros((response.size, 0))
        self._coordinates = np.zeros((problem.basis.columns.shape[1], 0), np.float32)
        # what `coordinates` does not hold yet: a function that gives products, coordinates, transform; a function that
        # refers to the model would keep it, and its large `q`, until Python looks for cycles, which is seldom
        self._added: list[tuple[Callable[[], np.ndarray], np.ndarray, np.ndarray]] = []

    def _new_directions(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return an orthonormal basis of what m columns of unit length add to `q`, shape (n_rows, k).

        Beside it the columns' coordinates in `q`, and the matrix, shape (m, k), that transforms their residuals into
        the basis.
        """
        columns = columns.astype(float, copy=False)
        coordinates = self.q.T @ columns
        rest = columns - self.q @ coordinates  # once is enough: what keeps less than `NEW_SHARE` is left out
        new = np.einsum("ij,ij->j", rest, rest) > NEW_SHARE
        rest = rest[:, new]  # of a name alone: columns are large, and the whole of them is no longer needed
        block, part = orthonormal(rest, NEW_SHARE)
        transform = np.zeros((new.size, block.shape[1]))
        transform[new] = part
        return block, coordinates, transform

    def add(self, columns: np.ndarray, products: Callable[[], np.ndarray] | None = None) -> None:
        """Add columns, skipping what the model already holds.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows, m)
            Of unit length.
        products : callable, optional
            Gives their products with all basis columns, float32, shape (n_columns, m), if these are known.
        """
        block, coordinates, transform = self._new_directions(columns)
        if block.shape[1]:
            products = products or functools.partial(self.problem.products_with, columns)
            self._added.append((products, coordinates, transform))
            self.q = np.hstack([self.q, block])
            self.residual = self.residual - block @ (block.T @ self.residual)

    def add_candidate(self, candidate: int) -> None:
        """Add a candidate's basis."""
        columns = self.problem.basis.columns[:, self.problem.basis.of(candidate)]
        self.add(columns, functools.partial(self.problem.products, candidate))

    def coordinates(self) -> np.ndarray:
        """Return the coordinates of all basis columns in `q`, float32, shape (n_columns, k), computed when asked for.

        They follow from the products with the columns that were added, which all models of a problem share.
        """
        for products, coordinates, transform in self._added:
            new = (products() - self._coordinates @ coordinates.astype(np.float32)) @ transform.astype(np.float32)
            self._coordinates = np.hstack([self._coordinates, new])
        self._added = []
        return self._coordinates

    def residual_with(self, columns: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the residual that the model would have with further columns, and how many directions they add.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows, m)
            Of unit length.

        Returns
        -------
        residual : ndarray of float, shape (n_rows,)
        df : int
            0 to m.
        """
        block, _, _ = self._new_directions(columns)
        return self.residual - block @ (block.T @ self.residual), block.shape[1]

    def _covariance(self) -> np.ndarray:
        """Return the products of all basis columns with the residual, shape (n_columns,)."""
        if self.residual @ self.residual < SMALL_RESIDUAL * (self.response @ self.response):
            return self.problem.products_with(self.residual).astype(float)
        return (
            self.problem.products_with_response(self.response)
            - self.coordinates() @ (self.q.T @ self.response).astype(np.float32)
        ).astype(float)

    def scan(self) -> tuple[np.ndarray, np.ndarray]:
        """Return for every candidate what it would explain.

        Returns
        -------
        explained : ndarray of float, shape (n_candidates,)
            Sum of squares of the residual.
        df : ndarray of int, shape (n_candidates,)
            Number of new directions.
        """
        problem = self.problem
        covariance = self._covariance()
        explained = np.zeros(problem.n_candidates)
        df = np.zeros(problem.n_candidates, dtype=int)
        for width, (members, columns) in problem.widths.items():
            coordinates = self.coordinates()[columns]
            residual_grams = problem.grams[width] - coordinates @ coordinates.transpose(0, 2, 1)
            explained[members], df[members] = _explained(residual_grams, covariance[columns])
        return explained, df

    def tests(self, explained: np.ndarray, df: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the partial F tests of candidates.

        Parameters
        ----------
        explained : ndarray of float, shape (m,)
        df : ndarray of int, shape (m,)
            Both as of `scan`.
        sizes : ndarray of float, shape (m,)
            Effective number of rows behind each test.

        Returns
        -------
        p_values, partial_r2 : ndarray of float, shape (m,)
            0 to 1; a candidate that adds nothing, or has no residual degree of freedom, has p-value 1.
        """
        total = float(self.residual @ self.residual)
        partial = np.clip(explained / total if total > 0 else np.zeros_like(explained), 0.0, 1.0)
        residual_df = np.maximum(sizes - 1 - self.q.shape[1] - df, 0.0)
        testable = (df > 0) & (residual_df >= 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_square = (1 - partial) / np.maximum(residual_df, 1)
            ratio = np.where(testable, (partial / np.maximum(df, 1)) / np.maximum(mean_square, 1e-300), 0.0)
        p_values = np.where(testable, fdtrc(np.maximum(df, 1), np.maximum(residual_df, 1), ratio), 1.0)
        return p_values, partial


def _explained(grams: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of squares that sets of columns explain, and how many directions of each are new.

    Parameters
    ----------
    grams : ndarray, shape (n_sets, k, k)
        Products of the residuals of a set's columns.
    covariance : ndarray, shape (n_sets, k)
        Their products with the residual.

    Notes
    -----
    A direction is new if its eigenvalue is above `NEW_SHARE`. All surely are where det / (trace / (k - 1))^(k - 1),
    which no eigenvalue is below, is: then nothing but a system of equations is to be solved.
    """
    k = grams.shape[1]
    most = np.trace(grams, axis1=1, axis2=2) / max(k - 1, 1)
    whole = np.linalg.det(grams) > NEW_SHARE * np.maximum(most, 0.0) ** (k - 1)
    explained = np.zeros(len(grams))
    df = np.full(len(grams), k)
    solution = np.linalg.solve(grams[whole], covariance[whole, :, None])[:, :, 0]
    explained[whole] = (covariance[whole] * solution).sum(axis=1)
    values, vectors = np.linalg.eigh(grams[~whole])
    along = np.einsum("gij,gi->gj", vectors, covariance[~whole]) ** 2
    new = values > NEW_SHARE
    explained[~whole] = np.where(new, along / np.where(new, values, 1.0), 0.0).sum(axis=1)
    df[~whole] = new.sum(axis=1)
    return explained, df


def effective_test_size(problem: Problem, candidate: int, residual: np.ndarray) -> float:
    """Return the effective number of rows behind a candidate's test.

    Parameters
    ----------
    problem : Problem
    candidate : int
    residual : ndarray of float, shape (n_rows,)
        Of the model that holds the candidate.
    """
    of_residual = autocorrelations(residual[:, None], problem.n_lags)[0]
    return problem.n_independent / float(bartlett_factor(problem.lags_of(candidate), of_residual).max())


def linear_model_of(problem: Problem, response: np.ndarray, chosen: list[int]) -> LinearModel:
    """Return the model of `response`, shape (n_rows,), that holds the chosen candidates' bases."""
    model = LinearModel(problem, response)
    for candidate in chosen:
        model.add_candidate(candidate)
    return model


def fit_scores(model: LinearModel) -> np.ndarray:
    """Return for each candidate the Bayesian information criterion of the model with it, up to a constant.

    Returns
    -------
    ndarray of float, shape (n_candidates,)
        Less is better; infinite for a candidate that adds nothing.

    References
    ----------
    G. Schwarz, Estimating the dimension of a model, Ann. Stat. 6 (1978) 461.
    """
    n_rows = model.problem.n_independent
    explained, df = model.scan()
    total = float(model.residual @ model.residual)
    if total <= 0:
        return np.full(df.size, np.inf)
    score = n_rows * np.log(np.maximum(1 - explained / total, 1e-12)) + np.log(n_rows) * df
    return np.where(df > 0, score, np.inf)
