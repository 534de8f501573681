"""Linear models of groups of basis functions: what each candidate would explain beside those that a model holds.

A candidate enters with all columns of its basis at once. Its partial F test is honest about what rows are worth: Kish's
size for the weights, Bartlett's factor for autocorrelation.

Forward selection takes the target's parents one by one (`forward`).

The target is a sink (nothing measured at a launch is caused by its own deviation), so its parents are its Markov
blanket and no arrow needs orienting. The number of candidates is paid for by Bonferroni.

The levels of p-values and of likelihoods stand here, and p-values after looking in many places.
The procedure of Benjamini and Hochberg is SciPy's `false_discovery_control`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtrc

from causeway.causal.data.observations import FEWEST_ROWS
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import NEW_SHARE, orthonormal_transform
from causeway.numeric.effective_size import autocorrelations, bartlett_factor

SIGNIFICANT = 0.05
"""Level of a test that is asked once, and of the false discovery rate over kernels: convention."""
STRONG = 6.0
VERY_STRONG = 10.0
"""Differences of the Bayesian information criterion, or of twice the log-likelihood, that are "strong" and "very
strong" evidence (R. E. Kass, A. E. Raftery, Bayes factors, J. Am. Stat. Assoc. 90 (1995) 773).
"""


def simes(p_values: np.ndarray) -> float:
    """Return Simes' p-value of the hypothesis that no candidate matters: `min p_(k) d / k`; 1 without candidates.

    Parameters
    ----------
    p_values : ndarray of float, shape (d,), in [0, 1]
        In any order.

    References
    ----------
    R. J. Simes, An improved Bonferroni procedure for multiple tests of significance, Biometrika 73 (1986) 751.
    """
    p_values = np.sort(np.asarray(p_values, dtype=float))
    return float(min(1.0, (p_values * p_values.size / np.arange(1, p_values.size + 1)).min())) if p_values.size else 1.0


def bonferroni(p_value: float, n_tests: float) -> float:
    """Return a p-value after Bonferroni over the candidates of a search, at most 1."""
    return float(min(1.0, p_value * max(n_tests, 1)))


def benjamini_bogomolov(p_value: float, n_selected: int, n_families: int) -> float:
    """Return the q-value of a hypothesis in one of `n_selected` families out of `n_families`; `p_value` is adjusted
    within the family.

    References
    ----------
    Y. Benjamini, M. Bogomolov, Selective inference on multiple families of hypotheses, J. R. Stat. Soc. B 76 (2014)
    297: if the false discovery rate selects R of m families, hypotheses within them are tested at R / m times the
    level.
    """
    return float(min(1.0, p_value * n_families / max(n_selected, 1)))


SMALL_RESIDUAL = 1e-3
"""Share of a response below which its residual's products are not taken as a difference: they would drown in
rounding.
"""
ROWS_AT_ONCE = 4096


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
    n_effective : float
        Effective number of rows behind the test.
    """

    __test__ = False  # a name that pytest would collect

    candidate: int
    p_value: float
    partial_r2: float
    n_effective: float


class LinearModel:
    """A linear model that grows by whole candidates.

    Parameters
    ----------
    problem : Problem
    response : ndarray of float, shape (n_rows,)
        Centred and weighted like the basis.

    room : int
        So many columns are expected; more may come, and are then copied once.

    Attributes
    ----------
    residual : ndarray of float, shape (n_rows,)
        The response less its projection on `q`.
    """

    def __init__(self, problem: Problem, response: np.ndarray, room: int = 0) -> None:
        self.problem = problem
        self.response = response
        self.residual = response.astype(float)
        self._columns = np.empty((response.size, room), order="F")  # what is not written yet takes no memory
        self._count = 0
        self._coordinates = np.zeros((problem.basis.columns.shape[1], 0), np.float32)
        # what `coordinates` does not hold yet: products if they are known, coordinates, transform, positions in `q`. A
        # function that refers to the model would keep it, and its large `q`, until Python looks for cycles: seldom
        self._added: list[tuple[Callable[[], np.ndarray] | None, np.ndarray, np.ndarray, slice]] = []

    @property
    def q(self) -> np.ndarray:
        """Orthonormal basis of the columns that the model holds, float, shape (n_rows, k)."""
        return self._columns[:, : self._count]

    def _next_columns(self, count: int) -> np.ndarray:
        """Return where the next `count` columns of `q` are to be written, and count them."""
        first, self._count = self._count, self._count + count
        if self._count > self._columns.shape[1]:
            held = self._columns[:, :first]
            self._columns = np.empty((len(held), max(self._count, 2 * first)), order="F")
            self._columns[:, :first] = held
        return self._columns[:, first : self._count]

    def _new_directions(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take from m columns of unit length, in place, what `q` holds of them.

        Returns
        -------
        coordinates : ndarray of float, shape (k, m)
            The columns' coordinates in `q`.
        transform : ndarray of float, shape (m, new)
            What is left of the columns, times this, is an orthonormal basis of what is new.
        """
        coordinates = self.q.T @ columns
        for first in range(0, len(columns) if self._count else 0, ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            columns[rows] -= self.q[rows] @ coordinates  # once is enough: what keeps less than `NEW_SHARE` is left out
        return coordinates, orthonormal_transform(columns.T @ columns, NEW_SHARE)

    def add(self, columns: np.ndarray, products: Callable[[], np.ndarray] | None = None) -> None:
        """Add columns, skipping what the model already holds.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows, m)
            Of unit length; float64 ones are overwritten, because they may be large.
        products : callable, optional
            Gives their products with all basis columns, float32, shape (n_columns, m), if these are known.
        """
        columns = columns.astype(float, copy=False)
        coordinates, transform = self._new_directions(columns)
        if transform.shape[1]:
            block = np.matmul(columns, transform, out=self._next_columns(transform.shape[1]))
            self._added.append((products, coordinates, transform, slice(self._count - block.shape[1], self._count)))
            self.residual = self.residual - block @ (block.T @ self.residual)

    def add_candidate(self, candidate: int) -> None:
        """Add a candidate's basis."""
        columns = self.problem.basis.columns[:, self.problem.basis.of(candidate)]
        self.add(columns, functools.partial(self.problem.products, candidate))

    def coordinates(self) -> np.ndarray:
        """Return the coordinates of all basis columns in `q`, float32, shape (n_columns, k), computed when asked for.

        They follow from the products with the candidates that were added, which all models of a problem share.
        """
        for products, coordinates, transform, positions in self._added:
            if products is None:
                new = self.problem.products_with(self.q[:, positions])
            else:
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
        columns = columns.astype(float)
        _, transform = self._new_directions(columns)
        explained = transform @ (transform.T @ (columns.T @ self.residual))
        return self.residual - columns @ explained, transform.shape[1]

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


