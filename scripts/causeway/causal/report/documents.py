"""The documents of a scope: `graph.json` and its three tables, each rendered once, from a corrected outcome."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from causeway.causal.data.outcome import Arrow, Association, Edge, Estimate, Node, Outcome, TimeEffect, six_digits
from causeway.causal.models.scope_model import VALUES
from causeway.causal.report.sentences import assumption_of, nothing_sentence, reasons_of, sentences_of, what_if_sentence
from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.core.vocabulary import UNEXPLAINED

METHOD = (
    "two-stage local search (partial F tests on groups of basis functions, Bonferroni, effective sample sizes of Kish"
    " and Bartlett), shares and effects by a location-scale model of the logarithm of the time"
)
NO_ARROW = dict.fromkeys(
    (
        *("effect", "value_effect", "q_value", "robustness", "level", "sign_of"),
        *("verdict", "kernels_percent", "kernels_variance_percent"),
    )
)
"""What an edge that is no arrow of a cause does not have."""


def graph_document(outcome: Outcome) -> dict:
    """Return the content of `graph.json`.

    Parameters
    ----------
    outcome : Outcome
        Corrected.

    Raises
    ------
    ValueError
        If the outcome is not corrected for the number of kernels.
    """
    if any(arrow.q_value is None for arrow in outcome.arrows):
        raise ValueError(f"{outcome.scope.scope}: documents are written after correction over the kernels")
    scope = outcome.scope
    target = scope.target
    examination = outcome.examination
    causes = {arrow.name for arrow in outcome.arrows}
    nodes = [_node(arrow.node) for arrow in outcome.arrows]
    nodes += [_node(node) for node in examination.context_nodes if node.name not in causes]
    nodes.append({"name": target, "group": "target", "tier": "target", "members": [target]})
    edges = [_edge(arrow, outcome) for arrow in outcome.arrows]
    if outcome.unexplained is not None:
        nodes.append({"name": UNEXPLAINED, "group": UNEXPLAINED, "tier": UNEXPLAINED, "members": []})
        edges.append(_unexplained_edge(outcome, target))
    edges += [_context_edge(edge) for edge in examination.context_edges]
    return {
        "dataset": scope.dataset,
        "target": target,
        "target_node": target,
        "scope": scope.scope,
        "scope_name": scope.name,
        "nodes": nodes,
        "edges": edges,
        "n_rows": outcome.n_rows,
        "n_kernels": outcome.n_kernels,
        "n_effective": outcome.n_effective,
        "p_value": outcome.p_value,
        "q_value": outcome.q_value,
        "method": METHOD,
        "seed": outcome.seed,
        "verdict": outcome.verdict,
        "reasons": reasons_of(outcome),
        "beyond": _beyond(outcome.beyond),
        "dropped": [
            {"feature": column.feature, "kind": column.kind, "reason": column.reason}
            for column in sorted(outcome.dropped, key=lambda column: column.feature)
        ],
        "sentences": list(sentences_of(outcome).values()) or [nothing_sentence(outcome)],
    }


def _beyond(beyond: Association | None) -> dict | None:
    if beyond is None:
        return None
    return {"features": list(beyond.features), "is_earlier": beyond.is_earlier, "share": six_digits(beyond.share)}


def _node(node: Node) -> dict:
    return {"name": node.name, "group": node.group, "tier": node.tier, "members": list(node.members)}


def ends(name: str, estimate: Estimate | None, point: str = "") -> dict:
    """Return an estimate as three columns: the point, called `name` with `point` behind it, and both ends; of None
    three nulls.
    """
    value, low, high = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
    return {f"{name}{point}": value, f"{name}_low": low, f"{name}_high": high}


def _judged(arrow: Arrow, outcome: Outcome) -> dict:
    """Return sign, shares and verdict of a cause, and what the kernels in which it varies are of all: the most that its
    shares may be.
    """
    is_part = outcome.n_kernels > 1
    return {
        "sign": arrow.sign,
        "sign_of": arrow.sign_of,
        "level": arrow.level or None,
        **ends("contribution", arrow.contribution, "_percent"),
        **ends("variance", arrow.variance, "_percent"),
        "q_value": arrow.q_value,
        "robustness": arrow.robustness,
        "verdict": arrow.verdict,
        "kernels_percent": six_digits(100 * len(arrow.kernels) / outcome.n_kernels) if is_part else None,
        "kernels_variance_percent": arrow.kernels_variance,
    }


def _edge(arrow: Arrow, outcome: Outcome) -> dict:
    return {
        "source": arrow.name,
        "target": outcome.scope.target,
        "kind": "directed",
        "effect": arrow.effect.value,
        "value_effect": arrow.value_effect.value,
        **_judged(arrow, outcome),
    }


def _context_edge(edge: Edge) -> dict:
    """Return an edge between features: which way they move together, and no share of the target."""
    return NO_ARROW | {
        "source": edge.source,
        "target": edge.target,
        "kind": edge.kind,
        "sign": "+" if edge.effect > 0 else "-" if edge.effect < 0 else "?",
        "effect": edge.effect,
        **ends("contribution", None, "_percent"),
        **ends("variance", None, "_percent"),
    }


def _unexplained_edge(outcome: Outcome, target: str) -> dict:
    return NO_ARROW | {
        "source": UNEXPLAINED,
        "target": target,
        "kind": "directed",
        "sign": "?",
        **ends("contribution", outcome.unexplained, "_percent"),
        **ends("variance", outcome.unexplained_variance, "_percent"),
    }


def _in_time(effect: TimeEffect | None) -> dict:
    """Return what a cause does to the duration as columns, all null if that is not known."""
    if effect is None:
        return {}
    changes = {name: getattr(effect, name) for name in ("mean", "p50", "p99", "spread")}
    columns: dict = {}
    for name, change in changes.items():
        columns |= ends(f"{name}_change", change, "_percent")
    columns |= ends("cost", effect.cost, "_ns") | {"launches": effect.launches, "monotone": effect.monotone}
    return columns | {"of_first": [f"{name}_change" for name in changes if name in effect.of_first]}


def _identified(arrow: Arrow, value: str) -> dict:
    """Return what identifies the effect of a cause on the measured value, and the second estimate of it."""
    identified = arrow.identified
    if identified is None:
        return {}
    held = ", ".join(identified.adjustment or ())
    inner = f"E[{value} | {', '.join(filter(None, (arrow.name, held)))}]"
    formula = f"E[{value} | do({arrow.name})] = {f'E over ({held}) of {inner}' if held else inner}"
    return {
        "estimand": None if identified.adjustment is None else formula,
        "adjustment": None if identified.adjustment is None else list(identified.adjustment),
        "direct_adjustment": list(identified.direct_adjustment) or None,
        **ends("second_change", identified.second, "_percent"),
        "estimates_agree": identified.agrees,
    }


def contribution_rows(outcome: Outcome) -> list[dict]:
    """Return the rows of `contributions.parquet`: causes by their share of the value's variance, each with its
    sentence, then the unexplained rest; none for a refusal.
    """
    sentences = sentences_of(outcome)
    rows = [
        {
            "feature": arrow.name,
            "group": arrow.node.group,
            "members": list(arrow.node.members),
            "stage": arrow.stage,
            **_judged(arrow, outcome),
            **ends("effect", arrow.effect),
            **ends("value_effect", arrow.value_effect),
            "sentence": sentences[arrow.name],
            "role": arrow.role,
            **_in_time(arrow.in_time),
            "determines_time": arrow.determines_time,
            "through": arrow.through or None,
            **_identified(arrow, VALUES.get(outcome.scope.target, outcome.scope.target)),
        }
        for arrow in outcome.arrows
    ]
    if outcome.unexplained is not None:
        rest = {
            "feature": UNEXPLAINED,
            "group": UNEXPLAINED,
            "members": [],
            "stage": "none",
            "sign": "?",
            **ends("effect", None),
            **ends("value_effect", None),
            **ends("contribution", outcome.unexplained, "_percent"),
            **ends("variance", outcome.unexplained_variance, "_percent"),
            "verdict": outcome.verdict,
            "sentence": None,
        }
        rows.append(NO_ARROW | rest)
    return rows


def what_if_rows(outcome: Outcome) -> list[dict]:
    """Return the rows of `whatif.parquet`."""
    groups = {arrow.name: arrow.node.group for arrow in outcome.arrows}
    scope = outcome.scope
    words = partial(what_if_sentence, is_collective=scope.is_collective, assumption=assumption_of(outcome))
    rows = []
    for what_if in outcome.examination.what_ifs:
        feature = ", ".join(what_if.features)
        sentence = words(what_if, scope.target, groups.get(feature, "")) if what_if.change else None
        rows.append(
            {
                "feature": feature,
                "from": ", ".join(what_if.before),
                "to": ", ".join(what_if.after),
                **ends("change", what_if.change, "_percent"),
                "verdict": what_if.verdict,
                "reason": what_if.reason,
                "asked": what_if.user_intervention,
                "sentence": sentence,
                **ends("mean_change", what_if.mean_change, "_percent"),
                **ends("p99_change", what_if.p99_change, "_percent"),
                **ends("saved", what_if.saved, "_ns"),
            }
        )
    return rows


def table_rows(outcome: Outcome) -> dict[str, list[dict]]:
    """Return the rows of each table of a scope by the table's name."""
    return {
        "contributions": contribution_rows(outcome),
        "refutations": [vars(attempt) for attempt in outcome.examination.refutations],
        "whatif": what_if_rows(outcome),
    }


def write_scope(outcome: Outcome, folder: str | Path) -> None:
    """Write the documents of one scope into its folder."""
    folder = Path(folder)
    write_json(graph_document(outcome), folder / "graph.json", schema="graph")
    facts = {"dataset": outcome.scope.dataset, "target": outcome.scope.target, "scope": outcome.scope.scope}
    for table, rows in table_rows(outcome).items():
        write_rows(rows, folder / f"{table}.parquet", table, facts)


def write_rows(rows: Sequence[Mapping], path: str | Path, table: str, facts: Mapping[str, str]) -> None:
    """Write rows as a table."""
    write_table(pa.Table.from_pylist(list(rows), schema=SCHEMAS[table]), path, table, metadata=facts)
