"""Findings of the causal searches: what changes the target, or that nothing was found."""

from collections.abc import Mapping

from causeway.errors import TableError
from causeway.findings.record import Analysis, evidence, finding, link_to, shortened
from causeway.findings.suggestions import for_cause, for_no_cause
from causeway.queries import cell, in_document, of_table, rows_where

UNEXPLAINED = "unexplained"
ASSUMPTION = "no unmeasured common cause of the feature and the target"


def recoverable_ns(contribution_percent: float | None, target_sum: float) -> int | None:
    """Return an upper bound of the GPU time that removing a cause of variability could save.

    Deviations from the mean sum to zero within a configuration, so that half of sum |t - mean| is the time spent above the mean: all
    that could be saved if no launch took longer than the mean. A cause that carries the share s of the variance holds at most s of
    that: without it deviations shrink by the factor sqrt(1 - s), and 1 - sqrt(1 - s) <= s for s in [0, 1].

    Parameters
    ----------
    contribution_percent : float or None
        100 s; None if it was not estimated, which gives None.
    target_sum : float
        Sum of |t - mean| over all launches of the kernel, ns.
    """
    if contribution_percent is None:
        return None
    return round(min(max(contribution_percent, 0.0), 100.0) / 100 * target_sum / 2)


def recoverable_query(table: str, number: int, kernels_table: str, kernel: str) -> str:
    """Return the query that gives `recoverable_ns` of a cause."""
    share = of_table("least(greatest(contribution_percent, 0.0), 100.0)", table, rows_where({"file_row_number": number}))
    total = of_table("target_sum", kernels_table, rows_where({"kernel": kernel}))
    return f"SELECT round(({share}) / 100 * ({total}) / 2)::BIGINT"


def named(name: str | None, sentence: str) -> str:
    """Return a sentence about a scope with the scope's name before it; None stands for all kernels together."""
    return f"{'All kernels together' if name is None else shortened(name)}: {sentence}"


def of_search(analysis: Analysis, search: object) -> list[dict]:
    """Return the findings of one causal search: its causes, or that there is none.

    Raises
    ------
    TableError
        If the graph does not have one sentence for each cause of the table.
    """
    graph, scope = search.graph, search.graph["scope"]
    summary = next((row for row in analysis.kernels if row["kernel"] == scope), None)
    name = None if scope == "dataset" else (summary or {}).get("short_name") or graph["scope_name"] or scope
    place = {"link": link_to(analysis.dataset, analysis.target, scope), "assumption": ASSUMPTION, "scope_name": graph["scope_name"]}
    facts = place | {"n": graph["n_rows"], "n_effective": graph["n_effective"]}
    causes = [(number, row) for number, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    if not causes:
        return [_nothing(analysis, search, name, facts)]
    if len(causes) != len(graph["sentences"]):
        raise TableError(
            f"{search.table}: {len(causes)} causes but {len(graph['sentences'])} sentences in its graph; delete both and run again"
        )
    return [
        _cause(analysis, search, number, row, summary, facts | {"sentence": named(name, sentence)})
        for (number, row), sentence in zip(causes, graph["sentences"], strict=True)
    ]


def _nothing(analysis: Analysis, search: object, name: str | None, facts: dict) -> dict:
    graph, document = search.graph, search.table.replace("contributions.parquet", "graph.json")
    words = " ".join(graph["sentences"] or graph["reasons"]) or "No cause found."
    shown = evidence(document, in_document(document, "n_rows", kind="integer"), graph["n_rows"])
    facts = facts | {"sentence": named(name, words), "verdict": graph["verdict"], "evidence": shown, "suggestion": for_no_cause()}
    return finding(analysis.dataset, analysis.target, graph["scope"], "no_cause", "", **facts)


def _cause(analysis: Analysis, search: object, number: int, row: Mapping, summary: Mapping | None, facts: dict) -> dict:
    percent = row["contribution_percent"]
    deviates = analysis.unit == "ns" and analysis.target != "memory_stall"
    bounded = deviates and summary is not None and row["verdict"] == "supported" and percent is not None
    ends = {"value": percent, "low": row["contribution_low"], "high": row["contribution_high"], "unit": "percent of the variance"}
    what = "contribution_percent" if percent is not None else "verdict"
    shown = evidence(search.table, cell(what, search.table, number), row[what], [number], rows_where({"file_row_number": number}))
    scope = search.graph["scope"]
    if bounded:
        facts = facts | {
            "recoverable_ns": recoverable_ns(percent, summary["target_sum"]),
            "recoverable_query": recoverable_query(search.table, number, analysis.kernels_table, scope),
        }
    facts = facts | {"verdict": row["verdict"], "effect": None if percent is None else ends, "evidence": shown}
    return finding(analysis.dataset, analysis.target, scope, "cause", row["feature"], **facts, suggestion=for_cause(row))
