"""The graph among the causes and the mediators beside them, by causal-learn: what is upstream of a lever, and which
effects pass through a mediator.

It tells which columns depend on each other beside all others. Which way is prior knowledge (`causal.models`): clocks
and levers come before exposures, these before mediators. Within a rank no direction is said.

`published_rows` draws the graphs of arXiv 2510.18300, Figures 2, 3 and 5a, as the paper says: one for each rank and
kernel, one for all kernels of a rank pooled as they are, from the most variable bins alone, with every number that was
recorded.

The paper does not name its algorithm. Here it is causal-learn's BOSS with the target as the last column. The weights of
a graph's arrows are in proportion to their squared slopes and sum to what they explain of the variance. Nothing is
centred, corrected or left out, so that a kernel's size, or a rate that contains the time, can stand as a cause.
"""

import contextlib
import io
import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.observations import FEWEST_LAUNCHES, Candidate
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Edge, Node, six_digits
from causeway.causal.data.scopes import DATASET_SCOPE, IDENTITY
from causeway.causal.effects.evidence import Evidence
from causeway.causal.models.scope_model import RANKS
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.statistics.basis import independent_columns, normal_scores, two_valued
from causeway.core.names.prior_knowledge import MEDIATOR

MOST_MEDIATORS = 10
"""Mediators beside the causes, those most correlated with one of them: as many as a graph can show."""
PENALTY = 1.0
"""Factor of `log n` per edge in BOSS' score, twice that of the BIC: on random networks of 40, 46 and 107 nodes
(1,000 rows) the F1 of the skeleton rises from .94, .92, .83 to .99, 1.00, .98."""
NOT_ROUNDED = 1e-6
"""A column of which those before it leave no more than this share, rounding, breaks the search and takes no part; the
time over a constant does not follow from it.
"""


