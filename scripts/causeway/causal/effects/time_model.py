"""The fitted model of the time: log t = configuration + mu(x) + sigma(x) N, and what launches would have taken with
causes set to other values.

mu and log sigma are additive in functions of each cause; mu has products of pairs of causes besides, so that one may
amplify another or act beside some of its levels alone, and of causes with kernels (`cause_columns`). How far
coefficients shrink is estimated from the data (`ridge.evidence_ridge`); sigma is a gamma regression of the absolute
residual. N is each launch's own residual and stays as it was: abduction, action, prediction (J. Pearl, Causality,
Cambridge 2009, section 7.1.3). Where a value is not positive everywhere, it takes the place of its logarithm.

Uncertainty is that of draws: each refits the model with other weights of blocks of rows, and moves its coefficients by
what shrinking may have taken from them. Such intervals cover where those of resampling alone, which ignore the bias of
shrunk coefficients, do not (D. Nychka, J. Am. Stat. Assoc. 83 (1988) 1134; G. Marra, S. Wood, Scand. J. Stat. 39 (2012)
53).

Weights of 1 / sigma^2 are best where mu has the right form. What its form cannot say makes sigma large where causes act
most; then they describe the launches on which causes act least. Every second draw does without them, so that the
interval holds both answers where they differ.

`DrawWeights` has the weights of the rows in the draws behind an interval. A draw gives each block of successive rows
a weight instead of drawing it several times or not at all. A mean varies as much as under resampling of blocks, but
no block is ever left out: a level of a category that lies in two blocks of ten, such as the one slow run of several,
is missing from every ninth resample.

Levels keep their weight. How many launches ran on each rank is a fact of the run, no accident that another draw would
change; what a draw varies is how these launches did. Then the blocks of a level alone show how uncertain its mean is,
and k blocks show too little: under draws their mean has (k - 1) / (k + 1) of its variance. Intervals are widened for
that, and take Student's t of the level's blocks. A level in a single block shows nothing; its category is left to
vary.

References
----------
D. Rubin, The Bayesian bootstrap, Ann. Stat. 9 (1981) 130.
W. Deming, F. Stephan, On a least squares adjustment of a sampled frequency table when the expected marginal totals are
known, Ann. Math. Stat. 11 (1940) 427: raking.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.observations import CLIP_SCALE
from causeway.causal.effects.cause_columns import CauseColumns, Donors
from causeway.causal.selection.linear_model import FEW_ROWS
from causeway.causal.statistics.basis import two_valued
from causeway.causal.statistics.ridge import JITTER, Penalties, evidence_ridge, ridge_solver

RAKING_ROUNDS = 5
"""Times the levels of several categories are given their weight in turn."""


class DrawWeights:
    """Draws of the rows' weights: blocks weigh exponentially distributed times, levels of categories and of two-valued
    numbers as in all rows.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rows,), positive
    blocks : ndarray of int, shape (n_rows,)
        The number of each row's block, 0 .. n_blocks - 1.
    causes : sequence of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Numbers, and indicators of categories.
    n_draws : int
    rng : Generator

    Attributes
    ----------
    widening : ndarray of float, shape (n_causes,), at least 1
        How many times wider an interval of what each cause does must be than the draws say.
    """

    def __init__(
        self,
        weights: np.ndarray,
        blocks: np.ndarray,
        causes: Sequence[np.ndarray],
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        self._weights = weights
        n_blocks = np.unique(blocks).size
        levels = []
        self.widening = np.ones(len(causes))
        for cause, codes in enumerate(map(_level_codes, causes)):
            if codes is None:
                continue
            pairs = np.unique(np.stack([codes, blocks]), axis=1)
            fewest = int(np.bincount(pairs[0]).min())
            if fewest >= 2:
                levels.append(codes)
                self.widening[cause] = max(_half_width(fewest) / _half_width(n_blocks), 1.0)
        self._parts = [blocks, *(levels or [np.zeros(weights.size, np.int64)])]
        totals = [np.bincount(part, weights) for part in self._parts]
        by_block = rng.standard_exponential((n_draws, int(blocks.max()) + 1))
        self._factors = [by_block, *(np.ones((n_draws, total.size)) for total in totals[1:])]
        for draw, row in enumerate(self.of_rows().T):
            for _ in range(RAKING_ROUNDS if len(levels) > 1 else 1):
                for part, total, factors in zip(self._parts[1:], totals[1:], self._factors[1:], strict=True):
                    factor = total / np.bincount(part, row)
                    factors[draw] *= factor
                    row = row * factor[part]

    def of_rows(self) -> np.ndarray:
        """Return the weights, float, shape (n_rows, n_draws), positive; made when asked for, since many are kept."""
        drawn = np.repeat(self._weights[None, :], len(self._factors[0]), axis=0)
        for part, factors in zip(self._parts, self._factors, strict=True):
            drawn *= factors[:, part]
        return drawn.T


def _half_width(blocks: int) -> float:
    """Return half a 90 % interval of the mean of some blocks, in its standard deviations under draws."""
    return float(stdtrit(blocks - 1, 0.95)) * np.sqrt((blocks + 1) / (blocks - 1))


def _level_codes(values: np.ndarray) -> np.ndarray | None:
    """Return the number of each row's level, 0, 1, ..., none of them empty; None for other numbers."""
    if values.ndim == 1:
        return (values > values.min()).astype(np.int64) if two_valued(values) else None
    codes = np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0)
    return np.unique(codes, return_inverse=True)[1]


