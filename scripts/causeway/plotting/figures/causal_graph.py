"""Causal graphs as SVG: causes left by tier, target at the right; black raises, red lowers, grey is not supported,
undecided or unexplained.

The convention of arXiv 2510.18300 (figures 2, 3 and 5) with what it lacks: the verdict and the probability of each
arrow, an interval, its stability and robustness, and the unexplained share. Colour never stands alone: the label says
what is raised or lowered, and the verdict; the head is filled or open, a fragile arrow dashed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.feature_registry import TIERS
from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import FRAGILE_BELOW, MEMORY_STALL, SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.graph_layout import Layout, Line, arrange
from causeway.plotting.drawing.kernel_labels import full_name
from causeway.plotting.drawing.markup import tag, text_width, wrapped
from causeway.plotting.drawing.svg import MARGIN, document, notice, text
from causeway.plotting.drawing.target_labels import sentence

MOST_ARROWS = 15
FILLS = {"launch": "#eaf1fa", "context": "#fdf3e4", "counter": "#e8f5f1"}
WORDS = {"+": "raises", "-": "lowers"}
LINE = 16.0
Tiers = list[tuple[str, list[str]]]
"""Tiers that have causes, in causal order, each with its members."""


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """One arrow into the target, and how it is drawn; `details` are the lines below its label."""

    source: str
    colour: str
    width: float
    head: str
    dashed: bool
    label: str
    details: tuple[str, ...] = ()
    hover: str = ""
    verdict: str | None = None


def unresolved(edge: Mapping) -> bool:
    """Return whether an edge says nothing about direction: undirected, bidirected, or of undecided sign."""
    return edge["kind"] != "directed" or edge["sign"] not in WORDS


def sign_colour(edge: Mapping) -> str:
    """Return the colour of an edge's sign, whatever its verdict."""
    return theme.UNDECIDED if unresolved(edge) else theme.RAISES if edge["sign"] == "+" else theme.LOWERS


def about(edge: Mapping) -> str:
    """Return what the sign of an arrow is about: in one graph there may be both."""
    if edge.get("sign_of") == "value":
        return "the value"
    return "the memory stall" if edge["target"] == MEMORY_STALL else "the deviation"


def arrow_of(edge: Mapping, of_kernels: bool = False) -> Arrow:
    """Return how the arrow of an edge of `graph.json` is drawn; `of_kernels` tells which variance is shared, as of
    `variance_of`.
    """
    percent = edge["variance_percent"]  # the share that the sentences state
    robustness = edge["robustness"]
    stability = edge["stability"]
    rest = edge["source"] == UNEXPLAINED
    verdict = edge.get("verdict")
    colour = theme.UNDECIDED if rest or verdict != SUPPORTED else sign_colour(edge)
    fragile = robustness is not None and robustness < FRAGILE_BELOW
    word = "" if rest else "sign undecided" if edge["kind"] == "directed" else edge["kind"]
    if not rest and not unresolved(edge):
        word = f"{WORDS[edge['sign']]} {about(edge)},"
    if edge.get("level"):
        word = f"= {elided(edge['level'], 24)}: {word}"
    share = (
        formatting.percent(percent, edge["variance_low"], edge["variance_high"])
        if percent is not None
        else "share not measured"
    )
    judged = [verdict] if verdict else []
    facts = []
    if robustness is not None:
        facts.append(f"robust {formatting.ratio(robustness)}")
    hover = [elided(edge["source"], 300), f"{word or 'share'} {share} of {variance_of(edge['target'], of_kernels)}"]
    hover += [", ".join(judged)] if judged else []
    hover += [f"holds in {100 * stability:.0f} % of halves of the run"] if stability is not None else []
    hover += (
        [f"robustness {formatting.ratio(robustness)}{', fragile' if fragile else ''}"] if robustness is not None else []
    )
    hover += [formatting.q_value(edge["q_value"])] if edge.get("q_value") is not None else []
    head = "none" if edge["kind"] == "undirected" else "open" if not rest and edge["sign"] == "-" else "filled"
    width = 1.2 + 0.11 * min(max(percent or 0.0, 0.0), 80.0)
    return Arrow(
        source=edge["source"],
        colour=colour,
        width=width,
        head=head,
        dashed=fragile,
        label=f"{word} {share}".strip(),
        details=tuple(", ".join(line) for line in ([*judged, *facts], _of_kernels(edge)) if line),
        hover="\n".join(hover),
        verdict=verdict,
    )


