"""Where the nodes, labels and lines of a graph lie: graphviz' `dot`, which keeps boxes and labels of any number of
nodes apart.

Sizes are measured before the layout and handed over as fixed, so that it does not depend on the fonts of a machine.
Coordinates are pixels, y downwards.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

POINTS = 72.0
"""graphviz measures boxes in inches and places them in points; one point is taken for one pixel."""


@dataclass(frozen=True)
class Box:
    """A placed rectangle: centre and size in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """The left edge."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Line:
    """A line from box to box, left to right. `length` is the least number of columns it spans, `weight` how straight
    it is kept.
    """

    source: str
    target: str
    length: int = 1
    weight: int = 1


@dataclass(frozen=True)
class Layout:
    """Boxes by name, the points of each line (a start, then three points for each cubic Bezier), and the size of the
    whole.
    """

    boxes: dict[str, Box]
    lines: dict[tuple[str, str], list[tuple[float, float]]]
    width: float
    height: float


def arrange(
    sizes: Mapping[str, tuple[float, float]],
    lines: Iterable[Line],
    last: str | None = None,
    row_gap: float = 12.0,
    column_gap: float = 40.0,
) -> Layout:
    """Lay out boxes in columns from left to right.

    Parameters
    ----------
    sizes : mapping of str to (width, height)
        Pixels of each box, in the order from top to bottom that is wanted where the lines leave a choice.
    lines : iterable of Line
        At most one for each pair of boxes.
    last : str or None
        A box that stands alone in the last column.
    row_gap, column_gap : float
        Least distances in pixels.
    """
    import pygraphviz

    lines = list(lines)
    graph = pygraphviz.AGraph(strict=True, directed=True)
    graph.graph_attr.update(
        rankdir="LR", nodesep=row_gap / POINTS, ranksep=column_gap / POINTS, splines="spline", outputorder="nodesfirst"
    )
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    graph.edge_attr.update(arrowhead="none")
    number = {name: f"n{i}" for i, name in enumerate(sizes)}
    for name, (width, height) in sizes.items():
        graph.add_node(number[name], width=f"{width / POINTS:.4f}", height=f"{height / POINTS:.4f}")
    if last is not None:
        graph.add_subgraph([number[last]], rank="sink")
    for line in lines:
        key = (number[line.source], number[line.target])
        if graph.has_edge(*key):
            graph.remove_edge(*key)
        graph.add_edge(*key, minlen=line.length, weight=line.weight)
    graph.layout("dot")
    _, _, width, height = (float(value) for value in graph.graph_attr["bb"].split(","))
    boxes = {}
    for name, (box_width, box_height) in sizes.items():
        x, y = (float(value) for value in graph.get_node(number[name]).attr["pos"].split(","))
        boxes[name] = Box(x, height - y, box_width, box_height)
    paths = {}
    for line in lines:
        text = graph.get_edge(number[line.source], number[line.target]).attr["pos"]
        points = [point.split(",") for point in text.split() if not point.startswith(("s,", "e,"))]
        paths[line.source, line.target] = [(float(x), height - float(y)) for x, y in points]
    return Layout(boxes, paths, width, height)
