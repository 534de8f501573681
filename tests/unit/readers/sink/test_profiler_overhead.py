"""The profiler's own work: of which process it is, what it was, and what is CUDA's instead."""

import sqlite3

import numpy as np
import pytest
from reading import Read, kernel, write_trace

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink import profiler_overhead
from causeway.readers.sink.profiler_overhead import ProfilerOverhead, disjoint

MS = 1_000_000


@pytest.mark.parametrize("seed", range(30))
def test_each_moment_is_of_the_interval_of_its_process_that_began_first(monkeypatch, seed):
    random = np.random.default_rng(seed)
    monkeypatch.setattr(profiler_overhead, "MOST_INTERVALS", int(random.integers(3, 40)))
    overhead = ProfilerOverhead()
    names = [overhead.names.code(word) for word in "abc"]
    rows = []
    for _ in range(int(random.integers(1, 5))):
        n = int(random.integers(0, 9))
        start = random.integers(0, 60, n)
        columns = (start, start + random.integers(-2, 15, n), random.integers(0, 3, n), random.choice(names, n))
        overhead.take(*columns)
        rows += list(zip(*(column.tolist() for column in columns), strict=True))
    good = [row for row in rows if row[1] >= row[0]]
    issues = Issues()
    overhead.settle({0: 7, 2: 3}, 0, 100, issues)
    found = {}
    for row in overhead.table({0: 7, 2: 3}).to_pylist():
        for moment in range(row["start_ns"], row["start_ns"] + row["duration_ns"]):
            assert (row["rank"], moment) not in found, "rows of a rank overlap"
            found[row["rank"], moment] = row["name"]
    covered = {(process, moment) for start, end, process, _ in good for moment in range(start, end)}
    assert set(found) == {({0: 7, 2: 3}[process], moment) for process, moment in covered if process != 1}
    assert issues.count("other_processes") == sum(row[2] == 1 for row in good)


def test_of_overlapping_intervals_the_first_names_a_moment():
    rows = np.array([[0, 0, 0, 0], [10, 12, 10, 40], [20, 30, 15, 50], [5, 6, 7, 8]])
    assert disjoint(rows).tolist() == [[0, 0, 0], [10, 20, 40], [20, 30, 50], [5, 6, 8]]


def test_what_is_of_no_named_process_is_of_the_only_rank():
    overhead = ProfilerOverhead()
    overhead.take(np.array([10]), np.array([30]))
    overhead.take(np.array([20]), np.array([40]), 4)
    assert (overhead.within(0, 100), overhead.within(0, 100, 4)) == (20, 20)
    overhead.settle({4: 0}, 0, 100, Issues())
    assert [(row["start_ns"], row["duration_ns"]) for row in overhead.table({4: 0}).to_pylist()] == [(10, 20), (30, 10)]
    several = ProfilerOverhead()
    several.take(np.array([10]), np.array([30]), NULL)
    several.settle({4: 0, 5: 1}, 0, 100, Issues())
    assert several.table({4: 0, 5: 1}).num_rows == 0


def nsys(path, overhead):
    """Write an export of a process 700 with kernels of 1 ms at 0, 10, ... 90 ms; its helper 600 has none."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (1, 'k(int)'), (2, 'CUPTI Buffer flush'),"
        " (3, 'Lazy loading');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,"
        " demangledName); CREATE TABLE PROFILER_OVERHEAD (start, end, globalTid, nameId, overheadType);"
    )
    kernels = [(10 * at * MS, (10 * at + 1) * MS, at, 700 << 24) for at in range(10)]
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 1)", kernels)
    connection.executemany("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, ?, ?)", overhead)
    connection.commit()
    connection.close()
    return path


def test_an_exports_note_counts_the_profiler_in_the_processes_that_launch_alone(tmp_path):
    """First launch to last end: 91 ms, of which 0.91 ms are the profiler's in process 700."""
    overhead = [
        (20 * MS, 20 * MS + 910_000, (700 << 24) + 5, 2, 3),
        (30 * MS, 80 * MS, (600 << 24) + 9, 2, 3),  # another process
        (40 * MS, 60 * MS, (700 << 24) + 5, 3, 7),  # CUDA's own work, which a run without a profiler has, too
    ]
    read = Read(nsys(tmp_path / "x.sqlite", overhead), tmp_path / "t")
    assert read.issue("profiler_overhead")["detail"].endswith(
        ": 1.0 % of the time between the first launch and the last"
    )
    assert (read.count("profiler_overhead"), read.count("other_processes")) == (1, 1)
    assert read.profiler_overhead.to_pylist() == [
        {"start_ns": 20 * MS, "duration_ns": 910_000, "rank": 0, "name": "CUPTI Buffer flush"}
    ]


