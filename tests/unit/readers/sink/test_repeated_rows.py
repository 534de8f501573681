"""Events that an export holds twice: each counts once, in every format, and its counters find their launch."""

import json
import sqlite3

import numpy as np
import pytest
from layouts import LAYOUTS
from reading import Read, kernel, write_trace

from causeway.readers.common.constants import NULL
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import RepeatedRows

TABLES = ("launches", "transfers", "calls", "ranges", "counters")


def content(read):
    return {name: getattr(read, name).to_pylist() for name in TABLES if name in read.names}


def double_rows(path):
    """Put each row of a CSV file, or of the tables of events of a database, in twice."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and file.read_bytes()[:6] == b"SQLite":
            connection = sqlite3.connect(file)
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
                if {"start", "end"} <= set(columns) or table == "KERN":
                    own = ", ".join(f'"{name}"' for name in columns if name not in ("id", "_id_"))
                    connection.execute(f'INSERT INTO "{table}" ({own}) SELECT {own} FROM "{table}"')
            connection.commit()
            connection.close()
        elif file.is_file() and file.suffix == ".csv" and "agent" not in file.name:
            header, *rows = file.read_text(encoding="utf-8").splitlines()
            file.write_text("\n".join([header, *rows, *rows]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["nsys.sqlite", "rocprofv3 csv", "rocpd 4", "cupti dump", "nvprof database"])
def test_rows_that_stand_twice_count_once(name, tmp_path):
    (tmp_path / "in").mkdir()
    path = LAYOUTS[name](tmp_path / "in", "kernel(int)", 40)
    once = Read(path, tmp_path / "once")
    double_rows(path)
    twice = Read(path, tmp_path / "twice")
    assert (once.count("repeated_events"), twice.status) == (0, "read")
    assert twice.launches.to_pylist() == once.launches.to_pylist()
    assert twice.total("launches") == once.total("launches")
    for table in ("transfers", "calls"):
        if table in once.names:
            assert getattr(twice, table).num_rows == getattr(once, table).num_rows
    assert twice.count("repeated_events") >= once.launches.num_rows
    assert f"launches ({once.launches.num_rows})" in twice.issue("repeated_events")["detail"]


def events(n, at=0.0):
    return [kernel(at + 10 * i, 5 + i % 3, correlation=i + 1) for i in range(n)] + [
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 1,
            "tid": 1,
            "ts": at + 10 * i - 3,
            "dur": 1,
        }
        | {"args": {"correlation": i + 1}}
        for i in range(n)
    ]


@pytest.mark.parametrize("form", ["events twice", "two documents", "key twice"])
def test_a_trace_that_was_written_twice_counts_once(form, tmp_path):
    once = Read(write_trace(tmp_path / "one.json", events(300)), tmp_path / "once")
    path = tmp_path / "two.json"
    if form == "events twice":
        write_trace(path, events(300) * 2)
    else:
        text = (tmp_path / "one.json").read_text()
        path.write_text(
            text * 2 if form == "two documents" else text[:-1] + ', "traceEvents"' + text.partition('"traceEvents"')[2]
        )
    read = Read(path, tmp_path / "twice")
    assert read.launches.to_pylist() == once.launches.to_pylist()
    assert read.calls.to_pylist() == once.calls.to_pylist()
    assert read.count("repeated_events") == 600
    assert read.count("several_traces") == (0 if form == "events twice" else 1)


def test_counters_keep_their_launch_where_launches_stand_twice(tmp_path):
    (tmp_path / "in").mkdir()
    path = LAYOUTS["rocprof folder"](tmp_path / "in", "kernel(int)", 30)
    lines = (path / "results.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    for number, row in enumerate(cells[1:]):  # times of a clock without a coarse tick
        for at in range(len(row) - 5, len(row) - 1):
            row[at] = str(int(row[at]) + 7 * number**2)
    (path / "results.csv").write_text("\n".join(map(",".join, cells)) + "\n")
    once = Read(path, tmp_path / "once")
    header, *rows = (path / "results.csv").read_text().splitlines()
    (path / "results.csv").write_text("\n".join([header, *rows, *rows]) + "\n")
    twice = Read(path, tmp_path / "twice")
    assert content(twice) == content(once)


def batch(rows, kinds=("start_ns", "duration_ns", "correlation", "stream")):
    columns = np.array(rows, np.int64).reshape(len(rows), len(kinds)).T
    return EventBatch({name: np.ascontiguousarray(column) for name, column in zip(kinds, columns, strict=True)})


def by_hand(rows, tick_ns):
    seen = set()
    found = []
    for row in rows:
        known = row[2] != NULL or (tick_ns is not None and row[1] > tick_ns)
        found.append(row in seen and known)
        seen.add(row)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_repeats_equal_those_found_by_hand_however_rows_are_cut(seed):
    rng = np.random.default_rng(seed)
    rows = [tuple(row) for row in rng.integers(0, 3, (200, 4)).tolist()]
    rows = sorted(
        ((s + at // 20, d, NULL if c == 2 else c, q) for at, (s, d, c, q) in enumerate(rows)), key=lambda r: r[0]
    )
    tick_ns = (None, 0, 1)[seed % 3]
    repeated = RepeatedRows(tick_ns)
    found = []
    at = 0
    while at < len(rows):
        step = int(rng.integers(1, 40))
        found += repeated.find(batch(rows[at : at + step])).tolist()
        at += step
    assert found == by_hand(rows, tick_ns)
    assert repeated.count == sum(found)


def test_short_events_of_a_coarse_clock_are_not_taken_for_one(tmp_path):
    rows = [f"{1000 * (at // 4)},{1000 * (at // 4) + 1000},0,7,k" for at in range(80)]
    path = tmp_path / "kernels.csv"
    path.write_text("start,end,deviceId,streamId,name\n" + "\n".join(rows) + "\n")
    read = Read(path, tmp_path / "e")
    assert (read.launches.num_rows, read.count("repeated_events")) == (80, 0)


def test_equal_times_of_clocks_that_differ_are_not_the_same(tmp_path):
    texts = [
        json.dumps({"baseTimeNanoseconds": base, "traceEvents": [kernel(100, 4, correlation=1), kernel(110, 4)]})
        for base in (10**18, 2 * 10**18)
    ]
    path = tmp_path / "x.json"
    path.write_text("\n".join(texts), encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert (read.launches.num_rows, read.count("repeated_events"), read.count("differing_clocks")) == (4, 0, 1)


def test_operators_that_call_themselves_within_a_tick_stay(tmp_path):
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::to", "pid": 1, "tid": 1, "dur": 3}
    nested = [operator | {"ts": 20 * at} for at in range(50)] + [operator | {"ts": 100}]
    read = Read(write_trace(tmp_path / "t.json", [*nested, *events(20)]), tmp_path / "e")
    assert (read.host_operators.num_rows, read.count("repeated_events")) == (51, 0)
