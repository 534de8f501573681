"""The two documents of a scope: `graph.json` and `contributions.parquet`."""

from pathlib import Path

import pyarrow as pa

from causeway.causal.discovery import METHOD, Arrow, Outcome
from causeway.causal.seeds import derived_seed
from causeway.tables import SCHEMAS, write_json, write_table

UNEXPLAINED = "unexplained"


def rounded(value: float | None) -> float | None:
    """Return a number to six digits, so that the last bits of another linear algebra library do not change the document."""
    return None if value is None else float(f"{value:.6g}")


def graph_document(outcome: Outcome) -> dict:
    """Return the content of `graph.json`."""
    scope = outcome.scope
    target = {"name": scope.target, "group": "target", "tier": "target", "members": [scope.target]}
    nodes = [_node(arrow) for arrow in outcome.arrows] + [target]
    edges = [_edge(arrow, scope.target) for arrow in outcome.arrows]
    if outcome.unexplained is not None:
        nodes.append({"name": UNEXPLAINED, "group": UNEXPLAINED, "tier": UNEXPLAINED, "members": []})
        edges.append(_unexplained_edge(outcome))
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


def _node(arrow: Arrow) -> dict:
    candidate = arrow.candidate
    return {"name": candidate.name, "group": candidate.group, "tier": candidate.tier, "members": list(candidate.members)}


def _edge(arrow: Arrow, target: str) -> dict:
    return {
        "source": arrow.candidate.name,
        "target": target,
        "kind": "directed",
        "sign": arrow.sign,
        "effect": rounded(arrow.effect),
        "contribution_percent": rounded(arrow.percent),
        "contribution_low": rounded(arrow.percent_low),
        "contribution_high": rounded(arrow.percent_high),
        "stability": rounded(arrow.stability),
        "q_value": rounded(arrow.q_value),
        "robustness": rounded(arrow.robustness),
    }


def _unexplained_edge(outcome: Outcome) -> dict:
    percent, low, high = outcome.unexplained
    edge = dict.fromkeys(("effect", "stability", "q_value", "robustness"))
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
            "effect": rounded(arrow.effect),
            "effect_low": rounded(arrow.effect_low),
            "effect_high": rounded(arrow.effect_high),
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
        rest = dict.fromkeys(("effect", "effect_low", "effect_high", "stability", "q_value", "robustness"))
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
