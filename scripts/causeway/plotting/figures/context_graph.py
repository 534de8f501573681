"""The context graph: how the causes and their neighbours hang together, and the page of all graphs of one target."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from causeway.plotting import theme
from causeway.plotting.causal_graph import (
    FILLS,
    TIERS,
    UNEXPLAINED,
    arrow_of,
    bezier,
    box_of,
    causal_graph_svg,
    head_of,
    unresolved,
)
from causeway.plotting.graph_layout import Line, arrange
from causeway.plotting.marks import MARGIN, document, text
from causeway.plotting.markup import Markup, escape, tag, text_width
from causeway.plotting.names import elided, full_name, short_names

MOST_NODES = 60


def context_edges(graph: Mapping) -> list[Mapping]:
    """Return the edges between features, those that do not end in the target."""
    return [
        edge for edge in graph["edges"] if graph["target_node"] not in (edge["source"], edge["target"]) and edge["source"] != UNEXPLAINED
    ]


def context_graph_svg(graph: Mapping, scope: str) -> Markup | None:
    """Return the graph with the edges between features, or None where it has none.

    Only directions that the analysis holds are drawn as arrows; a grey line without a head joins features whose direction is open, a
    double-headed one a hidden common cause. Beyond 60 features those with the most edges are drawn, and the number is said.
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
    layout = arrange(sizes, [Line(*ends, weight=3 if ends[1] == target else 1) for ends in drawn], last=target, row_gap=14, column_gap=46)
    parts = []
    for ends, edge in drawn.items():
        arrow = arrow_of(edge)
        open_ended = unresolved(edge)
        colour = theme.UNDECIDED if open_ended else arrow.colour
        points = layout.lines[ends]
        inner_edge = ends[1] != target
        width = 1.6 if inner_edge else arrow.width
        hover = f"{edge['source']} – {edge['target']}: {edge['kind']}" + (f", {arrow.label}" if ends[1] == target else "")
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
                tag("circle", cx=points[0][0], cy=points[0][1], r=3.2, fill=colour) if edge["kind"] == "bidirected" else None,
                tag("circle", cx=points[-1][0], cy=points[-1][1], r=3.2, fill=colour) if edge["kind"] == "bidirected" else None,
            )
        )
    for name in names[:MOST_NODES]:
        parts.append(box_of(name, [elided(name, 34)], layout.boxes[name], FILLS.get(tiers.get(name, ""), "#f1f3f5"), hover=name))
    parts.append(box_of(target, [elided(target, 34)], layout.boxes[target], theme.PAPER, theme.INK, bold=True))
    about = f"Context of the causes of {target}, {scope}"
    left_out = len(names) - len(shown)
    note = f"{len(shown)} features" + (f", {left_out} with fewer edges not drawn" if left_out else "")
    note += "; dotted: between features, without a share; without a head: direction open"
    key = [
        tag("g", tag("rect", x=0, y=-9, width=14, height=11, rx=2, fill=FILLS[t], stroke=theme.FAINT), text(20, 0, TIERS[t], theme.SMALL))
        for t in FILLS
    ]
    widths = [text_width(TIERS[t], theme.SMALL) + 44 for t in FILLS]
    places = [sum(widths[:i]) for i in range(len(widths))]
    width = max(
        layout.width + 2 * MARGIN,
        sum(widths) + 2 * MARGIN,
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
        [tag("g", part, transform=f"translate({MARGIN + x:.1f} {layout.height + 98:.1f})") for part, x in zip(key, places, strict=True)],
    )


def _angle(points: list[tuple[float, float]]) -> float:
    """Return the direction, in degrees clockwise from rightwards, in which a line ends."""
    (x0, y0), (x1, y1) = points[-2], points[-1]
    return math.degrees(math.atan2(y1 - y0, x1 - x0))


def scope_label(graph: Mapping, short: Mapping[str, str]) -> str:
    """Return a graph's scope for people."""
    return "whole dataset" if graph["scope"] == "dataset" else short.get(graph.get("scope_name") or "", graph["scope"])


def write_graphs(graphs: Sequence[Mapping], folder: str | Path, title: str) -> None:
    """Write one SVG per scope and an `index.html` with all of them.

    Parameters
    ----------
    graphs : sequence of mappings
        The dataset's graph first, then kernels in the order in which they are to be shown.
    folder : str or Path
        Created; files are named after the scope.
    title : str
        Heading of the page.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    short = short_names(graph["scope_name"] for graph in graphs if graph.get("scope_name"))
    cards = []
    for graph in graphs:
        scope = scope_label(graph, short)
        svg, context = causal_graph_svg(graph, scope), context_graph_svg(graph, scope)
        (folder / f"{graph['scope']}.svg").write_text(svg + "\n", encoding="utf-8")
        links = [tag("a", "this graph alone", href=f"{graph['scope']}.svg")]
        if context is not None:
            (folder / f"{graph['scope']}.context.svg").write_text(context + "\n", encoding="utf-8")
            links += [" · ", tag("a", "context graph", href=f"{graph['scope']}.context.svg")]
        name = graph.get("scope_name")
        caption = tag("figcaption", tag("code", full_name(name)) if name else "All kernels together", tag("span", links, class_="links"))
        cards.append(tag("figure", tag("div", svg, class_="graph"), caption, id=graph["scope"]))
    found = sum(any(edge["source"] != UNEXPLAINED for edge in graph["edges"]) for graph in graphs)
    lead = (
        f"{len(graphs)} graph{'s' if len(graphs) != 1 else ''}, {found} with causes. Black raises, red lowers, grey is undecided or"
        " unexplained; an open head also means lowers, a dashed arrow is fragile. Hover for members, stability and robustness."
    )
    body = [tag("h1", title), tag("p", lead), tag("main", cards or tag("p", "No kernel was analysed."))]
    head = [tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"), tag("title", title)]
    page = tag("html", tag("head", head, tag("style", Markup(STYLE))), tag("body", body), lang="en")
    (folder / "index.html").write_text(f"<!doctype html>\n{escape(page)}\n", encoding="utf-8")


STYLE = f"""
body {{ font: 15px/1.5 system-ui, 'Segoe UI', Roboto, {theme.FONT}; color: {theme.INK}; margin: 24px; background: #f6f8fa; }}
h1 {{ font-size: 22px; margin: 0 0 4px; }}
p {{ margin: 0 0 16px; color: {theme.MUTED}; max-width: 90ch; }}
main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(560px, 100%), 1fr)); gap: 16px; align-items: start; }}
figure {{ margin: 0; background: #fff; border: 1px solid {theme.GRID}; border-radius: 6px; padding: 8px; break-inside: avoid; }}
.graph svg {{ display: block; max-width: 100%; height: auto; }}
figcaption {{ font-size: 13px; color: {theme.MUTED}; padding: 6px 10px; display: flex; gap: 12px; justify-content: space-between; }}
figcaption code {{ overflow-wrap: anywhere; max-height: 4.5em; overflow: auto; }}
.links {{ white-space: nowrap; }}
a {{ color: #0550ae; }}
"""
