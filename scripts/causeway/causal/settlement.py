"""Verdicts over all kernels: what the search of each kernel found, after looking at many kernels, and beside the whole dataset.

Kernels are searched in batches that do not know each other. Each search therefore leaves a draft; here all drafts of a dataset
and target come together. Of the kernels, those are held whose Simes p-values pass Benjamini and Hochberg's procedure at 5 %, and within
them the causes that pass at the level that is left to them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.causal.graph import UNEXPLAINED, rounded
from causeway.causal.multiplicity import benjamini_hochberg, over_families
from causeway.causal.verdicts import MAX_Q, graph_verdict
from causeway.causal.words import ABOUT
from causeway.tables import SCHEMAS, write_json, write_table

TABLES = ("contributions", "refutations", "whatif", "heterogeneity", "baselines")
"""The tables of a scope, each a list of rows in a draft."""
OPPOSITE = {"+": "-", "-": "+"}
VERBS = {"+": "raises", "-": "lowers"}


def settled(drafts: Sequence[Mapping]) -> list[dict]:
    """Return the drafts of a dataset's kernels with q-values, without the causes that do not hold.

    Parameters
    ----------
    drafts : sequence of mapping
        Each with `graph` (a document of `graph.schema.json`), one list of rows per table of `TABLES`, and `nothing`, the sentence for when
        no cause is left.
    """
    tested = [draft["graph"]["p_value"] for draft in drafts if draft["graph"]["p_value"] is not None]
    q_values = iter(benjamini_hochberg(np.asarray(tested)))
    of_kernel = [None if draft["graph"]["p_value"] is None else float(next(q_values)) for draft in drafts]
    n_selected = sum(q is not None and q <= MAX_Q for q in of_kernel)
    return [_held(draft, q, n_selected, len(tested)) for draft, q in zip(drafts, of_kernel, strict=True)]


def _held(draft: Mapping, q_kernel: float | None, n_selected: int, n_kernels: int) -> dict:
    graph = dict(draft["graph"], q_value=rounded(q_kernel))
    found = {**draft, "graph": graph}
    if q_kernel is None:
        return found
    lost: dict[str, float] = {}
    edges = []
    for edge in graph["edges"]:
        if edge["target"] == graph["target_node"] and edge["source"] != UNEXPLAINED:
            q_value = over_families(edge["q_value"], n_selected, n_kernels)
            q_value = q_value if q_kernel <= MAX_Q else max(q_value, q_kernel)
            edge = dict(edge, q_value=rounded(q_value))
            if q_value > MAX_Q:
                lost[edge["source"]] = q_value
        edges.append(edge)
    graph["edges"] = edges
    q_of = {edge["source"]: edge["q_value"] for edge in edges if edge["target"] == graph["target_node"]}
    found["contributions"] = [dict(row, q_value=q_of[row["feature"]]) for row in draft["contributions"]]
    return _without(found, lost, n_kernels) if lost else found


def _without(draft: dict, lost: Mapping[str, float], n_kernels: int) -> dict:
    """Return a draft without some causes; what they carried counts as unexplained."""
    graph, target = draft["graph"], draft["graph"]["target_node"]
    causes = [row["feature"] for row in draft["contributions"] if row["feature"] != UNEXPLAINED]
    left = [name for name in causes if name not in lost]
    given = [row for row in draft["contributions"] if row["feature"] in lost]
    ends = {
        name: rounded(min(100.0, sum(row[name] for row in (*given, _rest(draft["contributions"])))))
        for name in ("contribution_percent", "contribution_low", "contribution_high")
    }
    asked = [_unsettled(row, lost, n_kernels) for row in draft["whatif"] if row.get("asked")]
    for table in TABLES:
        draft[table] = [row for row in draft[table] if row["feature"] not in lost or table == "baselines"]
    draft["whatif"] = [*(row for row in draft["whatif"] if not row.get("asked")), *asked]
    draft["baselines"] = [dict(row, cause=row["cause"] and row["feature"] not in lost) for row in draft["baselines"]]
    edges = [edge for edge in graph["edges"] if edge["source"] not in lost or edge["target"] != target]
    edges = [dict(edge, **ends) if edge["source"] == UNEXPLAINED else edge for edge in edges]
    if not left:
        edges = [edge for edge in edges if edge["target"] == target]
    used = {end for edge in edges for end in (edge["source"], edge["target"])} | {target}
    dropped = [
        {"feature": name, "reason": f"candidate cause, not significant after {n_kernels} kernels (q = {q_value:.2g})"}
        for name, q_value in lost.items()
    ]
    verdicts = [row["verdict"] for row in draft["contributions"] if row["feature"] != UNEXPLAINED]
    sentences = [words for name, words in zip(causes, graph["sentences"], strict=True) if name in left]
    verdict = graph_verdict(verdicts)
    rest = {**ends, "verdict": verdict}
    draft["contributions"] = [dict(row, **rest) if row["feature"] == UNEXPLAINED else row for row in draft["contributions"]]
    draft["graph"] = {
        **graph,
        "edges": edges,
        "nodes": [node for node in graph["nodes"] if node["name"] in used],
        "dropped": sorted([*graph["dropped"], *dropped], key=lambda one: one["feature"]),
        "sentences": sentences or [draft["nothing"]],
        "reasons": graph["reasons"] if sentences else [draft["nothing"].rstrip("."), *graph["reasons"]],
        "verdict": verdict,
    }
    return draft


def _unsettled(row: dict, lost: Mapping[str, float], n_kernels: int) -> dict:
    """Return the answer to a question as it is, or its refusal where it rests on a cause that does not hold."""
    broken = next((name for name in row["feature"].split(", ") if name in lost), None)
    if broken is None or row["change_percent"] is None:
        return row
    none = dict.fromkeys(("change_percent", "change_low", "change_high", "sentence"))
    return {**row, **none, "verdict": "refused", "reason": f"refused: {broken} is no cause that holds after {n_kernels} kernels"}


def _rest(rows: Sequence[Mapping]) -> Mapping:
    return next(row for row in rows if row["feature"] == UNEXPLAINED)


def agreement(kernels: Sequence[Mapping], whole: Mapping) -> list[dict]:
    """Return for each cause of a kernel or of the dataset how the two compare, by kernel, then feature.

    Parameters
    ----------
    kernels, whole : drafts
        Settled, of the kernels and of the dataset.

    Returns
    -------
    list of dict
        Rows of `agreement.parquet`. `state` is `same`, `opposite`, `undecided` (either has no single direction), `another level` (the
        signs are about different levels of a category), `not comparable` (one sign is about the target, one about the measured value),
        `kernel only` or `dataset only`.
    """
    of_dataset = _signs(whole)
    rows = []
    for draft in kernels:
        own = _signs(draft)
        for feature in sorted(own.keys() | of_dataset.keys()):
            here, there = own.get(feature), of_dataset.get(feature)
            rows.append(
                {
                    "kernel": draft["graph"]["scope"],
                    "feature": feature,
                    "kernel_sign": here and here["sign"],
                    "kernel_percent": here and here["contribution_percent"],
                    "dataset_sign": there and there["sign"],
                    "dataset_percent": there and there["contribution_percent"],
                    "level": (here or there)["level"],
                    "state": _state(here, there),
                    "sign_of": _about(here, there),
                }
            )
    return rows


def _signs(draft: Mapping) -> dict[str, Mapping]:
    return {row["feature"]: row for row in draft["contributions"] if row["feature"] != UNEXPLAINED}


def _state(here: Mapping | None, there: Mapping | None) -> str:
    if here is None or there is None:
        return "dataset only" if here is None else "kernel only"
    if here["level"] != there["level"]:
        return "another level"
    signs = (here["sign"], there["sign"])
    if "?" not in signs and here.get("sign_of") != there.get("sign_of"):
        return "not comparable"
    return "undecided" if "?" in signs else "same" if signs[0] == signs[1] else "opposite"


def _about(here: Mapping | None, there: Mapping | None) -> str | None:
    """Return what the signs are about, None if that differs."""
    found = {row.get("sign_of") for row in (here, there) if row is not None and row["sign"] != "?"}
    return found.pop() if len(found) == 1 else None


def flagged(kernels: Sequence[dict], whole: dict, rows: Sequence[Mapping]) -> None:
    """Add to the reasons of both graphs where a cause acts one way in a kernel and the other way in the dataset."""
    for row in rows:
        if row["state"] != "opposite":
            continue
        feature, name = row["feature"] + (f" = {row['level']}" if row["level"] else ""), row["kernel"]
        draft = next(draft for draft in kernels if draft["graph"]["scope"] == name)
        here, there, about = VERBS[row["kernel_sign"]], VERBS[row["dataset_sign"]], ABOUT[row.get("sign_of")]
        draft["graph"]["reasons"].append(f"{feature} {here} {about} here and {there} it in the whole dataset")
        whole["graph"]["reasons"].append(f"{feature} {there} {about} over all kernels and {here} it in {name}")


def write_scope(draft: Mapping, folder: str | Path) -> None:
    """Write the documents of one scope into its folder."""
    folder, graph = Path(folder), draft["graph"]
    write_json(graph, folder / "graph.json", schema="graph")
    facts = {"dataset": graph["dataset"], "target": graph["target"], "scope": graph["scope"]}
    for table in TABLES:
        write_rows(draft[table], folder / f"{table}.parquet", table, facts)


def write_rows(rows: Sequence[Mapping], path: str | Path, table: str, facts: Mapping[str, str]) -> None:
    """Write rows as a table."""
    write_table(pa.Table.from_pylist(list(rows), schema=SCHEMAS[table]), path, table, metadata=facts)
