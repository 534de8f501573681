"""Causal graphs as SVG: causes left by tier, target at the right; black raises, red lowers, grey is not supported,
undecided or unexplained.

The convention of arXiv 2510.18300 (figures 2, 3 and 5) with what it lacks: the verdict and the probability of each
arrow, an interval, its robustness, and the unexplained share. Colour never stands alone: the label says
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
from causeway.core.feature_registry import TIERS, feature_words, level_words
from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import FRAGILE_BELOW, MEMORY_STALL, SUPPORTED, UNEXPLAINED, target_name
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import full_name, sentence
from causeway.plotting.drawing.markup import tag, text_width, wrapped
from causeway.plotting.drawing.theme import text

MARGIN = 18.0
"""Pixels around a stand-alone drawing."""
MOST_ARROWS = 15
FILLS = {"launch": "#eaf1fa", "context": "#fdf3e4", "counter": "#e8f5f1"}
WORDS = {"+": "raises", "-": "lowers"}
OTHER = "#f1f3f5"
"""Fill of features without a tier."""
MOST_NODES = 60
WIDEST_LABEL = 250.0
"""Pixels of a line of a feature's name."""
LONGEST_LEVEL = 48
"""Characters of a level on an arrow."""
LINE = 16.0
PORT = re.compile(r":\w+(?::w)?(?=->|$)")
POINTS = 72.0
"""graphviz measures boxes in inches and places them in points; one point is taken for one pixel."""
SHAPE = re.compile(r'<g id="[^"]*" class="(?:node|edge)">\s*<title>(.*?)</title>(.*?)</g>', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """One arrow into the target, and how it is drawn: `label` above it and `details` below it."""

    source: str
    colour: str
    width: float
    head: str
    dashed: bool
    label: str
    details: tuple[str, ...] = ()
    hover: str = ""

    @property
    def size_of_words(self) -> tuple[float, float]:
        """Width of the words, and their height with the line in the middle; pixels."""
        wide = max(text_width(line, theme.SIZE, bold=line == self.label) for line in (self.label, *self.details))
        return wide, self.width + 2 * LINE * max(len(self.details), 1) + 10

    def words(self, x: float, y: float) -> list[Markup]:
        """Return the words of an arrow that passes `y`, from `x` on."""
        ink = theme.MUTED if self.colour == theme.UNDECIDED else self.colour
        below = y + self.width / 2 - 1
        details = enumerate(self.details, 1)
        lines = [text(x, y - self.width / 2 - 5, self.label, colour=ink, font_weight="bold")]
        return lines + [text(x, below + LINE * n, line, theme.SMALL, colour=theme.MUTED) for n, line in details]


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
    rest = edge["source"] == UNEXPLAINED
    verdict = edge.get("verdict")
    fragile = robustness is not None and robustness < FRAGILE_BELOW
    word = "" if rest else "sign undecided" if edge["kind"] == "directed" else edge["kind"]
    if not rest and not unresolved(edge):
        word = f"{WORDS[edge['sign']]} {about(edge)},"
    if edge.get("level"):
        word = f"= {elided(level_words(edge['source'], edge['level']), LONGEST_LEVEL)}: {word}"
    ends = (edge["variance_low"], edge["variance_high"])
    share = "share not measured" if percent is None else formatting.percent(percent, *ends)
    judged = [verdict] if verdict else []
    robust = [] if robustness is None else [f"robust {formatting.ratio(robustness)}"]
    hover = [elided(edge["source"], 300), f"{word or 'share'} {share} of {variance_of(edge['target'], of_kernels)}"]
    hover += judged
    hover += [f"{score.replace('robust', 'robustness')}{', fragile' if fragile else ''}" for score in robust]
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
    )


def _of_kernels(edge: Mapping) -> list[str]:
    """Return in which part of the kernels a cause varies, and the most that it explains of the dataset's variance;
    empty where it varies in all.
    """
    percent = edge.get("kernels_percent")
    if percent is None or percent >= 100:
        return []
    most = edge.get("kernels_variance_percent")
    bound = [] if most is None else [f"at most {formatting.percent(most)} of all variance"]
    return [f"in {formatting.percent(percent)} of the kernels", *bound]


