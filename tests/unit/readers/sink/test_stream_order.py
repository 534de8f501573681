"""What the sink looks at on the way, against brute force; and how it shows in an export."""

import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from reading import Read, kernel

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink import profiler_overhead
from causeway.readers.sink.joins import WorkCalls
from causeway.readers.sink.profiler_overhead import ProfilerOverhead
from causeway.readers.sink.stream_order import StreamOrder

LAUNCH = np.dtype(
    [
        ("start_ns", "<i8"),
        ("process", "<i4"),
        ("device", "<u2"),
        ("stream", "<u4"),
        ("correlation", "<i8"),
        ("duration_ns", "<i8"),
    ]
)


def unknown(rows):
    """Return the times of calls that are not known."""
    return np.full((2, len(rows)), NULL)


def pieces(rows, rng):
    at = 0
    while at < len(rows):
        step = int(rng.integers(1, 20))
        yield rows[at : at + step]
        at += step


def test_launches_out_of_order_are_found_whatever_the_blocks():
    rng = np.random.default_rng(4)
    for _ in range(100):
        rows = np.zeros(int(rng.integers(0, 80)), LAUNCH)
        rows["start_ns"] = np.sort(rng.integers(0, 1000, len(rows)))
        for name in ("process", "device", "stream"):
            rows[name] = rng.integers(0, 2, len(rows))
        rows["correlation"] = rng.choice([*range(30), NULL], len(rows))
        order = StreamOrder((), Issues())
        expected = []
        latest = {}
        for row in rows:
            stream = tuple(int(row[name]) for name in ("process", "device", "stream"))
            if row["correlation"] != NULL:
                if latest.get(stream, NULL) > row["correlation"]:
                    expected.append(int(row["start_ns"]))
                latest[stream] = int(row["correlation"])
        for block in pieces(rows, rng):
            order.take(block, *unknown(block))
        assert order.resets == len(expected)
        assert order.first_reset == (min(expected) if expected else None)
        assert sum(order.count().values()) == len({tuple(row)[1:4] for row in rows.tolist()})


def test_launches_that_outlast_a_later_one_are_found_whatever_the_blocks():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        rows = np.zeros(int(rng.integers(0, 80)), LAUNCH)
        rows["start_ns"] = np.sort(rng.integers(0, 1000, len(rows)))
        rows["duration_ns"] = rng.choice([0, 5, 20, 200], len(rows), p=[0.1, 0.5, 0.3, 0.1])
        rows["stream"] = rng.integers(0, 2, len(rows))
        rows["correlation"] = rng.choice([*range(9), NULL], len(rows))
        culprits = set()
        longest = 0
        for stream in (0, 1):
            mine = [row for row in rows.tolist() if row[3] == stream]
            for at, (start, *_, call, duration) in enumerate(mine):
                before = mine[:at]
                if not before:
                    continue
                # of those that end at the same time the last counts
                _, last = max((row[0] + row[5], place) for place, row in enumerate(before))
                end = mine[last][0] + mine[last][5]
                other = call == NULL or call != mine[last][4]
                if start + duration < end and duration and start > mine[last][0] and other:
                    culprits.add((stream, last))
                    longest = max(longest, end - start)
        order = StreamOrder((), Issues())
        for block in pieces(rows, rng):
            order.take(block, *unknown(block))
        assert (order.outlasting, order.longest) == (len(culprits), longest)
        found += len(culprits)
    assert found > 100


def test_an_end_long_after_the_next_launch_is_told_and_an_overlap_of_edges_or_in_a_graph_is_not(tmp_path):
    def trace(*events):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({"traceEvents": [kernel(ts, dur, correlation=call) for ts, dur, call in events]}))
        return Read(path, tmp_path / "t")

    export = trace((0, 10, 1), (12, 1_600_000, 2), (30, 10, 3), (50, 10, 4))
    assert export.issue("outlasting")["count"] == 1
    assert export.issue("outlasting")["detail"].endswith("1,599.982 ms were cut off, at most 1,599.982 ms of one")
    assert export.launches.column("duration_ns").to_pylist() == [10_000, 18_000, 10_000, 10_000]
    assert export.capabilities["time"]["last_ns"] == 60_000
    assert trace((0, 10, 1), (8, 10, 2), (17, 10, 3)).issue("outlasting") is None
    assert trace((0, 100, 1), (10, 10, 1), (20, 10, 1), (101, 10, 2)).issue("outlasting") is None


def test_a_correlation_that_starts_again_after_32_bits_is_no_reset():
    rows = np.zeros(3, LAUNCH)
    rows["correlation"] = [2**32 - 2, 2**32 - 1, 0]
    order = StreamOrder((), Issues())
    order.take(rows, *unknown(rows))
    assert order.resets == 0


def test_overhead_covers_the_same_points_as_its_intervals(monkeypatch):
    rng = np.random.default_rng(5)
    for _ in range(100):
        monkeypatch.setattr(profiler_overhead, "MOST_INTERVALS", int(rng.integers(1, 30)))
        overhead = ProfilerOverhead()
        covered = set()
        for _ in range(int(rng.integers(0, 6))):
            start = rng.integers(0, 60, int(rng.integers(0, 9)))
            end = start + rng.integers(-2, 12, len(start))
            covered |= {point for a, b in zip(start.tolist(), end.tolist(), strict=True) for point in range(a, b)}
            overhead.take(start, end)
        assert overhead.within(10, 50) == len(covered & set(range(10, 50)))


