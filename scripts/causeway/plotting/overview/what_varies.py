"""The overview's answer to what varies and why: a row for each kernel that has most of it, with its causes."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import elided
from causeway.core.queries import cell, of_table, rows_where
from causeway.core.vocabulary import KERNEL_VARIABILITY, SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import citations, theme
from causeway.plotting.drawing.labels import full_name
from causeway.plotting.drawing.markup import frame, joined, tag
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.kernels import Kernel, draw_warp_stalls, headings_of, stalls_by_kernel

if TYPE_CHECKING:
    import pyarrow as pa


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


def verdict_tag(verdict: str) -> Markup:
    """Return a verdict as a small label."""
    return tag("span", verdict, class_=f"verdict {verdict}")


def causes_of(search: object) -> list[tuple[int, Mapping]]:
    """Return the rows of a search's causes with their numbers in the table: the supported first, of these the largest
    share of the variance of the measured value.
    """
    rows = [(number, row) for number, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    return sorted(
        rows, key=lambda one: (one[1]["verdict"] != SUPPORTED, -(one[1]["variance_percent"] or 0.0), one[1]["feature"])
    )


def cause_words(search: object, number: int, row: Mapping) -> Markup:
    """Return a cause: its name, whether more of it raises the value, and the change of the mean with its interval."""
    level = f" = {elided(row['level'], 24)}" if row.get("level") else ""
    name = tag("code", elided(f"{row['feature']}{level}", 44), title=f"{row['feature']}{level}")
    change = [_interval(search, number, row, "mean_change")]
    if row.get("mean_change_percent") is None:
        change = ["explains ", _interval(search, number, row, "variance")]
    doubt = None if row["verdict"] == SUPPORTED else verdict_tag(row["verdict"])
    return joined([name, f" {SIGNS.get(row['sign'], '◇')} ", *change, *([" ", doubt] if doubt is not None else [])])


def _interval(search: object, number: int, row: Mapping, name: str) -> Markup | str:
    """Return an estimate of a cause in percent, with its interval; an en dash where there is none."""
    columns = [f"{name}_{end}" for end in ("percent", "low", "high")]
    queries = tuple(cell(column, search.table, number) for column in columns)
    return citations.interval(*(row.get(column) for column in columns), queries)


def _why(search: object | None) -> list[object]:
    """Return the causes that a search found, or that it found none, in a few words."""
    if search is None:
        return [tag("span", "not searched", class_="muted")]
    causes = causes_of(search)
    if not causes:
        words = "too few launches" if search.graph["p_value"] is None else "no cause found"
        return [
            tag("span", words, class_="muted", title=" ".join(search.graph["sentences"] or search.graph["reasons"]))
        ]
    parts: list[object] = [tag("div", cause_words(search, *cause)) for cause in causes[:MOST_CAUSES]]
    more = len(causes) - MOST_CAUSES
    if more > 0:
        query = of_table(f"count(*) - {MOST_CAUSES}", search.table, f"feature <> '{UNEXPLAINED}'")
        parts.append(tag("div", citations.count(more, query), " more", class_="note"))
    return parts


def example(search: object, target: str) -> Markup | None:
    """Return how to read a cause, by the first one that changes the mean; None without any."""
    value = "time" if target == KERNEL_VARIABILITY else "value"
    for number, row in causes_of(search):
        if row["verdict"] == SUPPORTED and row.get("mean_change_percent") is not None and not row.get("level"):
            columns = [f"mean_change_{end}" for end in ("percent", "low", "high")]
            size, low, high = (citations.percent(row[column], cell(column, search.table, number)) for column in columns)
            parts = ["How to read it: from low to high ", tag("code", elided(row["feature"], 44))]
            parts += [f" in one configuration the mean {value} changes by ", size, ", between ", low, " and ", high]
            return joined([*parts, ", unless something unmeasured acts on both."])
    return None


def what_varies(
    dataset: str,
    target: str,
    searches: Sequence[object],
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
    searches : sequence
        The dataset's search and the kernels'; each has `graph` (a document) and `contributions` (rows).
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
        if kernel.id in by_scope and any(row["verdict"] == SUPPORTED for _, row in causes_of(by_scope[kernel.id]))
    ]
    chosen = list(dict.fromkeys([*(kernel.id for kernel in kernels[:TOP_KERNELS]), *explained]))[:MOST_KERNELS]
    shown = [kernel for kernel in kernels if kernel.id in chosen]
    others = [kernel for kernel in kernels if kernel.id not in chosen]
    source = f"{dataset}/{target}/kernels.parquet"
    share, *names = headings_of(target)[:-1]
    heads = [tag("th", "kernel"), tag("th", share, aria_sort="descending")]
    heads += [tag("th", name, class_="n" if place < 4 else None) for place, name in enumerate(names)]
    heads.append(tag("th", "cause and change of the mean"))
    body = [
        _row(dataset, target, row, kernels[0].share, unit, operators.get(row.id), by_scope.get(row.id)) for row in shown
    ]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="sortable kernels")
    whole = by_scope.get("dataset")
    is_repeated = len(kernels) == 1 and kernels[0].id in by_scope
    together = None
    if whole is not None and not is_repeated:
        together = tag("div", tag("b", "All kernels together: "), _why(whole), id=anchor(dataset, target, "dataset"))
    elif whole is not None:
        together = tag("span", id=anchor(dataset, target, "dataset"))
    read = next((words for search in map(by_scope.get, chosen) if search and (words := example(search, target))), None)
    return tag(
        "div",
        tag("div", table, class_="wide"),
        tag("p", read, class_="note") if read is not None else None,
        together,
        _others(others, chosen, source),
        [
            tag("span", id=place)
            for kernel in others[:MOST_ANCHORS]
            for place in _anchors(dataset, target, kernel, by_scope)
        ],
    )


def _anchors(dataset: str, target: str, kernel: Kernel, searched: Mapping) -> list[str]:
    """Return the ids by which findings name a kernel and the search of its causes."""
    own = [anchor(dataset, target, "kernel", kernel.id)]
    return [*own, anchor(dataset, target, kernel.id)] if kernel.id in searched else own


def _others(others: Sequence[Kernel], chosen: Sequence[str], source: str) -> Markup | None:
    """Return how many kernels are not in sight, and what they have of the variability; None where all are."""
    if not others:
        return None
    where = f"kernel NOT IN ({', '.join(f'{chr(39)}{kernel}{chr(39)}' for kernel in chosen)})"
    held = math.fsum(kernel.share for kernel in others)
    words = [
        citations.count(len(others), of_table("count(*)", source, where)),
        f" more kernel{'s' * (len(others) > 1)}",
    ]
    words += [": ", citations.share(held, of_table("sum(target_share)", source, where)), " of the variability."]
    return tag("p", words, class_="note")


def _row(
    dataset: str,
    target: str,
    kernel: Kernel,
    largest: float,
    unit: str,
    operator: str | None,
    search: object | None,
) -> Markup:
    """Return one kernel as a row; `operator` launches most of it."""
    source = f"{dataset}/{target}/kernels.parquet"
    where = rows_where({"kernel": kernel.id})

    def of(what: str) -> str:
        return of_table(what, source, where)

    def number(text: object, value: float | None) -> Markup:
        return tag("td", text, class_="n", data_v="" if value is None else value)

    dot = tag("span", class_="dot", style=f"background:{theme.class_colour(kernel.kind)}", title=kernel.kind)
    ends = (
        f"from {formatting.quantity(kernel.smallest, unit)} to {formatting.quantity(kernel.largest, unit)}, log scale"
    )
    share = citations.share(kernel.share if largest > 0 else None, of("target_share"))
    launched = tag("div", "by ", citations.name(elided(operator, 40)), class_="note") if operator else None
    part = of(f"value_sum / ({of_table('sum(value_sum)', source)})")
    why = [tag("span", "includes waiting for other ranks", class_="muted")]
    place = anchor(dataset, target, kernel.id)
    return tag(
        "tr",
        tag("td", dot, citations.name(kernel.short, title=full_name(kernel.name)), launched, class_="name"),
        tag(
            "td",
            bar(kernel.share, largest, theme.SEQUENTIAL[5], width=50),
            " ",
            share,
            data_v=kernel.share,
            class_="share",
        ),
        number(citations.share(kernel.value_share, part), kernel.value_share),
        number(citations.count(kernel.launches, of("launches")), kernel.launches),
        number(citations.quantity(kernel.median, unit, of("value_median")), kernel.median),
        number(citations.spread(kernel.robust_cv, of("robust_cv")), kernel.robust_cv),
        tag("td", histogram(kernel.histogram, 90, 24), title=ends),
        tag(
            "td",
            why if kernel.kind == COMMUNICATION_KERNEL else _why(search),
            class_="why",
            id=place if search is not None else None,
        ),
        id=anchor(dataset, target, "kernel", kernel.id),
    )


NOTE = "Cycles that a warp waits before it issues an instruction, by reason: means over the launches with counters."


def warp_stalls(table: "pa.Table", name: str) -> Markup | None:
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
    drawing = inline(draw_warp_stalls(table, dataset=name))
    return joined(
        [
            tag("h3", "What warps wait for", id=f"{name}--stalls"),
            tag("p", NOTE, class_="note"),
            tag("figure", drawing, class_="drawing", data_repeats="stall_reasons"),
        ]
    )


def histogram(
    counts: Sequence[int], width: int = 96, height: int = 26, label: str | None = None, **place: object
) -> Markup:
    """Return bars of counts in equal classes; a class with few launches keeps a pixel, so that an outlier is seen."""
    top = max(counts, default=0)
    if not top:
        return frame(width, height, label=label, **place)
    step = width / len(counts)
    bars = [
        f"M{i * step:.1f}"
        f" {height - 1}h{max(step - 0.6, 0.6):.1f}v{-max((height - 3) * c / top, 1.4):.1f}h{-max(step - 0.6, 0.6):.1f}z"
        for i, c in enumerate(counts)
        if c
    ]
    base = tag("line", x1=0, x2=width, y1=height - 0.5, y2=height - 0.5, stroke=theme.GRID)
    return frame(width, height, base, tag("path", d="".join(bars), fill=theme.SEQUENTIAL[5]), label=label, **place)


def bar(
    value: float | None,
    full: float,
    colour: str,
    low: float | None = None,
    high: float | None = None,
    width: int = 110,
    height: int = 14,
    **place: object,
) -> Markup:
    """Return a bar of `value` out of `full` with its interval as a whisker; empty where the value is not known."""
    if value is None or full <= 0:
        return frame(width, height, **place)
    scale = width / full
    parts = [
        tag("rect", x=0, y=1, width=width, height=height - 2, fill="#eef1f4"),
        tag("rect", x=0, y=1, width=min(value * scale, width), height=height - 2, fill=colour),
    ]
    if low is not None and high is not None:
        left, right = (min(max(end * scale, 0.0), float(width)) for end in (low, high))
        for edge, thick in ((theme.PAPER, 3.2), (theme.INK, 1.2)):
            parts.append(tag("path", d=f"M{left:.1f} {height / 2}H{right:.1f}", stroke=edge, stroke_width=thick))
    return frame(width, height, parts, **place)
