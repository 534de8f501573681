"""Stability: how often each parent is found again in half-samples of whole blocks of rows.

Blocks are longer than the autocorrelation, so that a half-sample has the dependence of the whole. Draws come in complementary pairs.
"""

import numpy as np
from scipy.special import bdtr, fdtri, ncfdtr

from causeway.causal.basis import Basis
from causeway.causal.effective_size import autocorrelations, correlation_time, lag_count
from causeway.causal.search import Problem, Test, best_test, level, model_of
from causeway.causal.stages import INDEPENDENT, Stages

MIN_FREQUENCY = 0.6
ALWAYS_FROM = 0.25
"""However weak its effect, a parent is found in a quarter of the half-samples."""
CHANCE = 0.05
"""A parent is unstable if fewer half-samples find it than all but this share of parents with an effect of its size would."""
TIMES_PER_BLOCK = 5
MIN_BLOCKS = 10
SAME_EFFECT = 0.9
"""Share of what a parent does to the target that stand-ins must tell to count as the parent."""
MOST_NEW = 3
"""So many candidates may a half-sample find before a parent."""
SCREENED = 200
"""So many candidates enter the half-samples: those nearest to being chosen in the whole sample. The level is still divided by all."""
ESTIMATED = 1.28
"""Standard errors of an effect's size: nine of ten effects are larger than the estimate less so many."""


