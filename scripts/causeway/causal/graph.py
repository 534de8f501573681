"""The two documents of a scope: `graph.json` and `contributions.parquet`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from causeway.causal.context_graph import Edge
from causeway.causal.discovery import METHOD, Arrow, Outcome
from causeway.causal.rows import Candidate
from causeway.causal.seeds import derived_seed
from causeway.tables import SCHEMAS, write_json, write_table

UNEXPLAINED = "unexplained"
ENDS = ("contribution_percent", "contribution_low", "contribution_high")
VALUE_EFFECTS = ("value_effect", "value_effect_low", "value_effect_high")


def rounded(value: float | None) -> float | None:
    """Return a number to six digits, so that the last bits of another linear algebra library do not change the document."""
    return None if value is None else float(f"{value:.6g}")


def graph_document(outcome: Outcome, around: Sequence[Candidate] = (), context: Sequence[Edge] = ()) -> dict:
    """Return the content of `graph.json`.

    Parameters
    ----------
    outcome : Outcome
    around, context
        Features of the context graph, and its edges.
    """
    scope = outcome.scope
    target = {"name": scope.target, "group": "target", "tier": "target", "members": [scope.target]}
    causes = {arrow.candidate.name for arrow in outcome.arrows}
    nodes = [_node(arrow.candidate) for arrow in outcome.arrows]
    nodes += [_node(candidate) for candidate in around if candidate.name not in causes] + [target]
    edges = [_edge(arrow, scope.target) for arrow in outcome.arrows]
    if outcome.unexplained is not None:
        nodes.append({"name": UNEXPLAINED, "group": UNEXPLAINED, "tier": UNEXPLAINED, "members": []})
        edges.append(_unexplained_edge(outcome))
    edges += [_context_edge(edge) for edge in context]
    return {
        "dataset": scope.dataset,
        "target": scope.target,
        "target_node": scope.target,
        "scope": scope.scope,
        "scope_name": scope.name,
        "nodes": nodes,
        "edges": edges,
        "n_rows": outcome.n_rows,
        "n_effective": rounded(outcome.n_effective),
        "p_value": rounded(outcome.p_value),
        "q_value": rounded(outcome.p_value),
        "method": METHOD,
        "seed": derived_seed(scope.seed, scope.dataset, scope.target, scope.scope),
        "verdict": outcome.verdict,
        "reasons": outcome.reasons,
        "dropped": [{"feature": dropped.feature, "reason": dropped.reason} for dropped in outcome.dropped],
        "sentences": outcome.sentences,
    }


def _node(candidate: Candidate) -> dict:
    return {"name": candidate.name, "group": candidate.group, "tier": candidate.tier, "members": list(candidate.members)}


def _edge(arrow: Arrow, target: str) -> dict:
    return {
        "source": arrow.candidate.name,
        "target": target,
        "kind": "directed",
        "sign": arrow.sign,
        "sign_of": arrow.sign_of,
        "effect": rounded(arrow.effect),
        "value_effect": rounded(arrow.moves[0]) if arrow.moves else None,
        "contribution_percent": rounded(arrow.percent),
        "contribution_low": rounded(arrow.percent_low),
        "contribution_high": rounded(arrow.percent_high),
        "stability": rounded(arrow.stability),
        "q_value": rounded(arrow.q_value),
        "robustness": rounded(arrow.robustness),
        "level": arrow.level or None,
    }


def _context_edge(edge: Edge) -> dict:
    """Return an edge between features: which way they move together, and no share of the target."""
    none = dict.fromkeys((*ENDS, "stability", "q_value", "robustness", "level", "sign_of", "value_effect"))
    sign = "+" if edge.effect > 0 else "-" if edge.effect < 0 else "?"
    return none | {"source": edge.source, "target": edge.target, "kind": edge.kind, "sign": sign, "effect": rounded(edge.effect)}


def _unexplained_edge(outcome: Outcome) -> dict:
    percent, low, high = outcome.unexplained
    edge = dict.fromkeys(("effect", "stability", "q_value", "robustness", "level", "sign_of", "value_effect"))
    return edge | {
        "source": UNEXPLAINED,
        "target": outcome.scope.target,
        "kind": "directed",
        "sign": "?",
        "contribution_percent": rounded(percent),
        "contribution_low": rounded(low),
        "contribution_high": rounded(high),
    }


def contribution_rows(outcome: Outcome) -> list[dict]:
    """Return the rows of `contributions.parquet`: causes by contribution, then the unexplained rest; none for a refusal."""
    rows = [
        {
            "feature": arrow.candidate.name,
            "group": arrow.candidate.group,
            "members": list(arrow.candidate.members),
            "stage": arrow.stage,
            "sign": arrow.sign,
            "sign_of": arrow.sign_of,
            "level": arrow.level or None,
            "effect": rounded(arrow.effect),
            "effect_low": rounded(arrow.effect_low),
            "effect_high": rounded(arrow.effect_high),
            **dict(zip(VALUE_EFFECTS, map(rounded, arrow.moves or (None,) * 3), strict=True)),
            "contribution_percent": rounded(arrow.percent),
            "contribution_low": rounded(arrow.percent_low),
            "contribution_high": rounded(arrow.percent_high),
            "stability": rounded(arrow.stability),
            "q_value": rounded(arrow.q_value),
            "robustness": rounded(arrow.robustness),
            "verdict": arrow.verdict,
        }
        for arrow in outcome.arrows
    ]
    if outcome.unexplained is not None:
        percent, low, high = outcome.unexplained
        rest = dict.fromkeys(
            ("level", "effect", "effect_low", "effect_high", "sign_of", *VALUE_EFFECTS, "stability", "q_value", "robustness")
        )
        rest |= {"feature": UNEXPLAINED, "group": UNEXPLAINED, "members": [], "stage": "none", "sign": "?", "verdict": outcome.verdict}
        rest |= {"contribution_percent": rounded(percent), "contribution_low": rounded(low), "contribution_high": rounded(high)}
        rows.append(rest)
    return rows


def contributions_table(outcome: Outcome) -> pa.Table:
    """Return `contributions.parquet` as a table."""
    return pa.Table.from_pylist(contribution_rows(outcome), schema=SCHEMAS["contributions"])


def write_outcome(outcome: Outcome, folder: str | Path) -> None:
    """Write both documents into a scope's folder."""
    folder = Path(folder)
    write_json(graph_document(outcome), folder / "graph.json", schema="graph")
    facts = {"dataset": outcome.scope.dataset, "target": outcome.scope.target, "scope": outcome.scope.scope}
    write_table(contributions_table(outcome), folder / "contributions.parquet", "contributions", metadata=facts)
