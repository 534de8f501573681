"""Drawn causal graphs hold what statements hold: an arrow says of its cause what the table says."""

import pytest

from causeway.findings.figures import consistent_graph, contradictions
from causeway.plotting.drawing import theme
from causeway.plotting.figures.causal_graph import draw_causal_graph

ROW = {
    "feature": "block_x",
    "verdict": "supported",
    "variance_percent": 12.0,
    "variance_low": 9.0,
    "variance_high": 12.5,
}
ROW |= {"kernels_percent": 12.5, "kernels_variance_percent": 0.09, "sign": "+"}
OTHER = ROW | {"feature": "idle_before_ns", "verdict": "inconclusive", "variance_percent": 30.0}
OTHER |= {"variance_low": 20.0, "variance_high": 40.0, "kernels_percent": 100.0, "kernels_variance_percent": 100.0}
OTHER |= {"sign": "-"}
REST = {"feature": "unexplained", "verdict": "supported", "variance_percent": 58.0, "variance_low": 50.0}
REST |= {
    "variance_high": 66.0,
    "kernels_percent": None,
    "kernels_variance_percent": None,
    "sign": "?",
}
ROWS = [ROW, OTHER, REST]


def graph_of(rows):
    """A graph whose edges say what rows say."""
    same = ("verdict", "variance_percent", "variance_low", "variance_high", "sign")
    same += ("kernels_percent", "kernels_variance_percent")
    edges = [
        {key: row[key] for key in same}
        | {"source": row["feature"], "target": "kernel_variability", "kind": "directed", "sign_of": "target"}
        | {"robustness": 0.5, "q_value": 0.001, "level": None}
        for row in rows
    ]
    nodes = [{"name": row["feature"], "tier": "context", "group": "time", "members": []} for row in rows]
    nodes.append({"name": "kernel_variability", "tier": "target", "group": "target", "members": []})
    words = {
        "target": "kernel_variability",
        "target_node": "kernel_variability",
        "scope": "dataset",
        "verdict": "supported",
    }
    return words | {"nodes": nodes, "edges": edges, "n_rows": 900, "n_kernels": 8, "sentences": [], "reasons": []}


def drawn(graph):
    return draw_causal_graph(graph, "whole dataset")


def test_a_graph_that_says_what_its_table_says_contradicts_nothing():
    graph = graph_of(ROWS)
    assert contradictions(drawn(graph), ROWS, theme.UNDECIDED) == {}
    assert consistent_graph(graph, ROWS, drawn, theme.UNDECIDED) == graph


@pytest.mark.parametrize(
    ("place", "change", "reason"),
    [
        (0, {"verdict": "inconclusive"}, "it is drawn as supported, its table says inconclusive"),
        (0, {"verdict": "refuted"}, "it is drawn as supported, its table says refuted"),
        (1, {"verdict": "supported"}, "it does not say that it is supported"),
        (1, {"variance_percent": 31.0}, "its share is not that of its table"),
        (1, {"variance_high": 44.0}, "its share is not that of its table"),
        (0, {"feature": "another"}, "its table has no such cause"),
        (0, {"kernels_percent": 11.0}, "its share is more than that of the kernels in which it varies"),
    ],
)
def test_an_arrow_that_contradicts_its_row_is_not_drawn(place, change, reason):
    rows = [row | change if number == place else row for number, row in enumerate(ROWS)]
    graph = graph_of(ROWS)
    name = ROWS[place]["feature"]
    assert contradictions(drawn(graph), rows, theme.UNDECIDED) == {name: reason}
    left = consistent_graph(graph, rows, drawn, theme.UNDECIDED)
    assert [edge["source"] for edge in left["edges"]] == [row["feature"] for row in ROWS if row["feature"] != name]
    assert f'data-cause="{name}"' not in drawn(left)


def test_the_whole_dataset_says_in_which_kernels_a_cause_varies():
    words = drawn(graph_of(ROWS))
    assert "in 12 % of the kernels, at most 0.1 % of all variance" in words.replace("\u00a0", " ")
    assert words.count("of the kernels,") == 1, "nothing is said of a cause that varies in all"
