"""Launches that run over their successors, and launches that are stamped late, against brute force and by hand."""

import json

import numpy as np
import pyarrow as pa
import pytest
from layouts.rocprofv3_samples import make_run, write_csv
from reading import Read, kernel, write_trace

from causeway.core.tables import TableWriter
from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.stream_order import Cuts, StreamOrder

COLUMNS = ("start_ns", "duration_ns", "rank", "device", "stream", "correlation")


def write_launches(path, rows, rng):
    """Write launches in row groups of random sizes."""
    with TableWriter(path, "launches") as writer:
        at = 0
        while at < len(rows):
            part = rows[at : at + int(rng.integers(1, 12))]
            at += len(part)
            table = {name: pa.array(column) for name, column in zip(COLUMNS, zip(*part, strict=True), strict=True)}
            nothing = pa.nulls(len(part))
            others = dict.fromkeys(("queue_ns", "range", "operator", "shape"), nothing)
            writer.write(pa.table(table | others | {"configuration": pa.array([0] * len(part), pa.uint32())}))


def brute_force(rows, streams):
    """Return the duration after the cut of each row that is cut."""
    found = {}
    for stream in streams:
        mine = [(at, row) for at, row in enumerate(rows) if row[2:5] == stream]
        groups = []
        for at, row in mine:
            last = groups[-1][-1][1] if groups else None
            same = last is not None and (row[0] == last[0] or (row[5] is not None and row[5] == last[5]))
            if same:
                groups[-1].append((at, row))
            else:
                groups.append([(at, row)])
        for number, group in enumerate(groups):
            later = [row for other in groups[number + 1 :] for _, row in other if row[1] > 0]
            for at, row in group:
                if any(one[0] + one[1] < row[0] + row[1] for one in later):
                    found[at] = groups[number + 1][0][1][0] - row[0]
    return found


def test_cuts_are_those_of_brute_force_whatever_the_row_groups(tmp_path):
    rng = np.random.default_rng(3)
    cut = 0
    for _ in range(60):
        n = int(rng.integers(1, 70))
        start = np.sort(rng.integers(0, 400, n)).tolist()
        duration = rng.choice([0, 3, 8, 90], n, p=[0.1, 0.5, 0.3, 0.1]).tolist()
        stream = rng.integers(0, 2, n).tolist()
        call = [None if one == 7 else one for one in rng.integers(0, 8, n).tolist()]
        rows = [(start[at], duration[at], 0, 1, stream[at], call[at]) for at in range(n)]
        write_launches(tmp_path / "launches.parquet", rows, rng)
        streams = [(0, 1, 0), (0, 1, 1)][: int(rng.integers(1, 3))]
        cuts = Cuts.of(tmp_path / "launches.parquet", streams)
        expected = brute_force(rows, streams)
        assert dict(zip(cuts.rows["row"].tolist(), cuts.rows["duration_ns"].tolist(), strict=True)) == expected
        after = [expected.get(at, row[1]) for at, row in enumerate(rows)]
        lost = [rows[at][1] - one for at, one in expected.items()]
        assert (cuts.count, cuts.total_ns, cuts.longest_ns) == (len(expected), sum(lost), max(lost, default=0))
        assert cuts.last_ns == max(row[0] + length for row, length in zip(rows, after, strict=True))
        cut += cuts.count
    assert cut > 100


def trace(path, *events):
    """Write launches of one stream (ts, dur, correlation), in us, and read them."""
    write_trace(path / "trace.json", [kernel(ts, dur, correlation=call) for ts, dur, call in events])
    return Read(path / "trace.json", path / "t")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # one over the next, which ends before it
        ([(0, 90, 1), (10, 5, 2)], [10, 5]),
        # one inside the overrun of another, and the first again over all
        ([(0, 900, 1), (10, 600, 2), (20, 5, 3), (30, 5, 4)], [10, 10, 5, 5]),
        # completions that come in one batch
        ([(0, 100, 1), (10, 90, 2), (20, 80, 3), (30, 5, 4)], [10, 10, 10, 5]),
        # the successor starts early, as with programmatic dependent launch, and ends later: nothing is cut
        ([(0, 10, 1), (8, 10, 2), (16, 10, 3)], [10, 10, 10]),
        # nodes of one graph run beside each other; the next call's launch cuts those that run over it
        ([(0, 50, 1), (1, 5, 1), (2, 5, 1)], [50, 5, 5]),
        ([(0, 50, 1), (1, 5, 1), (20, 5, 2)], [20, 5, 5]),
    ],
)
def test_what_runs_over_its_successors_is_cut_at_the_next_start(events, expected, tmp_path):
    export = trace(tmp_path, *events)
    assert export.launches.column("duration_ns").to_pylist() == [1000 * one for one in expected]
    assert export.count("outlasting") == sum(dur != one for (_, dur, _), one in zip(events, expected, strict=True))
    assert export.capabilities["time"]["last_ns"] == 1000 * max(
        ts + one for (ts, _, _), one in zip(events, expected, strict=True)
    )


@pytest.mark.parametrize(("duration", "expected"), [(12, 12), (13, 13), (20, 10)])
def test_with_a_coarse_clock_an_end_must_be_later_by_more_than_two_ticks(duration, expected, tmp_path):
    events = [(0, duration, 1), (10, 1, 2), (21, 1, 3), (22, 1, 4)]
    export = trace(tmp_path, *events)
    assert export.count("coarse_clock") == 4
    assert export.launches.column("duration_ns").to_pylist()[0] == 1000 * expected
    assert export.count("outlasting") == (duration != expected)


