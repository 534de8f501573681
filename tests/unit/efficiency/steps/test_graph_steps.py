"""Executions of a graph that was traced as a whole are steps where nothing better names or shows them."""

import pytest
from efficiency_samples import export
from step_samples import found


def program(folder, executions, ranges=()):
    """Write an export that runs a graph for 100 of 120 ns, then one kernel of 10 ns; and once another graph."""
    begins = [120 * number for number in range(executions)]
    graphs = [(begin, begin + 100) for begin in begins] + [(5_000, 5_300)]
    kernels = [(begin + 105, begin + 115) for begin in begins]
    named = [(start, end, {"kind": "cuda_graph", "name": "CUDA graph 6"}) for start, end in graphs[:-1]]
    named += [(*graphs[-1], {"kind": "cuda_graph", "name": "CUDA graph 7"})]
    return export(folder / "0", 0, kernels, graphs=graphs, ranges=[*named, *ranges])


def test_each_execution_of_the_graph_is_a_step(tmp_path):
    document, rows, _ = found(tmp_path, [program(tmp_path, 7)])
    assert document["source"] == "graphs"
    assert [(row["step"], row["start_ns"], row["duration_ns"]) for row in rows][:6] == [
        (number, 120 * number, 120) for number in range(6)
    ]
    assert [row["busy_ns"] for row in rows][:6] == [110] * 6
    assert document["ranks"][0]["median_ns"] == 120


@pytest.mark.parametrize("executions", [1, 2])
def test_few_executions_are_no_steps(tmp_path, executions):
    document, rows, _ = found(tmp_path, [program(tmp_path, executions)])
    assert (document["source"], rows) == (None, [])


def test_ranges_that_name_steps_come_first(tmp_path):
    ranges = [(240 * number, 240 * number + 239, {"name": f"step {number}"}) for number in range(3)]
    document, rows, _ = found(tmp_path, [program(tmp_path, 6, ranges)])
    assert document["source"] == "annotations"
    assert [row["start_ns"] for row in rows] == [0, 240, 480]
