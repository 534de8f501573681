"""Graphs that were recorded as a whole are compared as kernels are: an execution is a launch."""

import sqlite3

import numpy as np
import pytest

from causeway.comparison.compare import run as compare
from causeway.comparison.runs import launches
from causeway.comparison.runs.matching import match_kernels
from causeway.comparison.runs.run_totals import measure
from causeway.core.tables import read_json, read_table
from causeway.readers.normalise import normalise
from comparison_runs import CHOICES

GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def write_run(folder, graphs, kernels=(), copies=()):
    """Write the tables of a run: graphs (start, end, id), kernels and copies (start, end), ns; return their folder."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "run.sqlite")
    connection.executescript(f"""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (0, 'sample');
        CREATE TABLE {GRAPH} (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER);
        CREATE TABLE {COPY} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, copyKind INTEGER,
            bytes INTEGER);
        CREATE TABLE {KERNEL} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, demangledName INTEGER);
    """)
    connection.executemany(f"INSERT INTO {GRAPH} VALUES (?, ?, 0, ?)", graphs)
    connection.executemany(f"INSERT INTO {KERNEL} VALUES (?, ?, 0, 7, 0)", kernels)
    connection.executemany(f"INSERT INTO {COPY} VALUES (?, ?, 0, 7, 1, 64)", copies)
    connection.commit()
    connection.close()
    normalise(folder / "run.sqlite", folder / "e0", export="e0", source="run.sqlite")
    return folder / "e0"


@pytest.mark.parametrize("kernels", [(), ((5_000, 5_100), (7_000, 7_200))], ids=["graphs alone", "beside a kernel"])
def test_a_whole_graph_is_a_kernel_and_its_execution_a_launch(kernels, tmp_path):
    """Runs that recorded graphs alone were not compared, and beside kernels their time was left out."""
    run = measure("a", [write_run(tmp_path / "a", [(1000, 2500, 9), (4000, 4100, 3), (6000, 6400, 9)], kernels)])
    times = dict(zip(run.kernels.names, run.kernels.launches.tolist(), strict=True))
    assert times == {"CUDA graph 1 of 2": 2, "CUDA graph 2 of 2": 1} | ({"sample": 2} if kernels else {})
    assert run.total_ns == 1500 + 100 + 400 + sum(end - start for start, end in kernels)
    assert (run.launches, run.span_ns) == (3 + len(kernels), (7_200 if kernels else 6_400) - 1_000)


def test_the_span_of_a_run_holds_its_copies(tmp_path):
    """A run of 2.96 s, most of it copies, was told to last 67.5 ms."""
    folder = write_run(tmp_path / "a", (), ((5_000, 5_100), (7_000, 7_200)), copies=((1_000, 2_000), (6_000, 9_000)))
    assert measure("a", [folder]).span_ns == 8_000


@pytest.mark.parametrize("rows", [1, 2, 1 << 18])
def test_graphs_and_the_kernels_beside_them_are_given_by_their_start(rows, tmp_path, monkeypatch):
    """All kernels were given first, so that they stood for the begin of a run, and graphs for its end."""
    monkeypatch.setattr(launches, "BATCH_ROWS", rows)
    graphs = [(start, start + 50, 1 + start // 1000 % 2) for start in (500, 2000, 3000, 6000, 9000)]
    kernels = [(start, start + 40) for start in (1000, 2000, 2500, 7000)]
    run = launches.Launches("a", [write_run(tmp_path / "a", graphs, kernels)])
    batches = list(run.batches())
    starts = np.concatenate([batch.start for batch in batches]).tolist()
    assert starts == sorted(start for start, *_ in [*graphs, *kernels])
    durations = np.concatenate([batch.duration for batch in batches]).tolist()
    assert durations == [50, 40, 40, 50, 40, 50, 50, 40, 50]


def test_graphs_of_runs_with_other_numbers_of_them_are_not_taken_for_each_other(tmp_path):
    one = measure("a", [write_run(tmp_path / "a", [(1000, 2500, 1)])])
    two = measure("b", [write_run(tmp_path / "b", [(1000, 2500, 1), (4000, 4100, 2)])])
    assert not set(one.kernels.names) & set(two.kernels.names)


def test_kernels_without_a_launch_shape_are_no_graphs(tmp_path):
    assert not measure("a", [write_run(tmp_path / "a", (), ((5_000, 5_100), (7_000, 7_200)))]).has_graphs
    assert measure("b", [write_run(tmp_path / "b", [(1000, 2500, 9)])]).has_graphs


def executions(numbers, step=100):
    """Return executions (start, end, id) of graphs, one round of all after the other, that of id i so many times."""
    rounds = [graph for n in range(max(numbers)) for graph, number in enumerate(numbers) if n < number]
    return [(10_000 * n, 10_000 * n + 1000 + step * graph + n % 3, graph) for n, graph in enumerate(rounds)]


@pytest.mark.parametrize(
    ("before", "after", "is_alike"),
    [((200, 100), (210, 100), True), ((200, 100), (400, 200), True), ((200, 100), (100, 200), False)],
    ids=["alike", "a longer recording", "the other order"],
)
def test_graphs_are_matched_by_their_order_and_judged_where_each_has_its_share(before, after, is_alike, tmp_path):
    """They were "exact" matches, also where another graph came first."""
    folders = {
        name: [write_run(tmp_path / name, executions(numbers))]
        for name, numbers in zip("ab", (before, after), strict=False)
    }
    matches = match_kernels(*(measure(name, own).kernels for name, own in folders.items()))
    assert [match.how for match in matches] == ["sequence"] * 2
    assert all("the order of their first executions" in match.note for match in matches)
    outputs = tmp_path / "comparison.json", tmp_path / "comparison.parquet"
    compare([["a"], ["b"]], folders, {}, [{}, {}], {}, CHOICES, *outputs)
    rows = [row for row in read_table(outputs[1], "comparison").to_pylist() if row["metric"] == "time_per_launch"]
    of_kernels = [row for row in rows if row["level"] == "kernel"]
    assert {row["match"] for row in of_kernels} == {"sequence"}
    judged = [row for row in rows if row["level"] in ("kernel", "run")]
    assert {row["reason_code"] == "other_work" for row in judged} == {not is_alike}
    assert is_alike or {row["verdict"] for row in judged} == {"inconclusive"}
    assert read_json(outputs[0])["matched"]["sequence"] == 2
