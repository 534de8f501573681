"""One claim as a record: the only way to make one, so that all kinds have the same keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAME_LENGTH = 60
NOTICEABLE = 0.01
"""Share of a dataset's GPU time from which a loss is a finding, and from which what could be saved ranks by its size."""
KINDS = ("cause", "no_cause", "variability", "quality", "efficiency", "straggler", "comparison")


@dataclass(frozen=True)
class Analysis:
    """All that is known of one target of a dataset.

    Parameters
    ----------
    dataset, target : str
    unit : str
        Unit of the measured value: `ns`, another one, or ''.
    kernels : sequence of mappings
        Rows of `kernels.parquet`, in its order.
    kernels_table : str
        Path of that table, relative to the results folder.
    searches : sequence
        The causal searches, each with `graph` (the document), `contributions` (rows of the table, in its order) and `table` (its path,
        relative to the results folder).
    """

    dataset: str
    target: str
    unit: str
    kernels: Sequence[Mapping]
    kernels_table: str
    searches: Sequence


def shortened(name: str) -> str:
    """Return a name cut in its middle to a length that fits a sentence."""
    name = " ".join(name.split())
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 21]}…{name[-20:]}"


def link_to(dataset: str, *parts: str | None) -> str:
    """Return the place in the overview where something is shown."""
    return f"overview.html#{'--'.join(part for part in (dataset, *parts) if part)}"


def evidence(table: str, query: str, value: object, rows: Sequence[int] = (), where: str | None = None) -> dict:
    """Return where a claim's number stands.

    Parameters
    ----------
    table : str
        Table or document, relative to the results folder.
    query : str
        SQL that DuckDB runs in the results folder and that gives exactly `value`; made by `causeway.queries`.
    value : int, float or str
        The number that the claim rests on.
    rows : sequence of int
        Rows of the table, counted from 0; empty where the whole of it is meant.
    where : str, optional
        The rows as a filter, for those who read the table by other means.
    """
    return {"table": table, "rows": list(rows), "filter": where or None, "query": query, "value": value}


def finding(dataset: str, target: str | None, scope: str, kind: str, what: str, **facts: object) -> dict:
    """Return a claim; what is not given is null.

    Parameters
    ----------
    dataset : str
    target : str or None
        What varies; None for claims about inputs, efficiency, stragglers and comparisons.
    scope : str
        Kernel id, or `dataset`.
    kind : str
        One of `KINDS`.
    what : str
        Tells claims of one kind and scope apart; part of the id, which stays the same from run to run.
    **facts
        `sentence`, `verdict`, `evidence` and `link` always; `scope_name`, `effect` (value, low, high, unit), `n`, `n_effective`,
        `assumption`, `recoverable_ns` with `recoverable_query`, and `suggestion` where there is one. Severity, share of the GPU time and
        the explorer's link are added when the document is made.
    """
    base = dict.fromkeys(
        ("scope_name", "effect", "n", "n_effective", "assumption", "recoverable_ns", "recoverable_query", "suggestion", "explorer")
    )
    name = "/".join(part for part in (dataset, target, scope, kind, what) if part)
    return {**base, "id": name, "dataset": dataset, "target": target, "scope": scope, "kind": kind, **facts}
