"""The overview's section "Where the time goes": sentences, the efficiency trees as a table, the waterfall, and the
map of lost time.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.core.queries import cell, in_document, value_at, within
from causeway.core.vocabulary import (
    COMM_AWARE,
    DEVICE_RATIOS,
    FLAVOUR_NAMES,
    FLAVOURS,
    IDLE_CAUSES,
    PARALLEL,
    WATERFALL,
    Flavour,
    factors_of,
)
from causeway.plotting.drawing import citations, theme
from causeway.plotting.drawing.charts import merged_rows
from causeway.plotting.drawing.markup import frame, joined, tag
from causeway.plotting.figures.device_time import lost_shares, shown_parts
from causeway.plotting.figures.efficiency import groups_of, shown_names
from causeway.plotting.overview.device_tables import managed_memory
from causeway.plotting.overview.heat_map import draw_heat_map

if TYPE_CHECKING:
    import pyarrow as pa


MOST_PARTS = 4
"""Ranks, devices or ranges with a row: the figure of the trees has more."""
LOW = 0.4
HIGH = 1.0
"""Ratios at the ends of the scale of colours."""
SHADES = theme.DIVERGING[2:7][::-1]
"""The light part of the scale, orange for little and blue for much: dark text stays readable on all of it."""
MAP_COLUMNS = 240


class Document:
    """`efficiency.json` of one dataset with the queries of its values."""

    def __init__(self, document: Mapping, dataset: str) -> None:
        self.document = document
        self.dataset = dataset
        self.path = f"{dataset}/efficiency.json"
        self.table = f"{dataset}/efficiency.parquet"
        self.total = document["elapsed_ns"] * document["device"]["n_devices"]
        self.whole = f"({value_at('elapsed_ns', kind='integer')} * {value_at('device', 'n_devices', kind='integer')})"

    def at(self, *path: str | int, kind: str = "number") -> str:
        """Return the query of a value."""
        return in_document(self.path, *path, kind=kind)

    def of(self, expression: str) -> str:
        """Return the query of an expression."""
        return within(self.path, expression)

    def over_devices(self, key: str) -> tuple[int, str]:
        """Return the sum of a key of the breakdown over all devices, and its expression."""
        total = sum(one[key] for one in self.document["breakdown"].values())
        return total, f"list_sum(json_extract(content, '$.breakdown.*.{key}')::BIGINT[])::BIGINT"


def where_the_time_goes(document: Mapping, table: "pa.Table", name: str, has_reasons: bool = False) -> list[Markup]:
    """Return sentences, trees, and the map of lost time of a dataset; `has_reasons` is as
    in `sentences`.
    """
    heading = tag("h3", "Where the time goes", id=f"{name}--efficiency")
    facts = Document(document, name)
    if document["why"] or not facts.total:
        why = citations.said(document["why"], facts.at("why", kind="text")) if document["why"] else "no time passed"
        return [heading, tag("p", "Nothing was measured: ", why, ".")]
    lost = lost_map(table, name)
    return [
        heading,
        tag("div", [tag("p", words) for words in sentences(facts, has_reasons)], class_="tight"),
        trees(facts, table),
        *managed_memory(facts.document, facts.path),
        *([tag("h4", "Lost time over time and ranks"), lost] if lost is not None else []),
    ]


def sentences(facts: Document, has_reasons: bool = False) -> list[Markup]:
    """Return what costs most, and what stands out of idle time and hosts; the coarser causes of `efficiency.json` stand
    only where `waiting.parquet` does not give the reasons of idle time (`has_reasons`).
    """
    document = facts.document
    tree = facts.document[COMM_AWARE]
    times = document["waterfall_ns"]
    worst = max((part for part in WATERFALL if part.loss), key=lambda part: times[part.name])
    busy = 100 * (tree[PARALLEL] or 0)
    running = citations.percent(busy, facts.of(f"100 * {value_at(COMM_AWARE, PARALLEL)}"))
    number = document["device"]["n_devices"]
    devices = citations.count(number, facts.at("device", "n_devices", kind="integer"))
    words = ["Computing kernels run for ", running, " of the time of ", devices, f" device{'s' * (number != 1)}"]
    if times[worst.name]:
        words += [f"; the largest loss is {worst.label.partition(':')[0]}, ", part_of(facts, worst.name)]
    first = joined([*words, "."])
    waits = [] if has_reasons else _idle(facts)
    return [first, *waits, *_notes(facts), *_host(facts)]


def part_of(facts: Document, part: str) -> Markup:
    """Return a part of the waterfall in percent of the device time."""
    value = 100 * facts.document["waterfall_ns"][part] / facts.total
    return citations.percent(value, facts.of(f"100 * {value_at('waterfall_ns', part, kind='integer')} / {facts.whole}"))


def _idle(facts: Document) -> list[Markup]:
    sums = {cause: facts.over_devices(f"idle_{cause}_ns") for cause in IDLE_CAUSES}
    idle = sum(value for value, _ in sums.values())
    all_of = " + ".join(expression for _, expression in sums.values())
    if not idle:
        return []
    reasons = dict(IDLE_CAUSES)
    if not facts.document["host"]["possible"] and not sums["host"][0]:  # 0 was not measured, then
        del reasons["host"]
        reasons["other"] = "has reasons that the launch calls would tell, which are not recorded"
    parts = [
        joined(
            [
                citations.percent(100 * sums[cause][0] / idle, facts.of(f"100 * {sums[cause][1]} / ({all_of})")),
                f" {words}",
            ]
        )
        for cause, words in reasons.items()
    ]
    return [joined(["Of the idle time (", citations.time(idle, facts.of(all_of)), ") ", joined(parts, ", "), "."])]


def _notes(facts: Document) -> list[Markup]:
    return [
        joined([citations.said(note, facts.at("notes", number, kind="text")), "."])
        for number, note in enumerate(facts.document["notes"])
    ]


def _host(facts: Document) -> list[Markup]:
    host = facts.document["host"]
    why = [citations.said(host["why"], facts.at("host", "why", kind="text"))] if host["why"] else []
    if not host["possible"]:
        return [joined(["Hosts: ", *why, "."])]

    def of(key: str) -> Markup | str:
        return citations.ratio(host.get(key), facts.at("host", key))

    words = [
        "Hosts: parallel efficiency ",
        of("parallel_efficiency"),
        ", device offload ",
        of("device_offload_efficiency"),
    ]
    if host["mpi_parallel_efficiency"] is None:
        return [joined([*words, "; ", *why, "."])]
    words += ["; MPI ", of("mpi_parallel_efficiency"), " = communication ", of("mpi_communication_efficiency")]
    return [joined([*words, " × balance ", of("mpi_load_balance"), "."])]


def tree_rows(facts: Document) -> list[tuple[str, Markup, list, str | None]]:
    """Return the rows of the table: group, name, and the way to the tree in each flavour; the parts of a group in the
    order of their names.

    Of a group with more parts than there is room for, the least efficient stand there.
    """
    device = facts.document["device"]
    shown = facts.document[COMM_AWARE]
    found = [("", "whole dataset", [], None)]
    for group, one, limit in groups_of(device):
        most = min(limit, MOST_PARTS)
        for name in shown_names(shown[group], group, most):
            words = joined([f"{one} ", citations.name(name)])
            if group == "regions":
                words = citations.name(elided(name, 40), title=name)
            found.append((group, words, [group, name], None))
        if len(device[group]) > most:
            rest = citations.count(len(device[group]), facts.of(f"len(json_keys(content, '$.device.{group}'))"))
            chosen = "longest" if group == "regions" else "least efficient"
            found.append((group, joined([f"the {chosen} of ", rest, f" {one}s"]), [], "note"))
    return found


def trees(facts: Document, table: "pa.Table") -> Markup:
    """Return the trees of the flavour that the losses follow from.

    Parameters
    ----------
    facts : Document
    table : pa.Table
        `efficiency.parquet` with the columns level, region and elapsed_ns.
    """
    whole, *factors = (
        f"{one.abbreviation} {one.label}" for one in (DEVICE_RATIOS[0], *factors_of(PARALLEL, DEVICE_RATIOS))
    )
    said = f"{whole} = {' × '.join(factors)}."
    main = [one for one in FLAVOURS if one.name == COMM_AWARE]
    return tag(
        "div",
        tag("h4", "Efficiency of devices"),
        tag("p", said, class_="note"),
        tree_table(facts, table, main),
    )


def tree_table(facts: Document, table: "pa.Table", flavours: Sequence[Flavour]) -> Markup:
    """Return the trees of a dataset and its parts as a table: one coloured cell per ratio, blue for much and orange
    for little.
    """
    levels = table.column("level").to_pylist()
    regions = table.column("region").to_pylist()
    place = {
        region: number for number, (level, region) in enumerate(zip(levels, regions, strict=True)) if level == "region"
    }
    tops = [tag("th", ""), tag("th", "")] + [
        tag("th", flavour.label, colspan=len(DEVICE_RATIOS), class_="flavour") for flavour in flavours
    ]
    heads = [tag("th", ""), tag("th", "time", class_="n")]
    heads += [
        tag("th", ratio.abbreviation, class_="n", title=ratio.name.replace("_", " "))
        for _ in flavours
        for ratio in DEVICE_RATIOS
    ]
    body = []
    before = ""
    for group, words, path, note in tree_rows(facts):
        first = "first" if group != before else None
        before = group
        if note:
            body.append(tag("tr", tag("td", words, colspan=2 + len(flavours) * len(DEVICE_RATIOS), class_="note")))
            continue
        tree = {flavour: _reach(facts.document[flavour], path) for flavour in FLAVOUR_NAMES}
        number = place.get(path[1]) if path and path[0] == "regions" else None
        long = (
            facts.at("device", *path, "elapsed_ns", kind="integer")
            if number is None
            else cell("elapsed_ns", facts.table, number)
        )
        cells = [
            tag("td", words, class_="part"),
            tag("td", citations.time(tree["device"]["elapsed_ns"], long), class_="n"),
        ]
        for flavour in (one.name for one in flavours):
            for key in (ratio.name for ratio in DEVICE_RATIOS):
                value = tree[flavour][key]
                query = (
                    facts.at(flavour, *path, key) if number is None else cell(f"{flavour}_{key}", facts.table, number)
                )
                main = " main" if key == PARALLEL else ""
                cells.append(
                    tag(
                        "td",
                        citations.ratio(value, query),
                        class_=f"n ratio{main}",
                        style=f"background:{colour(value)}",
                    )
                )
        body.append(tag("tr", cells, class_=first))
    table_ = tag("table", tag("thead", tag("tr", tops), tag("tr", heads)), tag("tbody", body), class_="trees")
    return tag("div", table_, class_="wide")


def _reach(tree: Mapping, path: list) -> Mapping:
    for step in path:
        tree = tree[step]
    return tree


def colour(value: float | None) -> str:
    """Return the colour of a ratio's cell."""
    return theme.PAPER if value is None else theme.shade((value - LOW) / (HIGH - LOW), SHADES)