def _of_kernels(edge: Mapping) -> list[str]:
    """Return in which part of the kernels a cause varies, and the most that it explains of the dataset's variance;
    empty where it varies in all.
    """
    percent = edge.get("kernels_percent")
    if percent is None or percent >= 100:
        return []
    most = edge.get("kernels_variance_percent")
    bound = [] if most is None else [f"at most {formatting.percent(most)} of the dataset's variance"]
    return [f"varies in {formatting.percent(percent)} of the kernels", *bound]


def box_of(
    name: str, lines: list[str], layout_box, fill: str, edge: str = theme.FAINT, bold: bool = False, hover: str = ""
) -> Markup:
    """Return a node: a rectangle with lines of text in its middle and a hover text."""
    top = layout_box.y - (len(lines) - 1) * LINE / 2 + 4.5
    return tag(
        "g",
        tag("title", hover or name),
        tag(
            "rect",
            x=layout_box.left,
            y=layout_box.y - layout_box.height / 2,
            width=layout_box.width,
            height=layout_box.height,
            rx=5,
            fill=fill,
            stroke=edge,
            stroke_width=1.6 if bold else 1,
        ),
        [
            text(
                layout_box.x,
                top + i * LINE,
                line,
                theme.SIZE if i == 0 or bold else theme.SMALL,
                "middle",
                font_weight="bold" if bold and i == 0 else None,
            )
            for i, line in enumerate(lines)
        ],
    )


def head_of(x: float, y: float, arrow: Arrow, angle: float = 0.0) -> Markup | None:
    """Return the arrow's head with its point at (x, y), turned by `angle` degrees: filled raises, open lowers."""
    if arrow.head == "none":
        return None
    half = 4.0 + 0.45 * arrow.width
    long = 9.0 + 0.5 * arrow.width
    fill = arrow.colour if arrow.head == "filled" else theme.PAPER
    points = f"{x:.1f},{y:.1f} {x - long:.1f},{y - half:.1f} {x - long:.1f},{y + half:.1f}"
    return tag(
        "polygon",
        points=points,
        fill=fill,
        stroke=arrow.colour,
        stroke_width=1.4,
        stroke_linejoin="miter",
        transform=f"rotate({angle:.1f} {x:.1f} {y:.1f})" if angle else None,
    )


def headline(graph: Mapping, scope: str) -> tuple[str, str]:
    """Return the two lines above a graph: what it is about, and what it rests on."""
    about = f"Causes of {graph['target_node']}, {scope}"
    effective = graph.get("n_effective")
    rests = formatting.counted(graph["n_rows"], "launch")
    rests += f" ({formatting.count(round(effective))} effective)" if effective is not None else ""
    return about, f"{rests}; verdict: {graph['verdict']}"


def said(graph: Mapping) -> list[str]:
    """Return what a graph without arrows says in words."""
    words: list[str] = []
    for remark in [*graph["sentences"], *graph["reasons"]]:
        if remark and not any(remark.strip().removesuffix(".").lower() in known.lower() for known in words):
            words.append(sentence(remark))
    return words or [f"No cause found ({formatting.counted(graph['n_rows'], 'launch')})."]


def arrows_into(graph: Mapping) -> tuple[list[Arrow], Arrow | None, int]:
    """Return the arrows of causes, largest first, the arrow of the unexplained share, and how many causes are left
    out.
    """
    into = [edge for edge in graph["edges"] if edge["target"] == graph["target_node"]]
    causes = [edge for edge in into if edge["source"] != UNEXPLAINED]
    causes.sort(key=lambda e: (e["variance_percent"] is None, -(e["variance_percent"] or 0), e["source"]))
    of_kernels = graph.get("n_kernels", 1) > 1
    rest = next((arrow_of(edge, of_kernels) for edge in into if edge["source"] == UNEXPLAINED), None)
    return [arrow_of(edge, of_kernels) for edge in causes[:MOST_ARROWS]], rest, max(len(causes) - MOST_ARROWS, 0)


