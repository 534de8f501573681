"""Findings of the causal searches: what changes the target, or that nothing was found."""

from collections.abc import Mapping

from causeway.core.errors import TableError
from causeway.core.formatting import name_in_sentence
from causeway.core.queries import cell, in_document, of_table, rows_where
from causeway.core.results import Search
from causeway.core.vocabulary import MEMORY_STALL, SUPPORTED, UNEXPLAINED
from causeway.findings.record import Analysis, Effect, Evidence, Finding, link_to
from causeway.findings.suggestions import NO_CAUSE, for_cause

ALL_KERNELS = "All kernels together"
ASSUMPTION = "no unmeasured common cause of the feature and the target"


def recoverable_ns(contribution_percent: float | None, target_sum: float) -> int | None:
    """Return an upper bound of the GPU time that removing a cause of variability could save.

    Deviations from the mean sum to zero within a configuration, so that half of sum |t - mean| is the time spent above
    the mean: all that could be saved if no launch took longer than the mean. A cause that explains the share s of the
    variance accounts for at most s of that: without it deviations shrink by the factor sqrt(1 - s), and 1 - sqrt(1 -
    s) <= s for s in [0, 1].

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


def recoverable_query(table: str, row: int, kernels_table: str, kernel: str) -> str:
    """Return the query that gives `recoverable_ns` of the cause in a row of `contributions.parquet`."""
    share = of_table("least(greatest(contribution_percent, 0.0), 100.0)", table, rows_where({"file_row_number": row}))
    total = of_table("target_sum", kernels_table, rows_where({"kernel": kernel}))
    return f"SELECT round(({share}) / 100 * ({total}) / 2)::BIGINT"


def cause_findings(analysis: Analysis, search: Search) -> list[Finding]:
    """Return the findings of one causal search: its causes, or that there is none.

    Raises
    ------
    TableError
        If a cause of the table has no sentence.
    """
    causes = [(index, row) for index, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    if not causes:
        return [_no_cause(analysis, search)]
    silent = [row["feature"] for _, row in causes if not row["sentence"]]
    if silent:
        raise TableError(f"{search.table}: no sentence beside {', '.join(silent)}; delete it and run again")
    return [_cause(analysis, search, index) for index, _ in causes]


def _kernel_of(analysis: Analysis, search: Search) -> Mapping | None:
    """Return the row of `kernels.parquet` of the search's kernel; None for the whole dataset."""
    return next((row for row in analysis.kernels if row["kernel"] == search.graph["scope"]), None)


def _finding(analysis: Analysis, search: Search, sentence: str, **facts: object) -> Finding:
    """Return a finding of a search; the name of its scope stands before the sentence."""
    graph = search.graph
    scope = graph["scope"]
    kernel = _kernel_of(analysis, search) or {}
    name = kernel.get("short_name") or graph["scope_name"] or scope
    return Finding(
        dataset=analysis.dataset,
        target=analysis.target,
        scope=scope,
        scope_name=graph["scope_name"],
        sentence=f"{ALL_KERNELS if scope == 'dataset' else name_in_sentence(name)}: {sentence}",
        n=graph["n_rows"],
        n_effective=graph["n_effective"],
        assumption=ASSUMPTION,
        link=link_to(analysis.dataset, analysis.target, scope),
        **facts,
    )


def _no_cause(analysis: Analysis, search: Search) -> Finding:
    graph = search.graph
    document = search.table.replace("contributions.parquet", "graph.json")
    return _finding(
        analysis,
        search,
        " ".join(graph["sentences"] or graph["reasons"]) or "No cause found.",
        kind="no_cause",
        verdict=graph["verdict"],
        evidence=Evidence(table=document, query=in_document(document, "n_rows", kind="integer"), value=graph["n_rows"]),
        suggestion=NO_CAUSE,
    )


def _cause(analysis: Analysis, search: Search, index: int) -> Finding:
    """Return the finding of the cause in a row of the search's table."""
    row = search.contributions[index]
    percent = row["contribution_percent"]
    column = "verdict" if percent is None else "contribution_percent"
    return _finding(
        analysis,
        search,
        row["sentence"],
        kind="cause",
        key=row["feature"],
        verdict=row["verdict"],
        effect=None
        if percent is None
        else Effect(
            value=percent, low=row["contribution_low"], high=row["contribution_high"], unit="percent of the variance"
        ),
        evidence=Evidence(
            table=search.table,
            query=cell(column, search.table, index),
            value=row[column],
            rows=(index,),
            filter=rows_where({"file_row_number": index}),
        ),
        suggestion=for_cause(row),
        **_bound(analysis, search, index),
    )


def _bound(analysis: Analysis, search: Search, index: int) -> dict:
    """Return the upper bound of the time that removing a cause could save, with its query; empty where none is known:
    the target is no time that is spent, or the cause is not supported, or not that of one kernel.
    """
    row = search.contributions[index]
    kernel = _kernel_of(analysis, search)
    is_time = analysis.unit == "ns" and analysis.target != MEMORY_STALL
    if not is_time or kernel is None or row["verdict"] != SUPPORTED or row["contribution_percent"] is None:
        return {}
    return {
        "recoverable_ns": recoverable_ns(row["contribution_percent"], kernel["target_sum"]),
        "recoverable_query": recoverable_query(search.table, index, analysis.kernels_table, kernel["kernel"]),
    }
