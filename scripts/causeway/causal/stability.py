"""Stability: how often each parent is found again in half-samples of whole blocks of rows.

Blocks are longer than the autocorrelation, so that a half-sample has the dependence of the whole. Draws come in complementary pairs.
"""

import numpy as np

from causeway.causal.basis import Basis
from causeway.causal.effective_size import autocorrelations, correlation_time, lag_count
from causeway.causal.search import ALPHA, MIN_PARTIAL_R2, Model, Problem, forward, model_of
from causeway.causal.stages import Stages

MIN_FREQUENCY = 0.6
TIMES_PER_BLOCK = 5
MIN_BLOCKS = 10
SAME_EFFECT = 0.9
"""Share of what a parent does to the target that stand-ins must tell to count as the parent."""
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
    responses = ((stages.mean_response, stages.mean_tests), (stages.scale_response, stages.scale_tests))
    left = [model_of(stages.problem, response, [test.candidate for test in tests]).residual for response, tests in responses]
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
    problem = stages.problem
    strength = np.zeros(problem.n_candidates)
    for response, tests in ((stages.mean_response, stages.mean_tests), (stages.scale_response, stages.scale_tests)):
        model = Model(problem, response)
        for test in (None, *tests):
            if test is not None:
                model.add_candidate(test.candidate)
            total = float(model.residual @ model.residual)
            if total > 0:
                np.maximum(strength, model.scan()[0] / total, out=strength)
    strength[stages.parents()] = np.inf
    return np.sort(np.argsort(-strength, kind="stable")[:SCREENED])


def _half(problem: Problem, columns: np.ndarray, chosen: np.ndarray, rows: np.ndarray) -> Problem:
    """Return the problem of some rows and candidates, its level that of the whole."""
    part = problem.basis.columns[np.ix_(rows, columns)]
    lengths = np.sqrt((part.astype(float) ** 2).sum(axis=0))
    owner = np.searchsorted(chosen, problem.basis.owner[columns])
    alive = lengths > 1e-6
    basis = Basis((part[:, alive] / lengths[alive]).astype(np.float32), owner[alive])
    return Problem.of(basis, chosen.size, problem.n_independent * rows.size / problem.basis.columns.shape[0], problem.n_tests)


def selection_frequencies(stages: Stages, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return for each candidate the share of half-samples in which either stage finds it, shape (n_candidates,).

    Notes
    -----
    The responses are those of the whole sample: a half-sample is asked for the parents of the same deviation and the same residual size.
    """
    problem = stages.problem
    found = np.zeros(problem.n_candidates)
    n_rows = stages.mean_response.size
    if draws == 0 or n_rows < 4 * MIN_BLOCKS or not stages.parents():
        return found
    chosen = _screen(stages)
    columns = np.flatnonzero(np.isin(problem.basis.owner, chosen))
    blocks = blocks_of(stages)
    parents = {int(place) for place in np.flatnonzero(np.isin(chosen, stages.parents()))}
    for mask in half_samples(blocks, draws, rng):
        rows = np.flatnonzero(mask)
        half = _half(problem, columns, chosen, rows)
        again: set[int] = set()
        for response in (stages.mean_response, stages.scale_response):
            part = response[rows] - response[rows].mean()
            again |= set(_forward_and_back(half, part))
            again |= stood_in(half, part, again, parents)
        found[chosen[sorted(again)]] += 1
    return found / draws


def stood_in(problem: Problem, response: np.ndarray, again: set[int], parents: set[int]) -> set[int]:
    """Return the parents that a half-sample found under another name: others that it chose tell nearly all of what the parent does.

    Of a slow run, its number and the time since its start may both tell which launches were slow; which of them a half-sample prefers is
    chance.
    """
    others = sorted(again - parents)
    if not others:
        return set()
    frame = model_of(problem, response, others).frame
    found = set()
    for parent in parents - again:
        columns = problem.basis.columns[:, problem.basis.of(parent)].astype(float)
        effect = columns @ np.linalg.lstsq(columns, response, rcond=1e-6)[0]
        inside = frame.T @ effect
        if effect @ effect > 0 and inside @ inside > SAME_EFFECT * (effect @ effect):
            found.add(parent)
    return found


def _forward_and_back(problem: Problem, response: np.ndarray) -> list[int]:
    """Return what forward selection finds, less what the others make superfluous."""
    chosen = forward(problem, response)
    if len(chosen) < 2:
        return chosen
    kept = list(chosen)
    for candidate in chosen:
        others = model_of(problem, response, [other for other in kept if other != candidate])
        explained, df = others.scan()
        sizes = np.full(problem.n_candidates, problem.n_independent)
        p_values, partial = others.tests(explained, df, sizes)
        if p_values[candidate] > ALPHA / problem.n_tests or partial[candidate] < MIN_PARTIAL_R2:
            kept.remove(candidate)
    return kept
