"""What must hold of every drawn causal graph, as of every statement: it says of each cause what its table says."""

import html
import re
from collections.abc import Callable, Sequence

from causeway.core.formatting import elided, percent
from causeway.core.logs import LOG
from causeway.core.schemas import Row
from causeway.core.vocabulary import SUPPORTED, UNEXPLAINED
from causeway.findings.invariants import ROUNDING

ARROW = re.compile(r'<g data-cause="([^"]*)">(.*?)</g>', re.DOTALL)
STROKE = re.compile(r'<path [^>]*stroke="([^"]*)"')
TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")
LONGEST_NAME = 300
"""Characters by which an arrow names its cause."""


def contradictions(drawing: str, rows: Sequence[Row], grey: str) -> dict[str, str]:
    """Return the causes of which a drawing says something else than their rows do, each with what that is.

    Parameters
    ----------
    drawing : str
        SVG with an element `<g data-cause="...">` for each arrow.
    rows : sequence of mapping
        Of `contributions.parquet`, the unexplained rest among them.
    grey : str
        The colour of what is not supported.
    """
    by_name = {elided(row["feature"], LONGEST_NAME): row for row in rows}
    differences = {}
    for name, inside in ARROW.findall(drawing):
        cause = html.unescape(name)
        wrong = _contradiction(by_name.get(cause), inside, grey)
        if wrong:
            differences[cause] = wrong
    return differences


def _contradiction(row: Row | None, inside: str, grey: str) -> str:
    """Return what an arrow says that its row does not; empty if nothing."""
    if row is None:
        return "its table has no such cause"
    words = [html.unescape(text).replace("\u00a0", " ") for text in TEXT.findall(inside)]
    is_rest = row["feature"] == UNEXPLAINED
    if (is_rest or row["verdict"] != SUPPORTED) and set(STROKE.findall(inside)) != {grey}:
        return f"it is drawn as supported, its table says {row['verdict']}"
    if not is_rest and not any(line.split(",")[0] == row["verdict"] for line in words):
        return f"it does not say that it is {row['verdict']}"
    share = row["variance_percent"]
    if share is not None and not any(
        percent(share, row["variance_low"], row["variance_high"]) in line for line in words
    ):
        return "its share is not that of its table"
    most = row.get("kernels_percent")
    if share is not None and most is not None and share > most + ROUNDING:
        return "its share is more than that of the kernels in which it varies"
    return ""


def consistent_graph(graph: Row, rows: Sequence[Row], draw: Callable[[Row], str], grey: str) -> Row:
    """Return a graph without the arrows whose drawing contradicts the table; each is logged.

    Parameters
    ----------
    graph : mapping
        A document of `config/schemas/graph.schema.json`.
    rows : sequence of mapping
        Its `contributions.parquet`.
    draw : callable
        Returns the drawing of a graph.
    grey : str
        As of `contradictions`.
    """
    wrong = contradictions(draw(graph), rows, grey)
    for cause, reason in wrong.items():
        LOG.warning("not drawn, %s of %s: %s", cause, graph["scope"], reason)
    edges = [
        edge
        for edge in graph["edges"]
        if edge["target"] != graph["target_node"] or elided(edge["source"], LONGEST_NAME) not in wrong
    ]
    return {**graph, "edges": edges}