def headline(graph: Mapping, scope: str) -> tuple[str, str]:
    """Return the two lines above a graph: what it is about, and what it rests on."""
    about = f"Causes of {target_name(graph['target_node'])}, {scope}"
    effective = graph.get("n_effective")
    rests = formatting.counted(graph["n_rows"], "launch")
    rests += f" ({formatting.count(round(effective))} effective)" if effective is not None else ""
    return about, f"{rests}; verdict: {graph['verdict']}"


def said(graph: Mapping) -> list[str]:
    """Return what a graph without arrows says in words."""
    words: list[str] = []
    for remark in [*graph["sentences"], *graph["reasons"]]:
        if remark and not any(remark.strip().removesuffix(".").lower() in earlier.lower() for earlier in words):
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
    nodes = {node["name"]: node for node in graph["nodes"]}
    drawn = arrows + ([rest] if rest else [])
    tiers = _tiers(arrows, nodes)
    target = graph["target_node"]
    heading = wrapped(elided(target_name(target), 60), 190, theme.SIZE, bold=True)
    lines = [*heading, *wrapped(scope, 190, theme.SMALL)][:5]
    boxes = {arrow.source: _cause(arrow.source, nodes) for arrow in drawn}
    edges: dict[tuple[str, str], Mapping] = {}
    wide = max(arrow.size_of_words[0] for arrow in drawn)
    for port, arrow in enumerate(drawn):
        label, end = _on_its_way(arrow.source)
        boxes |= {label: Box([], "", least=(wide, arrow.size_of_words[1])), end: Box([], "", least=(1.0, 1.0))}
        column = next((i for i, (_, members) in enumerate(tiers) if arrow.source in members), len(tiers) - 1)
        look = {"color": arrow.colour, "penwidth": arrow.width, "style": "dashed" if arrow.dashed else "solid"}
        line = look | {"arrowhead": "none", "headclip": "false", "tailclip": "false", "weight": 50}
        edges[arrow.source, label] = line | {"minlen": len(tiers) - column}
        edges[label, end] = line
        head = {"arrowhead": arrow.head, "headport": f"{port}:w", "tailport": "e", "tailclip": "false", "minlen": 2}
        edges[end, target] = look | head
    tall = 0.95 * math.fsum(boxes[_on_its_way(arrow.source)[0]].size[1] for arrow in drawn)
    hover = full_name(graph.get("scope_name") or scope)
    boxes[target] = Box(lines, theme.PAPER, hover=hover, bold=True, least=(120.0, tall), ports=len(drawn))
    shapes = Shapes(boxes, edges, row_gap=6, column_gap=26)
    parts = []
    for arrow in drawn:
        label, end = _on_its_way(arrow.source)
        ways = (shapes.drawn[way] for way in ((arrow.source, label), (label, end), (end, target)))
        words = arrow.words(shapes.centres[label][0] - wide / 2, shapes.centres[label][1])
        whole = tag("g", tag("title", arrow.hover), *ways, words, data_cause=elided(arrow.source, 300))
        parts.append(whole if arrow.dashed else tag("g", whole, stroke_linecap="square"))  # no gap between pieces
    parts += [shapes.box(name) for name in (*(arrow.source for arrow in drawn), target)]
    wide, high = shapes.size
    for tier, members in tiers:
        x = math.fsum(shapes.centres[name][0] for name in members) / len(members)
        parts.append(text(x, -high - 10, TIERS.get(tier, tier), theme.SMALL, "middle", theme.MUTED))
    left_out = f"{formatting.counted(omitted, 'weaker arrow')} not drawn; the table lists all."
    below = [_row((left_out, None))] if omitted else []
    about, rests = headline(graph, scope)
    if alone:
        variance = variance_of(target, graph.get("n_kernels", 1) > 1)
        below += [*(_row(*line) for line in KEY), _row((f"width: % of {variance} [interval]", None))]
    return _framed(about, rests if alone else "", parts, (wide, high + 18), below)