def block_numbers(series: np.ndarray, n_rows: int) -> np.ndarray:
    """Return for each row the number of its block, blocks of at least five autocorrelation times of the series, at least ten of them."""
    time = correlation_time(autocorrelations(series[:, None] - series.mean(), lag_count(n_rows))[0])
    length = max(1, min(int(np.ceil(TIMES_PER_BLOCK * time)), n_rows // MIN_BLOCKS))
    return np.arange(n_rows) // length


def blocks_of(stages: Stages) -> np.ndarray:
    """Return for each row the number of its block, by what the parents leave of either response, whichever depends longer on its past.

    The responses are clipped, as the search sees them: what a strong cause has beyond the clip is its own doing and no dependence, and
    blocks as long as its episodes would leave every other half-sample without one.
    """
    left = [model_of(stage.problem, stage.response, stage.chosen).residual for stage in stages.both]
    return min((block_numbers(series, series.size) for series in left), key=lambda blocks: int(blocks[-1]))


def half_samples(blocks: np.ndarray, draws: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return masks of rows: random halves of the blocks and their complements, in turn.

    References
    ----------
    R. D. Shah, R. J. Samworth, Variable selection with error control: another look at stability selection, J. R. Stat. Soc. B 75 (2013) 55.
    """
    n_blocks = int(blocks.max()) + 1
    masks: list[np.ndarray] = []
    while len(masks) < draws:
        half = np.zeros(n_blocks, dtype=bool)
        half[rng.permutation(n_blocks)[: n_blocks // 2]] = True
        masks += [half[blocks], ~half[blocks]]
    return masks[:draws]


def _screen(stages: Stages) -> np.ndarray:
    """Return the candidates that explain most, before or after the parents, in either stage; parents always among them."""
    strength = np.zeros(stages.problem.n_candidates)
    for stage in stages.both:
        model = model_of(stage.problem, stage.response, list(stage.pruner.given))
        for candidate in (None, *stage.chosen):
            if candidate is not None:
                model.add_candidate(candidate)
            total = float(model.residual @ model.residual)
            if total > 0:
                np.maximum(strength, model.scan()[0] / total, out=strength)
    strength[stages.parents()] = np.inf
    return np.sort(np.argsort(-strength, kind="stable")[:SCREENED])


def _half(problem: Problem, chosen: np.ndarray, rows: np.ndarray) -> Problem:
    """Return the problem of some rows and candidates, its level that of the whole."""
    columns = np.flatnonzero(np.isin(problem.basis.owner, chosen))
    part = problem.basis.columns[np.ix_(rows, columns)]
    lengths = np.sqrt((part.astype(float) ** 2).sum(axis=0))
    owner = np.searchsorted(chosen, problem.basis.owner[columns])
    alive = lengths > 1e-6
    basis = Basis((part[:, alive] / lengths[alive]).astype(np.float32), owner[alive])
    return Problem.of(basis, chosen.size, problem.n_independent * rows.size / problem.basis.columns.shape[0], problem.n_tests)


def selection_frequencies(stages: Stages, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return for each parent the share of half-samples in which either stage finds it again, shape (n_candidates,); others have 0.

    Notes
    -----
    The responses are those of the whole sample: a half-sample is asked for the parents of the same deviation and the same residual size.
    It is told the other parents of the stage, so that the question is whether this one holds its place against all other candidates.
    """
    found = np.zeros(stages.problem.n_candidates)
    n_rows = stages.residual.size
    if draws == 0 or n_rows < 4 * MIN_BLOCKS or not stages.parents():
        return found
    chosen = _screen(stages)
    blocks = blocks_of(stages)
    for mask in half_samples(blocks, draws, rng):
        rows = np.flatnonzero(mask)
        again: set[int] = set()
        for stage in stages.both:
            half = _half(stage.problem, chosen, rows)
            part = stage.response[rows] - stage.response[rows].mean()
            parents, given = ([int(place) for place in np.searchsorted(chosen, who)] for who in (stage.chosen, stage.pruner.given))
            again |= {parent for parent in parents if parent not in again and _found_again(half, part, parent, parents, given)}
        found[chosen[sorted(again)]] += 1
    return found / draws


def expected_frequency(test: Test, alpha: float) -> float:
    """Return the share of half-samples that find at least such an effect: the power of a test at level `alpha` with half of the rows.

    Notes
    -----
    The noncentrality is estimated from the whole sample, `L = n R^2 / (1 - R^2) - df`, less `ESTIMATED` of its standard errors
    `sqrt(2 df + 4 L)`; half of it is left with half of the rows (J. Cohen, Statistical Power Analysis, 1988, ch. 9).
    """
    estimate = max(test.n_effective * test.partial_r2 / max(1.0 - test.partial_r2, 1e-9) - test.df, 0.0)
    noncentrality = max(estimate - ESTIMATED * np.sqrt(2 * test.df + 4 * estimate), 0.0)
    left = max(test.n_effective / 2 - 1 - test.df, 1.0)
    critical = float(fdtri(test.df, left, 1 - alpha))
    return float(1.0 - ncfdtr(test.df, left, noncentrality / 2, critical))


def least_frequency(test: Test, problem: Problem, alpha: float, draws: int) -> float:
    """Return the share of half-samples that must find a parent: `MIN_FREQUENCY`, or less if its effect is too small for half of the rows.

    Half a sample has too few rows for a weak cause that the whole sample shows: what is found less often than an effect of its size would
    be is unstable (others take its place), what is found as often is not. Where autocorrelation takes most of the rows, the size of the
    effect is itself uncertain, and nothing is conceded.

    Parameters
    ----------
    test : Test
    problem : Problem
    alpha : float
        Level of the test in a half-sample.
    draws : int
    """
    if test.n_effective < INDEPENDENT * problem.n_independent:
        return MIN_FREQUENCY
    below = bdtr(np.arange(draws + 1), draws, expected_frequency(test, alpha))
    return float(np.clip(int(np.searchsorted(below, CHANCE, side="right")) / draws, ALWAYS_FROM, MIN_FREQUENCY))


def _found_again(half: Problem, response: np.ndarray, parent: int, parents: list[int], given: list[int]) -> bool:
    """Tell whether a half-sample, told a stage's other parents, finds this one: itself, or others that tell nearly all that it does."""
    others = [other for other in {*parents, *given} if other != parent]
    model, new = model_of(half, response, others), []
    while len(new) < MOST_NEW:
        test = best_test(model, {*others, *new}, level(half, len(parents)))
        if test is None:
            break
        if test.candidate == parent:
            return True
        new.append(test.candidate)
        model.add_candidate(test.candidate)
    return stood_in(half, response, new, parent)


def stood_in(problem: Problem, response: np.ndarray, new: list[int], parent: int) -> bool:
    """Tell whether what a half-sample found instead of a parent tells nearly all of what the parent does.

    Of a slow run, its number and the time since its start may both tell which launches were slow; which of them a half-sample prefers is
    chance.
    """
    if not new:
        return False
    frame = model_of(problem, response, new).frame
    columns = problem.basis.columns[:, problem.basis.of(parent)].astype(float)
    effect = columns @ np.linalg.lstsq(columns, response, rcond=1e-6)[0]
    inside = frame.T @ effect
    return bool(effect @ effect > 0 and inside @ inside > SAME_EFFECT * (effect @ effect))
