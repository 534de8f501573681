"""The context graph: how the causes and what surrounds them hang together.

Not needed to find the target's causes (the target is a sink), but it shows what a cause may stand for and act through.
It is learnt by causal-learn, whose background knowledge is not strict and exists for few of its algorithms; so the
tiers are enforced on what it returns.
"""

import contextlib
import io
import random
import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy as np

from causeway.causal.data.outcome import Edge
from causeway.causal.examination.context_scores import CompiledScores
from causeway.causal.statistics.basis import independent_columns
from causeway.core.feature_registry import TIERS

TIER_RANK = {tier: rank for rank, tier in enumerate((*TIERS, "target"))}
"""Order in time: launch configuration; clocks, temperature, contention and placement; what the launch did; its
target.
"""
PENALTY = 1.0
"""Factor of `log n` per edge in BOSS' score, twice that of the BIC: on random networks of 40, 46 and 107 nodes
(1,000 rows) the F1 of the skeleton rises from .94, .92, .83 to .99, 1.00, .98."""
ALPHA = 0.01
"""Level of PC's tests."""
DETERMINED = 0.005
"""A column of which those before it leave no more than this share breaks every algorithm (its residual is noise) and
takes no part.
"""
AGREEMENT = 0.9
"""Share of resamples that must agree on a direction within a tier: observational data alone rarely tell it."""
MIN_ROWS = 20


