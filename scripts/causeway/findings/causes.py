"""Findings of the causal searches: what changes the target and what that costs, or that nothing was found."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from causeway.core.codes import COMMUNICATION_KERNEL, CONSTANT_TARGET, NO_FEATURE
from causeway.core.feature_registry import cause_words, record_of
from causeway.core.formatting import significant, variance_of
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import cell, in_document, of_table, rows_where
from causeway.core.results import Search
from causeway.core.schemas import Row
from causeway.core.vocabulary import LOWERS as LOWERING
from causeway.core.vocabulary import MEMORY_STALL, SUPPORTED, UNEXPLAINED, target_name
from causeway.core.vocabulary import RAISES as RAISING
from causeway.findings import headlines
from causeway.findings.record import (
    EXPLAINED,
    LOWERS,
    MOMENTS,
    NOT_MONOTONE,
    RAISES,
    SETTABLE,
    UNDECIDED,
    Analysis,
    Effect,
    Evidence,
    Finding,
    Worth,
    link_to,
    may_advise,
    wins_time,
)
from causeway.findings.suggestions import COLLECTIVE, NO_CAUSE, TOO_LITTLE, TOO_LITTLE_OF_TIME, for_cause

ALL_KERNELS = "All kernels together"
ASSUMPTION = (
    "no unmeasured common cause of the feature and the target, and no searched column is an effect of the target"
)
SAME_WORK = "; launches at other places do the same work: of layers of different size the difference is no loss"
"""What must also hold of a place in the program: one configuration may serve layers of different size."""
AT_START = "; what is in flight counts at the start of a launch: what begins later is not in the effect or its worth"
TOTALS = ("_bytes", "_sum")
"""How names of counters end that are totals of a launch: ours of bytes, and `sum` of Nsight Compute and rocprof."""
BY_SIGN = {RAISING: RAISES, LOWERING: LOWERS}


def whole_ns(value: float) -> int:
    """Return a time, ns, as a whole number: halves upwards, as `floor(x + 0.5)` gives it in SQL."""
    return math.floor(value + 0.5)


def recoverable_query(table: str, row: int) -> str:
    """Return the query that gives `recoverable_ns` of the cause in a row of `contributions.parquet`."""
    return of_table("greatest(floor(cost_ns + 0.5), 0)::BIGINT", table, rows_where({"file_row_number": row}))


def cause_findings(analysis: Analysis, search: Search) -> list[Finding]:
    """Return the findings of one causal search: its causes, or that there is none.

    The search of the whole dataset is left out where the dataset has one kernel: it says the same.
    """
    is_repeated = len(analysis.searches) > 1 and len(analysis.kernels) == 1 and search.graph["scope"] == "dataset"
    if is_repeated:
        return []
    causes = [(index, row) for index, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    if not causes:
        return [_no_cause(analysis, search)]
    return [_cause(analysis, search, index) for index, _ in causes]


def subject_of(analysis: Analysis, scope: str, name: str | None) -> str:
    """Return what headlines call a scope: a kernel's short name, with its id where several have that; all kernels."""
    if scope == "dataset":
        return headlines.ALL_KERNELS
    shorts = {row["kernel"]: headlines.short(row["short_name"]) for row in analysis.kernels}
    own = shorts.get(scope) or headlines.short(name or scope)
    return f"{own} ({scope})" if sum(short == own for short in shorts.values()) > 1 else own


def _finding(analysis: Analysis, search: Search, sentence: str, **facts: Any) -> Finding:
    """Return a finding of a search; the name of its scope stands before the sentence."""
    graph = search.graph
    scope = graph["scope"]
    kernel = next((row for row in analysis.kernels if row["kernel"] == scope), {})
    name = kernel.get("short_name") or graph["scope_name"] or scope
    return Finding(
        dataset=analysis.dataset,
        target=analysis.target,
        scope=scope,
        scope_name=graph["scope_name"],
        sentence=f"{ALL_KERNELS if scope == 'dataset' else kernel_words(name)}: {sentence}",
        n=graph["n_rows"],
        n_effective=graph["n_effective"],
        link=link_to(analysis.dataset, analysis.target, scope),
        **facts,
    )


