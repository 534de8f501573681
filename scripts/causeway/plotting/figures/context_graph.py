"""The context graph: how the causes and their neighbours hang together, and the page of all graphs of one target."""

import math
from collections.abc import Mapping

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
    unresolved,
)

MOST_NODES = 60


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
    degree: dict[str, int] = {}
    parents = {edge["source"] for edge in graph["edges"] if edge["target"] == target and edge["source"] != UNEXPLAINED}
    for edge in inner:
        for end in (edge["source"], edge["target"]):
            degree[end] = degree.get(end, 0) + 1
    names = sorted(parents | set(degree), key=lambda name: (name not in parents, -degree.get(name, 0), name))
    shown = set(names[:MOST_NODES])
    tiers = {node["name"]: node.get("tier") or "" for node in graph["nodes"]}
    sizes = {name: (text_width(elided(name, 34), theme.SIZE) + 22, 26.0) for name in names[:MOST_NODES]}
    sizes[target] = (text_width(elided(target, 34), theme.SIZE, bold=True) + 28, 40.0)
    drawn = {}
    for edge in [*inner, *(edge for edge in graph["edges"] if edge["target"] == target and edge["source"] in shown)]:
        if edge["source"] in sizes and edge["target"] in sizes and edge["source"] != edge["target"]:
            drawn.setdefault((edge["source"], edge["target"]), edge)
    layout = arrange(
        sizes,
        [Line(*ends, weight=3 if ends[1] == target else 1) for ends in drawn],
        last=target,
        row_gap=14,
        column_gap=46,
    )
    parts = []
    for ends, edge in drawn.items():
        arrow = arrow_of(edge)
        open_ended = unresolved(edge)
        colour = theme.UNDECIDED if open_ended else arrow.colour
        points = layout.lines[ends]
        inner_edge = ends[1] != target
        width = 1.6 if inner_edge else arrow.width
        hover = f"{edge['source']} – {edge['target']}: {edge['kind']}" + (
            f", {arrow.label}" if ends[1] == target else ""
        )
        parts.append(
            tag(
                "g",
                tag("title", elided(hover, 600)),
                tag(
                    "path",
                    d=bezier(points),
                    fill="none",
                    stroke=colour,
                    stroke_width=width,
                    stroke_dasharray="1.6 3.4" if inner_edge else "7 4" if arrow.dashed else None,
                ),
                head_of(*points[-1], arrow, _angle(points)) if edge["kind"] == "directed" else None,
                (
                    tag("circle", cx=points[0][0], cy=points[0][1], r=3.2, fill=colour)
                    if edge["kind"] == "bidirected"
                    else None
                ),
                (
                    tag("circle", cx=points[-1][0], cy=points[-1][1], r=3.2, fill=colour)
                    if edge["kind"] == "bidirected"
                    else None
                ),
            )
        )
    for name in names[:MOST_NODES]:
        parts.append(
            box_of(name, [elided(name, 34)], layout.boxes[name], FILLS.get(tiers.get(name, ""), "#f1f3f5"), hover=name)
        )
    parts.append(box_of(target, [elided(target, 34)], layout.boxes[target], theme.PAPER, theme.INK, bold=True))
    about = f"Context of the causes of {target}, {scope}"
    left_out = len(names) - len(shown)
    note = f"{len(shown)} features" + (f", {left_out} with fewer edges not drawn" if left_out else "")
    note += "; dotted: between features, without a share; without a head: direction open"
    key = [
        tag(
            "g",
            tag("rect", x=0, y=-9, width=14, height=11, rx=2, fill=FILLS[t], stroke=theme.FAINT),
            text(20, 0, TIERS[t], theme.SMALL),
        )
        for t in FILLS
    ]
    widths = [text_width(TIERS[t], theme.SMALL) + 44 for t in FILLS]
    places = [math.fsum(widths[:i]) for i in range(len(widths))]
    width = max(
        layout.width + 2 * MARGIN,
        math.fsum(widths) + 2 * MARGIN,
        text_width(note, theme.SMALL) + 2 * MARGIN,
        text_width(about, 15, True) + 2 * MARGIN,
    )
    return document(
        width,
        layout.height + 118,
        about,
        text(MARGIN, 24, about, 15, font_weight="bold"),
        text(MARGIN, 43, note, theme.SMALL, colour=theme.MUTED),
        tag("g", parts, transform=f"translate({MARGIN:.1f} 64)"),
        [
            tag("g", part, transform=f"translate({MARGIN + x:.1f} {layout.height + 98:.1f})")
            for part, x in zip(key, places, strict=True)
        ],
    )


def _angle(points: list[tuple[float, float]]) -> float:
    """Return the direction, in degrees clockwise from rightwards, in which a line ends."""
    x0, y0 = points[-2]
    x1, y1 = points[-1]
    return math.degrees(math.atan2(y1 - y0, x1 - x0))
