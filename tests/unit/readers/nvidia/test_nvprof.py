"""nvprof's database and CSV. No real file is at hand: the samples are written here after public readers and writers of
such files (ezyang/nvprof2json, rasolca/profiling_tools, UofT-EcoSystem/rlscope), columns and units as they have them.
"""

import logging
import sqlite3
import struct

import pytest
from reading import Read

SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for
KERNEL_COLUMNS = (
    "cacheConfig BLOB, sharedMemoryConfig INT, registersPerThread INT, partitionedGlobalCacheRequested INT, start INT,"
    " end INT, completed INT, deviceId INT, contextId INT, streamId INT, gridX INT, gridY INT, gridZ INT, blockX INT,"
    " blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT, localMemoryPerThread INT,"
    " localMemoryTotal INT, correlationId INT, gridId INT, name INT"
)
TABLES = {
    "StringTable": "value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": KERNEL_COLUMNS,
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": KERNEL_COLUMNS,
    "CUPTI_ACTIVITY_KIND_CDP_KERNEL": KERNEL_COLUMNS,
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "copyKind INT, srcKind INT, dstKind INT, flags INT, bytes INT, start INT, end INT, deviceId INT,"
        " contextId INT, streamId INT, correlationId INT, runtimeCorrelationId INT"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY2": (
        "copyKind INT, srcKind INT, dstKind INT, flags INT, bytes INT, start INT, end INT, deviceId INT,"
        " streamId INT, srcDeviceId INT, dstDeviceId INT, correlationId INT"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "value INT, bytes INT, start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "cbid INT, start INT, end INT, processId INT, threadId INT, correlationId INT, returnValue INT"
    ),
    "CUPTI_ACTIVITY_KIND_DRIVER": (
        "cbid INT, start INT, end INT, processId INT, threadId INT, correlationId INT, returnValue INT"
    ),
    "CUPTI_ACTIVITY_KIND_MARKER": (
        "flags INT, timestamp INT, id INT, objectKind INT, objectId BLOB, name INT, domain INT"
    ),
    "CUPTI_ACTIVITY_KIND_NAME": "objectKind INT, objectId BLOB, name INT",
    "CUPTI_ACTIVITY_KIND_DEVICE": (
        "flags INT, globalMemorySize INT, coreClockRate INT, numMultiprocessors INT, id INT, name INT"
    ),
    "CUPTI_ACTIVITY_KIND_ENVIRONMENT": "deviceId INT, timestamp INT, data BLOB",
}
EPOCH = 1_496_933_426_000_000_000
"""June 2017: nvprof's times count from 1970."""


def rows_into(connection, table, *rows):
    for row in rows:
        names = ", ".join(row)
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


