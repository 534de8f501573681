"""Stability: how often each parent is found again in half-samples of whole blocks of rows.

Blocks are longer than the autocorrelation, so that a half-sample has the dependence of the whole. Draws come in complementary pairs. Half
of the rows have half of the evidence, so the level of their tests is such that a weak cause is found as well, unless others take its place.
"""

import numpy as np
from scipy.special import fdtrc, fdtri, ncfdtri

from causeway.causal.basis import Basis
from causeway.causal.effective_size import autocorrelations, correlation_time, lag_count
from causeway.causal.search import Problem, best_test, fit_scores, level, model_of, preferred
from causeway.causal.stages import Stages

MIN_FREQUENCY = 0.6
"""A parent is stable if at least this share of the half-samples finds it again (N. Meinshausen, P. Buehlmann, Stability selection, J. R.
Stat. Soc. B 72 (2010) 417)."""
ODDS = 0.75
"""Share of half-samples that would find an effect which all rows just show, if nothing else took its place."""
TIMES_PER_BLOCK = 5
MIN_BLOCKS = 10
SAME_EFFECT = 0.9
"""Share of what a parent does to the target that stand-ins must tell to count as the parent."""
MOST_NEW = 3
"""So many candidates may a half-sample find before a parent."""
SCREENED = 200
"""So many candidates enter the half-samples: those nearest to being chosen in the whole sample. The level is still divided by all."""


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
    part = problem.basis.columns.T[np.ix_(columns, rows)].T
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
            for parent, test in zip(parents, stage.tests, strict=True):
                limit = half_level(level(stage.problem, len(parents)), test.df, stage.problem.n_independent)
                if parent not in again and _found_again(half, part, parent, parents, given, limit):
                    again.add(parent)
        found[chosen[sorted(again)]] += 1
    return found / draws


def half_level(alpha: float, df: int, n_rows: float) -> float:
    """Return the level of a test with half of the rows that finds an effect which just passes `alpha` with all rows in `ODDS` of the cases.

    Parameters
    ----------
    alpha : float
        Level with all rows.
    df : int
        Columns that the candidate adds.
    n_rows : float
        Effective number of all rows.

    Notes
    -----
    The noncentrality of such an effect is `c - df` with all rows, c the critical value times df, and half of that with half of them. The
    half-samples are asked who holds his place, not for the proof, which the whole sample has given.
    """
    left = max(n_rows - 1 - df, 1.0)
    noncentrality = (df * float(fdtri(df, left, 1 - alpha)) - df) / 2
    least = float(ncfdtri(df, max(left / 2, 1.0), noncentrality, 1 - ODDS))
    return float(fdtrc(df, max(left / 2, 1.0), least))


def _found_again(half: Problem, response: np.ndarray, parent: int, parents: list[int], given: list[int], limit: float) -> bool:
    """Tell whether a half-sample, told a stage's other parents, finds this one: itself, or others that tell nearly all that it does."""
    others = [other for other in {*parents, *given} if other != parent]
    model, new = model_of(half, response, others), []
    while len(new) < MOST_NEW:
        test = best_test(model, {*others, *new}, limit)
        if test is None:
            break
        if parent in (test.candidate, preferred(half, fit_scores(model), test.candidate)):
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