def draw_causal_graph(graph: Mapping, scope: str, alone: bool = True) -> Markup:
    """Return the graph of the arrows into the target.

    Parameters
    ----------
    graph : mapping
        A document of `config/schemas/graph.schema.json`.
    scope : str
        The scope in words for people: `whole dataset`, or a kernel's short name.
    alone : bool
        With a heading and the legend; without them where the page around it has both.
    """
    arrows, rest, omitted = arrows_into(graph)
    if not arrows:
        return draw_no_cause(graph, scope)
    if len(arrows) == 1:
        return draw_one_cause(graph, scope, arrows[0], rest, alone)
    nodes = {node["name"]: node for node in graph["nodes"]}
    drawn = arrows + ([rest] if rest else [])
    tiers = _tiers(arrows, nodes)
    target = graph["target_node"]
    target_lines = [*wrapped(elided(target, 60), 190, theme.SIZE, bold=True), *wrapped(scope, 190, theme.SMALL)][:5]
    sizes = {arrow.source: _node_size(arrow.source, nodes) for arrow in drawn}
    label_width = max(_label_width(arrow) for arrow in drawn) + 24 + 3.0 * len(drawn)
    sizes |= {f"label of {arrow.source}": (label_width, _label_height(arrow)) for arrow in drawn}
    target_width = max(text_width(line, theme.SIZE, bold=True) for line in target_lines) + 28
    sizes[target] = (max(target_width, 120), max(30.0 * len(drawn), LINE * len(target_lines) + 20))
    columns = len(tiers)
    lines = []
    for arrow in drawn:
        place = next((i for i, (_, members) in enumerate(tiers) if arrow.source in members), columns - 1)
        lines += [
            Line(arrow.source, f"label of {arrow.source}", columns - place, 50),
            Line(f"label of {arrow.source}", target),
        ]
    layout = arrange(sizes, lines, row_gap=9, column_gap=34)
    return _assemble(graph, scope, layout, drawn, tiers, target_lines, omitted, alone)


def _tiers(arrows: list[Arrow], nodes: Mapping) -> Tiers:
    """Return the tiers of the causes; one that is not known is a column of its own behind the others."""
    found: dict[str, list[str]] = {}
    for arrow in arrows:
        found.setdefault((nodes.get(arrow.source) or {}).get("tier") or "other", []).append(arrow.source)
    order = [*TIERS, *sorted(set(found) - set(TIERS))]
    return [(tier, found[tier]) for tier in order if tier in found]


def _others(name: str, nodes: Mapping) -> list[str]:
    return [member for member in (nodes.get(name) or {}).get("members") or [] if member != name]


def _node_lines(name: str, nodes: Mapping) -> list[str]:
    others = _others(name, nodes)
    return [elided(name, 34), *([f"and {len(others)} that move with it"] if others else [])]


def _node_size(name: str, nodes: Mapping) -> tuple[float, float]:
    lines = _node_lines(name, nodes)
    tier = (nodes.get(name) or {}).get("tier") or ""
    heading = (
        text_width(TIERS[tier], theme.SMALL) if tier in TIERS else 0.0
    )  # so that headings of neighbouring columns keep apart
    return max(heading, *(text_width(line, theme.SIZE) + 22 for line in lines)), 26.0 if len(lines) == 1 else 40.0


def _label_height(arrow: Arrow) -> float:
    """Return the height of a box with the arrow in its middle: the label above it, the details below."""
    return max(38.0, 6 + 2 * LINE * len(arrow.details))


def _label_width(arrow: Arrow) -> float:
    details = (text_width(line, theme.SMALL) for line in arrow.details)
    return max(text_width(arrow.label, theme.SIZE, bold=True), *details, 0.0)


def bezier(points: list[tuple[float, float]]) -> str:
    """Return the path of a start and three points for each curve."""
    head, *rest = points
    return f"M{head[0]:.1f} {head[1]:.1f}" + "".join(
        "C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in rest[i : i + 3]) for i in range(0, len(rest), 3)
    )


