"""Search for the target's parents: forward selection of whole candidates by partial F tests.

The target is a sink (nothing measured at a launch is caused by its own deviation), so its parents are its Markov blanket and no arrow needs
orienting. A candidate enters with all columns of its basis at once. The test is honest about what rows are worth: Kish's size for the
weights, Bartlett's factor for autocorrelation, Bonferroni for the number of candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import fdtrc

from causeway.causal.basis import AT_ONCE, NEW_SHARE, Basis, orthonormal
from causeway.causal.effective_size import autocorrelations, bartlett_factor, lag_count
from causeway.causal.screening import PREFERENCE, Surroundings

ALPHA = 0.01
"""Level of the family of tests in the first step: a candidate enters at `ALPHA / n_tests`."""
MAX_ALPHA = 0.025
"""Level of the later steps, so that over both stages an arrow's p-value times the number of tests stays below 5 %."""
MIN_PARTIAL_R2 = 0.002
MAX_PARENTS = 15
FEW_ROWS = 300.0
"""With fewer effective rows, nothing that needs many is done: levels do not grow, rows are not weighted by their precision."""
MIN_TEST_SIZE = 50
"""Fewer effective rows than this prove nothing, whatever the p-value."""
EXCHANGE_ROUNDS = 3
EXCHANGE_GAIN = 2.0
"""Difference of the Bayesian information criterion from which a candidate gives way to another."""
LITTLE = 1e-3
"""Share of a response below which its residual's products are not taken as a difference: they would drown in rounding."""
MOST_TRIED = 40
"""So many candidates are tried per step with their own autocorrelation before the step gives up."""


