"""What-ifs of kernels, replayed: durations by hand, and simulated runs with and without a cause."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import SCHEMAS, read_table, table_metadata, write_json, write_table
from causeway.efficiency.ranks.collectives import matched
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run
from causeway.waiting.graph import linked_graph as graphs
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.nodes import ALL_STREAMS, COLLECTIVE, COPY, KERNEL, NO_SCOPE, Graph, HostCalls, Work
from causeway.waiting.path.critical_path import measured
from causeway.waiting.replay.replayed import durations_of, replayed
from causeway.waiting.replay_what_ifs import (
    KernelWhatIf,
    durations_under,
    in_flight,
    launches_beside,
    replay_what_ifs,
    replayed_rows,
    what_ifs,
    with_moved_contention,
)

H2D = "copy (host to device)"


def what_if(kernel="gemm", feature="block_x", to="64", mean=-0.1, p99=None):
    return KernelWhatIf(kernel=kernel, feature=feature, to=to, mean=mean, low=mean * 1.1, high=mean * 0.9, p99=p99)


def graph_of(rows, texts=("gemm", H2D, "other")):
    """Return a graph of one rank without calls: rows of start, end, stream, device, kind, name; ordered by start."""
    start, end, stream, device, kind, name = np.array(rows, np.int64).T
    streams, number = np.unique(np.stack([device, stream]), axis=1, return_inverse=True)
    n = len(rows)
    none = np.full(n, -1, np.int32)
    work = Work(
        start=start, end=end, stream=number.ravel().astype(np.int32), kind=kind.astype(np.uint8),
        name=name.astype(np.int32), operator=none, call=none, member=none,
    )  # fmt: skip
    calls = HostCalls(**dict.fromkeys(("start", "end"), np.zeros(0, np.int64)), **{
        field: np.zeros(0, np.int32) for field in ("thread", "name", "scope")
    }, launches=np.zeros(0, bool))  # fmt: skip
    return Graph(
        ranks=[0], work=work, calls=calls, texts=list(texts), stream_device=streams[0],
        stream_rank=np.zeros(streams.shape[1], np.int32), thread_rank=np.zeros(0, np.int32),
    )  # fmt: skip


def schedule_of(graph):
    return measured(graph, type("Links", (), {"bound": None, "call_work": None}))


def test_a_location_and_a_scale_give_the_mean_and_the_99th_percentile():
    rng = np.random.default_rng(0)
    length = np.rint(rng.lognormal(10, 0.3, 500)).astype(int)
    begin = np.cumsum(np.append(0, length[:-1] + 10))
    graph = graph_of([(b, b + one, 7, 0, KERNEL, 0) for b, one in zip(begin, length, strict=True)])
    changed = durations_under(graph, schedule_of(graph), length, what_if(mean=-0.04, p99=-0.11))
    assert changed.mean() == pytest.approx(0.96 * length.mean(), rel=1e-4)
    assert np.quantile(changed, 0.99) == pytest.approx(0.89 * np.quantile(length, 0.99), rel=1e-4)
    alone = durations_under(graph, schedule_of(graph), length, what_if(mean=-0.04))
    assert np.abs(alone - 0.96 * length).max() <= 1


def test_without_an_exposure_the_launches_that_had_it_are_shorter_and_no_other():
    """Launches at 0, 100, 200 and 300; a copy from 90 to 150 on their device, one on another device from 190."""
    rows = [(0, 50, 7, 0, KERNEL, 0), (90, 150, 8, 0, COPY, 1), (100, 150, 7, 0, KERNEL, 0)]
    rows += [(190, 250, 8, 1, COPY, 1), (200, 250, 7, 0, KERNEL, 0), (300, 350, 7, 0, KERNEL, 0)]
    graph = graph_of(rows)
    own = graph.work.end - graph.work.start
    changed = durations_under(
        graph, schedule_of(graph), own, what_if(feature="h2d_bytes_in_flight", to="none", mean=-0.05)
    )
    assert (own - changed).tolist() == [0, 0, 10, 0, 0, 0]  # 5 % of 200 ns
    again = durations_under(
        graph, schedule_of(graph), own, what_if(feature="transfers_in_flight", to="none", mean=-0.05)
    )
    assert (again == changed).all()
    none = what_if(feature="d2h_bytes_in_flight", to="none")
    assert durations_under(graph, schedule_of(graph), own, none) is None
    too_much = what_if(feature="h2d_bytes_in_flight", to="none", mean=-0.3)
    assert durations_under(graph, schedule_of(graph), own, too_much) is None
    assert durations_under(graph, schedule_of(graph), own, what_if(kernel="unknown")) is None
    collective = graph_of([(0, 50, 7, 0, COLLECTIVE, 0)])
    assert durations_under(collective, schedule_of(collective), own[:1], what_if()) is None


def test_work_in_flight_is_counted_as_a_search_through_all_pairs_does():
    rng = np.random.default_rng(3)
    start = np.sort(rng.integers(0, 2000, 120))
    rows = [
        (s, s + rng.integers(1, 90), rng.integers(2), rng.integers(2), rng.choice([KERNEL, COPY]), rng.integers(2))
        for s in start
    ]
    graph = graph_of(rows)
    chosen = np.flatnonzero(graph.work.kind == KERNEL)
    others = graph.work.kind == KERNEL
    found = in_flight(graph, schedule_of(graph), chosen, np.flatnonzero(others))
    device = [row[3] for row in rows]
    plain = [
        sum(
            others[j] and device[j] == device[i] and j != i and rows[j][0] <= rows[i][0] < rows[j][1]
            for j in range(len(rows))
        )
        for i in chosen
    ]
    assert found.tolist() == plain
    assert max(plain) > 1


def test_kernels_slowed_by_launches_in_flight_follow_the_launches_that_moved():
    """Two of four launches began beside another one, now three: half more of what nothing in flight would save."""
    gemm = [
        (0, 100, 7, 0, KERNEL, 0),
        (200, 300, 7, 0, KERNEL, 0),
        (400, 500, 7, 0, KERNEL, 0),
        (600, 700, 7, 0, KERNEL, 0),
    ]
    other = [(190, 250, 8, 0, KERNEL, 2), (390, 450, 8, 0, KERNEL, 2), (550, 590, 8, 0, KERNEL, 2)]
    graph = graph_of(sorted(gemm + other))
    before = schedule_of(graph)
    late = before.end.copy()
    late[(graph.work.name == 2) & (graph.work.end == 590)] = 640
    after = dataclasses.replace(before, end=late)
    own = graph.work.end - graph.work.start
    change = what_if(feature="launches_in_flight", to="none", mean=-0.2)
    beside = launches_beside(graph, before, {change.kernel, "unknown"})
    assert beside == {change.kernel: 2, "unknown": 0}
    found = with_moved_contention(graph, beside, after, own, [change])
    assert found[graph.work.name == 0].tolist() == [110] * 4
    assert (found[graph.work.name == 2] == own[graph.work.name == 2]).all()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A run of two ranks whose host runs ahead, normalised, and what removing each cause does to it."""
    folder = tmp_path_factory.mktemp("ahead")
    causes = {
        "Kernel2": {"h2d_bytes_in_flight": 0.35},
        "softmax_warp_forward": {"launches_in_flight": 0.8},
    }
    values = {"ranks": 2, "iterations": 150, "seed": 77, "effects": True, "host": "ahead", "straggler": "none"}
    exact = {"clock_error_us": 0.0, "clock_drift_ppm": 0.0, "gpu_metrics_us": None}
    write_run(values | exact | {"causes": causes}, folder)
    for rank in range(2):
        source = folder / f"rank{rank}.sqlite"
        normalise(source, folder / f"e{rank}", export=f"e{rank}", source=source.name, rank=rank, form="nsys")
    # all ranks begin their first iteration at once, with a memory set
    first = [
        read_table(folder / f"e{rank}" / "transfers.parquet", "transfers")["start_ns"][0].as_py() for rank in (0, 1)
    ]
    shifts = {f"e{rank}": {"shift_ns": first[0] - first[rank], "ranks": [rank]} for rank in (0, 1)}
    write_json({"exports": shifts}, folder / "clocks.json")
    return folder, json.loads((folder / "truth.json").read_text(encoding="utf-8"))["effects"]