@pytest.fixture
def database(tmp_path):
    """Return a database of one process: 40 kernels, 2 copies, a peer copy, a set, calls, nested ranges."""
    path = tmp_path / "run.nvvp"
    connection = sqlite3.connect(path)
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {columns})")
    texts = ["_Z3addPf", "_Z3mulPfi", "outer", "inner", "Tesla K40m", "MPI Rank 3", f"--token={SECRET}"]
    rows_into(connection, "StringTable", *({"value": text} for text in texts))
    shape = {
        "gridX": 57,
        "gridY": 2,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "registersPerThread": 32,
        "staticSharedMemory": 16,
    }
    for at in range(40):
        start = EPOCH + 1_000_000 + 10_000 * at
        place = {"deviceId": 0, "streamId": 7, "correlationId": 500 + at, "name": 1 + at % 2}
        table = "CUPTI_ACTIVITY_KIND_CDP_KERNEL" if at == 39 else "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
        rows_into(connection, table, {"start": start, "end": start + 1000 + at, **place, **shape})
        call = {
            "cbid": 211 if at % 2 else 13,
            "start": start - 5000,
            "end": start - 3000,
            "processId": 7,
            "threadId": 99,
        }
        rows_into(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", {**call, "correlationId": 500 + at})
    rows_into(
        connection,
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
        {"start": 0, "end": 0, "deviceId": 0, "streamId": 7, "name": 1, **shape},
    )
    copy = {"srcKind": 1, "dstKind": 3, "bytes": 7436640, "deviceId": 0, "streamId": 7, "correlationId": 809}
    rows_into(connection, "CUPTI_ACTIVITY_KIND_MEMCPY", {"copyKind": 1, "start": EPOCH, "end": EPOCH + 780_203, **copy})
    rows_into(
        connection,
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        {**copy, "copyKind": 2, "srcKind": 3, "dstKind": 2, "start": EPOCH + 10, "end": EPOCH + 20},
    )
    rows_into(
        connection,
        "CUPTI_ACTIVITY_KIND_MEMCPY2",
        {**copy, "copyKind": 10, "start": EPOCH + 30, "end": EPOCH + 40, "dstKind": 3},
    )
    rows_into(
        connection,
        "CUPTI_ACTIVITY_KIND_MEMSET",
        {"value": 0, "bytes": 64, "start": EPOCH + 50, "end": EPOCH + 51, "deviceId": 0},
    )
    rows_into(
        connection,
        "CUPTI_ACTIVITY_KIND_DRIVER",
        {"cbid": 999, "start": EPOCH, "end": EPOCH + 5, "processId": 7, "threadId": 98},
    )
    thread = struct.pack("<III", 7, 99, 0)
    starts = [(2, 0, 1, 3), (2, 1_095_000, 2, 4), (2, 5, 3, 3)]
    ends = [(4, 1_196_000, 2, 0), (4, 2_000_000, 1, 0)]
    for flags, time, marker, name in [*starts, (1, 1_096_000, 9, 3), *ends]:
        mark = {
            "flags": flags,
            "timestamp": EPOCH + time,
            "id": marker,
            "objectKind": 2,
            "objectId": thread,
            "name": name,
            "domain": 0,
        }
        rows_into(connection, "CUPTI_ACTIVITY_KIND_MARKER", mark)
    rows_into(connection, "CUPTI_ACTIVITY_KIND_NAME", {"objectKind": 1, "objectId": thread, "name": 6})
    device = {
        "globalMemorySize": 11_995_578_368,
        "coreClockRate": 745_000,
        "numMultiprocessors": 15,
        "id": 0,
        "name": 5,
    }
    rows_into(connection, "CUPTI_ACTIVITY_KIND_DEVICE", device)
    rows_into(connection, "CUPTI_ACTIVITY_KIND_ENVIRONMENT", {"deviceId": 0, "timestamp": 1, "data": SECRET.encode()})
    connection.commit()
    connection.close()
    return path


def test_a_database_gives_launches_transfers_calls_and_ranges(database, tmp_path):
    read = Read(database, tmp_path / "e")
    assert (read.status, read.capabilities["format"], read.capabilities["kind"]) == ("partial", "cupti", "trace")
    assert read.capabilities["tables"] == {
        "launches": 40, "transfers": 4, "calls": 41, "ranges": 3, "operators": 2, "kernels": 2, "configurations": 2,
        "devices": 1
    }  # fmt: skip
    assert read.total("launches") == sum(1000 + at for at in range(40))
    assert read.count("no_time") == 1  # start and end 0: CUPTI could not take the times
    assert set(read.kernels.column("name").to_pylist()) == {"add(float*)", "mul(float*, int)"}
    shape = read.configurations.to_pylist()[0]
    assert [shape[name] for name in ("grid_x", "grid_y", "block_x", "registers_per_thread", "static_shared_bytes")] == [
        57,
        2,
        128,
        32,
        16,
    ]
    assert set(read.launches.column("queue_ns").to_pylist()) == {3000}
    assert read.capabilities["time"]["first_ns"] == EPOCH + 1_000_000
    assert read.capabilities["time"]["session_start_ns"] == 0


def test_copies_have_cuptis_kinds_and_our_memory_kinds(database, tmp_path):
    rows = Read(database, tmp_path / "e").transfers.to_pylist()
    found = [(row["copy_kind"], row["bytes"], row["src_kind"], row["dst_kind"], row["duration_ns"]) for row in rows]
    assert found == [
        (1, 7436640, 0, 2, 780_203),
        (2, 7436640, 2, 1, 10),
        (10, 7436640, 0, 2, 10),
        (255, 64, None, None, 1),
    ]


def test_ranges_are_paired_markers_and_enclose_launches(database, tmp_path):
    read = Read(database, tmp_path / "e")
    rows = [
        (row["name"], row["start_ns"] - EPOCH, row["duration_ns"], row["thread"]) for row in read.ranges.to_pylist()
    ]
    assert rows == [
        ("outer", 0, 2_000_000, 99),
        ("outer", 5, 1_999_995, 99),
        ("inner", 1_095_000, 101_000, 99),
    ]  # an instant is none; what begins and does not end lasts to the latest end, of the first range
    assert read.count("open_events") == 1
    inside = read.launches.column("range").to_pylist()
    assert [inside.count(number) for number in (0, 1, 2)] == [0, 29, 11]  # calls 10 to 20 begin within the inner range


def test_the_rank_is_that_of_the_processes_name(database, tmp_path):
    read = Read(database, tmp_path / "e")
    assert (read.capabilities["ranks"], read.capabilities["ranks_from"]) == ([3], "export")
    assert read.devices.to_pylist() == [
        {
            "rank": 3,
            "device": 0,
            "name": "Tesla K40m",
            "multiprocessors": 15,
            "memory_bytes": 11_995_578_368,
            "clock_hz": 745_000_000,
            "compute_capability": None,
            "gpu": None,
        }
    ]


def test_calls_have_names_or_numbers(database, tmp_path):
    names = Read(database, tmp_path / "e").calls.column("name").to_pylist()
    assert {name: names.count(name) for name in set(names)} == {
        "cudaLaunch": 20,
        "cudaLaunchKernel": 20,
        "CUDA driver call 999": 1,
    }


def test_a_cut_database_keeps_what_stands_before_the_cut(database, tmp_path):
    connection = sqlite3.connect(database)
    columns = "start, end, deviceId, streamId, name, correlationId"
    rows = [(EPOCH + at, EPOCH + at + 5, 0, 7, 1, at) for at in range(20_000)]
    connection.executemany(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    connection.commit()
    connection.close()
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])
    read = Read(database, tmp_path / "e")
    assert read.status in ("partial", "refused")
    assert "CUPTI_ACTIVITY_KIND" in read.error["found"] or "cannot be read" in read.error["found"]


