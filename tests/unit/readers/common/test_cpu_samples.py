"""Sampled host code of Nsight Systems: which frame of a stack names it, and how long a sample stands."""

import os
import re
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.readers.containers import sqlite_database
from causeway.readers.nvidia import nsys_extras

MODULES = [
    "/home/someone/job/program",
    "/usr/lib/libfabric.so.1.18",
    "/usr/lib64/libc-2.17.so",
    "/usr/lib/ld-linux-x86-64.so.2",
    "/opt/libcuda.so.545.29.06",
    "/opt/nsys/libToolsInjection64.so",
    "[kernel.kallsyms]",
    "[Broken backtraces]",
]
SYSTEM = {2, 3, 4, 5, 6, 7}
SYMBOLS = ["main", "sort_candidates(int)", "memset", "0x7fbd95228624", "do_lookup_x", "[Broken backtraces]", "solve"]
STRINGS = dict(enumerate([*SYMBOLS, *MODULES, "a_kernel", "SECRET=1"]))
KERNEL = len(SYMBOLS) + len(MODULES)
PIDS = (700, 600)


def packed(pid, thread):
    return (pid << 24) + thread


def tables(random, samples=400):
    """Return the tables of samples: two processes of two threads each; numbers of samples in no order, the frames of a
    stack neither.
    """
    numbers = random.permutation(3 * samples)[:samples].tolist()
    threads = [packed(pid, pid + k) for pid in PIDS for k in range(2)]
    now = dict.fromkeys(threads, 0)
    events = []
    frames = []
    for number in numbers:
        thread = threads[int(random.integers(0, 4))]
        now[thread] += int(random.integers(900, 1_100)) + 50_000 * (random.random() < 0.05)
        events.append((number, now[thread], 0, 1, thread, 1))
        for depth in range(int(random.integers(0, 5))):
            symbol = int(random.integers(0, len(SYMBOLS)))
            module = len(SYMBOLS) + (7 if symbol == 5 else int(random.integers(0, 7)))
            frames.append((number, symbol, module, int(SYMBOLS[symbol].startswith("0x")), depth))
    random.shuffle(frames)
    return events, frames


def named(frames):
    """Return what a stack is called, in plain Python: frames are (symbol, module, depth), numbers of strings."""
    if not frames:
        return None
    inside = [one for one in frames if one[1] - len(SYMBOLS) not in SYSTEM]
    symbol, module, _ = min(inside or frames, key=lambda one: one[2])
    name = STRINGS[symbol]
    name = os.path.basename(STRINGS[module]) if re.fullmatch("0x[0-9a-f]+", name) else name
    return None if name == "[Broken backtraces]" else name


def expected(events, frames):
    """Return (start, duration, rank, thread, name) of each sample that has a name."""
    of = {}
    for number, symbol, module, _, depth in frames:
        of.setdefault(number, []).append((symbol, module, depth))
    ordered = sorted(events, key=lambda row: row[1])
    distances = sorted(
        later[1] - one[1]
        for at, one in enumerate(ordered)
        for later in [next((row for row in ordered[at + 1 :] if row[4] == one[4] and row[0] in of), None)]
        if later and one[0] in of
    )
    most = 2 * distances[(len(distances) - 1) // 2]
    found = []
    for at, (number, start, *_, thread, _) in enumerate(ordered):
        if number not in of or named(of[number]) is None:
            continue
        following = next((row[1] for row in ordered[at + 1 :] if row[4] == thread and row[0] in of), start + most)
        rank = PIDS.index(thread >> 24)
        found.append((start, min(following - start, most), rank, thread & 0xFFFFFF, named(of[number])))
    return sorted(found)


def database(path, events, frames):
    with sqlite3.connect(path) as connection:
        for statement in """
            CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                globalPid INTEGER, demangledName INTEGER);
            CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER);
            CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER,
                threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER NOT NULL);
            CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL,
                unresolved INTEGER, stackDepth INTEGER NOT NULL)
            """.split(";"):
            connection.execute(statement)
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", STRINGS.items())
        for rank, pid in enumerate(PIDS):
            connection.execute("INSERT INTO MPI_RANKS VALUES (?, ?)", (packed(pid, pid), rank))
            row = (rank, 10 + rank, 0, 7, pid << 24, KERNEL)
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.executemany("INSERT INTO COMPOSITE_EVENTS VALUES (?, ?, ?, ?, ?, ?)", events)
        connection.executemany("INSERT INTO SAMPLING_CALLCHAINS VALUES (?, ?, ?, ?, ?)", frames)
    connection.close()
    return path


def as_parquet(path, folder):
    folder.mkdir()
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in cursor.description]
            columns = list(zip(*cursor.fetchall(), strict=True))
            pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), folder / f"{name}.parquet")
    connection.close()
    return folder


def rows(read):
    names = ("start_ns", "duration_ns", "rank", "thread", "name")
    return sorted(tuple(row[name] for name in names) for row in read.cpu_samples.to_pylist())


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
@pytest.mark.parametrize("seed", range(4))
def test_samples_are_named_by_the_innermost_frame_outside_of_system_modules(tmp_path, monkeypatch, seed, form):
    events, frames = tables(np.random.default_rng(seed))
    path = database(tmp_path / "run.sqlite", events, frames)
    if form == "parquet":
        path = as_parquet(path, tmp_path / "run")
    monkeypatch.setattr(sqlite_database, "BATCH_ROWS", 37)  # a stack lies in several batches
    monkeypatch.setattr(nsys_extras, "MOST_FRAMES", 5)
    read = Read(path, tmp_path / "e")
    assert read.status == "read"
    assert rows(read) == expected(events, frames)
    assert "someone" not in read.texts()
    assert "SECRET" not in read.texts()
    assert not list(read.folder.glob(".*"))


def test_samples_do_not_depend_on_how_many_are_worked_on_at_once(tmp_path, monkeypatch):
    """But for the usual distance, which is that of the first ones."""
    events, frames = tables(np.random.default_rng(9))
    path = database(tmp_path / "run.sqlite", events, frames)
    whole = rows(Read(path, tmp_path / "whole"))
    monkeypatch.setattr(nsys_extras, "SAMPLES_AT_ONCE", 150)
    parts = rows(Read(path, tmp_path / "parts"))
    starts = sorted(row[1] for row in events)
    assert [(start, *rest) for start, _, *rest in parts] == [(start, *rest) for start, _, *rest in whole]
    assert len(starts) > len(parts)
    for one, other in zip(parts, whole, strict=True):
        assert one[1] == other[1] or min(one[1], other[1]) > 1_900  # two usual distances of 1 us, or nearly


def test_an_export_without_stacks_has_no_sampled_code(tmp_path):
    events, _ = tables(np.random.default_rng(1))
    read = Read(database(tmp_path / "run.sqlite", events, []), tmp_path / "e")
    assert read.status == "read"
    assert "cpu_samples" not in read.names
