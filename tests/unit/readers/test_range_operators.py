"""Operators of exports without operators of their own: the ranges (NVTX, ROCTx) open on the launching thread, beside
brute force over made-up nested ranges on two threads. No seed was chosen on: the one below judges.
"""

import csv
import random
import sqlite3

import pytest
from reading import Read

from causeway.readers.sink import launch_operators

SEED = 20261123
DOMAINS = ("", "NCCL")


def nested(rng, thread, start, end, depth, found):
    """Add ranges inside of (start, end), each perhaps with more inside of it."""
    at = start
    while at < end - 40 and len(found) < 400:
        length = rng.randint(20, max(21, (end - at) // 2))
        if rng.random() < 0.7:
            found.append((thread, at, at + length, f"layer {rng.randint(0, 9)}.{depth}", rng.choice(DOMAINS)))
            if depth < 5:
                nested(rng, thread, at + rng.randint(0, 2), at + length, depth + 1, found)
        at += length + rng.randint(1, 30)


@pytest.fixture(scope="module")
def run():
    """Return ranges (thread, start, end, name, domain) and launches (thread, start of the call, kernel's start)."""
    rng = random.Random(SEED)
    ranges = []
    for thread in (101, 102):
        nested(rng, thread, 1000, 60_000, 0, ranges)
    calls = [(rng.choice((101, 102)), at) for at in range(900, 61_000, 97)]
    return ranges, [(thread, at, at + 13) for thread, at in calls]


def expected(run):
    """Return for each launch the innermost and outermost range around its call, and the path, by brute force."""
    ranges, launches = run
    answers = []
    for thread, call, _ in sorted(launches, key=lambda one: one[2]):
        around = [one for one in ranges if one[0] == thread and one[1] <= call < one[2]]
        around.sort(key=lambda one: (one[1], -one[2]))
        names = [one[3] for one in around]
        answers.append((names[-1], names[0], "/".join(names)) if names else (None, None, None))
    return answers


def found(read):
    rows = read.operators.to_pylist() if "operators" in read.names else []
    return [
        (None, None, None) if at is None else tuple(rows[at][name] for name in ("name", "outermost", "module"))
        for at in read.launches.column("operator").to_pylist()
    ]


def write_nsys(path, run):
    """Write them as nsys does: half of the ranges' texts are in the row, half among the strings; with domains."""
    ranges, launches = run
    connection = sqlite3.connect(path)
    for statement in """
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
            nameId INTEGER);
        CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, domainId INTEGER, text TEXT,
            globalTid INTEGER, textId INTEGER)""".split(";"):
        connection.execute(statement)
    process = 7 << 24
    texts = {name: at for at, name in enumerate(sorted({one[3] for one in ranges}), 2)}
    strings = [(0, "kernel"), (1, "cudaLaunchKernel_v7000"), *[(at, name) for name, at in texts.items()]]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)
    connection.execute("INSERT INTO NVTX_EVENTS VALUES (5, NULL, 75, 1, 'NCCL', ?, NULL)", (process + 101,))
    for at, (thread, start, end, name, domain) in enumerate(ranges):
        text = (name, None) if at % 2 else (None, texts[name])
        row = (start, end, 59, DOMAINS.index(domain), text[0], process + thread, text[1])
        connection.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for at, (thread, call, start) in enumerate(launches, 1):
        connection.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 0)", (start, start + 5, at, process)
        )
        row = (call, call + 9, process + thread, at)
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", row)
    connection.commit()
    connection.close()
    return path


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header.split(), *rows])


def write_rocprofv3(folder, run):
    """Write them as rocprofv3's CSV files."""
    ranges, launches = run
    folder.mkdir()
    kernels = [
        ["KERNEL_DISPATCH", "Agent 4", 1, thread, at, 1, "kernel", at, start, start + 5]
        for at, (thread, _, start) in enumerate(launches, 1)
    ]
    write_csv(
        folder / "1_kernel_trace.csv",
        "Kind Agent_Id Queue_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp "
        "End_Timestamp",
        kernels,
    )
    header = "Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp"
    calls = [
        ["HIP_RUNTIME_API", "hipLaunchKernel", 7, thread, at, call, call + 9]
        for at, (thread, call, _) in enumerate(launches, 1)
    ]
    write_csv(folder / "1_hip_api_trace.csv", header, calls)
    marked = [
        ["MARKER_CORE_API", name, 7, thread, 10_000 + at, start, end]
        for at, (thread, start, end, name, _) in enumerate(ranges)
    ]
    if marked:
        write_csv(folder / "1_marker_api_trace.csv", header, marked)
    return folder