def learn(
    scores: np.ndarray,
    names: Sequence[str],
    tiers: Sequence[int] | None = None,
    seed: int = 1,
    weights: np.ndarray | None = None,
    n_effective: float | None = None,
    method: str = "boss",
    resamples: int | None = None,
    blocks: np.ndarray | None = None,
) -> list[Edge]:
    """Learn the graph among columns.

    Parameters
    ----------
    scores : ndarray of float, shape (n_rows, p)
        Finite; normal scores unless the columns are Gaussian already. Columns without variance, and those that follow
        from others, get no edge.
    names : sequence of str, length p, unique
    tiers : sequence of int, length p
        An edge between tiers points from the smaller to the larger number. None: one tier.
    seed : int
        The search visits the columns in random orders.
    weights : ndarray, shape (n_rows,), positive
    n_effective : float
        What the rows are worth after weights and autocorrelation; n_rows if None.
    method : str
        `boss` or `pc`.
    resamples : int or None
        None keeps the directions that the algorithm takes for compelled. A number keeps a direction within a tier only
        if 90 % of so many resamples of blocks agree on it; 0 keeps none.
    blocks : ndarray of int, shape (n_rows,)
        Blocks that are resampled; rows if None.

    Returns
    -------
    list of Edge
        By position of the source, then of the target.

    Raises
    ------
    ValueError
        For values that are not finite, or names that are not unique.

    References
    ----------
    B. Andrews et al., Fast scalable and accurate discovery of DAGs using the best order score search and grow-shrink
    trees, NeurIPS 2023 (BOSS); P. Spirtes, C. Glymour, An algorithm for fast recovery of sparse causal graphs, Soc.
    Sci. Comput. Rev. 9 (1991) 62 (PC).
    """
    scores = np.asarray(scores, dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError("the columns of a context graph must be finite")
    if len(set(names)) != len(names):
        raise ValueError(f"names of nodes must be unique: {list(names)}")
    weights = np.ones(len(scores)) if weights is None else weights
    size = float(len(scores) if n_effective is None else n_effective)
    columns = _usable(scores, weights)
    if len(columns) < 2 or size < max(MIN_ROWS, len(columns) + 2):
        return []
    levels = np.zeros(len(names), dtype=int) if tiers is None else np.asarray(tiers, dtype=int)
    part = scores[:, columns]
    own = levels[columns]
    correlations = _correlations(part, weights)
    marks = tiered(_search(correlations, size, method, seed), own)
    if resamples is not None:
        marks = _held(marks, own, part, weights, size, method, seed, resamples, blocks)
    pairs = _pairs(marks)
    effects = _effects(correlations, marks, pairs)
    return [
        Edge(source=names[columns[a]], target=names[columns[b]], kind=kind, effect=effect)
        for (a, b, kind), effect in zip(pairs, effects, strict=True)
    ]


def _usable(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the columns that vary and do not follow from those before them."""
    roots = np.sqrt(weights / weights.sum())[:, None]
    centred = (scores - np.average(scores, axis=0, weights=weights)) * roots
    lengths = np.sqrt((centred**2).sum(axis=0))
    varying = np.flatnonzero(lengths > 1e-9 * np.maximum(np.abs(scores).max(axis=0, initial=0.0), 1e-300))
    unit = centred[:, varying] / lengths[varying]
    return varying[independent_columns(unit.T @ unit, DETERMINED)]


def _correlations(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    centred = columns - np.average(columns, axis=0, weights=weights)
    covariance = (centred * weights[:, None]).T @ centred / weights.sum()
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)  # a rare level may be missing from a resample
    return covariance / np.outer(spread, spread)


def rows_like(correlations: np.ndarray, n_rows: int) -> np.ndarray:
    """Return rows, shape (max(n_rows, p + 2), p), whose sample correlations are exactly `correlations`, shape (p, p).

    causal-learn takes rows, and neither weights nor a sample size; its scores and tests depend on nothing but
    correlations and number.
    """
    p = correlations.shape[0]
    noise = np.random.default_rng(0).normal(size=(max(n_rows, p + 2), p))
    frame, _ = np.linalg.qr(noise - noise.mean(axis=0))
    return frame @ np.linalg.cholesky(correlations).T * np.sqrt(len(frame))


@contextlib.contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """Silence what the library prints and warns, and give its only source of chance, Python's global one, a seed of
    its own.
    """
    state = random.getstate()
    random.seed(seed)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)


@contextlib.contextmanager
def _scored_by(module: ModuleType, scores: type) -> Iterator[None]:
    """Let a module of the library, which offers no choice of it, take its scores from a class of ours."""
    theirs = module.LocalScoreClass
    module.LocalScoreClass = scores
    try:
        yield
    finally:
        module.LocalScoreClass = theirs


def _search(correlations: np.ndarray, size: float, method: str, seed: int) -> np.ndarray:
    """Return marks, bool of shape (p, p): [a, b] alone says a -> b, both ways say that the direction is open."""
    rows = rows_like(correlations, int(size))
    with _quiet(seed):
        if method == "boss":
            from causallearn.search.PermutationBased import BOSS

            with _scored_by(BOSS, CompiledScores):
                ends = BOSS.boss(rows, verbose=False, parameters={"lambda_value": PENALTY}).graph
        elif method == "pc":
            from causallearn.search.ConstraintBased.PC import pc

            ends = pc(rows, ALPHA, "fisherz", show_progress=False).G.graph
        else:
            raise ValueError(f"unknown method {method}; boss or pc")
    # ends[b, a] is the mark at b of an edge with a: 1 a head, -1 a tail; alike at both ends, the direction is open
    directed = (ends == -1) & (ends.T == 1)
    return directed | ((ends != 0) & (ends == ends.T))


def tiered(marks: np.ndarray, tiers: np.ndarray) -> np.ndarray:
    """Return `marks`, shape (p, p), with every edge between tiers pointing to the later one: the same shape.

    Edges within a tier stay as they are; `tiers` has shape (p,).
    """
    joined = marks | marks.T
    earlier = tiers[:, None] < tiers[None, :]
    same = tiers[:, None] == tiers[None, :]
    return (joined & earlier) | (marks & same)


def _held(
    marks: np.ndarray,
    tiers: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    size: float,
    method: str,
    seed: int,
    resamples: int,
    blocks: np.ndarray | None,
) -> np.ndarray:
    """Open the directions within a tier on which the resamples do not agree."""
    blocks = np.arange(len(columns)) if blocks is None else np.unique(blocks, return_inverse=True)[1]
    n_blocks = int(blocks.max()) + 1
    rng = np.random.default_rng(seed)
    found = np.zeros(marks.shape)
    for draw in range(resamples):
        times = np.bincount(rng.integers(n_blocks, size=n_blocks), minlength=n_blocks)[blocks]
        drawn = _correlations(columns[times > 0], (weights * times)[times > 0])
        if np.linalg.eigvalsh(drawn)[0] > 1e-9:
            again = _search(drawn, size, method, seed + draw + 1)
            found += again & ~again.T
    same = tiers[:, None] == tiers[None, :]
    directed = marks & ~marks.T & same & (found >= AGREEMENT * max(resamples, 1))
    opened = (marks | marks.T) & same & ~directed & ~directed.T
    return (marks & ~same) | directed | opened


def _pairs(marks: np.ndarray) -> list[tuple[int, int, str]]:
    found = []
    for a, b in np.argwhere(marks):
        if not marks[b, a]:
            found.append((int(a), int(b), "directed"))
        elif a < b:
            found.append((int(a), int(b), "undirected"))
    return found


def _effects(correlations: np.ndarray, marks: np.ndarray, pairs: list[tuple[int, int, str]]) -> list[float]:
    effects = []
    for a, b, kind in pairs:
        if kind == "undirected":
            effects.append(float(correlations[a, b]))
            continue
        into = np.flatnonzero(marks[:, b])
        slopes = np.linalg.lstsq(correlations[np.ix_(into, into)], correlations[into, b], rcond=1e-8)[0]
        effects.append(float(slopes[np.searchsorted(into, a)]))
    return effects
