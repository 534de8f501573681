"""The page of every causal graph of one target, and the SVG files that it shows."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.plotting.drawing.kernel_labels import full_name, scope_label, short_names
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.causal_graph import UNEXPLAINED, draw_causal_graph, draw_context_graph


def draw_causal_graphs(graphs: Sequence[Mapping], title: str) -> dict[str, Markup]:
    """Return the drawings by file name: one SVG per scope, one more where its features hang together, `index.html`.

    Parameters
    ----------
    graphs : sequence of mappings
        The dataset's graph first, then kernels in the order in which they are to be shown; files are named after
        their scope.
    title : str
        Heading of the page.
    """
    short = short_names(graph["scope_name"] for graph in graphs if graph.get("scope_name"))
    drawn = {}
    shown = []
    for graph in graphs:
        scope = graph["scope"]
        label = scope_label(graph, short)
        drawn[f"{scope}.svg"] = draw_causal_graph(graph, label)
        context = draw_context_graph(graph, label)
        if context is not None:
            drawn[f"{scope}.context.svg"] = context
        name = graph.get("scope_name")
        shown.append(
            {
                "scope": scope,
                "svg": drawn[f"{scope}.svg"],
                "has_context": context is not None,
                "full_name": full_name(name) if name else "",
            }
        )
    n_with_causes = sum(any(edge["source"] != UNEXPLAINED for edge in graph["edges"]) for graph in graphs)
    drawn["index.html"] = rendered("graphs.html", title=title, graphs=shown, n_with_causes=n_with_causes)
    return drawn