def _no_cause(analysis: Analysis, search: Search) -> Finding:
    graph = search.graph
    document = search.table.replace("contributions.parquet", "graph.json")
    subject = subject_of(analysis, graph["scope"], graph["scope_name"])
    refused = graph["p_value"] is None  # nothing was tested
    constant = any(reason.startswith(CONSTANT_TARGET) for reason in graph["reasons"])
    nothing_left = NO_FEATURE in graph["reasons"]  # however many launches there are
    too_little = TOO_LITTLE_OF_TIME if analysis.unit == "ns" else TOO_LITTLE
    return _finding(
        analysis,
        search,
        _first_words(graph["sentences"] or graph["reasons"], subject) or "No cause found.",
        kind="no_cause",
        assumption=ASSUMPTION,
        subject=subject,
        quantity=f"causes of {target_name(analysis.target)}",
        headline=headlines.of_no_cause(subject, analysis.target, refused, constant, nothing_left),
        verdict=graph["verdict"],
        evidence=Evidence(table=document, query=in_document(document, "n_rows", kind="integer"), value=graph["n_rows"]),
        suggestion=None if constant else too_little if refused and not nothing_left else NO_CAUSE,
    )


def _effect(row: Row, name: str, unit: str) -> Effect | None:
    """Return an estimate of a row, from the columns `{name}_percent`, `_low` and `_high`; None where it has none."""
    value = row.get(f"{name}_percent")
    if value is None:
        return None
    return Effect(value=value, low=row.get(f"{name}_low"), high=row.get(f"{name}_high"), unit=unit)


def _is_wait(analysis: Analysis, scope: str) -> bool:
    """Return whether what varies in a scope is the time of a collective: it includes waiting for the last rank, so that
    a short one is late and none is worth making shorter.
    """
    kinds = {row["kernel"]: row["class"] for row in analysis.kernels}
    return analysis.unit == "ns" and kinds.get(scope) == COMMUNICATION_KERNEL


def _worth(analysis: Analysis, scope: str, row: Row) -> Worth | None:
    """Return the GPU time that a cause costs; None where the target is no time that is spent: a long memory stall may
    be hidden work, a collective may wait.
    """
    is_spent = analysis.unit == "ns" and analysis.target != MEMORY_STALL and not _is_wait(analysis, scope)
    if row.get("cost_ns") is None or not is_spent:
        return None
    low = row.get("cost_low")
    high = row.get("cost_high")
    ends = {} if low is None or high is None else {"low": whole_ns(low), "high": whole_ns(high)}
    return Worth(ns=whole_ns(row["cost_ns"]), **ends)


def _is_time_itself(row: Row) -> bool:
    """Return whether a cause is when a launch ran, or how the one before it did: it stands for something else, such as
    a matrix that shrinks, and nobody knows what of that could be had otherwise. Where the program makes a launch is
    another thing, which one can look up and may change.
    """
    return (
        row.get("role") in MOMENTS and record_of(row["feature"], row.get("group") or "").suggestion != "program_order"
    )


def _is_size_of_work(row: Row) -> bool:
    """Return whether a cause is how much a launch works on, or a total that grows with it, as of its bytes or
    instructions: that a larger launch takes longer is no loss, and whether sizes could be others, or are those of
    different layers, is not known here.
    """
    record = record_of(row["feature"], row.get("group") or "")
    return record.suggestion == "input_size" or (record.tier == headlines.COUNTER and record.name.endswith(TOTALS))


def _is_in_flight(row: Row) -> bool:
    """Return whether a cause is what else is in flight when a launch starts."""
    return record_of(row["feature"], row.get("group") or "").group == "contention"


def direction_of(row: Row) -> str:
    """Return what more of a cause does to the mean, or, where that was not estimated, to what its sign is about."""
    if row.get("monotone") is False:
        return NOT_MONOTONE
    if row.get("mean_change_percent") is None:
        return BY_SIGN.get(row["sign"], UNDECIDED)
    low = row.get("mean_change_low")
    high = row.get("mean_change_high")
    if low is not None and low > 0:
        return RAISES
    return LOWERS if high is not None and high < 0 else UNDECIDED


def _first_words(remarks: Sequence[str], subject: str) -> str:
    """Return the first of a graph's remarks, as many as make no long text behind what it is about."""
    text = ""
    for remark in remarks:
        longer = f"{text} {remark}".strip()
        if text and len(f"{subject} {longer}".split()) > headlines.MOST_WORDS:
            break
        text = longer
    return text


def _sentence(target: str, row: Row, change: Effect | None, explained: Effect | None) -> str:
    """Return what a cause does to the mean and how much of the variance it explains, with intervals; what must hold for
    that, how robust it is and what it costs stand in fields.
    """
    name = cause_words(row["feature"], row.get("group") or "", row.get("level"))
    parts = []
    if change is not None:
        between = f"for {name}" if row.get("level") else f"from the 10th to the 90th percentile of {name}"
        parts.append(f"{between}, the {headlines.quantity_of(target)} changes by {_interval(change, signed=True)}.")
    if explained is not None:
        own = "It" if parts else name
        parts.append(f"{own} explains {_interval(explained)} of the variance.")
    return " ".join(parts) or f"{name}: its share was not estimated."


