"""Causal graphs as SVG: causes left by tier, target at the right; black raises, red lowers, grey is not supported,
undecided or unexplained.

The convention of arXiv 2510.18300 (figures 2, 3 and 5) with what it lacks: the verdict and the probability of each
arrow, an interval, its stability and robustness, and the unexplained share. Colour never stands alone: the label says
what is raised or lowered, and the verdict; the head is filled or open, a fragile arrow dashed.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.feature_registry import TIERS
from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import FRAGILE_BELOW, MEMORY_STALL, SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import full_name, sentence
from causeway.plotting.drawing.markup import tag, text_width, wrapped
from causeway.plotting.drawing.theme import text

MARGIN = 18.0
"""Pixels around a stand-alone drawing."""
MOST_ARROWS = 15
FILLS = {"launch": "#eaf1fa", "context": "#fdf3e4", "counter": "#e8f5f1"}
WORDS = {"+": "raises", "-": "lowers"}
COLOURS = {"launch": "blue", "context": "yellow", "counter": "green"}
OTHER = "#f1f3f5"
"""Fill of features without a tier."""
SIGNS = "black raises; red with an open head lowers; grey: not supported, undecided or unexplained"
MOST_NODES = 60
LONGEST_LABEL = 34
"""Characters of a feature's name that are shown."""
LINE = 16.0
POINTS = 72.0
"""graphviz measures boxes in inches and places them in points; one point is taken for one pixel."""
SHAPE = re.compile(r'<g id="[^"]*" class="(?:node|edge)">\s*<title>(.*?)</title>(.*?)</g>', re.DOTALL)


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
    fragile = robustness is not None and robustness < FRAGILE_BELOW
    word = "" if rest else "sign undecided" if edge["kind"] == "directed" else edge["kind"]
    if not rest and not unresolved(edge):
        word = f"{WORDS[edge['sign']]} {about(edge)},"
    if edge.get("level"):
        word = f"= {elided(edge['level'], 24)}: {word}"
    ends = (edge["variance_low"], edge["variance_high"])
    share = "share not measured" if percent is None else formatting.percent(percent, *ends)
    judged = [verdict] if verdict else []
    robust = [] if robustness is None else [f"robust {formatting.ratio(robustness)}"]
    hover = [elided(edge["source"], 300), f"{word or 'share'} {share} of {variance_of(edge['target'], of_kernels)}"]
    hover += [*judged, *([] if stability is None else [f"holds in {100 * stability:.0f} % of halves of the run"])]
    hover += [f"{one.replace('robust', 'robustness')}{', fragile' if fragile else ''}" for one in robust]
    hover += [] if edge.get("q_value") is None else [formatting.q_value(edge["q_value"])]
    return Arrow(
        source=edge["source"],
        colour=theme.UNDECIDED if rest or verdict not in (SUPPORTED, None) else sign_colour(edge),
        width=1.2 + 0.11 * min(max(percent or 0.0, 0.0), 80.0),
        head="none" if edge["kind"] == "undirected" else "empty" if not rest and edge["sign"] == "-" else "normal",
        dashed=fragile,
        label=f"{word} {share}".strip(),
        details=tuple(", ".join(line) for line in ([*judged, *robust], _of_kernels(edge)) if line),
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
        With a heading and what the signs mean; without them where the page around it has both.
    """
    arrows, rest, omitted = arrows_into(graph)
    if not arrows:
        return notice(*headline(graph, scope), said(graph)[:4])
    if len(arrows) == 1:
        return draw_one_cause(graph, scope, arrows[0], rest, alone)
    nodes = {node["name"]: node for node in graph["nodes"]}
    drawn = arrows + ([rest] if rest else [])
    tiers = _tiers(arrows, nodes)
    target = graph["target_node"]
    lines = [*wrapped(elided(target, 60), 190, theme.SIZE, bold=True), *wrapped(scope, 190, theme.SMALL)][:5]
    boxes = {arrow.source: _cause(arrow.source, nodes) for arrow in drawn}
    boxes |= {f"label of {arrow.source}": _label(arrow) for arrow in drawn}
    hover = full_name(graph.get("scope_name") or scope)
    tall = math.fsum(boxes[f"label of {arrow.source}"].size[1] + 9 for arrow in drawn) - 9
    boxes[target] = Box(lines, theme.PAPER, hover=hover, bold=True, least=(120.0, tall))
    edges = {}
    for arrow in drawn:
        label = f"label of {arrow.source}"
        column = next((i for i, (_, members) in enumerate(tiers) if arrow.source in members), len(tiers) - 1)
        look = {"color": arrow.colour, "penwidth": arrow.width, "style": "dashed" if arrow.dashed else "solid"}
        edges[arrow.source, label] = {**look, "arrowhead": "none", "minlen": len(tiers) - column, "weight": 50}
        edges[label, target] = {**look, "arrowhead": arrow.head}
    shapes = Shapes(boxes, edges, row_gap=9, column_gap=34)
    parts = []
    for arrow in drawn:
        label = f"label of {arrow.source}"
        drawing = shapes.drawn[arrow.source, label], shapes.drawn[label, target], shapes.words(label)
        parts.append(tag("g", tag("title", arrow.hover), *drawing, data_cause=elided(arrow.source, 300)))
    parts += [shapes.box(name) for name in (*(arrow.source for arrow in drawn), target)]
    for tier, members in tiers:
        x = math.fsum(shapes.centres[name][0] for name in members) / len(members)
        parts.append(text(x, -shapes.height - 10, TIERS.get(tier, tier), theme.SMALL, "middle", theme.MUTED))
    below = [f"{formatting.counted(omitted, 'weaker arrow')} not drawn; the table lists all."] if omitted else []
    about, rests = headline(graph, scope)
    if alone:
        fragile = f"; dashed: fragile, robustness below {formatting.ratio(FRAGILE_BELOW)}"
        below.append(f"{SIGNS}{fragile if any(arrow.dashed for arrow in drawn) else ''}")
        below.append(f"width: % of {variance_of(target, graph.get('n_kernels', 1) > 1)} [interval]")
    return _framed(about, [rests] if alone else [], parts, shapes, below, 18.0, alone)


def _framed(
    about: str, rests: Sequence[str], parts: list, shapes: "Shapes", below: Sequence[str], room: float, headed: bool
) -> Markup:
    """Return a drawing with its heading, two lines, and with lines below it; `room` pixels are above the boxes."""
    top = (58.0 if headed else 10.0) + room
    width = max([shapes.width, *(text_width(line, theme.SMALL) for line in (*rests, *below))])
    width = max(width, text_width(about, 15, bold=True) if headed else 0.0) + 2 * MARGIN
    foot = top + shapes.height + 8
    lines = _heading(about, *rests) if headed else []
    lines += [text(MARGIN, foot + 18 * n, line, theme.SMALL, colour=theme.MUTED) for n, line in enumerate(below, 1)]
    drawn = tag("g", parts, transform=f"translate({MARGIN:.1f} {top + shapes.height:.1f})")
    return document(width, foot + 18 * len(below) + 8, about, lines, drawn)


def _heading(about: str, *rests: str) -> list[Markup]:
    """Return the title of a drawing and the line below it."""
    below = [text(MARGIN, 43, line, theme.SMALL, colour=theme.MUTED) for line in rests]
    return [text(MARGIN, 24, about, 15, font_weight="bold"), *below]


def _tiers(arrows: list[Arrow], nodes: Mapping) -> list[tuple[str, list[str]]]:
    """Return the tiers that have causes, in causal order, each with its members; one that is not known is a column of
    its own behind the others.
    """
    found: dict[str, list[str]] = {}
    for arrow in arrows:
        found.setdefault((nodes.get(arrow.source) or {}).get("tier") or "other", []).append(arrow.source)
    order = [*TIERS, *sorted(set(found) - set(TIERS))]
    return [(tier, found[tier]) for tier in order if tier in found]


def _others(name: str, nodes: Mapping) -> list[str]:
    return [member for member in (nodes.get(name) or {}).get("members") or [] if member != name]


def _cause(name: str, nodes: Mapping) -> "Box":
    node = nodes.get(name) or {}
    others = _others(name, nodes)
    lines = [elided(name, LONGEST_LABEL), *([f"and {len(others)} that move with it"] if others else [])]
    hover = [name, *([f"group: {node['group']}"] if node.get("group") else [])]
    hover += [f"moves with: {', '.join(others)}"] if others else []
    tier = node.get("tier") or ""
    heading = text_width(TIERS[tier], theme.SMALL) if tier in TIERS else 0.0  # which must keep apart from others
    return Box(lines, FILLS.get(tier, OTHER), hover=elided("\n".join(hover), 1500), least=(heading, 26.0))


def _label(arrow: Arrow) -> "Box":
    """Return the words of an arrow, which stand in its line."""
    ink = theme.MUTED if arrow.colour == theme.UNDECIDED else arrow.colour
    return Box([arrow.label, *arrow.details], "", bold=True, ink=ink)


@dataclass(frozen=True)
class Box:
    """A rectangle with lines of text in its middle, the first one in `ink`; no rectangle where `fill` is ''. It is as
    large as its text in pixels, at least `least` (width, height).
    """

    lines: Sequence[str]
    fill: str
    hover: str = ""
    bold: bool = False
    ink: str = theme.INK
    least: tuple[float, float] = (0.0, 26.0)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, pixels."""
        wide = max(text_width(line, theme.SIZE, self.bold and not n) for n, line in enumerate(self.lines))
        return max(wide + 22, self.least[0]), max(LINE * len(self.lines) + 10, self.least[1])


class Shapes:
    """Boxes and edges as graphviz' `dot` places and draws them, from left to right, without their text: it is written
    in lines of the page's own font, so that nothing depends on the fonts of the machine that draws.

    Parameters
    ----------
    boxes : mapping of str to Box
        From top to bottom as far as the edges leave a choice.
    edges : mapping of (str, str) to mapping
        Attributes of graphviz by source and target.
    last : str or None
        A box that stands alone in the last column.
    row_gap, column_gap : float
        Least distances in pixels.

    Attributes
    ----------
    drawn : dict of str or (str, str) to Markup
        Shapes of boxes and edges; the origin is the lower left corner.
    centres : dict of str to (float, float)
        Of the boxes, in the same coordinates.
    width, height : float
        Of the whole, pixels.
    """

    def __init__(
        self,
        boxes: Mapping[str, Box],
        edges: Mapping[tuple[str, str], Mapping],
        last: str | None = None,
        row_gap: float = 14.0,
        column_gap: float = 46.0,
    ) -> None:
        import pygraphviz

        self.boxes = boxes
        number = {name: f"n{place}" for place, name in enumerate(boxes)}
        gaps = {"nodesep": row_gap / POINTS, "ranksep": column_gap / POINTS}
        graph = pygraphviz.AGraph(strict=True, directed=True, rankdir="LR", outputorder="edgesfirst", **gaps)
        graph.node_attr.update(shape="box", fixedsize="true", label="", style="rounded,filled", color=theme.FAINT)
        for name, box in boxes.items():
            width, height = (f"{side / POINTS:.4f}" for side in box.size)
            look = {"fillcolor": box.fill, "penwidth": 1.6 if box.bold else 1}
            look |= {"color": theme.INK} if box.bold else {}
            graph.add_node(number[name], width=width, height=height, **(look if box.fill else {"shape": "none"}))
        if last is not None:
            graph.add_subgraph([number[last]], rank="sink")
        for (source, target), line in edges.items():
            graph.add_edge(number[source], number[target], arrowsize=0.9, **line)
        graph.layout("dot")
        self.width, self.height = (float(end) for end in graph.graph_attr["bb"].split(",")[2:])
        places = {name: map(float, graph.get_node(number[name]).attr["pos"].split(",")) for name in boxes}
        self.centres = {name: (x, -y) for name, (x, y) in places.items()}
        svg = graph.draw(prog="dot", format="svg").decode().replace('"white"', f'"{theme.PAPER}"')
        shapes = {html.unescape(name): shape.strip() for name, shape in SHAPE.findall(svg)}
        titles = number | {ends: f"{number[ends[0]]}->{number[ends[1]]}" for ends in edges}
        self.drawn = {one: Markup(shapes[title]) for one, title in titles.items()}  # noqa: S704 - drawn without any text

    def words(self, name: str) -> list[Markup]:
        """Return the text of a box."""
        x, y = self.centres[name]
        box = self.boxes[name]
        first = y - (len(box.lines) - 1) * LINE / 2 + 4.5
        head, *more = box.lines
        below = theme.INK if box.fill else theme.MUTED
        lines = [text(x, first, head, anchor="middle", colour=box.ink, font_weight="bold" if box.bold else None)]
        return lines + [text(x, first + n * LINE, line, theme.SMALL, "middle", below) for n, line in enumerate(more, 1)]

    def box(self, name: str) -> Markup:
        """Return a box with its text and what it says on hover."""
        return tag("g", tag("title", self.boxes[name].hover or name), self.drawn[name], self.words(name))


def draw_one_cause(graph: Mapping, scope: str, arrow: Arrow, rest: Arrow | None, alone: bool) -> Markup:
    """Return in words what a graph with one cause has: an arrow between two boxes would say no more."""
    about, rests = headline(graph, scope)
    others = _others(arrow.source, {node["name"]: node for node in graph["nodes"]})
    members = [f"and {len(others)} that move with it"] if others else []
    y = 66.0 if alone else 22.0
    parts = _heading(about, rests) if alone else []
    width = max(560.0, text_width(about, 15, bold=True) + 2 * MARGIN if alone else 0.0)
    for one in [arrow] + ([rest] if rest else []):
        lines = [f"{elided(one.source, 60)}: {one.label}"]
        lines += [", ".join(line) for line in (members if one is arrow else [], [*one.details]) if line]
        x = MARGIN + 16
        ink = theme.MUTED if one.colour == theme.UNDECIDED else one.colour
        words = [text(x, y, lines[0], colour=ink, font_weight="bold")]
        words += [text(x, y + LINE * n, line, theme.SMALL, colour=theme.MUTED) for n, line in enumerate(lines[1:], 1)]
        bar = tag("path", d=f"M{MARGIN + 3} {y - 12}v{LINE * len(lines)}", stroke=one.colour, stroke_width=4.0)
        parts.append(tag("g", tag("title", one.hover), bar, words, data_cause=elided(one.source, 300)))
        width = max(width, *(text_width(line, theme.SIZE, bold=True) + 50 for line in lines))
        y += LINE * len(lines) + 14
    return document(width, y, about, parts)


def draw_context_graph(graph: Mapping, scope: str) -> Markup | None:
    """Return the graph with the edges between features, or None where it has none.

    Only directions that the analysis holds are drawn as arrows; a grey line without a head joins features whose
    direction is open, one with a dot at both ends a hidden common cause. Beyond 60 features those with the most edges
    are drawn, and the number is said.
    """
    target = graph["target_node"]
    into = [edge for edge in graph["edges"] if edge["target"] == target and edge["source"] != UNEXPLAINED]
    inner = [e for e in graph["edges"] if target not in (e["source"], e["target"]) and e["source"] != UNEXPLAINED]
    if not inner:
        return None
    causes = {edge["source"] for edge in into}
    degree = Counter(edge[end] for edge in inner for end in ("source", "target"))
    names = sorted(causes | set(degree), key=lambda name: (name not in causes, -degree[name], name))
    shown = names[:MOST_NODES]
    tiers = {node["name"]: node.get("tier") or "" for node in graph["nodes"]}
    boxes = {name: Box([elided(name, LONGEST_LABEL)], FILLS.get(tiers.get(name, ""), OTHER)) for name in shown}
    boxes[target] = Box([elided(target, LONGEST_LABEL)], theme.PAPER, bold=True, least=(0.0, 40.0))
    edges: dict[tuple[str, str], Mapping] = {}
    for edge in [*inner, *into]:
        ends = edge["source"], edge["target"]
        if ends[0] in boxes and ends[1] in boxes and ends[0] != ends[1]:
            edges.setdefault(ends, edge)
    arrows = {ends: arrow_of(edge) for ends, edge in edges.items()}
    looks = {}
    for (ends, edge), arrow in zip(edges.items(), arrows.values(), strict=True):
        looks[ends] = {"color": sign_colour(edge), "penwidth": 1.6, "style": "dotted", "arrowhead": arrow.head}
        if ends[1] == target:
            looks[ends] |= {"color": arrow.colour, "penwidth": arrow.width, "weight": 3}
            looks[ends] |= {"style": "dashed" if arrow.dashed else "solid"}
        if edge["kind"] == "bidirected":
            looks[ends] |= {"dir": "both", "arrowhead": "dot", "arrowtail": "dot"}
    shapes = Shapes(boxes, looks, last=target)
    parts = []
    for ends, edge in edges.items():
        hover = f"{ends[0]} – {ends[1]}: {edge['kind']}" + (f", {arrows[ends].label}" if ends[1] == target else "")
        parts.append(tag("g", tag("title", elided(hover, 600)), shapes.drawn[ends]))
    parts += [shapes.box(name) for name in boxes]
    left_out = len(names) - len(shown)
    note = f"{len(shown)} features" + (f", {left_out} with fewer edges not drawn" if left_out else "")
    note += "; dotted: between features, without a share; without a head: direction open"
    key = "fills: " + ", ".join(f"{COLOURS[tier]} {TIERS[tier]}" for tier in FILLS)
    return _framed(f"Context of the causes of {target}, {scope}", [note], parts, shapes, [key], 6.0, True)


def document(width: float, height: float, label: str, *children: object) -> Markup:
    """Return a stand-alone SVG, also fit to stand in a page."""
    return tag(
        "svg",
        tag("title", label),
        tag("rect", width=float(width), height=float(height), fill=theme.PAPER),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        font_family=theme.FONT,
    )


def notice(title: str, below: str, sentences: Sequence[str]) -> Markup:
    """Return the small figure that stands where there is nothing to draw: a title and, in words, why."""
    width = max(560.0, text_width(title, 15, bold=True) + 2 * MARGIN)
    lines = [line for words in sentences for line in wrapped(elided(words, 600), width - 2 * MARGIN - 20, theme.SIZE)]
    height = 76.0 + 20 * len(lines)
    return document(
        width,
        height + 8,
        title,
        _heading(title, below),
        tag("rect", x=MARGIN, y=56, width=4, height=height - 64, fill=theme.UNDECIDED),
        [text(MARGIN + 16, 74 + 20 * i, line) for i, line in enumerate(lines)],
    )
