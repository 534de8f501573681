"""The context graph: how the causes and their neighbours hang together, and the page of all graphs of one target."""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from causeway.core.feature_registry import TIERS
from causeway.core.formatting import elided
from causeway.core.vocabulary import UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.graph_layout import Line, arrange
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, text
from causeway.plotting.figures.causal_graph import (
    FILLS,
    arrow_of,
    bezier,
    box_of,
    head_of,
    sign_colour,
)

MOST_NODES = 60
LONGEST_LABEL = 34
"""Characters of a feature's name that are shown."""
OTHER = "#f1f3f5"
"""Fill of features without a tier."""


def context_edges(graph: Mapping) -> list[Mapping]:
    """Return the edges between features, those that do not end in the target."""
    return [
        edge
        for edge in graph["edges"]
        if graph["target_node"] not in (edge["source"], edge["target"]) and edge["source"] != UNEXPLAINED
    ]


def draw_context_graph(graph: Mapping, scope: str) -> Markup | None:
    """Return the graph with the edges between features, or None where it has none.

    Only directions that the analysis holds are drawn as arrows; a grey line without a head joins features whose
    direction is open, a double-headed one a hidden common cause. Beyond 60 features those with the most edges are
    drawn, and the number is said.
    """
    inner = context_edges(graph)
    if not inner:
        return None
    target = graph["target_node"]
    names = _features_by_degree(graph, inner)
    shown = names[:MOST_NODES]
    sizes = {name: (text_width(elided(name, LONGEST_LABEL), theme.SIZE) + 22, 26.0) for name in shown}
    sizes[target] = (text_width(elided(target, LONGEST_LABEL), theme.SIZE, bold=True) + 28, 40.0)
    drawn = _edges_by_ends(graph, inner, sizes)
    layout = arrange(
        sizes,
        [Line(*ends, weight=3 if ends[1] == target else 1) for ends in drawn],
        last=target,
        row_gap=14,
        column_gap=46,
    )
    tiers = {node["name"]: node.get("tier") or "" for node in graph["nodes"]}
    parts = [_edge(edge, layout.lines[ends], to_target=ends[1] == target) for ends, edge in drawn.items()]
    parts += [
        box_of(
            name, [elided(name, LONGEST_LABEL)], layout.boxes[name], FILLS.get(tiers.get(name, ""), OTHER), hover=name
        )
        for name in shown
    ]
    label = [elided(target, LONGEST_LABEL)]
    parts.append(box_of(target, label, layout.boxes[target], theme.PAPER, theme.INK, bold=True))
    about = f"Context of the causes of {target}, {scope}"
    note = _note(len(shown), len(names) - len(shown))
    key, key_width = _key()
    width = 2 * MARGIN + max(layout.width, key_width, text_width(note, theme.SMALL), text_width(about, 15, True))
    return document(
        width,
        layout.height + 118,
        about,
        text(MARGIN, 24, about, 15, font_weight="bold"),
        text(MARGIN, 43, note, theme.SMALL, colour=theme.MUTED),
        tag("g", parts, transform=f"translate({MARGIN:.1f} 64)"),
        [tag("g", part, transform=f"translate({MARGIN + x:.1f} {layout.height + 98:.1f})") for x, part in key],
    )


def _features_by_degree(graph: Mapping, inner: Sequence[Mapping]) -> list[str]:
    """Return the features: the target's causes, then the others, of each those with the most inner edges first."""
    causes = {
        edge["source"]
        for edge in graph["edges"]
        if edge["target"] == graph["target_node"] and edge["source"] != UNEXPLAINED
    }
    degree = Counter(edge[end] for edge in inner for end in ("source", "target"))
    return sorted(causes | set(degree), key=lambda name: (name not in causes, -degree[name], name))


def _edges_by_ends(graph: Mapping, inner: Sequence[Mapping], shown: Container[str]) -> dict[tuple[str, str], Mapping]:
    """Return the edges between nodes that are shown, by source and target: inner ones, then those to the target."""
    into_target = [edge for edge in graph["edges"] if edge["target"] == graph["target_node"]]
    drawn: dict[tuple[str, str], Mapping] = {}
    for edge in [*inner, *into_target]:
        ends = edge["source"], edge["target"]
        if ends[0] in shown and ends[1] in shown and ends[0] != ends[1]:
            drawn.setdefault(ends, edge)
    return drawn


def _edge(edge: Mapping, points: Sequence[tuple[float, float]], to_target: bool) -> Markup:
    """Return an edge along its points: to the target as wide as its share, which the hover says; else dotted."""
    arrow = arrow_of(edge)
    arrow = arrow if to_target else replace(arrow, colour=sign_colour(edge))
    hover = f"{edge['source']} – {edge['target']}: {edge['kind']}" + (f", {arrow.label}" if to_target else "")
    line = tag(
        "path",
        d=bezier(points),
        fill="none",
        stroke=arrow.colour,
        stroke_width=arrow.width if to_target else 1.6,
        stroke_dasharray="1.6 3.4" if not to_target else "7 4" if arrow.dashed else None,
    )
    heads = []
    if edge["kind"] == "directed":
        heads = [head_of(*points[-1], arrow, _angle(points))]
    elif edge["kind"] == "bidirected":
        heads = [tag("circle", cx=x, cy=y, r=3.2, fill=arrow.colour) for x, y in (points[0], points[-1])]
    return tag("g", tag("title", elided(hover, 600)), line, *heads)


def _note(shown: int, left_out: int) -> str:
    """Return the line below the title."""
    more = f", {left_out} with fewer edges not drawn" if left_out else ""
    return f"{shown} features{more}; dotted: between features, without a share; without a head: direction open"


def _key() -> tuple[list[tuple[float, Markup]], float]:
    """Return the key of the tiers' colours, each with its position from the left, and its whole width."""
    widths = [text_width(TIERS[tier], theme.SMALL) + 44 for tier in FILLS]
    entries = [
        tag(
            "g",
            tag("rect", x=0, y=-9, width=14, height=11, rx=2, fill=FILLS[tier], stroke=theme.FAINT),
            text(20, 0, TIERS[tier], theme.SMALL),
        )
        for tier in FILLS
    ]
    return [(math.fsum(widths[:i]), entry) for i, entry in enumerate(entries)], math.fsum(widths)


def _angle(points: Sequence[tuple[float, float]]) -> float:
    """Return the direction, in degrees clockwise from rightwards, in which a line ends."""
    x0, y0 = points[-2]
    x1, y1 = points[-1]
    return math.degrees(math.atan2(y1 - y0, x1 - x0))