def _on_its_way(source: str) -> tuple[str, str]:
    """Return the boxes without a frame that an arrow passes: that of its words, and where it turns to the target."""
    return f"words of {source}", f"end of {source}"


def _row(*entries: tuple[str, object]) -> tuple[Markup, float]:
    """Return a line below a drawing, at the origin, and its width: words, each behind what they explain."""
    x = 0.0
    parts = []
    for words, sample in entries:
        if sample is not None:
            parts.append(tag("g", sample, transform=f"translate({x:.1f} 0)"))
            x += 38
        parts.append(text(x, 0, words, theme.SMALL, colour=theme.MUTED))
        x += text_width(words, theme.SMALL) + 20
    return tag("g", parts), x - 20


def _sample(colour: str, fill: str = "", dashes: str | None = None) -> list[Markup]:
    """Return an arrow of the key."""
    line = tag("path", d="M0 -4h22", stroke=colour, stroke_width=2.0, stroke_dasharray=dashes)
    return [line, tag("path", d="M22 -9l10 5l-10 5z", stroke=colour, fill=fill or colour)]


FRAGILE = f"fragile, robustness below {formatting.ratio(FRAGILE_BELOW)}", _sample(theme.RAISES, dashes="6,3")
KEY = (
    [("raises", _sample(theme.RAISES)), ("lowers", _sample(theme.LOWERS, theme.PAPER))],
    [("not supported, undecided or unexplained", _sample(theme.UNDECIDED)), FRAGILE],
)
"""What the colours, heads and dashes of arrows mean, in two lines."""


def _framed(
    about: str, rests: str, parts: list, size: tuple[float, float], below: Sequence[tuple[Markup, float]] = ()
) -> Markup:
    """Return a drawing, whose origin is its lower left corner, with its heading, two lines unless `rests` is '', and
    with lines below it.
    """
    top = 58.0 if rests else 10.0
    heads = [text(MARGIN, 24, about, 15, font_weight="bold"), text(MARGIN, 43, rests, theme.SMALL, colour=theme.MUTED)]
    widths = [text_width(about, 15, bold=True), text_width(rests, theme.SMALL)] if rests else []
    width = max(size[0], *widths, *(wide for _, wide in below), 0.0) + 2 * MARGIN
    foot = top + size[1] + 8
    places = (f"translate({MARGIN:.1f} {foot + 18 * n:.1f})" for n in range(1, len(below) + 1))
    lines = [tag("g", line, transform=place) for (line, _), place in zip(below, places, strict=True)]
    drawn = tag("g", parts, transform=f"translate({MARGIN:.1f} {top + size[1]:.1f})")
    height = foot + 18 * len(below) + 8
    paper = tag("rect", width=width, height=height, fill=theme.PAPER)
    return theme.svg(width, height, about, paper, heads if rests else [], drawn, lines)


def _tiers(arrows: list[Arrow], nodes: Mapping) -> list[tuple[str, list[str]]]:
    """Return the tiers that have causes, in causal order, each with its members; one that is not known is a column of
    its own behind the others.
    """
    members: dict[str, list[str]] = {}
    for arrow in arrows:
        members.setdefault((nodes.get(arrow.source) or {}).get("tier") or "other", []).append(arrow.source)
    order = [*TIERS, *sorted(set(members) - set(TIERS))]
    return [(tier, members[tier]) for tier in order if tier in members]


def _cause(name: str, nodes: Mapping) -> "Box":
    node = nodes.get(name) or {}
    others = [member for member in node.get("members") or [] if member != name]
    lines = [
        *wrapped(feature_words(name, node.get("group") or ""), WIDEST_LABEL, theme.SIZE),
        *([f"and {len(others)} that move with it"] if others else []),
    ]
    hover = [name, *([f"group: {node['group']}"] if node.get("group") else [])]
    hover += [f"moves with: {', '.join(others)}"] if others else []
    tier = node.get("tier") or ""
    heading = text_width(TIERS[tier], theme.SMALL) if tier in TIERS else 0.0  # which must keep apart from others
    return Box(lines, FILLS.get(tier, OTHER), hover=elided("\n".join(hover), 1500), least=(heading, 26.0))