def write_rocpd(path, run):
    """Write them as a rocpd database of schema 3: a marker's text is its event's message."""
    ranges, launches = run
    connection = sqlite3.connect(path)
    texts = ["KERNEL_DISPATCH", "HIP_RUNTIME_API", "MARKER_CORE_RANGE_API", "hipLaunchKernel", "roctxThreadRangeA"]
    for statement in """
        CREATE TABLE rocpd_metadata (id INTEGER, guid TEXT, tag TEXT, value TEXT);
        CREATE TABLE rocpd_string (id INTEGER, guid TEXT, string TEXT);
        CREATE TABLE rocpd_info_process (id INTEGER, guid TEXT, nid INTEGER, pid INTEGER);
        CREATE TABLE rocpd_info_thread (id INTEGER, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER);
        CREATE TABLE rocpd_info_agent (id INTEGER, guid TEXT, nid INTEGER, pid INTEGER, type TEXT,
            absolute_index INTEGER, logical_index INTEGER);
        CREATE TABLE rocpd_info_kernel_symbol (id INTEGER, guid TEXT, kernel_name TEXT, display_name TEXT);
        CREATE TABLE rocpd_event (id INTEGER, guid TEXT, category_id INTEGER, stack_id INTEGER,
            extdata TEXT);
        CREATE TABLE rocpd_kernel_dispatch (id INTEGER, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER,
            agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, kernel_id INTEGER, start INTEGER, end INTEGER,
            event_id INTEGER);
        CREATE TABLE rocpd_region (id INTEGER, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start INTEGER,
            end INTEGER, name_id INTEGER, event_id INTEGER)""".split(";"):
        connection.execute(statement)

    def add(table, *row):
        connection.execute(f"INSERT INTO rocpd_{table} VALUES (?, 'g'{', ?' * (len(row) - 1)})", row)

    add("metadata", 1, "schema_version", "3.0.3")
    for at, text in enumerate(texts, 1):
        add("string", at, text)
    add("info_process", 1, 1, 7)
    for row, thread in enumerate((101, 102), 1):
        add("info_thread", row, 1, 1, thread)
    add("info_agent", 1, 1, 1, "GPU", 4, 0)
    add("info_kernel_symbol", 1, "kernel", "kernel")
    events = regions = 0
    for at, (thread, call, start) in enumerate(launches, 1):
        events += 2
        regions += 1
        add("event", events - 1, 1, at, "{}")
        add("event", events, 2, at, "{}")
        row = thread - 100
        add("kernel_dispatch", at, 1, 1, row, 1, 0, 0, 1, start, start + 5, events - 1)
        add("region", regions, 1, 1, row, call, call + 9, 4, events)
    for thread, start, end, name, _ in ranges:
        events += 1
        regions += 1
        add("event", events, 3, 0, f'{{"message": "{name}"}}')
        add("region", regions, 1, 1, thread - 100, start, end, 5, events)
    connection.commit()
    connection.close()
    return path


WRITERS = {"nsys.sqlite": write_nsys, "rocprofv3": write_rocprofv3, "run_results.db": write_rocpd}


@pytest.mark.parametrize("name", WRITERS)
def test_a_launch_has_the_ranges_open_on_its_thread(name, run, tmp_path):
    read = Read(WRITERS[name](tmp_path / name, run), tmp_path / "t")
    assert read.status == "read"
    assert found(read) == expected(run)
    assert len({one for one in expected(run) if one[2] and one[2].count("/") > 2}) > 10


@pytest.mark.parametrize("name", WRITERS)
def test_a_launch_without_ranges_has_no_operator(name, run, tmp_path):
    """The name of the launching call (hipLaunchKernel) is the same for all, and no operator."""
    read = Read(WRITERS[name](tmp_path / name, ([], run[1])), tmp_path / "t")
    assert read.launches.num_rows == len(run[1])
    assert found(read) == [(None, None, None)] * len(run[1])
    assert set(read.calls.column("name").to_pylist()) <= {"cudaLaunchKernel", "hipLaunchKernel"}


def test_operators_beyond_the_limit_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(launch_operators, "MOST", 1 << 12)
    beyond = 500
    count = launch_operators.MOST + beyond
    ranges = [(101, 100 * at, 100 * at + 90, f"layer {at}", "") for at in range(count)]
    launches = [(101, 100 * at + 10, 100 * at + 50) for at in range(count)]
    read = Read(write_nsys(tmp_path / "many.sqlite", (ranges, launches)), tmp_path / "t")
    operators = read.launches.column("operator").to_pylist()
    assert operators == [*range(count - beyond), *[None] * beyond]
    assert read.operators.num_rows == count - beyond
    assert read.count("operators_left_out") == beyond