def test_a_replayed_cause_shortens_the_run_as_the_run_without_it(simulated):
    """What the analysis would say is taken from the truth, so that the replay alone is judged."""
    folder, effects = simulated
    exports = [folder / "e0", folder / "e1"]
    joint = [Matched(*group.left_together()) for group in matched(exports)[0]]
    (graph, links), _ = linked_graph(exports, folder / "clocks.json", joint, full_names=True)
    judged = 0
    for number, effect in enumerate(effects):
        feature = effect["removed"].rpartition(":")[2]
        if feature not in ("h2d_bytes_in_flight", "launches_in_flight"):
            continue
        mean, p99 = (effect[f"{name}_change_percent"] / 100 for name in ("mean", "p99"))
        one = KernelWhatIf(kernel=effect["kernel"], feature=feature, to="none", mean=mean, low=mean, high=mean, p99=p99)
        row = replayed_rows(graph, links, [("k", number, one)], 150)[0]
        if effect["step_change_percent"] < -0.4:
            judged += 1
            assert row["run_change_percent"] == pytest.approx(effect["step_change_percent"], rel=0.15)
            assert row["saved_per_step_ns"] == pytest.approx((row["time_ns"] - row["predicted_ns"]) / 150)
    assert judged >= 2


def test_nothing_changed_is_the_run_as_it_was(simulated):
    folder, effects = simulated
    (graph, links), _ = linked_graph([folder / "e0", folder / "e1"], folder / "clocks.json", [], full_names=True)
    plain = durations_of(graph, links)
    same = durations_under(graph, measured(graph, links), plain.work, what_if(kernel=effects[0]["kernel"], mean=0.0))
    assert (same == plain.work).all()
    assert (replayed(graph, links, dataclasses.replace(plain, work=same)).end == graph.work.end).all()
    assert NO_SCOPE in graph.calls.scope
    assert ALL_STREAMS in graph.calls.scope


