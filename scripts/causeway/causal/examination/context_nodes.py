"""The causes of a scope and their neighbours, as the context graph takes them."""

from collections.abc import Sequence

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Edge, Node
from causeway.causal.effects.evidence import Evidence
from causeway.causal.examination.context_graph import TIER_RANK, learn
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.statistics.basis import normal_scores, two_valued

NEIGHBOURS = 25
MOST_NODES = 60


def neighbours(evidence: Evidence, arrows: Sequence[Arrow]) -> list[Candidate]:
    """Return the causes that vary within configurations, and the features that are most correlated with one of them, at
    most 60 in all.

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
    strength[parents] = -1.0
    for index, candidate in enumerate(within):
        if candidate.name in CONTROL_NAMES:
            strength[index] = -1.0
    order = np.argsort(-strength, kind="stable")[: min(NEIGHBOURS, MOST_NODES - len(parents))]
    chosen = sorted([*parents, *(int(index) for index in order if strength[index] > 0)])
    return [within[index] for index in chosen]


def scores_of(candidate: Candidate, deviation: np.ndarray) -> np.ndarray:
    """Return the one column of a candidate in the graph, shape (n,): normal scores.

    The levels of a category are put in the order of their `deviation`, shape (n,).
    """
    if candidate.values.ndim == 1:
        return candidate.first
    level = (candidate.values * np.arange(1, candidate.values.shape[1] + 1)).sum(axis=1).astype(int)
    means = np.bincount(level, deviation) / np.maximum(np.bincount(level), 1)
    values = np.argsort(np.argsort(means, kind="stable"))[level].astype(float)
    return values if two_valued(values) else normal_scores(values)


def context_graph(
    evidence: Evidence, arrows: Sequence[Arrow], n_effective: float, seed: int, *, method: str, resamples: int
) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """Return the features that have an edge in the context graph, by name, and the edges.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
    n_effective : float
        What the rows are worth.
    seed : int
    method : str
        `boss` or `pc`.
    resamples : int
        Of the directions within a tier; 0 leaves them open.
    """
    nodes = neighbours(evidence, arrows)
    if len(nodes) < 2:
        return (), ()
    edges = learn(
        np.column_stack([scores_of(node, evidence.deviation) for node in nodes]),
        [node.name for node in nodes],
        [TIER_RANK.get(node.tier, TIER_RANK["counter"]) for node in nodes],
        seed,
        weights=evidence.rows.weight,
        n_effective=n_effective,
        method=method,
        resamples=resamples,
        blocks=evidence.stages.blocks,
    )
    joined = {end for edge in edges for end in (edge.source, edge.target)}
    return tuple(Node.of(node) for node in nodes if node.name in joined), tuple(edges)