def test_streams_beside_each_other_are_not_cut(tmp_path):
    events = [kernel(0, 90, correlation=1), kernel(10, 5, correlation=2) | {"tid": 8}]
    events[1]["args"]["stream"] = 8
    export = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == [90_000, 5_000]
    assert export.issue("outlasting") is None


def test_a_collective_is_cut_in_both_of_its_tables(tmp_path):
    group = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2, "dtype": "Float"}
    group |= {"In msg nelems": 8, "Out msg nelems": 8}
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    events = [kernel(0, 90, name, correlation=1, **group), kernel(10, 5, correlation=2)]
    events.append(kernel(20, 4, name, correlation=3, **group))
    export = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == [10_000, 5_000, 4_000]
    assert export.collectives.column("duration_ns").to_pylist() == [10_000, 4_000]


@pytest.mark.parametrize(("stream", "expected"), [(3, [10_000, 5_000]), (0, [90_000, 5_000])])
def test_launches_of_a_hardware_queue_may_run_at_a_time(stream, expected, tmp_path):
    """Stream 0 of AMD's tools is that of launches made without HIP, which a queue may run side by side."""
    run = make_run(n=2)
    for at, launch in enumerate(sorted(run["launches"], key=lambda one: one["number"])):
        launch |= {"agent": 1, "queue": 2, "stream": stream, "start": 10**7 + 10_000 * at}
        launch["stop"] = launch["start"] + (5_000 if at else 90_000)
    run["copies"] = []
    write_csv(run, tmp_path / "run")
    export = Read(tmp_path / "run", tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == expected
    assert export.count("outlasting") == (stream == 3)
    assert export.count("overlapping_launches") == (stream == 0)


def test_where_no_device_is_named_streams_may_share_a_number(tmp_path):
    events = [kernel(0, 90, correlation=1), kernel(10, 5, correlation=2)]
    for event in events:
        del event["args"]["device"]
        event["pid"] = -1
    export = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == [90_000, 5_000]
    assert (export.count("outlasting"), export.count("overlapping_launches")) == (0, 1)


def test_late_launches_are_those_of_brute_force_whatever_the_blocks():
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(80):
        n = int(rng.integers(1, 60))
        start = np.sort(rng.integers(0, 90, n))
        stream = rng.integers(0, 3, n)
        called = np.where(rng.random(n) < 0.1, NULL, np.maximum(0, start - rng.choice([2, 5, 40], n)))
        returned = np.where(called == NULL, NULL, called + rng.integers(0, 3, n))
        late = 0
        for at in range(n):
            earlier = [k for k in range(at) if stream[k] == stream[at] and start[k] < start[at]]
            is_late = returned[at] != NULL and any(called[k] > returned[at] for k in earlier)
            late += is_late and stream[at] != 2
        order = StreamOrder({(0, 0, 2)}, Issues())
        columns = {"start_ns": start, "stream": stream, "duration_ns": np.ones(n, np.int64)}
        columns |= {name: np.zeros(n, np.int64) for name in ("process", "device")} | {"correlation": np.full(n, NULL)}
        at = 0
        while at < n:
            part = slice(at, at + int(rng.integers(1, 15)))
            at = part.stop
            order.take(EventBatch(columns)[part], called[part], returned[part])
        assert order.late == late
        found += late
    assert found > 100


def graph_trace(path, *, late, calls=True):
    """Write two steps, each a launch and a graph of two kernels; `late`: the first graph's are stamped at the end."""
    events = []
    for step, correlation in ((0, 1), (1000, 3)):
        if calls:
            for at, name in ((0, "hipLaunchKernel"), (20, "hipGraphLaunch")):
                event = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": 9, "ts": step + at, "dur": 10}
                events.append(event | {"args": {"correlation": correlation + at // 20}})
        events.append(kernel(step + 15, 5, correlation=correlation))
        begin = 2000 if late and not step else step + 40 + (late and 1000)
        events += [kernel(begin + 20 * one, 10, "node", correlation=correlation + 1) for one in range(2)]
    return Read(write_trace(path / "trace.json", events), path / "t")


def test_work_of_an_early_graph_behind_later_work_of_its_stream_is_late(tmp_path):
    export = graph_trace(tmp_path, late=True)
    assert export.count("late_stamps") == 2
    assert export.issue("late_stamps")["detail"].endswith("up to 1.990 ms after their calls had returned")
    assert export.issue("clock_reset") is None
    for name in ("time_line", "queue_delay", "overlap", "efficiency", "stragglers"):
        assert not export.capabilities["analyses"][name]["possible"], name
    assert export.capabilities["analyses"]["kernel_variability"]["possible"]


def test_work_in_the_order_of_its_calls_is_not_late(tmp_path):
    export = graph_trace(tmp_path, late=False)
    assert not {"late_stamps", "few_late_stamps", "clock_reset"} & {
        one["kind"] for one in export.capabilities["issues"]
    }
    assert export.capabilities["analyses"]["time_line"]["possible"]


def test_without_calls_nothing_is_called_late(tmp_path):
    export = graph_trace(tmp_path, late=True, calls=False)
    assert (export.count("late_stamps"), export.count("clock_reset")) == (0, 1)


def test_little_that_is_late_is_told_and_rules_nothing_out(tmp_path):
    trace = json.loads((graph_trace(tmp_path, late=True).folder.parent / "trace.json").read_text(encoding="utf-8"))
    trace["traceEvents"].append(kernel(5000, 10_000, correlation=9))
    export = Read(write_trace(tmp_path / "long.json", trace["traceEvents"]), tmp_path / "long")
    assert (export.count("late_stamps"), export.count("few_late_stamps")) == (0, 2)
    assert export.capabilities["analyses"]["time_line"]["possible"]