@dataclass(frozen=True)
class Box:
    """A rectangle with lines of text in its middle; no rectangle where `fill` is ''. It is as
    large as its text in pixels, at least `least` (width, height). Edges end at its `ports`, from top to bottom.
    """

    lines: Sequence[str]
    fill: str
    hover: str = ""
    bold: bool = False
    least: tuple[float, float] = (0.0, 26.0)
    ports: int = 0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, pixels."""
        if not self.lines:
            return self.least
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
    size : (float, float)
        Width and height of the whole, pixels.
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
            if box.ports:
                row = f'width="{box.size[0] - 4:.0f}" height="{(box.size[1] - 4) / box.ports:.0f}"'
                rows = "".join(f'<tr><td port="{port}" {row}></td></tr>' for port in range(box.ports))
                look["label"] = f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{rows}</table>>'
            graph.add_node(number[name], width=width, height=height, **(look if box.fill else {"shape": "none"}))
        if last is not None:
            graph.add_subgraph([number[last]], rank="sink")
        for (source, target), line in edges.items():
            size = max(0.9, 0.6 + 0.2 * line.get("penwidth", 1.0) * (line.get("arrowhead") == "empty"))
            graph.add_edge(number[source], number[target], arrowsize=size, **line)
        graph.layout("dot")
        self.size = tuple(map(float, graph.graph_attr["bb"].split(",")[2:]))
        places = {name: map(float, graph.get_node(number[name]).attr["pos"].split(",")) for name in boxes}
        self.centres = {name: (x, -y) for name, (x, y) in places.items()}
        svg = graph.draw(prog="dot", format="svg").decode().replace('"white"', f'"{theme.PAPER}"')
        shapes = {PORT.sub("", html.unescape(name)): shape.strip() for name, shape in SHAPE.findall(svg)}
        titles = number | {ends: f"{number[ends[0]]}->{number[ends[1]]}" for ends in edges}
        self.drawn = {key: Markup(shapes[title]) for key, title in titles.items()}  # noqa: S704 - drawn without any text

    def words(self, name: str) -> list[Markup]:
        """Return the text of a box."""
        x, y = self.centres[name]
        box = self.boxes[name]
        first = y - (len(box.lines) - 1) * LINE / 2 + 4.5
        head, *more = box.lines
        below = theme.INK if box.fill else theme.MUTED
        lines = [text(x, first, head, anchor="middle", font_weight="bold" if box.bold else None)]
        return lines + [text(x, first + n * LINE, line, theme.SMALL, "middle", below) for n, line in enumerate(more, 1)]

    def box(self, name: str) -> Markup:
        """Return a box with its text and what it says on hover."""
        return tag("g", tag("title", self.boxes[name].hover or name), self.drawn[name], self.words(name))


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
    nodes = {node["name"]: node for node in graph["nodes"]}
    boxes = {name: _cause(name, nodes) for name in shown}
    boxes[target] = Box(
        wrapped(target_name(target), WIDEST_LABEL, theme.SIZE, bold=True), theme.PAPER, bold=True, least=(0.0, 40.0)
    )
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
    swatch = {"y": -10, "width": 30, "height": 13, "rx": 4, "stroke": theme.FAINT}
    key = _row(*((TIERS[tier], tag("rect", fill=fill, **swatch)) for tier, fill in FILLS.items()))
    return _framed(
        f"Context of the causes of {target_name(target)}, {scope}",
        note,
        parts,
        (shapes.size[0], shapes.size[1] + 6),
        [key],
    )


def notice(title: str, below: str, sentences: Sequence[str]) -> Markup:
    """Return the small figure that stands where there is nothing to draw: a title and, in words, why."""
    wide = max(524.0, text_width(title, 15, bold=True))
    lines = [line for words in sentences for line in wrapped(elided(words, 600), wide - 20, theme.SIZE)]
    tall = 20.0 * len(lines)
    bar = tag("rect", y=-tall, width=4, height=tall, fill=theme.UNDECIDED)
    words = [text(16, 20 * n - tall - 6, line) for n, line in enumerate(lines, 1)]
    return _framed(title, below, [bar, words], (wide, tall))
