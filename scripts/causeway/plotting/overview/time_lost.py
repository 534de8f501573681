"""The overview's section "Where the time goes": sentences, the efficiency trees as a table, the waterfall, and the
map of lost time.
"""

import functools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from causeway.core.queries import cell, value_at, within
from causeway.core.vocabulary import COMM_AWARE, DEVICE_RATIOS, FLAVOURS, PARALLEL, WATERFALL, factors_of
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.charts import merged_rows
from causeway.plotting.drawing.citations import FILTERS, Sourced, document_parts
from causeway.plotting.drawing.markup import number
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.device_time import lost_shares, shown_parts
from causeway.plotting.figures.efficiency import groups_of, shown_names
from causeway.plotting.overview.device_tables import managed_memory
from causeway.plotting.overview.heat_map import draw_heat_map

MOST_PARTS = 4
"""Ranks, devices or ranges with a row: the figure of the trees has more."""
LOW = 0.4
HIGH = 1.0
"""Ratios at the ends of the scale of colours."""
SHADES = theme.DIVERGING[2:7][::-1]
"""The light part of the scale, orange for little and blue for much: dark text stays readable on all of it."""
MAP_COLUMNS = 240
WIDE = 150
"""Pixels of the waterfall."""


class Document:
    """`efficiency.json` of one dataset with the queries of its values."""

    def __init__(self, document: Mapping, dataset: str) -> None:
        self.document = document
        self.path = f"{dataset}/efficiency.json"
        self.table = f"{dataset}/efficiency.parquet"
        self.parts = document_parts(self.path, document)
        whole = f"({value_at('elapsed_ns', kind='integer')} * {value_at('device', 'n_devices', kind='integer')})"
        self.total = self.of(document["elapsed_ns"] * document["device"]["n_devices"], whole)
        self.whole = whole

    def of(self, value: float, expression: str) -> Sourced:
        """Return a value that an SQL expression over the document gives."""
        return Sourced(value, within(self.path, expression))

    def share(self, part: str) -> Sourced:
        """Return a part of the waterfall in percent of the device time."""
        value = 100 * self.document["waterfall_ns"][part] / self.total.raw
        return self.of(value, f"100 * {value_at('waterfall_ns', part, kind='integer')} / {self.whole}")

    def nothing(self) -> Markup | str | None:
        """Return why nothing was measured; None where something was."""
        if self.document["why"]:
            return FILTERS["said"](self.parts["why"])
        return None if self.total else "no time passed"


def where_the_time_goes(document: Mapping, table: pa.Table, name: str) -> Markup:
    """Return sentences, trees, and the map of lost time of a dataset; `table` is `efficiency.parquet`."""
    facts = Document(document, name)
    nothing = facts.nothing()
    if nothing is not None:
        return rendered("time_lost.html", name=name, nothing=nothing)
    ratios = (DEVICE_RATIOS[0], *factors_of(PARALLEL, DEVICE_RATIOS))
    whole, *factors = (f"{ratio.abbreviation} {ratio.label}" for ratio in ratios)
    return rendered(
        "time_lost.html",
        name=name,
        nothing=None,
        sentences=sentences(facts),
        formula=f"{whole} = {' × '.join(factors)}",
        flavour=next(flavour for flavour in FLAVOURS if flavour.name == COMM_AWARE),
        ratios=DEVICE_RATIOS,
        trees=tree_rows(facts, table),
        colour=colour,
        migrations=managed_memory(facts.document, facts.path),
        lost=lost_map(table, name),
    )


def sentences(facts: Document) -> list[Markup]:
    """Return what costs most, and what stands out of hosts."""
    document = facts.document
    worst = max((part for part in WATERFALL if part.loss), key=lambda part: document["waterfall_ns"][part.name])
    lines = rendered(
        "time_sentences.html",
        document=facts.parts,
        running=facts.of(100 * (document[COMM_AWARE][PARALLEL] or 0), f"100 * {value_at(COMM_AWARE, PARALLEL)}"),
        loss=worst.label.partition(":")[0] if document["waterfall_ns"][worst.name] else "",
        lost=facts.share(worst.name),
    )
    return [line for line in lines.splitlines() if line]


def tree_rows(facts: Document, table: pa.Table) -> list[dict]:
    """Return the rows of the trees of the flavour that the losses follow from: group and name of a part, its time and
    its ratios; the parts of a group in the order of their names.

    Of a group with more parts than there is room for, the least efficient stand there, and a note says so.
    """
    device = facts.document["device"]
    regions = zip(table.column("level").to_pylist(), table.column("region").to_pylist(), strict=True)
    place = {region: number for number, (level, region) in enumerate(regions) if level == "region"}
    trees = [_tree_row(facts, [], None)]
    for group, kind, limit in groups_of(device):
        most = min(limit, MOST_PARTS)
        names = shown_names(facts.document[COMM_AWARE][group], group, most)
        rows = [_tree_row(facts, [group, name], place.get(name) if group == "regions" else None) for name in names]
        if len(device[group]) > most:
            number = facts.of(len(device[group]), f"len(json_keys(content, '$.device.{group}'))")
            rows.append({"note": "longest" if group == "regions" else "least efficient", "number": number})
        trees += [row | {"group": group, "kind": kind, "first": row is rows[0]} for row in rows]
    return trees


def _tree_row(facts: Document, way: list[str], number: int | None) -> dict:
    """Return time and ratios of a part; regions are cited from their rows, `number`, in the table."""
    tree, whole = (
        functools.reduce(lambda part, step: part[step], way, facts.parts[key]) for key in (COMM_AWARE, "device")
    )
    ratios = {f"{COMM_AWARE}_{ratio.name}": tree[ratio.name] for ratio in DEVICE_RATIOS}
    parts = {"elapsed_ns": whole["elapsed_ns"]} | ratios
    if number is not None:
        parts = {name: Sourced(part.raw, cell(name, facts.table, number)) for name, part in parts.items()}
    time, *values = parts.values()
    return {"group": "", "first": False, "name": way[-1] if way else "", "time": time, "ratios": values}


def colour(value: float | None) -> str:
    """Return the colour of a ratio's cell."""
    return "var(--paper)" if value is None else theme.shade((value - LOW) / (HIGH - LOW), SHADES)


def waterfall(document: Mapping, name: str) -> Markup | None:
    """Return where the device time of a dataset goes, from what is useful to all that there was; None where nothing was
    measured.
    """
    facts = Document(document, name)
    if facts.nothing() is not None:
        return None
    parts = []
    done = 0
    for key, words, fill in shown_parts(document["waterfall_ns"]):
        time = facts.parts["waterfall_ns"][key]
        name, _, more = words.partition(": ")
        wide = max(WIDE * time.raw / facts.total.raw, 0.8) if time else 0.0
        part = {"name": name, "more": more, "fill": fill, "begin": WIDE * done / facts.total.raw, "wide": wide}
        parts.append(part | {"time": time, "share": facts.share(key)})
        done += time.raw
    return rendered("waterfall.html", parts=parts, total=facts.total, number=number)


def lost_map(table: pa.Table, name: str) -> Markup | None:
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