def _interval(effect: Effect, *, signed: bool = False) -> str:
    """Return a size in percent with its interval: `+5.1 % [4.4, 5.8]`."""
    value = significant(effect.value, 2)
    value = f"+{value}" if signed and effect.value > 0 else value
    if effect.low is None or effect.high is None:
        return f"{value} %"
    return f"{value} % [{significant(effect.low, 2)}, {significant(effect.high, 2)}]"


def _evidence(search: Search, index: int, column: str) -> Evidence:
    return Evidence(
        table=search.table,
        query=cell(column, search.table, index),
        value=search.contributions[index][column],
        rows=(index,),
        filter=rows_where({"file_row_number": index}),
    )


def _cause(analysis: Analysis, search: Search, index: int) -> Finding:
    """Return the finding of the cause in a row of the search's table."""
    row = search.contributions[index]
    subject = subject_of(analysis, search.graph["scope"], search.graph["scope_name"])
    quantity = headlines.quantity_of(analysis.target)
    # of the variance of what is measured: the contribution, which ranks what the search found, is of |deviation|
    of_kernels = row.get("kernels_percent") is not None
    explained = _effect(row, "variance", f"percent of {variance_of(analysis.target, of_kernels)}")
    change = _effect(row, "mean_change", f"percent of the {quantity}")
    spread = _effect(row, "spread_change", "percent of the standard deviation")
    worth = _worth(analysis, search.graph["scope"], row)
    direction = direction_of(row)
    is_settable = row.get("role") in SETTABLE
    columns = {"mean_change_percent": change, "variance_percent": explained}
    finding = _finding(
        analysis,
        search,
        _sentence(analysis.target, row, change, explained),
        kind="cause",
        assumption=ASSUMPTION
        + (AT_START if _is_in_flight(row) else SAME_WORK if headlines.is_of_position(row) else ""),
        key=row["feature"],
        subject=subject,
        quantity=quantity if change else EXPLAINED,
        headline=headlines.of_cause(
            subject,
            analysis.target,
            row,
            direction=direction,
            change=change,
            spread=spread,
            worth=None if _is_time_itself(row) or _is_size_of_work(row) else worth,
        ),
        verdict=row["verdict"],
        effect=change or explained,
        direction=direction,
        monotone=row.get("monotone"),
        p99=_effect(row, "p99_change", "percent of the 99th percentile"),
        spread=spread,
        explained=explained,
        role=row.get("role"),
        lever=record_of(row["feature"], row.get("group") or "").label if is_settable else None,
        evidence=_evidence(search, index, next((name for name, effect in columns.items() if effect), "verdict")),
        worth=worth,
        is_time=analysis.unit == "ns",
        sign=row["sign"],
        sign_of=row.get("sign_of"),
        kernels_percent=row.get("kernels_percent"),
        **_recoverable(search, index, worth),
    )
    if _is_wait(analysis, finding.scope):
        return replace(finding, suggestion=COLLECTIVE if finding.verdict == SUPPORTED else None)
    return replace(finding, suggestion=for_cause(row, direction) if may_advise(finding) else None)


def is_worth_saying(finding: Finding, kernels: int) -> bool:
    """Return whether a cause of one of so many kernels is said beside losses of device time: it is supported, wins
    time, and is neither the size of the work nor a place in the program.
    """
    if finding.kind != "cause" or finding.verdict != SUPPORTED or not wins_time(finding):
        return False
    row = {"feature": finding.key, "group": "", "role": finding.role}
    is_of_kernel = finding.scope != "dataset" or kernels == 1
    return is_of_kernel and not headlines.is_of_position(row) and not _is_size_of_work(row)


def _recoverable(search: Search, index: int, worth: Worth | None) -> dict[str, Any]:
    """Return the GPU time that a supported cause costs, with its query; empty where that is not known, as where it may
    as well be none, or where the cause is time itself or the size of the work.
    """
    row = search.contributions[index]
    low = row.get("cost_low")
    may_be_none = low is not None and low <= 0 <= row["cost_high"]
    is_no_cost = _is_time_itself(row) or _is_size_of_work(row)
    if worth is None or may_be_none or row["verdict"] != SUPPORTED or is_no_cost:
        return {}
    return {"recoverable_ns": max(worth.ns, 0), "recoverable_query": recoverable_query(search.table, index)}