def test_a_share_that_rounds_to_nothing_is_not_said_to_be_none(tmp_path):
    """3.75 ms of 13.4 s in a real export, 148 times, were "0.0 %"; here 25 µs of 91 ms, 0.027 %."""
    read = Read(nsys(tmp_path / "x.sqlite", [(20 * MS, 20 * MS + 25_000, (700 << 24) + 5, 2, 3)]), tmp_path / "t")
    assert "< 0.1 % of the time" in read.issue("profiler_overhead")["detail"]


def test_an_export_of_several_processes_states_the_one_with_most_of_it(tmp_path):
    path = nsys(tmp_path / "x.sqlite", [(20 * MS, 30 * MS, (p << 24) + 5, 2, 3) for p in (600, 700)])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = ? WHERE correlationId > 4", (600 << 24,))
    connection.execute("UPDATE PROFILER_OVERHEAD SET end = ? WHERE globalTid > ?", (29_100_000, 700 << 24))
    connection.commit()
    connection.close()
    read = Read(path, tmp_path / "t")
    assert "11.0 % of the time" in read.issue("heavy_profiler_overhead")["detail"]
    assert read.issue("heavy_profiler_overhead")["detail"].endswith("in the process with most of it")
    assert [(row["rank"], row["duration_ns"]) for row in read.profiler_overhead.to_pylist()] == [
        (0, 10 * MS),
        (1, 9_100_000),
    ]


def test_a_traces_lazy_loading_is_no_work_of_the_profiler(tmp_path):
    events = [kernel(1000 * at, 10) for at in range(10)]
    for name, ts, dur in (("Buffer Flush", 1500, 90), ("Lazy Function Loading", 3000, 700)):
        events.append({"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0, "ts": ts, "dur": dur})
    read = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert [(row["name"], row["duration_ns"]) for row in read.profiler_overhead.to_pylist()] == [
        ("Buffer Flush", 90_000)
    ]
    assert "1.0 %" in read.issue("profiler_overhead")["detail"]  # of 9,010 us


def test_kinds_of_overhead_of_nvprof(tmp_path):
    """CUPTI's numbers: 1 is the driver's compiler, 65,536 a flush of the profiler's buffers."""
    connection = sqlite3.connect(tmp_path / "run.nvvp")
    connection.executescript(
        "CREATE TABLE StringTable (_id_, value); INSERT INTO StringTable VALUES (1, '_Z3addPf');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, deviceId, streamId, correlationId, name);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (cbid, start, end, processId, threadId, correlationId);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (overheadKind, start, end);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1, 100, 400), (65536, 500, 510), (99, 600, 607);"
    )
    kernels = [(100 * at, 100 * at + 10, at) for at in range(1, 11)]
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (?, ?, 0, 7, ?, 1)", kernels)
    connection.commit()
    connection.close()
    read = Read(tmp_path / "run.nvvp", tmp_path / "t")
    assert [(row["name"], row["duration_ns"]) for row in read.profiler_overhead.to_pylist()] == [
        ("CUPTI Buffer flush", 10),
        ("work that is not named", 7),
    ]
    assert read.count("profiler_overhead") == 2