DRAWS = 60
"""Draws behind a standard error, which is then known to 9 %: `1 / sqrt(2 * 60)`."""
ROUNDS = 3
"""Times mu and sigma are fitted in turn; a fourth changes no effect by a tenth of its standard error."""
SCORING_STEPS = 8
"""Steps of Fisher scoring for sigma; two from the model of all rows where a draw is fitted."""
LEAST_PENALTY = 1e-4
"""Smaller ones let one of two causes that coincide take everything, larger ones shrink the effect of a slow run."""
PENALTY_STEPS = (0, 3)
"""Of these, those in which the penalties are estimated."""
LARGEST_LOG_RATIO = np.log(10.0)
"""log sigma stays within so much of its median."""

AS_NEAREST = np.concatenate([[0.5], np.modf((np.arange(DRAWS) + 0.5) * (np.sqrt(5) - 1) / 2)[0]])
"""How much a level does, beside numbers that it never had, of what it does at the nearest more than on average, by
model and draw: shares evenly from 0 to 1, in an order that goes with nothing else (multiples of the golden ratio).
"""

MAX_ROWS = 5000
"""Rows of a kernel that are used, drawn at random: twice as many would narrow intervals by less than a third."""


def rows_of_models(kernel: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows of each model: of a kernel with enough rows, then of all others together.

    Parameters
    ----------
    kernel : ndarray of int, shape (n_rows,)
        Codes 0, 1, ...
    rng : Generator
        Draws the rows of kernels with more than `MAX_ROWS`.

    Returns
    -------
    list of ndarray of int, shape (n_own,)
        Positions of the rows of each model, ascending unless drawn.
    """
    counts = np.bincount(kernel)
    own = [np.flatnonzero(kernel == code) for code in np.flatnonzero(counts >= FEW_ROWS)]
    rest = np.flatnonzero(counts[kernel] < FEW_ROWS)
    parts = [*own, *([rest] if rest.size and (not own or rest.size >= FEW_ROWS) else [])]
    return [rng.permutation(part)[:MAX_ROWS] if part.size > MAX_ROWS else part for part in parts]


@dataclass(frozen=True)
class _Fit:
    """Coefficients and penalties of mu and log sigma, and the median of log sigma."""

    mean: np.ndarray
    scale: np.ndarray
    mean_penalties: Penalties
    scale_penalties: Penalties
    middle: float


class TimeModel:
    """mu and sigma of the time, and draws of both.

    Parameters
    ----------
    causes : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
    response : ndarray of float, shape (n_rows,)
        log t, or t, less its mean in the configuration.
    weights : ndarray of float, shape (n_rows,), positive
    blocks : ndarray of int, shape (n_rows,)
        Blocks of rows, 0 .. n_blocks - 1, longer than the residual is autocorrelated.
    groups : ndarray of int, shape (n_rows,)
        As of `CauseColumns`.
    rng : Generator
    ends : sequence of (ndarray of bool, shape (n_rows,), or None)
        As of `CauseColumns`.
    """

    def __init__(
        self,
        causes: list[np.ndarray],
        response: np.ndarray,
        weights: np.ndarray,
        blocks: np.ndarray,
        groups: np.ndarray,
        rng: np.random.Generator,
        ends: Sequence[np.ndarray | None] = (),
    ) -> None:
        self.design = CauseColumns(causes, groups, ends)
        self.response = response
        self._weights = weights
        self._drawn = DrawWeights(weights, blocks, causes, DRAWS, rng)
        drawn = self.weights
        fit = self._fitted(weights)
        lost_mean, lost_scale = self._lost_by_shrinking(fit, weights, blocks)
        fits = [fit]
        for draw in range(DRAWS):
            again = self._fitted(drawn[:, draw + 1], fit, by_precision=draw % 2 == 0)
            mean = again.mean + lost_mean @ rng.standard_normal(lost_mean.shape[1])
            scale = again.scale + lost_scale @ rng.standard_normal(lost_scale.shape[1])
            fits.append(_Fit(mean, scale, fit.mean_penalties, fit.scale_penalties, again.middle))
        self.mean = np.column_stack([fit.mean for fit in fits])
        self.scale = np.column_stack([fit.scale for fit in fits])
        self.middle = np.asarray([fit.middle for fit in fits])

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of the rows as they are, then in each draw: float, shape (n_rows, 1 + DRAWS), positive; kept
        until `release`, as a model is kept for each kernel.
        """
        return np.column_stack([self._weights, self._drawn.of_rows()])

    @cached_property
    def linear(self) -> np.ndarray:
        """The logarithm of sigma, float, shape (n_rows, 1 + DRAWS); kept as the weights are."""
        return self.design.columns[:, : self.design.n_single] @ self.scale

    @cached_property
    def residual(self) -> np.ndarray:
        """The response less mu, float, shape (n_rows, 1 + DRAWS); kept as the weights are."""
        return self.response[:, None] - self.design.columns @ self.mean

    def release(self) -> None:
        """Forget what was computed of all rows and draws, as large as the rows times the draws."""
        for name in ("weights", "linear", "residual"):
            self.__dict__.pop(name, None)

    def widened(self, values: np.ndarray, causes: Collection[int]) -> np.ndarray:
        """Return what was computed from the draws with the spread that it has when some causes are set.

        Parameters
        ----------
        values : ndarray of float, shape (n, 1 + DRAWS)
            By the model and by each draw.
        causes : collection of int
            Their positions; of several the one whose levels lie in the fewest blocks counts.

        Returns
        -------
        ndarray of float, shape (n, 1 + DRAWS)
            The model's own values are as they were, and so is the mean of the draws.
        """
        times = max((float(self._drawn.widening[cause]) for cause in causes), default=1.0)
        middle = values[:, 1:].mean(axis=1, keepdims=True)
        return np.hstack([values[:, :1], middle + times * (values[:, 1:] - middle)]) if times > 1 else values

    def response_with(self, donors: Donors) -> np.ndarray:
        """Return the response with causes set and each launch's own N, by the model and by each draw.

        Returns
        -------
        ndarray of float, shape (n_rows, 1 + DRAWS)
        """
        moved, which = self.design.moved(donors)
        of_scale = which < self.design.n_single
        linear = self.linear
        after = linear + moved[:, of_scale] @ self.scale[which[of_scale]]
        low = self.middle - LARGEST_LOG_RATIO
        high = self.middle + LARGEST_LOG_RATIO
        ratio = np.exp(np.clip(after, low, high) - np.clip(linear, low, high))
        return self.response[:, None] + moved @ self.mean[which] + self._open(donors) + (ratio - 1.0) * self.residual

    def without_others(self, cause: int) -> np.ndarray:
        """Return the response less what the other causes do to it, shape (n_rows,)."""
        own = self.design.columns_of(cause)
        return self.response - self.design.columns @ self.mean[:, 0] + self.design.columns[:, own] @ self.mean[own, 0]

    def with_residual_of(self, donors: np.ndarray) -> np.ndarray:
        """Return the response with the residual of another launch, in its own standard deviations, shape
        (n_rows, 1 + DRAWS).

        Parameters
        ----------
        donors : ndarray of int, shape (n_rows,)
        """
        linear = np.clip(self.linear, self.middle - LARGEST_LOG_RATIO, self.middle + LARGEST_LOG_RATIO)
        own = self.residual
        return self.response[:, None] - own + np.exp(linear - linear[donors]) * own[donors]

    def located_with(self, donors: Donors) -> np.ndarray:
        """Return the response with causes set as mu alone moves it, shape (n_rows, 1 + DRAWS): what `response_with`
        adds to it has mean 0 as far as N has mean 0 whatever the causes.
        """
        moved, which = self.design.moved(donors)
        return self.response[:, None] + moved @ self.mean[which] + self._open(donors)

    def _open(self, donors: Donors) -> np.ndarray:
        """Return what is added to the response where a level is set beside numbers that it never had, shape (n_rows,
        1 + DRAWS): nothing says whether it does there what it does at the nearest number, or what it does on average.
        """
        beyond, which = self.design.beyond(donors)
        return (beyond @ self.mean[which]) * AS_NEAREST

    def _fitted(self, weights: np.ndarray, template: _Fit | None = None, by_precision: bool = True) -> _Fit:
        """Return mu and sigma fitted in turn; with the penalties and the weights of another fit, in one round, on
        request without its weights of 1 / sigma^2.
        """
        columns = self.design.columns
        single = columns[:, : self.design.n_single]
        precision = weights * _precision(single, template) if template is not None and by_precision else weights
        for _ in range(ROUNDS if template is None else 1):
            if template is None:
                mean, mean_penalties = evidence_ridge(
                    columns, self.response, precision, self.design.slices, LEAST_PENALTY
                )
            else:
                mean_penalties = template.mean_penalties
                mean = ridge_solver(columns, precision, mean_penalties)(self.response)
            size = np.abs(self.response - columns @ mean)
            scale, scale_penalties = _log_scale(single, size, weights, self.design.single_slices, template)
            fit = _Fit(mean, scale, mean_penalties, scale_penalties, float(np.median(single @ scale)))
            precision = weights * _precision(single, fit)
        return fit

    def _lost_by_shrinking(self, fit: _Fit, weights: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return roots of the covariance of what shrinking may have taken from the coefficients of mu and of log sigma.

        With prior variance s^2 / (n penalty) of a coefficient and H the penalised normal equations, that is `s^2 / n
        H^-1 diag(penalty) H^-1`; with the sampling covariance it sums to Nychka's posterior covariance. n is Kish's
        size over the variance inflation of sums over blocks.
        """
        columns = self.design.columns
        single = columns[:, : self.design.n_single]
        precision = weights * _precision(single, fit)
        residual = self.response - columns @ fit.mean
        size = np.abs(residual) * np.exp(-single @ fit.scale)
        excess = size / max(float(np.average(size, weights=weights)), 1e-300) - 1.0
        return (
            _root(columns, precision, fit.mean_penalties, residual, blocks),
            _root(single, weights, fit.scale_penalties, excess, blocks),
        )


def _root(
    columns: np.ndarray, weights: np.ndarray, penalties: Penalties, residual: np.ndarray, blocks: np.ndarray
) -> np.ndarray:
    """Return the root of the covariance for one of both regressions, shape (k, k)."""
    parts = weights / weights.sum()
    normal = (columns * parts[:, None]).T @ columns + np.diag(penalties) + JITTER * np.eye(penalties.size)
    weighted = parts * residual
    within = float(weighted @ weighted)
    inflation = max(float(np.sum(np.bincount(blocks, weighted) ** 2)) / within, 1.0) if within > 0 else 1.0
    variance = float(parts @ residual**2) * float(parts @ parts) * inflation
    return np.linalg.inv(normal) * np.sqrt(penalties * variance)


def _precision(single: np.ndarray, fit: _Fit) -> np.ndarray:
    """Return 1 / sigma^2 in units of its median, which is nowhere out of all proportion, shape (n_rows,)."""
    return np.exp(2.0 * np.clip(fit.middle - single @ fit.scale, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))


def _log_scale(
    columns: np.ndarray, size: np.ndarray, weights: np.ndarray, slices: list[slice], template: _Fit | None
) -> tuple[np.ndarray, Penalties]:
    """Return the coefficients of the logarithm of the mean of `size`, by Fisher scoring of a gamma regression.

    References
    ----------
    P. McCullagh, J. Nelder, Generalized Linear Models, 2nd ed., Chapman and Hall 1989, chapter 8.
    """
    size = np.maximum(size, max(1e-9 * float(size.max(initial=0.0)), 1e-12))
    if template is not None:
        solve = ridge_solver(columns, weights, template.scale_penalties)
        coefficients = template.scale
        for _ in range(2):
            eta = columns @ coefficients
            coefficients = solve(eta + np.minimum(size * np.exp(-eta) - 1.0, CLIP_SCALE))
        return coefficients, template.scale_penalties
    eta = np.full(size.size, np.log(np.average(size, weights=weights)))
    for step in range(SCORING_STEPS):
        working = eta + np.minimum(size * np.exp(-eta) - 1.0, CLIP_SCALE)
        if step in PENALTY_STEPS:
            coefficients, penalties = evidence_ridge(columns, working, weights, slices, LEAST_PENALTY)
            solve = ridge_solver(columns, weights, penalties)
        else:
            coefficients = solve(working)
        eta = columns @ coefficients
    return coefficients, penalties
