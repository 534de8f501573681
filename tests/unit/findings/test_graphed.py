"""A program that runs in graphs is not advised to use them."""

import pytest

from causeway.findings import suggestions
from causeway.findings.collection import _graphed
from causeway.findings.suggestions import IN_GRAPHS, of_graphed


def texts():
    """Return every text of advice."""
    for value in vars(suggestions).values():
        if isinstance(value, str) and " " in value:
            yield value
        elif isinstance(value, dict):
            yield from (one for one in value.values() if isinstance(one, str))


def test_no_advice_to_use_graphs_is_left():
    told = [one for one in texts() if "HIP graphs" in one or "in a graph" in one]
    assert len(told) >= 6
    assert {of_graphed(one) for one in told} == {IN_GRAPHS}
    assert of_graphed(None) is None
    kept = suggestions.LOSSES["transfers"]
    assert of_graphed(kept) == kept


@pytest.mark.parametrize(
    ("graph_ns", "nodes", "is_graphed"),
    [(50, 0, True), (49, 0, False), (0, 50, True), (0, 49, False), (0, 0, False)],
)
def test_graphs_with_half_of_the_time_or_of_the_launches_are_how_a_program_runs(graph_ns, nodes, is_graphed):
    device = {"graph_ns": graph_ns, "busy_ns": 100}
    efficiency = {"dataset": "d", "why": None, "breakdown": {"0/0": device}}
    issues = [{"kind": "graph_launches", "count": nodes}] * bool(nodes)
    quality = {"dataset": "d", "issues": issues, "exports": [{"rows": 100}]}
    assert (_graphed([efficiency], [quality]) == {"d"}) == is_graphed