def effective_sizes(problem: Problem, residual: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the effective number of rows behind the test of each candidate, given the autocorrelation of what is left,
    and that of the median column.

    Parameters
    ----------
    problem : Problem
    residual : ndarray of float, shape (n_rows,)
        Weighted.

    Returns
    -------
    sizes : ndarray of float, shape (n_candidates,)
        All independent rows for a candidate that no row tells from a constant.
    typical : float
    """
    sizes = np.full(problem.n_candidates, problem.n_independent)
    if not problem.lags.size:
        return sizes, problem.n_independent
    factors = bartlett_factor(problem.lags, autocorrelations(residual[:, None], problem.n_lags)[0])
    np.minimum.at(sizes, problem.basis.owner, problem.n_independent / factors)
    return sizes, problem.n_independent / float(np.median(factors))


def linear_model_of(problem: Problem, response: np.ndarray, chosen: list[int], room: int = 0) -> LinearModel:
    """Return the model of `response`, shape (n_rows,), that holds the chosen candidates' bases, with room for further
    columns.
    """
    model = LinearModel(problem, response, room + sum(problem.basis.of(candidate).size for candidate in chosen))
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


ALPHA = 0.01
"""Level of the family of tests in the first step: a candidate enters at `ALPHA / n_tests`."""
MAX_ALPHA = SIGNIFICANT / 2
"""Level of the later steps, so that over both stages an arrow's p-value times the number of tests stays below 5 %."""
RELATED, UNRELATED = chdtri(1, [ALPHA / 1000, ALPHA])
"""Squared correlation times effective rows from which two columns are related, at a level for some hundred pairs, and
below which they are not: quantiles of chi-squared.
"""
MIN_PARTIAL_R2 = 0.002
"""A candidate that explains less of the residual variance is no cause worth naming, however significant."""
FEW_ROWS = 300.0
"""With fewer effective rows, nothing that needs many is done: levels do not grow, rows are not weighted by their
precision, and a reader is warned.
"""
MOST_TRIED = 40
"""So many candidates are tried per step with their own autocorrelation before the step gives up."""


def significance_level(problem: Problem, rank: int) -> float:
    """Return the level of the test of the `rank`-th parent, counted from 1.

    What is in already is no longer null: as in a step-up procedure, the level grows with the number of parents, but
    only to `MAX_ALPHA`, and not with few rows.

    References
    ----------
    Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57 (1995) 289.
    """
    return (ALPHA if problem.n_independent < FEW_ROWS else min(ALPHA * rank, MAX_ALPHA)) / problem.n_tests


def best_test(model: LinearModel, excluded: set[int], limit: float) -> Test | None:
    """Return the most significant candidate outside `excluded` whose p-value is at most `limit`; None if there is none.

    With fewer effective rows than `FEWEST_ROWS` it counts for none.

    The residual's autocorrelation is taken with the candidate in the model: a true cause that changes slowly leaves
    white noise and is found, a chance resemblance of two slow series leaves a slow residual and is not.
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
        size = effective_test_size(problem, int(candidate), residual)
        if size < FEWEST_ROWS:
            continue
        index = [candidate]
        p_value = float(model.tests(explained[index], df[index], np.asarray([size]))[0][0])
        if p_value <= limit and (best is None or p_value < best.p_value):
            best = Test(int(candidate), p_value, float(partial[candidate]), size)
            if p_value == 0.0:
                break
    return best


def forward(problem: Problem, response: np.ndarray, given: tuple[int, ...] = ()) -> list[int]:
    """Select candidates one by one while the best one's test is significant, then exchange those that another fits
    better.

    A ratio or another mixture may enter first because it stands for two causes at once; once these are in, it is
    exchanged or pruned.

    Parameters
    ----------
    problem : Problem
    response : ndarray of float, shape (n_rows,)
        Centred and weighted like the basis.
    given : tuple of int
        Candidates that are in the model from the start and are not chosen.
    """
    model = linear_model_of(problem, response, list(given))
    chosen: list[int] = []
    while test := best_test(model, {*given, *chosen}, significance_level(problem, len(chosen) + 1)):
        chosen.append(test.candidate)
        model.add_candidate(test.candidate)
    return chosen