def _assemble(
    graph: Mapping,
    scope: str,
    layout: Layout,
    drawn: list[Arrow],
    tiers: Tiers,
    lines: list[str],
    omitted: int,
    alone: bool,
):
    nodes = {node["name"]: node for node in graph["nodes"]}
    about, rests = headline(graph, scope)
    target = layout.boxes[graph["target_node"]]
    ordered = sorted(drawn, key=lambda arrow: layout.boxes[f"label of {arrow.source}"].y)
    room = max(_label_width(arrow) for arrow in drawn)
    ports = [target.y + target.height * ((place + 0.5) / len(ordered) - 0.5) for place in range(len(ordered))]
    parts = [_stroke(arrow, layout, target.left, port, room) for arrow, port in zip(ordered, ports, strict=True)]
    parts += [_cause(arrow.source, layout, nodes) for arrow in drawn]
    hover = full_name(graph.get("scope_name") or scope)
    parts.append(box_of(graph["target_node"], lines, target, theme.PAPER, theme.INK, bold=True, hover=hover))
    for tier, members in tiers:
        x = math.fsum(layout.boxes[name].x for name in members) / len(members)
        parts.append(text(x, -10, TIERS.get(tier, tier), theme.SMALL, "middle", theme.MUTED))
    overhang = max((text_width(TIERS.get(t, t), theme.SMALL) / 2 - layout.boxes[m[0]].x for t, m in tiers), default=0.0)
    left = MARGIN + max(overhang, 0.0)
    top = 76.0 if alone else 28.0
    width = max(
        layout.width + left + MARGIN, *((text_width(about, 15, bold=True) + 2 * MARGIN, 560.0) if alone else (0.0,))
    )
    y = top + layout.height
    more = (
        f"{omitted} weaker arrow{'s are' if omitted > 1 else ' is'} not drawn; the table lists all." if omitted else ""
    )
    below = []
    if more:
        y += 22
        below.append(text(MARGIN, y, more, theme.SMALL, colour=theme.MUTED))
    if alone:
        dashed = any(arrow.dashed for arrow in drawn)
        signs, height = legend(width - 2 * MARGIN, dashed, graph["target_node"], graph.get("n_kernels", 1) > 1)
        below.append(tag("g", signs, transform=f"translate({MARGIN:.1f} {y + 26:.1f})"))
        y += 14 + height
    head = (
        [text(MARGIN, 24, about, 15, font_weight="bold"), text(MARGIN, 43, rests, theme.SMALL, colour=theme.MUTED)]
        if alone
        else []
    )
    return document(width, y + 8, about, head, tag("g", parts, transform=f"translate({left:.1f} {top:.1f})"), below)


def _stroke(arrow: Arrow, layout: Layout, end: float, port: float, room: float) -> Markup:
    """Return an arrow: from its cause through its label to the target's edge at x = `end`, height `port`."""
    label = layout.boxes[f"label of {arrow.source}"]
    tip = end - (0.0 if arrow.head == "none" else 9.0 + 0.5 * arrow.width)
    turn = label.left + 7 + room
    bend = (tip - turn) * 0.5
    path = bezier(layout.lines[arrow.source, f"label of {arrow.source}"])
    path += (
        f"L{turn:.1f} {label.y:.1f}C{turn + bend:.1f} {label.y:.1f} {tip - bend:.1f} {port:.1f} {tip:.1f} {port:.1f}"
    )
    dashes = "7 4" if arrow.dashed else None
    ink = theme.MUTED if arrow.colour == theme.UNDECIDED else arrow.colour
    return tag(
        "g",
        tag("title", arrow.hover),
        tag("path", d=path, fill="none", stroke=arrow.colour, stroke_width=arrow.width, stroke_dasharray=dashes),
        head_of(end, port, arrow),
        text(label.left + 7, label.y - 4 - arrow.width / 2, arrow.label, colour=ink, font_weight="bold"),
        [
            text(label.left + 7, label.y + 13 + LINE * i + arrow.width / 2, line, theme.SMALL, colour=theme.MUTED)
            for i, line in enumerate(arrow.details)
        ],
        data_cause=elided(arrow.source, 300),
    )