def learn(
    scores: np.ndarray,
    names: Sequence[str],
    ranks: Sequence[int] | None = None,
    seed: int = 1,
    weights: np.ndarray | None = None,
    n_effective: float | None = None,
) -> list[Edge]:
    """Learn the graph among columns.

    Parameters
    ----------
    scores : ndarray of float, shape (n_rows, p)
        Finite; normal scores unless the columns are Gaussian already. Columns without variance, and those that follow
        from others, get no edge.
    names : sequence of str, length p, unique
    ranks : sequence of int, length p
        An edge between ranks points from the smaller to the larger number; within a rank it has no direction. None: one
        rank.
    seed : int
        The search visits the columns in random orders.
    weights : ndarray, shape (n_rows,), positive
    n_effective : float
        What the rows are worth after weights and autocorrelation; n_rows if None.

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
    trees, NeurIPS 2023 (BOSS).
    """
    scores = np.asarray(scores, dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError("the columns of a context graph must be finite")
    if len(set(names)) != len(names):
        raise ValueError(f"names of nodes must be unique: {list(names)}")
    weights = np.ones(len(scores)) if weights is None else weights
    size = float(len(scores) if n_effective is None else n_effective)
    columns, correlations = _usable(scores, weights)
    if len(columns) < 2 or size < max(FEWEST_LAUNCHES, len(columns) + 2):
        return []
    levels = np.zeros(len(names), dtype=int) if ranks is None else np.asarray(ranks, dtype=int)
    own = levels[columns]
    joined = _joined(correlations, size, seed)
    into = joined & (own[:, None] < own[None, :])
    edges = []
    for a, b in np.argwhere(into | np.triu(joined & (own[:, None] == own[None, :]))):
        is_directed = bool(into[a, b])
        effect = _partial_slope(correlations, np.flatnonzero(into[:, b]), a, b) if is_directed else correlations[a, b]
        kind: Literal["directed", "undirected"] = "directed" if is_directed else "undirected"
        edges.append(Edge(source=names[columns[a]], target=names[columns[b]], kind=kind, effect=float(effect)))
    return edges


def _usable(scores: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that vary and do not follow from those before them, and their correlations, shape (p, p)."""
    roots = np.sqrt(weights / weights.sum())[:, None]
    centred = (scores - np.average(scores, axis=0, weights=weights)) * roots
    lengths = np.sqrt((centred**2).sum(axis=0))
    varying = np.flatnonzero(lengths > 1e-9 * np.maximum(np.abs(scores).max(axis=0, initial=0.0), 1e-300))
    unit = centred[:, varying] / lengths[varying]
    correlations = unit.T @ unit
    kept = np.flatnonzero(independent_columns(correlations, NOT_ROUNDED))
    return varying[kept], correlations[np.ix_(kept, kept)]


def rows_like(correlations: np.ndarray, n_rows: int) -> np.ndarray:
    """Return rows, shape (max(n_rows, p + 2), p), whose sample correlations are exactly `correlations`, shape (p, p).

    causal-learn takes rows, and neither weights nor a sample size; its score depends on nothing but correlations and
    number.
    """
    p = correlations.shape[0]
    noise = np.random.default_rng(0).normal(size=(max(n_rows, p + 2), p))
    basis, _ = np.linalg.qr(noise - noise.mean(axis=0))
    return basis @ np.linalg.cholesky(correlations).T * np.sqrt(len(basis))


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


def _joined(correlations: np.ndarray, size: float, seed: int) -> np.ndarray:
    """Return which columns have an edge, bool, symmetric, shape (p, p)."""
    with _quiet(seed):
        from causallearn.search.PermutationBased.BOSS import boss

        ends = boss(rows_like(correlations, int(size)), verbose=False, parameters={"lambda_value": PENALTY}).graph
    return (ends != 0) | (ends.T != 0)


def _partial_slope(correlations: np.ndarray, into: np.ndarray, a: int, b: int) -> float:
    """Return the slope of a column on another, given all with an edge into it, in standard deviations."""
    slopes = np.linalg.lstsq(correlations[np.ix_(into, into)], correlations[into, b], rcond=1e-8)[0]
    return slopes[np.searchsorted(into, a)]


def nodes_of(evidence: Evidence, arrows: Sequence[Arrow]) -> list[Candidate]:
    """Return the causes that vary within configurations, and the mediators that are most correlated with one of them.

    Features at the configuration level are constant where the others vary, so nothing can be learnt of their edges
    here.
    """
    within = evidence.prepared.within
    causes = {arrow.name for arrow in arrows if arrow.stage != CONFIGURATION}
    parents = [index for index, candidate in enumerate(within) if candidate.name in causes]
    if not parents:
        return []
    basis = evidence.stages.problem.basis
    strength = np.zeros(len(within))
    own = basis.columns[:, np.isin(basis.owner, parents)]
    np.maximum.at(strength, basis.owner, np.abs(basis.columns.T @ own).max(axis=1))
    for index, candidate in enumerate(within):
        is_mediator = candidate.role == MEDIATOR and candidate.name not in CONTROL_NAMES
        if candidate.name in causes or not is_mediator:
            strength[index] = -1.0
    order = np.argsort(-strength, kind="stable")[:MOST_MEDIATORS]
    return [within[index] for index in sorted([*parents, *(int(number) for number in order if strength[number] > 0)])]


def scores_of(candidate: Candidate, deviation: np.ndarray) -> np.ndarray:
    """Return the one column of a candidate in the graph, shape (n,): normal scores.

    The levels of a category are put in the order of their `deviation`, shape (n,).
    """
    if candidate.values.ndim == 1:  # noqa: PD011
        return candidate.first
    level = candidate.codes
    means = np.bincount(level, deviation) / np.maximum(np.bincount(level), 1)
    values = np.argsort(np.argsort(means, kind="stable"))[level].astype(float)
    return values if two_valued(values) else normal_scores(values)


def context_graph(
    evidence: Evidence, arrows: Sequence[Arrow], n_effective: float, seed: int
) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """Return the columns that have an edge in the graph, by name, and the edges.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
    n_effective : float
        What the rows are worth.
    seed : int
    """
    nodes = nodes_of(evidence, arrows)
    if len(nodes) < 2:
        return (), ()
    roles = {arrow.name: arrow.role for arrow in arrows}
    edges = learn(
        np.column_stack([scores_of(node, evidence.deviation) for node in nodes]),
        [node.name for node in nodes],
        [RANKS[roles.get(node.name, MEDIATOR)] for node in nodes],
        seed,
        weights=evidence.rows.weight,
        n_effective=n_effective,
    )
    joined = {end for edge in edges for end in (edge.source, edge.target)}
    return tuple(Node.of(node) for node in nodes if node.name in joined), tuple(edges)


MOST_COLUMNS = 30
"""Columns of a graph: those most correlated with the target, one for four launches at most."""


def published_rows(table: pa.Table, scopes: Sequence[str], target: str) -> list[dict]:
    """Return the arrows of every rank and scope, the largest weight first; a row without a feature for a graph without
    any.

    Parameters
    ----------
    table : Table
        Rows of `features.parquet`, all columns.
    scopes : sequence of str
        Kernel ids.
    target : str
        Its name: a counter of that name is no column of the graph.
    """
    kept = table.filter(pc.field("kept"))
    numbers = [
        field.name
        for field in table.schema
        if field.name not in (*IDENTITY, target) and pa.types.is_floating(field.type)
    ]
    frame = kept.select(["rank", "kernel", "target", *numbers]).to_pandas()
    published = []
    for rank in sorted(set(frame["rank"])):
        of_rank = frame[frame["rank"] == rank]
        for scope in (DATASET_SCOPE, *scopes):
            rows = of_rank if scope == DATASET_SCOPE else of_rank[of_rank["kernel"] == scope]
            nothing = dict.fromkeys(("feature", "slope", "contribution_percent"))
            arrows = published_arrows(rows[["target", *numbers]]) or [nothing]
            published += [{"rank": int(rank), "scope": scope, "launches": len(rows), **arrow} for arrow in arrows]
    return published


def published_arrows(frame: pd.DataFrame) -> list[dict]:
    """Return feature, slope in standard deviations, and contribution in percent of the variance of each arrow into the
    target, the largest contribution first.

    Parameters
    ----------
    frame : DataFrame
        A row for each launch; numeric columns, one of which is `target`.
    """
    values = frame.astype(float).replace([np.inf, -np.inf], np.nan)
    values = values.fillna(values.mean()).dropna(axis=1)
    values = values.loc[:, values.std() > 1e-9 * values.abs().max()]
    if "target" not in values:
        return []
    scores = (values - values.mean()) / values.std()
    strength = scores.drop(columns="target").corrwith(scores["target"])
    order = strength.abs().sort_values(ascending=False, kind="stable").index[: min(MOST_COLUMNS, len(scores) // 4)]
    names = [*order, "target"]
    edges = learn(scores[names].to_numpy(), names, [*[0] * len(order), 1])
    slopes = pd.Series({edge.source: edge.effect for edge in edges if edge.target == "target"}, dtype=float)
    squares = slopes**2
    weights = 100 * (slopes * strength[slopes.index]).sum() * squares / squares.sum()
    arrows = [
        {"feature": name, "slope": six_digits(slope), "contribution_percent": six_digits(weights[name])}
        for name, slope in slopes.items()
    ]
    return sorted(arrows, key=lambda arrow: (-arrow["contribution_percent"], arrow["feature"]))