def test_calls_that_launch_nothing_are_counted():
    rng = np.random.default_rng(6)
    for _ in range(60):
        calls = np.zeros(
            int(rng.integers(1, 60)),
            [
                ("start_ns", "<i8"),
                ("duration_ns", "<i8"),
                ("process", "<i4"),
                ("thread", "<i8"),
                ("correlation", "<i8"),
                ("name", "<i4"),
            ],
        )
        calls["start_ns"] = np.arange(len(calls))
        calls["name"] = rng.integers(0, 2, len(calls))
        calls["correlation"] = np.arange(len(calls))
        launches = np.zeros(int(rng.integers(0, 60)), LAUNCH)
        launches["start_ns"] = np.sort(rng.integers(0, 100, len(launches)))
        launches["correlation"] = rng.integers(0, 80, len(launches))
        made = WorkCalls(
            ((block, *np.full((4, len(block)), NULL)) for block in pieces(calls, rng)), np.array([False, True])
        )
        for block in pieces(launches, rng):
            made.find(block)
        made.drain()
        answered = set(launches["correlation"].tolist())
        assert made.unanswered == sum(row["name"] == 1 and row["correlation"] not in answered for row in calls)


def kernels(path, rows, tables="", calls=tuple((n, n + 1, n) for n in range(20))):
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (1, 'k(int)'), (2, 'cudaLaunchKernel_v7000');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, demangledName);"
        f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);{tables}"
    )
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, 1)", rows)
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 5, ?, 2)", calls)
    connection.commit()
    connection.close()


OVERHEAD = (
    "CREATE TABLE PROFILER_OVERHEAD (start, end); INSERT INTO PROFILER_OVERHEAD VALUES (0, {end}), (10, 20), (5000,"
    " 9000);"
)


@pytest.mark.parametrize(
    ("end", "kind", "share"), [(110, "heavy_profiler_overhead", "11.1 %"), (60, "profiler_overhead", "6.1 %")]
)
def test_the_profilers_own_work_is_reported_as_a_share_of_the_time(tmp_path, end, kind, share):
    kernels(tmp_path / "x", [(10 * n, 10 * n + 1, n) for n in range(100)], OVERHEAD.format(end=end))
    issue = Read(tmp_path / "x", tmp_path / "t").issue(kind)
    assert issue["count"] == 3
    assert issue["detail"].endswith(f"{share} of the time between the first launch and the last")  # end of 991 ns


def test_a_clock_that_was_set_back_dropped_events_and_lost_launches_are_reported(tmp_path):
    lost = (
        "CREATE TABLE DIAGNOSTIC_EVENT (text); INSERT INTO DIAGNOSTIC_EVENT VALUES ('Not all CUDA events might have"
        " been collected.'),"
    )
    lost += (
        " ('Process was launched, see /home/hunter2/out'), ('Not all NVTX events might have been collected.'), (NULL);"
    )
    kernels(
        tmp_path / "x",
        [(1000 + 10 * n, 1001 + 10 * n, n) for n in range(5)] + [(500 + n, 501 + n, 10 + n) for n in range(5)],
        lost,
        [(990 + n if n < 10 else 470 + n, 991 + n if n < 10 else 471 + n, n) for n in range(20)],
    )
    export = Read(tmp_path / "x", tmp_path / "t")
    assert export.status == "read"
    assert (export.count("clock_reset"), export.count("dropped_events"), export.count("calls_without_launch")) == (
        1,
        1,
        10,
    )
    assert "the first at 1,000 ns" in export.issue("clock_reset")["detail"]
    assert "hunter2" not in export.texts()
    assert export.capabilities["streams"] == {"0": 1}


def test_overhead_of_a_kineto_trace(tmp_path):
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 10 * n, "dur": 5, "args": {"device": 0, "stream": n % 3}}
        for n in range(100)
    ]
    events.append({"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "ts": 100, "dur": 20})
    (tmp_path / "x.json").write_text(json.dumps({"traceEvents": events}))
    export = Read(tmp_path / "x.json", tmp_path / "t")
    assert export.count("profiler_overhead") == 1
    assert "2.0 %" in export.issue("profiler_overhead")["detail"]
    assert export.capabilities["streams"] == {"0": 3}


def test_a_database_that_is_still_written_is_read_and_says_so(tmp_path):
    program = (
        "import sqlite3, os\nc = sqlite3.connect('x.sqlite')\n"
        "c.execute('PRAGMA journal_mode = WAL')\nc.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "c.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId)')\n"
        "c.execute('INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0), (3, 4, 0)')\nc.commit()\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    (tmp_path / "x.sqlite-shm").unlink()
    before = sorted(os.listdir(tmp_path))
    assert before == ["x.sqlite", "x.sqlite-wal"]
    export = Read(tmp_path / "x.sqlite", tmp_path / "t", form="nsys")
    assert export.launches.num_rows == 2
    assert export.count("still_open") == 1
    assert sorted(set(os.listdir(tmp_path)) - {"t"}) == before  # nothing is left beside the export