@dataclass(frozen=True)
class Test:
    """A partial F test of one candidate given the others.

    Attributes
    ----------
    candidate : int
    p_value : float
        Not adjusted for the number of candidates.
    partial_r2 : float
        Share of the variance left by the others that the candidate explains.
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
    """

    basis: Basis
    n_candidates: int
    n_independent: float
    n_tests: int
    widths: dict[int, tuple[np.ndarray, np.ndarray]] = field(init=False)
    grams: dict[int, np.ndarray] = field(init=False)
    surroundings: Surroundings = field(init=False)
    _lags: dict[int, np.ndarray] = field(init=False)
    _products: dict[int, np.ndarray] = field(init=False)
    _with_response: tuple[np.ndarray, np.ndarray] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        counts = np.bincount(self.basis.owner, minlength=self.n_candidates)
        first = np.concatenate(([0], np.cumsum(counts)))
        self.surroundings = Surroundings(self.basis.columns, first[:-1], counts > 0)
        self.widths, self.grams, self._lags, self._products = {}, {}, {}, {}
        for width in np.unique(counts[counts > 0]):
            members = np.flatnonzero(counts == width)
            columns = first[members][:, None] + np.arange(width)
            self.widths[int(width)] = (members, columns)
            step = max(1, AT_ONCE // max(len(self.basis.columns), 1))
            parts = (self.basis.columns.T[some].astype(float) for some in np.split(columns, range(step, len(columns), step)))
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
        """Return the autocorrelations of a candidate's columns: few of the candidates are ever asked for them."""
        if candidate not in self._lags:
            self._lags[candidate] = autocorrelations(self.basis.columns[:, self.basis.of(candidate)], self.n_lags)
        return self._lags[candidate]

    def products_with(self, columns: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with others, float32, shape (n_columns,) or (n_columns, k)."""
        return self.basis.columns.T @ columns.astype(np.float32)

    def products(self, candidate: int) -> np.ndarray:
        """Return the products of all basis columns with a candidate's, float32, shape (n_columns, k): many models hold the same few."""
        if candidate not in self._products:
            self._products[candidate] = self.products_with(self.basis.columns[:, self.basis.of(candidate)])
        return self._products[candidate]

    def products_with_response(self, response: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with the response of a search, which all its models share."""
        if self._with_response is None or self._with_response[0] is not response:
            self._with_response = (response, self.products_with(response))
        return self._with_response[1]


def level(problem: Problem, rank: int) -> float:
    """Return the level of the test of the `rank`-th parent, counted from 1.

    What is in already is no longer null: as in a step-up procedure, the level grows with the number of parents, but only to
    `MAX_ALPHA`, and not with few rows.

    References
    ----------
    Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57 (1995) 289.
    """
    return (ALPHA if problem.n_independent < FEW_ROWS else min(ALPHA * rank, MAX_ALPHA)) / problem.n_tests


class Model:
    """A linear model that grows by whole candidates: an orthonormal frame, the residual and the candidates' part in the frame."""

    def __init__(self, problem: Problem, response: np.ndarray) -> None:
        self.problem, self.response = problem, response
        self.residual = response.astype(float)
        self.frame = np.zeros((response.size, 0))
        self._inside = np.zeros((problem.basis.columns.shape[1], 0), np.float32)
        self._added: list[tuple[Callable[[], np.ndarray], np.ndarray, np.ndarray]] = []  # what `inside` has not looked at yet

    def _new_directions(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return an orthonormal basis of what m columns of unit length add to the frame, shape (n_rows, k).

        Beside it the columns' coordinates in the frame, and the matrix, shape (m, k), that turns what is outside into the basis.
        """
        columns = columns.astype(float)
        coordinates = self.frame.T @ columns
        rest = columns - self.frame @ coordinates  # once is enough: what keeps less than `NEW_SHARE` is left out
        new = np.einsum("ij,ij->j", rest, rest) > NEW_SHARE
        block, part = orthonormal(rest[:, new], NEW_SHARE)
        turn = np.zeros((new.size, block.shape[1]))
        turn[new] = part
        return block, coordinates, turn

    def add(self, columns: np.ndarray, products: Callable[[], np.ndarray] | None = None) -> None:
        """Add columns of unit length to the frame, skipping what it already holds; `products` are theirs with all candidates' columns."""
        block, coordinates, turn = self._new_directions(columns)
        if block.shape[1]:
            self._added.append((products or (lambda: self.problem.products_with(columns)), coordinates, turn))
            self.frame = np.hstack([self.frame, block])
            self.residual = self.residual - block @ (block.T @ self.residual)

    def add_candidate(self, candidate: int) -> None:
        """Add a candidate's basis."""
        columns = self.problem.basis.columns[:, self.problem.basis.of(candidate)]
        self.add(columns, lambda: self.problem.products(candidate))

    def inside(self) -> np.ndarray:
        """Return the candidates' columns in the frame's coordinates, float32, shape (n_columns, k), when asked for.

        They follow from the products with the columns that were added, which all models of a problem share.
        """
        for products, coordinates, turn in self._added:
            new = (products() - self._inside @ coordinates.astype(np.float32)) @ turn.astype(np.float32)
            self._inside = np.hstack([self._inside, new])
        self._added = []
        return self._inside

    def residual_with(self, columns: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the residual that the model would leave with further columns of unit length, and how many directions they add."""
        block, _, _ = self._new_directions(columns)
        return self.residual - block @ (block.T @ self.residual), block.shape[1]

    def _covariance(self) -> np.ndarray:
        """Return the products of all candidates' columns with the residual, shape (n_columns,)."""
        if self.residual @ self.residual < LITTLE * (self.response @ self.response):
            return self.problem.products_with(self.residual).astype(float)
        return (
            self.problem.products_with_response(self.response) - self.inside() @ (self.frame.T @ self.response).astype(np.float32)
        ).astype(float)

    def scan(self) -> tuple[np.ndarray, np.ndarray]:
        """Return for every candidate the sum of squares it would explain of the residual, and its number of new columns."""
        problem, covariance = self.problem, self._covariance()
        explained, df = np.zeros(problem.n_candidates), np.zeros(problem.n_candidates, dtype=int)
        for width, (members, columns) in problem.widths.items():
            inside = self.inside()[columns]
            left = problem.grams[width] - inside @ inside.transpose(0, 2, 1)
            explained[members], df[members] = _explained(left, covariance[columns])
        return explained, df

    def tests(self, explained: np.ndarray, df: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return p-values and partial R^2 of all candidates for the given effective sizes."""
        total = float(self.residual @ self.residual)
        partial = np.clip(explained / total if total > 0 else np.zeros_like(explained), 0.0, 1.0)
        left = np.maximum(sizes - 1 - self.frame.shape[1] - df, 0.0)
        testable = (df > 0) & (left >= 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(testable, (partial / np.maximum(df, 1)) / np.maximum((1 - partial) / np.maximum(left, 1), 1e-300), 0.0)
        p_values = np.where(testable, fdtrc(np.maximum(df, 1), np.maximum(left, 1), ratio), 1.0)
        return p_values, partial


def _explained(grams: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of squares that sets of columns explain, and how many directions of each are new.

    Parameters
    ----------
    grams : ndarray, shape (n_sets, k, k)
        Products of a set's columns outside the frame.
    covariance : ndarray, shape (n_sets, k)
        Their products with the residual.

    Notes
    -----
    A direction is new if its eigenvalue is above `NEW_SHARE`. All surely are where det / (trace / (k - 1))^(k - 1), which no eigenvalue
    is below, is: then nothing but a system of equations is to be solved.
    """
    k = grams.shape[1]
    most = np.trace(grams, axis1=1, axis2=2) / max(k - 1, 1)
    whole = np.linalg.det(grams) > NEW_SHARE * np.maximum(most, 0.0) ** (k - 1)
    explained, df = np.zeros(len(grams)), np.full(len(grams), k)
    explained[whole] = (covariance[whole] * np.linalg.solve(grams[whole], covariance[whole, :, None])[:, :, 0]).sum(axis=1)
    values, vectors = np.linalg.eigh(grams[~whole])
    along = np.einsum("gij,gi->gj", vectors, covariance[~whole]) ** 2
    new = values > NEW_SHARE
    explained[~whole] = np.where(new, along / np.where(new, values, 1.0), 0.0).sum(axis=1)
    df[~whole] = new.sum(axis=1)
    return explained, df


def size_behind(problem: Problem, candidate: int, residual: np.ndarray) -> float:
    """Return the effective number of rows behind a candidate's test, for the residual of the model that holds it."""
    of_residual = autocorrelations(residual[:, None], problem.n_lags)[0]
    return problem.n_independent / float(bartlett_factor(problem.lags_of(candidate), of_residual).max())


def best_test(model: Model, excluded: set[int], limit: float) -> Test | None:
    """Return the most significant candidate outside `excluded` whose p-value is at most `limit`; None if there is none.

    The residual's autocorrelation is taken with the candidate in the model: a true cause that changes slowly leaves white noise and is
    found, a chance resemblance of two slow series leaves a slow residual and is not.
    """
    problem = model.problem
    explained, df = model.scan()
    df[list(excluded)] = 0
    naive, partial = model.tests(explained, df, np.full(problem.n_candidates, problem.n_independent))
    best: Test | None = None
    for candidate in np.lexsort((-partial, naive))[:MOST_TRIED]:
        if naive[candidate] > limit or (best is not None and naive[candidate] >= best.p_value and best.p_value > 0):
            break  # autocorrelation can only weaken a test
        if partial[candidate] < MIN_PARTIAL_R2:
            continue
        residual, _ = model.residual_with(problem.basis.columns[:, problem.basis.of(int(candidate))])
        size = size_behind(problem, int(candidate), residual)
        one = [candidate]
        p_value = float(model.tests(explained[one], df[one], np.asarray([size]))[0][0]) if size >= MIN_TEST_SIZE else 1.0
        if p_value <= limit and (best is None or p_value < best.p_value):
            best = Test(int(candidate), p_value, float(partial[candidate]), int(df[candidate]), size)
            if p_value == 0.0:
                break
    return best


def forward(problem: Problem, response: np.ndarray, given: tuple[int, ...] = ()) -> list[int]:
    """Select candidates one by one while the best one's test holds, then exchange those that another fits better.

    A ratio or another mixture may enter first because it stands for two causes at once; once these are in, it is exchanged or pruned.

    Parameters
    ----------
    problem : Problem
    response : ndarray, shape (n_rows,)
    given : tuple of int
        Candidates that are in the model from the start and are not chosen.
    """
    chosen = _grow(problem, response, [], given)
    for _ in range(EXCHANGE_ROUNDS):
        exchanged = _exchange(problem, response, chosen, given)
        if exchanged == chosen:
            break
        chosen = _grow(problem, response, exchanged, given)
    return chosen


def model_of(problem: Problem, response: np.ndarray, chosen: list[int]) -> Model:
    """Return the model that holds the chosen candidates' bases."""
    model = Model(problem, response)
    for candidate in chosen:
        model.add_candidate(candidate)
    return model


def _grow(problem: Problem, response: np.ndarray, chosen: list[int], given: tuple[int, ...]) -> list[int]:
    """Add candidates while the best one's test holds."""
    model, chosen = model_of(problem, response, [*given, *chosen]), list(chosen)
    while len(chosen) < MAX_PARENTS:
        test = best_test(model, {*given, *chosen}, level(problem, len(chosen) + 1))
        if test is None:
            break
        chosen.append(test.candidate)
        model.add_candidate(test.candidate)
    return chosen


def _exchange(problem: Problem, response: np.ndarray, chosen: list[int], given: tuple[int, ...]) -> list[int]:
    """Exchange each chosen candidate for the one that, with the others, explains clearly more."""
    chosen = list(chosen)
    for place, candidate in enumerate(chosen):
        others = [*given, *(other for other in chosen if other != candidate)]
        model = model_of(problem, response, others)
        score = fit_scores(model)
        score[others] = np.inf
        best = preferred(problem, score, candidate)
        if best != candidate and score[best] < score[candidate] - EXCHANGE_GAIN:
            chosen[place] = best
    return chosen


def fit_scores(model: Model) -> np.ndarray:
    """Return for each candidate the Bayesian information criterion of the model with it, up to a constant; infinite if it adds nothing."""
    n_rows = model.problem.n_independent
    explained, df = model.scan()
    total = float(model.residual @ model.residual)
    if total <= 0:
        return np.full(df.size, np.inf)
    score = n_rows * np.log(np.maximum(1 - explained / total, 1e-12)) + np.log(n_rows) * df
    return np.where(df > 0, score, np.inf)


def preferred(problem: Problem, score: np.ndarray, candidate: int) -> int:
    """Return the candidate that fits best when what the surroundings say of it and `candidate` is put to its score, in place.

    The surroundings are asked of those alone that could be best for what they say.
    """
    best, near = np.inf, np.argsort(score, kind="stable")
    limit = min(score[candidate], score[near[0]] + PREFERENCE) + PREFERENCE
    near = near[: np.searchsorted(score[near], min(limit, np.finfo(float).max), "right")]
    problem.surroundings.learn([candidate, *near.tolist()])
    for rival in near:
        if score[rival] > min(score[candidate], best) + PREFERENCE:
            break
        score[rival] -= problem.surroundings.preference(int(rival), candidate)
        best = min(best, score[rival])
    return int(np.argmin(score))
