"""Stability: how often each parent is found again in half-samples of whole blocks of rows.

Blocks are longer than the autocorrelation, so that a half-sample has the dependence of the whole. Draws come in
complementary pairs. Half of the rows have half of the evidence, so the level of their tests is such that a weak cause
is found as well, unless others take its place.
"""

import numpy as np
from scipy.special import fdtrc, fdtri, ncfdtri

from causeway.causal.selection.forward import MIN_TEST_SIZE, best_test, preferred, significance_level
from causeway.causal.selection.linear_model import fit_scores, linear_model_of
from causeway.causal.selection.problem import Problem
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.basis import Basis
from causeway.numeric.block_resampling import MIN_BLOCKS, half_samples

MIN_FREQUENCY = 0.6
"""A parent is stable if at least this share of the half-samples finds it again (N. Meinshausen, P. Buehlmann,
Stability selection, J. R. Stat. Soc. B 72 (2010) 417)."""
ODDS = 0.75
"""Share of half-samples that would find an effect which all rows just show, if nothing else took its place."""
SAME_EFFECT = 0.9
"""Share of what a parent does to the target that stand-ins must tell to count as the parent."""
MOST_NEW = 3
"""So many candidates may a half-sample find before a parent."""
SCREENED = 200
"""So many candidates enter the half-samples: those nearest to being chosen in the whole sample. The level is still
divided by all.
"""


def _screen(stages: Stages) -> np.ndarray:
    """Return the candidates that explain most, before or after the parents, in either stage; parents always among
    them.
    """
    strength = np.zeros(stages.problem.n_candidates)
    for stage in stages.both:
        model = linear_model_of(stage.problem, stage.response, list(stage.pruner.given))
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
    lengths = np.sqrt(np.einsum("ij,ij->j", part, part, dtype=float))
    owner = np.searchsorted(chosen, problem.basis.owner[columns])
    alive = lengths > 1e-6
    part = part if alive.all() else part[:, alive]
    part /= lengths[alive]
    basis = Basis(part, owner[alive])
    return Problem.of(
        basis, chosen.size, problem.n_independent * rows.size / problem.basis.columns.shape[0], problem.n_tests
    )


def selection_frequencies(stages: Stages, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return for each parent the share of half-samples in which either stage finds it again, shape (n_candidates,);
    others have 0.

    Notes
    -----
    The responses are those of the whole sample: a half-sample is asked for the parents of the same deviation and the
    same residual size. It is told the other parents of the stage, so that the question is whether this one holds its
    place against all other candidates.
    """
    found = np.zeros(stages.problem.n_candidates)
    n_rows = stages.residual.size
    if draws == 0 or n_rows < 4 * MIN_BLOCKS or not stages.parents():
        return found
    chosen = _screen(stages)
    blocks = stages.blocks
    for mask in half_samples(blocks, draws, rng):
        rows = np.flatnonzero(mask)
        again: set[int] = set()
        halves: dict[int, Problem] = {}
        for stage in stages.both:
            if not stage.tests:
                continue
            if id(stage.problem) not in halves:  # without weights both stages have the same
                halves[id(stage.problem)] = _half(stage.problem, chosen, rows)
            half = halves[id(stage.problem)]
            part = stage.response[rows] - stage.response[rows].mean()
            parents, given = (
                [int(place) for place in np.searchsorted(chosen, who)] for who in (stage.chosen, stage.pruner.given)
            )
            for parent, test in zip(parents, stage.tests, strict=True):
                limit = half_level(
                    significance_level(stage.problem, len(parents)), test.df, stage.problem.n_independent
                )
                if parent not in again and _found_again(half, part, parent, parents, given, limit):
                    again.add(parent)
        found[chosen[sorted(again)]] += 1
    return found / draws


def half_level(alpha: float, df: int, n_rows: float) -> float:
    """Return the level of a test with half of the rows that finds an effect which just passes `alpha` with all rows in
    `ODDS` of the cases.

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
    The noncentrality of such an effect is `c - df` with all rows, c the critical value times df, and half of that with
    half of them. The half-samples are asked who holds his place, not for the proof, which the whole sample has given.
    """
    left = max(n_rows - 1 - df, 1.0)
    noncentrality = (df * float(fdtri(df, left, 1 - alpha)) - df) / 2
    least = float(ncfdtri(df, max(left / 2, 1.0), noncentrality, 1 - ODDS))
    return float(fdtrc(df, max(left / 2, 1.0), least))


def _found_again(
    half: Problem, response: np.ndarray, parent: int, parents: list[int], given: list[int], limit: float
) -> bool:
    """Tell whether a half-sample, told a stage's other parents, finds this one: itself, or others that tell nearly
    all that it does. Half of the rows have half of the effective rows.
    """
    others = [other for other in {*parents, *given} if other != parent]
    model = linear_model_of(half, response, others)
    new = []
    while len(new) < MOST_NEW:
        test = best_test(model, {*others, *new}, limit, MIN_TEST_SIZE / 2)
        if test is None:
            break
        if parent in (test.candidate, preferred(half, fit_scores(model), test.candidate)):
            return True
        new.append(test.candidate)
        model.add_candidate(test.candidate)
    return stood_in(half, response, new, parent)


def stood_in(problem: Problem, response: np.ndarray, new: list[int], parent: int) -> bool:
    """Return whether what a half-sample found instead of a parent explains nearly all of what the parent explains of
    `response`, shape (n,).

    Of a slow run, its number and the time since its start may both tell which launches were slow; which of them a
    half-sample prefers is chance.
    """
    if not new:
        return False
    frame = linear_model_of(problem, response, new).q
    columns = problem.basis.columns[:, problem.basis.of(parent)].astype(float)
    effect = columns @ np.linalg.lstsq(columns, response, rcond=1e-6)[0]
    inside = frame.T @ effect
    return bool(effect @ effect > 0 and inside @ inside > SAME_EFFECT * (effect @ effect))
