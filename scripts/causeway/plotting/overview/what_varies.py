"""The overview's answer to what varies and why: a row for each kernel that has most of it, with its causes."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.feature_registry import cause_words
from causeway.core.queries import of_table, rows_where
from causeway.core.results import Search
from causeway.core.vocabulary import KERNEL_VARIABILITY, SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.citations import FILTERS, Sourced, row_parts
from causeway.plotting.drawing.labels import full_name
from causeway.plotting.drawing.markup import number
from causeway.plotting.drawing.page import inline, rendered
from causeway.plotting.figures.kernels import Kernel, draw_warp_stalls, headings_of, stalls_by_kernel

TOP_KERNELS = 5
"""Kernels in sight whatever is known of them."""
MOST_KERNELS = 8
"""Kernels in sight with those that have supported causes."""
MOST_CAUSES = 2
"""Causes of a kernel in sight."""
MOST_ANCHORS = 200
"""Kernels beyond those in sight to which findings can link."""
SIGNS = {"+": "▲", "-": "▼"}


def anchor(dataset: str, *parts: str) -> str:
    """Return the id of a place in the page; findings link to it."""
    return "--".join([dataset, *parts])


def causes_of(search: Search) -> list[Sourced]:
    """Return the rows of a search's causes: the supported first, of these the largest share of the variance of the
    measured value.
    """
    rows = [
        row_parts(row, search.table, file_row_number=number)
        for number, row in enumerate(search.contributions)
        if row["feature"] != UNEXPLAINED
    ]

    def order(row: Sourced) -> tuple:
        return row.raw["verdict"] != SUPPORTED, -(row.raw["variance_percent"] or 0.0), row.raw["feature"]

    return sorted(rows, key=order)


def words_of(cause: Sourced) -> str:
    """Return what a row of causes is called, with its level."""
    return cause_words(cause.raw["feature"], cause.raw.get("group") or "", cause.raw.get("level"))


def _why(search: Search | None) -> dict | None:
    """Return the causes that a search found, or that it found none, in a few words; None without a search."""
    if search is None:
        return None
    causes = causes_of(search)
    query = of_table(f"count(*) - {MOST_CAUSES}", search.table, f"feature <> '{UNEXPLAINED}'")
    return {
        "causes": [(cause, words_of(cause)) for cause in causes[:MOST_CAUSES]],
        "more": Sourced(len(causes) - MOST_CAUSES, query),
        "words": "too few launches" if search.graph["p_value"] is None else "no cause found",
        "title": " ".join(search.graph["sentences"] or search.graph["reasons"]),
    }


def example(search: Search) -> tuple[Sourced, str] | None:
    """Return the first cause that changes the mean, which shows how to read one, and its name; None without any."""
    changing = (row for row in causes_of(search) if row.raw.get("mean_change_percent") is not None)
    first = next((row for row in changing if row.raw["verdict"] == SUPPORTED and not row.raw.get("level")), None)
    return None if first is None else (first, words_of(first))


def what_varies(
    dataset: str,
    target: str,
    searches: Sequence[Search],
    kernels: Sequence[Kernel],
    unit: str,
    operators: Mapping[str, str] = MappingProxyType({}),
) -> Markup:
    """Return the kernels with most of a target's variability as a table, each with its causes, and those of all kernels
    together; findings link to the rows.

    Of a dataset with one kernel, which was searched, the search of the whole dataset is the same and is left out.

    Parameters
    ----------
    dataset, target : str
    searches : sequence of Search
        The dataset's and the kernels'.
    kernels : sequence of Kernel
        Largest share first.
    unit : str
        Of the target's values.
    operators : mapping of str to str
        By kernel: the operator that launches most of it.
    """
    by_scope = {search.graph["scope"]: search for search in searches}
    explained = [
        kernel.id
        for kernel in kernels
        if kernel.id in by_scope and any(row.raw["verdict"] == SUPPORTED for row in causes_of(by_scope[kernel.id]))
    ]
    chosen = list(dict.fromkeys([*(kernel.id for kernel in kernels[:TOP_KERNELS]), *explained]))[:MOST_KERNELS]
    others = [kernel for kernel in kernels if kernel.id not in chosen]
    source = f"{dataset}/{target}/kernels.parquet"
    whole = by_scope.get("dataset")
    is_repeated = len(kernels) == 1 and kernels[0].id in by_scope
    where = f"kernel NOT IN ({', '.join(repr(kernel) for kernel in chosen)})"
    ids = [
        anchor(dataset, target, *place, kernel.id)
        for kernel in others[:MOST_ANCHORS]
        for place in (("kernel",), *([()] if kernel.id in by_scope else []))
    ]
    return rendered(
        "what_varies.html",
        headings=headings_of(target),
        kernels=[
            _row(anchor(dataset, target), source, kernel, kernels[0].share, unit, by_scope.get(kernel.id))
            | {"operator": operators.get(kernel.id)}
            for kernel in kernels
            if kernel.id in chosen
        ],
        signs=SIGNS,
        example=next((row for search in map(by_scope.get, chosen) if search and (row := example(search))), None),
        value="time" if target == KERNEL_VARIABILITY else "value",
        whole=None if is_repeated else _why(whole),
        whole_id=anchor(dataset, target, "dataset") if whole is not None else "",
        others=Sourced(len(others), of_table("count(*)", source, where)),
        held=Sourced(math.fsum(kernel.share for kernel in others), of_table("sum(target_share)", source, where)),
        ids=ids,
        number=number,
        largest=kernels[0].share,
    )


def _row(home: str, source: str, kernel: Kernel, largest: float, unit: str, search: Search | None) -> dict:
    """Return what the page shows of one kernel; `home` begins the ids of the target, `largest` is the largest share."""
    columns = {"target_share": kernel.share if largest > 0 else None, "launches": kernel.launches}
    columns |= {"value_median": kernel.median, "robust_cv": kernel.robust_cv}
    row = row_parts(columns, source, kernel=kernel.id)
    whole = of_table("sum(value_sum)", source)
    part = of_table(f"value_sum / ({whole})", source, rows_where({"kernel": kernel.id}))
    numbers = {"share": Sourced(kernel.value_share, part), "count": row["launches"]}
    numbers |= {"quantity": row["value_median"], "spread": row["robust_cv"]}
    ends = [formatting.quantity(end, unit) for end in (kernel.smallest, kernel.largest)]
    return {
        "id": f"{home}--kernel--{kernel.id}",
        "kind": kernel.kind,
        "colour": theme.class_colour(kernel.kind),
        "short": kernel.short,
        "name": full_name(kernel.name),
        "share": kernel.share,
        "row": row,
        "numbers": [(value, FILTERS[how](value, *[unit] * (how == "quantity"))) for how, value in numbers.items()],
        "ends": f"from {ends[0]} to {ends[1]}, log scale",
        "histogram": kernel.histogram,
        "searched": f"{home}--{kernel.id}" if search is not None else "",
        "search": _why(search),
    }


def warp_stalls(table: pa.Table, name: str) -> Markup | None:
    """Return the part of a dataset; None without counters of warp stalls.

    Parameters
    ----------
    table : Table
        `stall_reasons.parquet`.
    name : str
        The dataset.
    """
    if not stalls_by_kernel(table):
        return None
    return rendered("stalls.html", name=name, drawing=inline(draw_warp_stalls(table, dataset=name)))