def _cause(name: str, layout: Layout, nodes: Mapping) -> Markup:
    node = nodes.get(name) or {}
    others = _others(name, nodes)
    hover = [
        name,
        *([f"group: {node['group']}"] if node.get("group") else []),
        *([f"moves with: {', '.join(others)}"] if others else []),
    ]
    fill = FILLS.get(node.get("tier") or "", "#f1f3f5")
    return box_of(name, _node_lines(name, nodes), layout.boxes[name], fill, hover=elided("\n".join(hover), 1500))


def legend(width: float, fragile: bool, target: str, of_kernels: bool = False) -> tuple[list[Markup], float]:
    """Return the signs explained, in as many rows as `width` needs, and their height; `of_kernels` as of
    `variance_of`.
    """
    samples = [("raises", theme.RAISES, "filled", False), ("lowers", theme.LOWERS, "open", False)]
    samples += (
        [(f"fragile (robustness below {formatting.ratio(FRAGILE_BELOW)})", theme.RAISES, "filled", True)]
        if fragile
        else []
    )
    samples += [
        ("not supported, undecided or unexplained", theme.UNDECIDED, "filled", False),
        (f"width: % of {variance_of(target, of_kernels)} [interval]", "", "none", False),
    ]
    parts = []
    x = 0.0
    y = 0.0
    for word, colour, head, dashed in samples:
        sign = 40.0 if colour else 0.0
        room = sign + text_width(word, theme.SMALL) + 18
        if x and x + room - 18 > width:
            x = 0.0
            y = y + 18
        if colour:
            stroke = tag(
                "line",
                x1=x,
                x2=x + 26,
                y1=y,
                y2=y,
                stroke=colour,
                stroke_width=2.4,
                stroke_dasharray="6 3" if dashed else None,
            )
            parts += [
                stroke,
                head_of(
                    x + 34,
                    y,
                    Arrow(source="", colour=colour, width=2.4, head=head, dashed=dashed, label=""),
                ),
            ]
        parts.append(text(x + sign, y + 4.5, word, theme.SMALL, colour=theme.MUTED))
        x += room
    return parts, y + 18


def draw_one_cause(graph: Mapping, scope: str, arrow: Arrow, rest: Arrow | None, alone: bool) -> Markup:
    """Return in words what a graph with one cause has: an arrow between two boxes would say no more."""
    about, rests = headline(graph, scope)
    others = _others(arrow.source, {node["name"]: node for node in graph["nodes"]})
    members = [f"and {len(others)} that move with it"] if others else []
    y = 66.0 if alone else 22.0
    parts = []
    width = 560.0
    for one in [arrow] + ([rest] if rest else []):
        words = f"{elided(one.source, 60)}: {one.label}"
        lines = [", ".join(line) for line in (members if one is arrow else [], [*one.details]) if line]
        numbered = list(enumerate(lines, 1))
        room = LINE * (len(lines) + 1)
        ink = theme.MUTED if one.colour == theme.UNDECIDED else one.colour
        parts.append(
            tag(
                "g",
                tag("title", one.hover),
                tag("path", d=f"M{MARGIN + 3} {y - 12}v{room}", stroke=one.colour, stroke_width=4.0),
                text(MARGIN + 16, y, words, colour=ink, font_weight="bold"),
                [text(MARGIN + 16, y + LINE * n, line, theme.SMALL, colour=theme.MUTED) for n, line in numbered],
                data_cause=elided(one.source, 300),
            )
        )
        width = max(width, *(text_width(line, theme.SIZE, bold=True) + 50 for line in (words, *lines)))
        y += room + 14
    head = [text(MARGIN, 24, about, 15, font_weight="bold"), text(MARGIN, 43, rests, theme.SMALL, colour=theme.MUTED)]
    width = max(width, text_width(about, 15, bold=True) + 2 * MARGIN if alone else 0.0)
    return document(width, y, about, head if alone else [], parts)


def draw_no_cause(graph: Mapping, scope: str) -> Markup:
    """Return the small figure of a graph without arrows: in words what was found, and what would have been."""
    return notice(*headline(graph, scope), said(graph)[:4])