def waterfall(document: Mapping, name: str) -> Markup | None:
    """Return where the device time of a dataset goes, from what is useful to all that there was; None where nothing was
    measured.
    """
    facts = Document(document, name)
    if document["why"] or not facts.total:
        return None
    rows = []
    done = 0
    for key, words, fill in shown_parts(facts.document["waterfall_ns"]):
        value = facts.document["waterfall_ns"][key]
        begin = 150 * done / facts.total
        wide = max(150 * value / facts.total, 0.8) if value else 0.0
        behind = tag("rect", x=0, y=0, width=150, height=16, fill="#f2f4f6")
        drawn = frame(150, 16, behind, tag("rect", x=begin, y=0, width=wide, height=16, fill=fill))
        name, _, more = words.partition(": ")
        label = tag("td", name, tag("span", f": {more}", class_="muted") if more else None)
        time = citations.time(value, facts.at("waterfall_ns", key, kind="integer"))
        rows.append(
            tag("tr", label, tag("td", drawn), tag("td", time, class_="n"), tag("td", part_of(facts, key), class_="n"))
        )
        done += value
    total = citations.time(facts.total, facts.of(facts.whole))
    rows.append(
        tag(
            "tr",
            tag("td", tag("b", "all device time")),
            tag("td", ""),
            tag("td", tag("b", total), class_="n"),
            tag("td", ""),
        )
    )
    table = tag("table", tag("tbody", rows), class_="waterfall")
    return tag("div", tag("h3", "Time of all devices"), tag("div", table, class_="wide"), class_="sheet")


def lost_map(table: "pa.Table", name: str) -> Markup | None:
    """Return the map of rank by time of the share in which no kernel runs: light where little is lost."""
    lost = lost_shares(table)
    if lost is None:
        return None
    columns, groups = merged_rows(lost.shares.T, MAP_COLUMNS)
    together = len(groups[0])
    return draw_heat_map(
        columns.T,
        lost.ranks,
        np.arange(len(groups) + 1, dtype=float) * lost.bin_ns * together,
        what="lost",
        title="Share of the time in which no kernel runs, by rank and time",
        words=lambda value: f"{100 * value:.0f} % lost",
        explorer=f"{name}/explorer/index.html",
        note=f"Each column holds {together} bins and shows their largest share." if together > 1 else "",
    )
