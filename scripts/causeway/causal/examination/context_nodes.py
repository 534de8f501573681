"""The causes of a scope and their neighbours, as the context graph takes them."""

import numpy as np

from causeway.causal.basis import normal_scores, two_valued
from causeway.causal.context_graph import TIERS, Edge, learn
from causeway.causal.discovery import Arrow, Evidence
from causeway.causal.prepare import CONTROL_NAMES
from causeway.causal.rows import Candidate
from causeway.causal.stability import blocks_of

NEIGHBOURS = 25
MOST_NODES = 60


def neighbours(evidence: Evidence, arrows: list[Arrow]) -> list[Candidate]:
    """Return the causes that vary within configurations, and the features that are most correlated with one of them, at most 60 in all.

    Features at the configuration level are constant where the others vary, so nothing can be learnt of their edges here.
    """
    within = evidence.prepared.within
    causes = {arrow.candidate.name for arrow in arrows if arrow.stage != "configuration"}
    parents = [place for place, candidate in enumerate(within) if candidate.name in causes]
    if not parents:
        return []
    basis = evidence.stages.problem.basis
    strength = np.zeros(len(within))
    own = basis.columns[:, np.isin(basis.owner, parents)]
    np.maximum.at(strength, basis.owner, np.abs(basis.columns.T @ own).max(axis=1))
    strength[parents] = -1.0
    for place, candidate in enumerate(within):
        if candidate.name in CONTROL_NAMES:
            strength[place] = -1.0
    order = np.argsort(-strength, kind="stable")[: min(NEIGHBOURS, MOST_NODES - len(parents))]
    chosen = sorted([*parents, *(int(place) for place in order if strength[place] > 0)])
    return [within[place] for place in chosen]


def scores_of(candidate: Candidate, deviation: np.ndarray) -> np.ndarray:
    """Return the one column of a candidate in the graph: normal scores; a category's levels are put in the order of their deviation."""
    if candidate.values.ndim == 1:
        return candidate.first
    level = (candidate.values * np.arange(1, candidate.values.shape[1] + 1)).sum(axis=1).astype(int)
    means = np.bincount(level, deviation) / np.maximum(np.bincount(level), 1)
    values = np.argsort(np.argsort(means, kind="stable"))[level].astype(float)
    return values if two_valued(values) else normal_scores(values)


def context_edges(
    evidence: Evidence, arrows: list[Arrow], n_effective: float, seed: int, method: str, resamples: int
) -> tuple[list[Candidate], list[Edge]]:
    """Return the features of the context graph that have an edge, and the edges.

    Parameters
    ----------
    n_effective : float
        What the rows are worth.
    method : str
        `boss` or `pc`.
    resamples : int
        Of the directions within a tier; 0 leaves them open.
    """
    nodes = neighbours(evidence, arrows)
    if len(nodes) < 2:
        return [], []
    scores = np.column_stack([scores_of(node, evidence.deviation) for node in nodes])
    tiers = [TIERS.get(node.tier, TIERS["counter"]) for node in nodes]
    blocks = blocks_of(evidence.stages)
    names = [node.name for node in nodes]
    edges = learn(scores, names, tiers, seed, evidence.rows.weight, n_effective, method, resamples, blocks)
    joined = {end for edge in edges for end in (edge.source, edge.target)}
    return [node for node in nodes if node.name in joined], edges