def test_an_empty_database_is_refused(database, tmp_path):
    connection = sqlite3.connect(database)
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    read = Read(database, tmp_path / "e")
    assert (read.status, "no row" in read.error["found"]) == ("refused", True)


def test_no_secret_of_a_database_reaches_a_table(database, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        assert SECRET not in Read(database, tmp_path / "e").texts() + caplog.text


# --print-gpu-trace --csv

HEADER = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static'
    ' SMem","Dynamic'
    ' SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"'
)
BANNER = [
    f"==2119== NVPROF is profiling process 2119, command: ./app --token={SECRET}",
    "==2119== Warning: 3 records have invalid timestamps due to insufficient device buffer space.",
    f"==2119== Profiling application: ./app --token={SECRET}",
    "==2119== Profiling result:",
]
DEVICE = '"GeForce RTX 2080 Ti (0)","1"'
ROWS = [
    f'215.346000,1.888000,,,,,,,,,,1.003906,0.507097,"Device",,{DEVICE},"7","[CUDA memset]",272',
    f'216.346000,1.536000,,,,,,,,,,0.125000,0.077610,"Pinned","Device",{DEVICE},"22","[CUDA memcpy HtoD]",316',
    f'217.000001,12.416000,64,2,1,256,1,1,32,0.125000,1.000000,,,,,{DEVICE},"7","void add<float, 4>(float*, int)",320',
    (
        f'218.000001,0.992000,64,2,1,256,1,1,32,0.125000,1.000000,,,,,{DEVICE},"7","void add<float, 4>(float*, int)'
        ' [17]",321'
    ),
]
UNITS = "ms,us,,,,,,,,KB,KB,KB,GB/s,,,,,,,"


def trace(tmp_path, lines, name="trace.csv", end="\n"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_a_gpu_trace_is_exact_in_mixed_units(tmp_path):
    read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, *ROWS, "==2119== Generated result file: x"]), tmp_path / "e")
    assert (read.status, read.capabilities["format"]) == ("partial", "cupti")
    launches = read.launches.to_pylist()
    assert [(row["start_ns"], row["duration_ns"], row["stream"], row["correlation"]) for row in launches] == [
        (217_000_001, 12_416, 7, 320),
        (218_000_001, 992, 7, 321),
    ]
    transfers = [
        (row["copy_kind"], row["bytes"], row["src_kind"], row["dst_kind"], row["stream"])
        for row in read.transfers.to_pylist()
    ]
    assert transfers == [(255, 1028, None, 2, 7), (1, 128, 1, 2, 22)]  # 1.003906 KB of 1024 bytes
    shape = read.configurations.to_pylist()[0]
    assert [shape[name] for name in ("grid_x", "grid_y", "block_x", "registers_per_thread")] == [64, 2, 256, 32]
    assert (shape["static_shared_bytes"], shape["dynamic_shared_bytes"]) == (128, 1024)
    assert read.devices.column("name").to_pylist() == ["GeForce RTX 2080 Ti"]
    assert read.count("unreadable_rows") == 0


@pytest.mark.parametrize(
    ("unit", "start"), [("ns", "217000001"), ("us", "217000.001"), ("ms", "217.000001"), ("s", "0.217000001")]
)
def test_every_unit_of_time_gives_the_same_start(unit, start, tmp_path):
    row = ROWS[2].replace("217.000001", start)
    read = Read(trace(tmp_path, [HEADER, UNITS.replace("ms", unit, 1), row]), tmp_path / "e")
    assert read.launches.column("start_ns").to_pylist() == [217_000_001]


def test_units_behind_the_values_win(tmp_path):
    row = ROWS[2].replace("217.000001,12.416000", "217.000001ms,12.416us")
    read = Read(trace(tmp_path, [HEADER, row]), tmp_path / "e", form="cupti")
    assert [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()] == [(217_000_001, 12_416)]


