"""Nsight Systems sqlite: every real export against direct SQL, and made-up ones for what real ones do not show."""

import sqlite3

import numpy as np
import pytest
from reading import Read

from support import DATA

KERNEL, MEMCPY, MEMSET, RUNTIME = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME"))
FILES = sorted((DATA / "nsys_sqlite").rglob("*.sqlite")) if DATA.is_dir() else []
IDLE = {"jacc_report1", "efficientcenterformer_baseline_nvtx_only"}  # no GPU activity at all
WITH_LAUNCHES = [path for path in FILES if path.parent.name not in ("no-gpu-activity", "nemo-gpu-metrics")]
FIRST = {
    next(path for path in WITH_LAUNCHES if path.parent == folder) for folder in {path.parent for path in WITH_LAUNCHES}
}
"""One export of each origin, which every run reads; the others are among the slow tests."""


def real(files):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    slow = [pytest.mark.slow if path not in FIRST else () for path in files]
    return [
        pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=mark)
        for path, mark in zip(files, slow, strict=True)
    ] or [pytest.param(None, marks=why)]


def ask(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def counted(path, table):
    """Return rows and the sum of end - start of a table, (0, 0) if there is none."""
    if not ask(path, f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"):
        return 0, 0
    return ask(path, f"SELECT count(*), coalesce(sum(end - start), 0) FROM {table}")[0]


@pytest.mark.parametrize("path", real(WITH_LAUNCHES))
def test_rows_and_times_equal_sql_to_the_nanosecond(path, read_once):
    export = read_once(path)
    assert export.status == "read"
    launches, total = counted(path, KERNEL)
    assert (
        export.launches.num_rows
        == export.capabilities["tables"]["launches"]
        == export.capabilities["rows_in"][KERNEL]
        == launches
    )
    assert export.total("launches") == total
    copies = counted(path, MEMCPY)
    sets = counted(path, MEMSET)
    assert export.capabilities["tables"].get("transfers", 0) == copies[0] + sets[0]
    if copies[0] + sets[0]:
        assert export.total("transfers") == copies[1] + sets[1]
        assert sum(kind == 255 for kind in export.transfers.column("copy_kind").to_pylist()) == sets[0]
    assert export.capabilities["tables"].get("calls", 0) == counted(path, RUNTIME)[0]
    first, last = ask(path, f"SELECT min(start), max(end) FROM {KERNEL}")[0]
    assert export.capabilities["time"]["first_ns"] == first
    assert export.capabilities["time"]["last_ns"] >= last


@pytest.mark.parametrize("path", real(WITH_LAUNCHES))
def test_each_launch_has_its_kernel_and_configuration(path, read_once):
    export = read_once(path)
    raw = "gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory".split()
    present = [row[1] for row in ask(path, f"PRAGMA table_info({KERNEL})")]
    columns = ", ".join(name if name in present else f"NULL AS {name}" for name in raw)
    query = f"SELECT value, {columns}, count(*), sum(end - start) FROM {KERNEL} JOIN StringIds ON id = demangledName"
    query += f" GROUP BY value, {', '.join(raw)}"
    expected = {tuple(row[:10]): tuple(row[10:]) for row in ask(path, query)}
    kernels = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    shape = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
    shape += ["registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes"]
    key = {
        row["configuration"]: (kernels[row["kernel"]], *[row[name] for name in shape])
        for row in export.configurations.to_pylist()
    }
    configuration, duration = (export.launches.column(name).to_numpy() for name in ("configuration", "duration_ns"))
    found: dict = {}
    for number in range(len(key)):
        rows = configuration == number
        count, total = found.get(key[number], (0, 0))
        found[key[number]] = (count + int(rows.sum()), total + int(duration[rows].sum()))
    assert found == expected
    assert configuration[0] == 0  # numbered in order of first appearance
    assert len(set(export.kernels.column("id").to_pylist())) == len(kernels)


@pytest.mark.parametrize("path", real(WITH_LAUNCHES))
def test_queue_delay_is_from_the_launch_calls_end_to_the_start(path, read_once):
    process = (
        "k.globalPid >> 24 = r.globalTid >> 24"
        if "globalPid" in str(ask(path, f"PRAGMA table_info({KERNEL})"))
        else "1"
    )
    query = f"SELECT k.start, k.streamId, k.start - max(r.end) FROM {KERNEL} k LEFT JOIN {RUNTIME} r ON r.correlationId = k.correlationId AND {process} GROUP BY k.rowid"
    connection = sqlite3.connect(":memory:")
    connection.execute(f"ATTACH '{path}' AS e")
    for table in (KERNEL, RUNTIME):  # an index makes the join quick; the export stays as it is
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM e.{table}")
    connection.execute(f"CREATE INDEX by_correlation ON {RUNTIME} (correlationId)")
    expected = sorted(
        (start, stream, None if queue is None or queue < 0 else queue)
        for start, stream, queue in connection.execute(query)
    )
    connection.close()
    export = read_once(path)
    found = zip(*[export.launches.column(name).to_pylist() for name in ("start_ns", "stream", "queue_ns")], strict=True)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_two_processes_on_two_devices_are_two_ranks(data, read_once):
    export = read_once(data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite")
    assert export.capabilities["ranks"] == [0, 1]
    assert export.capabilities["ranks_from"] == "export"
    table = export.launches
    assert set(zip(table.column("rank").to_pylist(), table.column("device").to_pylist(), strict=True)) == {
        (0, 0),
        (1, 1),
    }
    assert [table.column("rank").to_pylist().count(rank) for rank in (0, 1)] == [1721, 1721]
    # the lead comparison case of reference/efficiency.md: 25.475 GB of pinned host-to-device copies on GPU 0
    copies = export.transfers.to_pylist()
    pinned = [row for row in copies if row["device"] == 0 and row["copy_kind"] == 1 and row["src_kind"] == 1]
    assert sum(row["bytes"] for row in pinned) / 1e9 == pytest.approx(25.475, abs=0.001)
    assert (np.diff(table.column("start_ns").to_numpy()) >= 0).all()


def test_ranges_hold_the_calls_of_their_launches(data, read_once):
    path = data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"
    export = read_once(path)
    assert (
        export.ranges.num_rows
        == ask(path, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND end IS NOT NULL")[0][0]
    )
    ranges = export.ranges.to_pylist()
    expected = {}
    for tid, correlation, start in ask(path, f"SELECT globalTid, correlationId, start FROM {RUNTIME}"):
        expected[tid >> 24, correlation] = (tid, start)
    spans: dict = {}
    for tid, start, end in ask(
        path, "SELECT globalTid, start, end FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start"
    ):
        spans.setdefault(tid, []).append((start, end))
    processes = sorted({tid >> 24 for tid, _ in expected.values()})
    checked = 0
    for row in export.launches.to_pylist()[::7]:
        call = expected.get((processes[row["rank"]], row["correlation"]))
        holding = [span for span in spans[call[0]] if span[0] <= call[1] < span[1]] if call else []
        if holding:
            found = ranges[row["range"]]
            assert (found["start_ns"], found["start_ns"] + found["duration_ns"]) == holding[-1]
            checked += 1
        else:
            assert row["range"] is None
    assert checked > 200


def test_a_rank_may_stand_in_the_name_of_a_thread(data, tmp_path):
    export = Read(data / "nsys_sqlite/pipit/saxpy-mpi-cuda_nsys_perlmutter0.sqlite", tmp_path / "t", position=3)
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == ([0], "export")


def test_devices_are_those_used_and_only_facts_that_are_certain(data, read_once):
    export = read_once(data / "nsys_sqlite/fuser/report1_h100.sqlite")
    assert export.devices.to_pylist() == [
        {
            "rank": 0,
            "device": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "multiprocessors": 132,
            "memory_bytes": 84942979072,
            "clock_hz": 1980000000,
            "compute_capability": None,
            "gpu": None,
        }
    ]


@pytest.mark.parametrize("name", sorted(IDLE))
def test_exports_without_gpu_activity_are_refused_in_one_sentence(data, tmp_path, name):
    export = Read(data / f"nsys_sqlite/no-gpu-activity/{name}.sqlite", tmp_path / "t", source="runs/a.sqlite")
    assert export.status == "refused"
    assert export.names == set()
    assert export.error["source"] == "runs/a.sqlite"
    assert "no GPU activity" in export.error["found"]
    assert not any(entry["possible"] for entry in export.capabilities["analyses"].values())


def test_the_same_bytes_twice(data, tmp_path):
    for folder in ("a", "b"):
        Read(data / "nsys_sqlite/nsys-ai/mfu_2gpu_before.sqlite", tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == 11
    assert "profiler_overhead.parquet" in files
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


# made-up exports


def write_export(
    path, kernels, columns="start, end, deviceId, streamId, correlationId, globalPid, demangledName", extra=()
):
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {KERNEL} ({columns})")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    connection.executemany(
        "INSERT INTO StringIds VALUES (?, ?)", [(1, "alpha(int)"), (2, "beta<float>(x)"), (3, "MPI Rank 7")]
    )
    connection.executemany(f"INSERT INTO {KERNEL} VALUES ({', '.join('?' * (columns.count(',') + 1))})", kernels)
    for statement in extra:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def pid(number):
    return (1 << 48) | (number << 24)


def test_only_start_end_and_names_are_needed(tmp_path):
    path = write_export(tmp_path / "x.sqlite", [(10, 20, 1), (5, 9, 2)], "start, end, demangledName")
    export = Read(path, tmp_path / "t", position=4)
    assert export.status == "read"
    assert export.launches.to_pydict()["start_ns"] == [5, 10]
    assert export.launches.to_pydict()["rank"] == [4, 4]
    assert export.capabilities["ranks_from"] == "position"
    assert [
        export.count(kind) for kind in ("device_assumed", "rank_assumed", "no_transfers", "no_launch_configuration")
    ] == [1, 1, 1, 2]
    assert export.capabilities["analyses"]["memory_stall"] == {"possible": False, "why": "no memory transfers"}
    assert export.capabilities["analyses"]["queue_delay"]["possible"] is False


def test_rows_that_cannot_be_launches_are_left_out_and_counted(tmp_path):
    rows = [
        (10, 20),
        (30, 25),
        (None, 5),
        (7, None),
        (40, 40),
        (4 << 60, (4 << 60) + 5),
        (1, 10**17),
        ("x", 5),
        (50, 60.0),
    ]
    path = write_export(tmp_path / "x.sqlite", [(*row, 0, 7, 1, pid(5), 1) for row in rows])
    export = Read(path, tmp_path / "t")
    assert export.launches.to_pydict()["start_ns"] == [10, 40, 50]
    assert export.capabilities["rows_in"][KERNEL] == 9
    kinds = ("end_before_start", "no_time", "implausible_time", "not_a_number", "zero_duration")
    assert [export.count(kind) for kind in kinds] == [1, 3, 2, 1, 1]


def test_launches_without_a_name_stay_apart_by_the_lost_string(tmp_path):
    path = write_export(
        tmp_path / "x.sqlite", [(n, n + 1, 0, 7, n, pid(5), name) for n, name in enumerate([1, 99, 98, None, 99])]
    )
    export = Read(path, tmp_path / "t")
    assert export.kernels.to_pydict()["name"] == [
        "alpha(int)",
        "(unnamed kernel 99)",
        "(unnamed kernel 98)",
        "(unnamed kernel)",
    ]
    assert export.count("missing_name") == 4


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("start, end, demangledName", [["alpha(int)"], ["beta"], [None]]),
        ("start, end, demangledName, shortName", [["alpha(int)", "alpha"], ["beta", "beta"], [None, None]]),
        ("start, end, shortName", [["alpha(int)"], ["beta"], [None]]),
        ("start, end, demangledName, shortName", [[None, "alpha(int)"], [None, "beta"], [None, None]]),
    ],
)
def test_names_of_kernels_may_be_text(tmp_path, columns, names):
    """As programs write that make such a database themselves: no name was read, and all launches were of one kernel."""
    rows = [(10 * n, 10 * n + 5, *name) for n, name in enumerate(names, 1)]
    export = Read(write_export(tmp_path / "x.sqlite", rows, columns), tmp_path / "t")
    assert export.kernels.column("name").to_pylist() == ["alpha(int)", "beta", "(unnamed kernel)"]
    assert export.count("missing_name") == 1


def test_ranks_follow_the_device_then_the_process_and_the_sheet_gives_the_first(tmp_path):
    rows = [
        (1, 2, 1, 7, 1, pid(30), 1),
        (3, 4, 0, 7, 2, pid(40), 1),
        (5, 6, 0, 7, 3, pid(20), 2),
        (7, 8, 3, 7, 3, pid(20), 2),
    ]
    path = write_export(tmp_path / "x.sqlite", rows)
    assert Read(path, tmp_path / "t").launches.to_pydict()["rank"] == [2, 1, 0, 0]
    assert Read(path, tmp_path / "u", rank=8).capabilities["ranks"] == [8, 9, 10]


def test_ranks_that_the_export_states_are_taken(tmp_path):
    rows = [(1, 2, 0, 7, 1, pid(30), 1), (3, 4, 1, 7, 2, pid(40), 1)]
    stated = [
        "CREATE TABLE MPI_RANKS (globalTid, rank)",
        *[f"INSERT INTO MPI_RANKS VALUES ({pid(p) + 3}, {r})" for p, r in ((30, 9), (40, 4))],
    ]
    path = write_export(tmp_path / "x.sqlite", rows, extra=stated)
    export = Read(path, tmp_path / "t")
    assert (export.launches.to_pydict()["rank"], export.capabilities["ranks_from"]) == ([9, 4], "export")
    one = write_export(tmp_path / "y.sqlite", rows[:1], extra=stated)
    export = Read(one, tmp_path / "u", rank=2)
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"], export.count("rank_contradicts")) == (
        [2],
        "sheet",
        1,
    )


def test_a_process_that_a_rank_started_does_not_take_its_rank(tmp_path):
    """Two exports of ranks 6 and 7, in each of which a helper launched one kernel."""
    for rank in (6, 7):
        main = [(time, time + 5, 0, 7, time, pid(30 + rank), 1) for time in range(0, 1000, 10)]
        stated = [
            "CREATE TABLE MPI_RANKS (globalTid, rank)",
            f"INSERT INTO MPI_RANKS VALUES ({pid(30 + rank)}, {rank})",
        ]
        path = write_export(tmp_path / f"{rank}.sqlite", [(3, 4, 0, 7, 1, pid(9), 2), *main], extra=stated)
        for sheet in (None, rank):
            export = Read(path, tmp_path / f"t{rank}{sheet}", rank=sheet)
            assert export.launches.column("rank").to_pylist() == [rank] * 100
            assert (export.capabilities["ranks"], export.capabilities["time"]["first_ns"]) == ([rank], 0)
            assert (export.count("unranked_processes"), export.count("other_processes")) == (1, 1)
            assert export.issue("unranked_processes")["severity"] == "caution"
            assert export.kernels.column("name").to_pylist() == ["alpha(int)"]


def test_a_table_without_its_needed_columns_is_named(tmp_path):
    path = write_export(tmp_path / "x.sqlite", [(1, 2)], "start, finish")
    export = Read(path, tmp_path / "t")
    assert export.status == "refused"
    assert f"table {KERNEL} has no column end" in export.error["found"]


def test_an_empty_text_is_none_where_the_range_has_a_name(tmp_path):
    path = tmp_path / "2020.sqlite"  # whose columns are all NOT NULL
    connection = sqlite3.connect(path)
    for statement in (
        "CREATE TABLE StringIds (id INTEGER NOT NULL, value TEXT NOT NULL)",
        f"CREATE TABLE {KERNEL} (start, end, deviceId, streamId, globalPid, demangledName)",
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, text TEXT NOT NULL, globalTid, textId)",
        f"INSERT INTO {KERNEL} VALUES (1, 2, 0, 7, 0, 1)",
        "INSERT INTO StringIds VALUES (1, 'k'), (2, 'registered')",
        "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, '', 0, 2), (2, 4, 59, 'inline', 0, 2), (3, 4, 59, '', 0, NULL)",
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()
    names = Read(path, tmp_path / "t").ranges.column("name").to_pylist()
    assert names == ["registered", "inline", "(unnamed range)"]