def written(folder, rows, name="gemm", kind="compute"):
    """Write what `replay_what_ifs` reads of the causes of a dataset with one kernel `k0`."""
    target = folder / "d" / "kernel_variability"
    write_json({"scopes": ["k0"]}, target / "causal" / "scopes.json")
    for scope in ("dataset", "k0"):
        table = pa.Table.from_pylist(rows, SCHEMAS["whatif"])
        write_table(table, target / "causal" / scope / "whatif.parquet", "whatif")
    kernel = {field.name: 0 for field in SCHEMAS["kernel_summary"] if pa.types.is_primitive(field.type)}
    kernel |= {
        "histogram": [0],
        "timeline": [0.0],
        "kernel": "k0",
        "name": name,
        "short_name": name,
        "class": kind,
    }
    write_table(pa.Table.from_pylist([kernel], SCHEMAS["kernel_summary"]), target / "kernels.parquet", "kernel_summary")
    return target


def row(**values):
    usual = {
        "feature": "block_x",
        "from": "128",
        "to": "64",
        "verdict": "supported",
        "saved_ns": 20.0,
        "saved_low": 9.0,
    }
    return usual | {"mean_change_percent": -10.0, "mean_change_low": -12.0, "mean_change_high": -8.0} | values


def test_what_ifs_of_collectives_take_no_place_among_those_that_are_replayed(tmp_path):
    target = written(tmp_path, [row()], kind="communication")
    assert what_ifs(target / "causal" / "scopes.json", target / "kernels.parquet") == []


def test_the_best_supported_what_if_of_each_feature_is_replayed_and_written(tmp_path, monkeypatch):
    rows = [
        row(saved_ns=5.0),
        row(to="256"),
        row(feature="grid_x", verdict="inconclusive"),
        row(feature="a", asked="q"),
    ]
    target = written(
        tmp_path, [*rows, row(feature="b", saved_low=-1.0), row(feature="c", saved_ns=None, saved_low=None)]
    )
    chosen = what_ifs(target / "causal" / "scopes.json", target / "kernels.parquet")
    assert [(kernel, number, one.to) for kernel, number, one in chosen] == [("k0", 1, "256")]
    launches = [
        {"start_ns": start, "duration_ns": 100, "device": 0, "configuration": 0, "rank": 0, "stream": 7}
        for start in (0, 100, 200)
    ]
    write_export(tmp_path / "e0", {"launches": launches})
    name = read_table(tmp_path / "e0" / "kernels.parquet", "kernels")["name"][0].as_py()
    target = written(tmp_path, rows, name)
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    write_table(pa.Table.from_pylist([], SCHEMAS["steps"]), tmp_path / "steps.parquet", "steps")
    out = target / "replayed_what_ifs.parquet"
    inputs = [tmp_path / "steps.parquet", target / "causal" / "scopes.json", target / "kernels.parquet", out]
    replay_what_ifs("d", [tmp_path / "e0"], tmp_path / "clocks.json", [], *inputs)
    (found,) = read_table(out, "replayed_what_ifs").to_pylist()
    assert (found["kernel"], found["what_if"], found["time_ns"], found["predicted_ns"]) == ("k0", 1, 300, 270)
    assert found["run_change_percent"] == pytest.approx(-10)
    assert found["run_change_low"] == pytest.approx(-13)  # -10 and 1.5 times the 2 points to the end of the interval
    assert found["run_change_high"] == pytest.approx(-7)
    assert found["saved_per_step_ns"] is None
    monkeypatch.setattr(graphs, "MOST_EVENTS", 2)
    replay_what_ifs("d", [tmp_path / "e0"], tmp_path / "clocks.json", [], *inputs)
    assert read_table(out, "replayed_what_ifs").num_rows == 0
    assert "2 at most" in table_metadata(out)["why"]
