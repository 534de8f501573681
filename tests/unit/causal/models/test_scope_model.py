"""The model of a scope holds what the search used, and comes back from its files as it was."""

import networkx as nx
import numpy as np
import pytest
from scopes_with_models import launches, searched

from causeway.causal.models.scope_model import IDENTITY, UNMEASURED, read_model, scope_model, write_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def found():
    return searched()


@pytest.fixture(scope="module")
def model(found):
    return scope_model(found[0], found[1])


def test_the_frame_holds_what_was_measured(found, model):
    columns, times = launches(3)
    assert model.frame.columns[-1] == model.value == "duration_ns"
    assert np.allclose(model.frame["duration_ns"], times)
    measured = {column.name: column.values for column in columns}
    assert set(model.causes) == {arrow.name for arrow in found[0].arrows} == set(measured) - {"noise", "idle_before_ns"}
    for name in model.frame.columns[:-1]:
        assert model.frame[name].tolist() == pytest.approx(measured[name].tolist()), name
    assert model.frame["stream"].dtype == "category"
    assert model.frame.index.names == list(IDENTITY)


def test_the_graph_follows_roles_and_ends_in_the_value(model):
    assert nx.is_directed_acyclic_graph(model.graph)
    assert list(model.graph) == list(model.frame.columns)
    assert set(model.graph.predecessors("duration_ns")) == set(model.causes)
    assert model.graph["launches_in_flight"]["dram_sectors"]["open"] == 0
    order = {name: number for number, name in enumerate(model.frame.columns)}
    assert all(order[source] < order[target] for source, target in model.graph.edges)


def test_an_edge_without_a_direction_is_an_unmeasured_common_cause(model):
    graph = model.graph.copy()
    graph.add_edge("launches_in_flight", "stream", open=1)
    whole = type(model)(frame=model.frame, graph=graph, value=model.value, causes=model.causes).with_unmeasured()
    common = f"{UNMEASURED} launches_in_flight and stream"
    assert set(whole.successors(common)) == {"launches_in_flight", "stream"}
    assert not whole.has_edge("launches_in_flight", "stream")


def test_files_hold_the_model(model, tmp_path):
    write_model(model, tmp_path, {"dataset": "d"})
    again = read_model(tmp_path)
    assert again.frame.equals(model.frame)
    assert set(again.graph.edges(data="open")) == set(model.graph.edges(data="open"))
    assert (again.value, again.causes) == (model.value, model.causes)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_model(again, tmp_path, {"dataset": "d"})
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_a_refusal_has_a_model_without_rows(found, tmp_path):
    empty = scope_model(found[0], None)
    write_model(empty, tmp_path, {})
    assert read_model(tmp_path).frame.shape == (0, 1)
    assert read_model(tmp_path).causes == ()