def test_the_number_behind_a_kernels_name_is_its_call(tmp_path):
    name = "void matrixMulCUDA<int=32>(float*, float*, int, int)"  # as nvprof of CUDA 9 prints it
    rows = [f'2{at}.0,3.7,20,10,1,32,32,1,29,8,0,,,,,{DEVICE},"7","{name} [{at}]"' for at in (94, 105)]
    head = HEADER.removesuffix(',"Correlation_ID"')
    read = Read(trace(tmp_path, [*BANNER, head, UNITS.removesuffix(","), *rows]), tmp_path / "e")
    assert read.kernels.column("name").to_pylist() == [name]
    assert read.launches.column("correlation").to_pylist() == [94, 105]


def test_the_column_of_correlations_counts_more_than_the_name(tmp_path):
    read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, *ROWS]), tmp_path / "e")
    assert read.kernels.column("name").to_pylist() == ["void add<float, 4>(float*, int)"]
    assert read.launches.column("correlation").to_pylist() == [320, 321]


@pytest.mark.parametrize(("unit", "size"), [("B", "65536.000000"), ("KB", "64.000000"), ("", "64.000000KB")])
def test_the_size_of_a_copy_of_unified_memory_stands_in_a_column_of_its_own(unit, size, tmp_path):
    head = HEADER.replace('"Name"', '"Unified Memory","Virtual Address","Name"')
    rows = [row.replace(',"7",', ',"7",,,').replace(',"22",', ',"22",,,') for row in ROWS]
    rows += [
        '219.000000,,,,,,,,,,,,,,,,,,"PC 0x4005d0","0x7f2000000000","[Unified Memory CPU page faults]",',
        f'220.000000,9.000000,,,,,,,,,,,,,,{DEVICE[:-4]},,,"18","0x7f2000000000","[Unified Memory GPU page faults]",',
        f'221.000000,7.000000,,,,,,,,,,,,,,{DEVICE[:-4]},,,{size},"0x7f2000000000","[Unified Memory Memcpy HtoD]",',
    ]
    read = Read(trace(tmp_path, [*BANNER, head, f"ms,us,,,,,,,,KB,KB,KB,GB/s,,,,,,{unit},,,", *rows]), tmp_path / "e")
    assert [(row["copy_kind"], row["bytes"]) for row in read.transfers.to_pylist()] == [
        (255, 1028),
        (1, 128),
        (11, 65_536),
    ]
    assert (read.launches.num_rows, read.capabilities["rows_in"]["other records"]) == (2, 2)
    assert read.count("unreadable_rows") == read.count("no_time") == 0


def test_an_api_trace_in_the_same_table_gives_calls_and_queue_delays(tmp_path):
    call = '216.900000,50.000000,,,,,,,,,,,,,,,,,"cudaLaunchKernel",320'
    read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, call, *ROWS]), tmp_path / "e")
    assert read.calls.column("name").to_pylist() == ["cudaLaunchKernel"]
    assert read.launches.column("queue_ns").to_pylist() == [50_001, None]


def test_an_api_trace_alone_has_no_launch(tmp_path):
    lines = [
        *BANNER,
        '"Start","Duration","Name","Correlation_ID"',
        "us,us,,",
        '0.000000,2.866000,"cuDeviceGetPCIBusId",1',
    ]
    read = Read(trace(tmp_path, lines), tmp_path / "e")
    assert (read.status, read.error["found"]) == ("refused", "there is a header but no kernel launch")


def test_a_cut_trace_keeps_its_whole_lines(tmp_path):
    for at, end in enumerate((ROWS[3][:30], ROWS[3][:110])):
        read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, *ROWS[:3], end], end=""), tmp_path / str(at))
        assert (read.status, read.launches.num_rows, read.count("truncated")) == ("partial", 1, 1)
        assert "in the middle of line 10" in read.error["found"]


def test_damaged_rows_are_left_out_and_counted(tmp_path):
    spoilt = [
        "garbage",
        ROWS[2].replace("217.000001", "soon"),
        ROWS[2].replace("void add<", 'void "add<'),
        ROWS[2].replace("12.416", "nan"),
    ]
    read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, *spoilt, *ROWS]), tmp_path / "e")
    assert read.status == "partial"
    assert read.launches.num_rows == 2
    assert (read.count("unreadable_rows"), read.count("no_time")) == (2, 2)


def test_no_secret_of_a_trace_reaches_a_table(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        read = Read(trace(tmp_path, [*BANNER, HEADER, UNITS, *ROWS, BANNER[0]]), tmp_path / "e")
        refused = Read(trace(tmp_path, BANNER, "messages.csv"), tmp_path / "f", form="cupti")
    assert refused.status == "refused"
    assert SECRET not in read.texts() + refused.texts() + caplog.text
