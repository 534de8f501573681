"""MPI calls, sampled metrics and whole graphs of Nsight Systems, of two processes on GPUs of other numbers: no real
export at hand holds them together.
"""

import sqlite3

import pytest
from reading import Read

from causeway.readers.normalise import normalise

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.fixture
def database(tmp_path):
    """Return a database as nsys would write it for two MPI ranks on GPUs 2 and 3, each of which calls its own device
    0.
    """
    path = tmp_path / "mpi.sqlite"
    connection = sqlite3.connect(path)
    for statement in f"""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE TABLE {KERNEL} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER,
            demangledName INTEGER);
        CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER);
        CREATE TABLE MPI_P2P_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER,
            tag INTEGER, remoteRank INTEGER, size INTEGER, requestHandle INTEGER);
        CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER,
            commHandle INTEGER, rootRank INTEGER, size INTEGER, recvSize INTEGER, requestHandle INTEGER);
        CREATE TABLE MPI_START_WAIT_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER,
            requestHandle INTEGER);
        CREATE TABLE MPI_OTHER_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER);
        CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);
        CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER,
            metricName TEXT);
        CREATE TABLE GPU_METRICS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, metricId INTEGER,
            value INTEGER)
        """.split(";"):
        connection.execute(statement)
    names = enumerate(["add", "MPI_Send", "MPI_Allreduce", "MPI_Waitall", "MPI_Init"])
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
    kinds = [(1 << 48) + 2, (1 << 48) + 3]
    for rank, pid in enumerate((700, 600)):  # the second rank has the smaller process id
        process = pid << 24
        thread = process + pid
        connection.execute(f"INSERT INTO {KERNEL} VALUES (?, ?, 0, 7, ?, 0)", (1000 + rank, 1100 + rank, process))
        connection.execute("INSERT INTO MPI_RANKS VALUES (?, ?)", (thread, rank))
        connection.execute("INSERT INTO MPI_P2P_EVENTS VALUES (10, 20, ?, 1, 5, 0, ?, 4096, 0)", (thread, 1 - rank))
        connection.execute("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (30, 50, ?, 2, 5, -1, 8, 16, 0)", (thread,))
        connection.executemany(
            "INSERT INTO MPI_START_WAIT_EVENTS VALUES (60, 90, ?, 3, ?)", [(thread, request) for request in range(4)]
        )
        connection.execute("INSERT INTO MPI_OTHER_EVENTS VALUES (1, 9, ?, 4)", (thread,))
        connection.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, 0, ?)", (2 + rank, pid))
        order = ["SMs Active [Throughput %]", "GPC Clock Frequency [MHz]", "PCIe RX Throughput [MB/s]"]
        order = order if rank == 0 else order[::-1]  # numbers of metrics differ between GPUs
        rows = [(kinds[rank], kinds[rank], "", at, name) for at, name in enumerate(order)]
        connection.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, ?, ?, ?, ?)", rows)
        value = {
            "SMs Active [Throughput %]": 40 + rank,
            "GPC Clock Frequency [MHz]": 1410,
            "PCIe RX Throughput [MB/s]": 3,
        }
        rows = [(5, 1000, kinds[rank], at, value[name]) for at, name in enumerate(order)]
        connection.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


def test_mpi_calls_have_rank_peer_and_size(database, tmp_path):
    read = Read(database, tmp_path / "e")
    assert read.capabilities["ranks"] == [0, 1]
    assert read.capabilities["ranks_from"] == "export"
    rows = [row for row in read.mpi.to_pylist() if row["rank"] == 0]
    assert [(row["name"], row["start_ns"], row["duration_ns"], row["bytes"], row["peer"]) for row in rows] == [
        ("MPI_Init", 1, 8, None, None),
        ("MPI_Send", 10, 10, 4096, 1),
        ("MPI_Allreduce", 30, 20, 16, None),
        ("MPI_Waitall", 60, 30, None, None),  # four requests, one call
    ]
    assert {row["thread"] for row in rows} == {700}
    assert read.capabilities["rows_in"]["MPI_START_WAIT_EVENTS"] == 8


def test_rows_of_one_wait_need_not_follow_each_other(database, tmp_path):
    """Since 2025.6 the order of rows is not defined: rows of MPI_Waitall at 60 stand before and behind another's."""
    with sqlite3.connect(database) as connection:
        thread = (700 << 24) + 700
        rows = [(200, 260, thread, 3, 7), (60, 90, thread, 3, 4), (200, 260, thread, 3, 8), (300, 310, thread, 3, 9)]
        connection.executemany("INSERT INTO MPI_START_WAIT_EVENTS VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    waits = [row for row in Read(database, tmp_path / "e").mpi.to_pylist() if row["name"] == "MPI_Waitall"]
    assert sorted((row["rank"], row["start_ns"], row["duration_ns"]) for row in waits) == [
        (0, 60, 30),
        (0, 200, 60),
        (0, 300, 10),
        (1, 60, 30),
    ]


def test_metrics_go_to_the_rank_and_device_that_use_the_gpu(database, tmp_path):
    read = Read(database, tmp_path / "e")
    found = {(row["rank"], row["metric"]): (row["device"], row["value"]) for row in read.samples.to_pylist()}
    assert found == {
        (0, "sms_active_ratio"): (0, 0.40),
        (1, "sms_active_ratio"): (0, 0.41),
        (0, "gpc_clock_frequency_hz"): (0, 1.41e9),
        (1, "gpc_clock_frequency_hz"): (0, 1.41e9),
        (0, "pcie_rx_throughput_mb_s"): (0, 3.0),
        (1, "pcie_rx_throughput_mb_s"): (0, 3.0),
    }
    assert read.count("metrics_device_assumed") == 0


def test_what_one_call_sends_and_receives_is_one_call(database, tmp_path):
    """MPI_Sendrecv has a row for what it sends and one for what it receives, where they differ. Calls of other threads
    and names are others, and so are two that took no time.
    """
    with sqlite3.connect(database) as connection:
        mine, other = (((pid << 24) + pid) for pid in (700, 600))
        connection.execute("INSERT INTO StringIds VALUES (5, 'MPI_Sendrecv')")
        rows = [
            (400, 450, mine, 5, 5, 0, 1, 64, None),
            (410, 460, mine, 5, 5, 0, 2, 32, None),
            (400, 450, mine, 5, 5, 1, 3, 4096, None),  # received from another rank
            (410, 460, mine, 5, 5, 1, 2, 48, None),  # to and from one rank
            (400, 450, other, 5, 5, 0, 0, 8, None),
            (500, 500, mine, 1, 5, 0, 1, 4, None),
            (500, 500, mine, 1, 5, 0, 2, 4, None),
        ]
        connection.executemany(f"INSERT INTO MPI_P2P_EVENTS VALUES ({','.join('?' * 9)})", rows)
    connection.close()
    found = [row for row in Read(database, tmp_path / "e").mpi.to_pylist() if row["start_ns"] in (400, 410, 500)]
    columns = ("rank", "start_ns", "duration_ns", "name", "bytes", "peer", "communicator")
    assert sorted((tuple(row[name] for name in columns) for row in found), key=str) == [
        (0, 400, 50, "MPI_Sendrecv", 4096, None, 5),
        (0, 410, 50, "MPI_Sendrecv", 48, 2, 5),
        (0, 500, 0, "MPI_Send", 4, 1, 5),
        (0, 500, 0, "MPI_Send", 4, 2, 5),
        (1, 400, 50, "MPI_Sendrecv", 8, 0, 5),
    ]


@pytest.mark.parametrize(
    ("numbers", "devices"),
    [([3, 2, 1, 0], (1, 0)), ([0, 1, 2, 3], (2, 3)), ([0, 0, 0, 0], (2, 3)), ([None] * 4, (2, 3)), ([], (2, 3))],
    ids=["opposite", "alike", "one number for all", "absent", "no GPUs"],
)
def test_metrics_go_to_the_device_that_cuda_numbers_so(database, numbers, devices, tmp_path):
    """Nodes with four A100 whose export has no TARGET_INFO_CUDA_DEVICE count their GPUs against the order of CUDA: the
    metrics are of GPUs 2 and 3 here, which are devices 1 and 0.
    """
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TABLE TARGET_INFO_CUDA_DEVICE")
        connection.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, cuDevice INTEGER)")
        connection.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, ?)", list(enumerate(numbers)))
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = ?", (devices[1],))
    connection.close()
    read = Read(database, tmp_path / "e")
    found = {row["value"]: row["device"] for row in read.samples.to_pylist() if row["metric"] == "sms_active_ratio"}
    assert found == {0.40: devices[0], 0.41: devices[1]}
    assert read.issue("metrics_device_assumed")["detail"].endswith(f"GPU 2 taken as device {devices[0]}")


def test_executions_of_whole_graphs_alone_are_read(database, tmp_path):
    """They are all that is known of what the device did; that the kernels inside have no rows is a caution."""
    connection = sqlite3.connect(database)
    for table in (KERNEL, "GPU_METRICS"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER)"
    )
    connection.commit()
    empty = Read(database, tmp_path / "empty")
    assert (empty.status, "--cuda-graph-trace=node" in empty.error["advice"]) == ("refused", True)
    connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1000, 2500, 0, 1), (4000, 4100, 0, 1)")
    connection.commit()
    connection.close()
    read = Read(database, tmp_path / "e")
    assert read.status == "read"
    assert [(row["start_ns"], row["duration_ns"]) for row in read.graphs.to_pylist()] == [(1000, 1500), (4000, 100)]
    assert (read.capabilities["time"]["first_ns"], read.capabilities["time"]["last_ns"]) == (1000, 4100)
    assert read.issue("graphs_without_launches")["count"] == 2
    assert (read.count("no_launches"), read.capabilities["analyses"]["time_line"]["possible"]) == (1, True)


def test_exports_until_2021_name_their_gpus_by_the_number_of_the_device(tmp_path):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(f"""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (0, 'add');
        CREATE TABLE {KERNEL} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER,
            demangledName INTEGER);
        INSERT INTO {KERNEL} VALUES (1000, 1100, 1, 7, {700 << 24}, 0);
        CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INTEGER, name TEXT, numMultiprocessors INTEGER,
            numThreadsPerWarp INTEGER);
        INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Tesla T4', 40, 32), (1, 'A100-PCIE-40GB', 108, 32);
    """)
    connection.close()
    read = Read(path, tmp_path / "e")
    assert read.status == "read"
    found = [(row["device"], row["name"], row["multiprocessors"]) for row in read.devices.to_pylist()]
    assert found == [(1, "A100-PCIE-40GB", 108)]


def test_whole_graphs_have_the_device_the_stream_and_the_call_that_the_export_states(database, tmp_path):
    """Of old exports without these columns they are on the device on which their process launches."""
    connection = sqlite3.connect(database)
    connection.execute(f"UPDATE {KERNEL} SET deviceId = 1 WHERE globalPid = {700 << 24}")
    connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId, streamId, correlationId,"
        " globalPid)"
    )
    rows = [(2000, 2100, 3, 1, 13, 88, 700 << 24), (2200, 2210, 0, 1, None, None, 600 << 24)]
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    names = ("start_ns", "duration_ns", "rank", "device", "stream", "correlation")
    read = Read(database, tmp_path / "e")
    found = [tuple(row[name] for name in names) for row in read.graphs.to_pylist()]
    assert found == [(2000, 100, 0, 3, 13, 88), (2200, 10, 1, 0, None, None)]
    assert [(row["rank"], row["device"]) for row in read.devices.to_pylist()] == [(0, 1), (0, 3), (1, 0)]
    assert read.count("device_assumed") == 0
    connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, globalPid)")
    connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (2000, 2100, {700 << 24})")
    connection.commit()
    connection.close()
    read = Read(database, tmp_path / "f")
    assert [tuple(row[name] for name in names) for row in read.graphs.to_pylist()] == [(2000, 100, 0, 1, None, None)]
    assert read.count("device_assumed") == 1


def mpi_ranges(path, tables=""):
    """Write an export of one process whose NVTX domain 1 is named MPI, by its text, and 2 so by a string's number."""
    connection = sqlite3.connect(path)
    connection.executescript(f"""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (0, 'add'), (1, 'MPI_Send'), (2, 'MPI'), (3, 'PMPI_Wait'), (4, 'halo exchange');
        CREATE TABLE {KERNEL} (start INTEGER, end INTEGER, deviceId INTEGER, globalPid INTEGER, demangledName INTEGER);
        INSERT INTO {KERNEL} VALUES (1000, 1100, 0, {700 << 24}, 0);
        CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, domainId, globalTid);
        INSERT INTO NVTX_EVENTS VALUES (1, NULL, 75, 'MPI', NULL, 1, {(700 << 24) + 5}),
            (2, NULL, 75, NULL, 2, 2, {(700 << 24) + 5}), (3, NULL, 75, 'CCCL', NULL, 3, {(700 << 24) + 5}),
            (10, 30, 59, NULL, 1, 1, {(700 << 24) + 5}), (40, 50, 59, 'MPI_Init', NULL, 1, {(700 << 24) + 6}),
            (60, 65, 59, NULL, 3, 2, {(700 << 24) + 5}), (70, 75, 59, NULL, 4, 1, {(700 << 24) + 5}),
            (80, 85, 59, NULL, 1, 3, {(700 << 24) + 5}), (90, 95, 59, NULL, 1, 0, {(700 << 24) + 5}),
            (96, 99, 59, NULL, 1, 1, {(900 << 24) + 5}); {tables}
    """)
    connection.close()
    return path


def test_ranges_of_a_domain_named_mpi_that_are_named_as_its_calls_are_such_calls(tmp_path):
    """Those of other names, of other domains, and of a process whose domain 1 is not known to be MPI's stay ranges."""
    read = Read(mpi_ranges(tmp_path / "x.sqlite"), tmp_path / "e")
    found = [tuple(row[name] for name in ("name", "start_ns", "duration_ns", "thread")) for row in read.mpi.to_pylist()]
    assert found == [("MPI_Send", 10, 20, 5), ("MPI_Init", 40, 10, 6), ("PMPI_Wait", 60, 5, 5)]
    assert {row["bytes"] for row in read.mpi.to_pylist()} == {None}
    assert [(row["name"], row["start_ns"]) for row in read.ranges.to_pylist()] == [
        ("halo exchange", 70),
        ("MPI_Send", 80),
        ("MPI_Send", 90),
        ("MPI_Send", 96),
    ]
    assert read.capabilities["analyses"]["mpi_calls"]["possible"]


def test_a_domain_may_be_created_behind_its_ranges(tmp_path):
    """Further than one batch, and in another order of rows than that of their starts."""
    connection = sqlite3.connect(mpi_ranges(tmp_path / "x.sqlite"))
    thread = (700 << 24) + 5
    rows = [(10_000 + 10 * at, 10_001 + 10 * at, 59, None, (4, 1)[at % 2], 8, thread) for at in range(200_000)]
    connection.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute(f"INSERT INTO NVTX_EVENTS VALUES (5, NULL, 75, 'MPI', NULL, 8, {thread})")
    connection.commit()
    connection.close()
    read = Read(tmp_path / "x.sqlite", tmp_path / "e")
    assert read.mpi.num_rows == 3 + 100_000
    assert read.mpi.column("start_ns").to_pylist() == [10, 40, 60, *(row[0] for row in rows if row[4] == 1)]
    assert read.ranges.num_rows == 4 + 100_000
    assert read.ranges.column("start_ns").to_pylist() == [70, 80, 90, 96, *(row[0] for row in rows if row[4] == 4)]


def test_a_rank_with_mpi_and_without_gpu_work_is_refused_for_that(tmp_path):
    with_mpi = tmp_path / "x.sqlite"
    connection = sqlite3.connect(with_mpi)
    connection.executescript("""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (1, 'MPI_Recv');
        CREATE TABLE MPI_P2P_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER);
    """)
    for calls in (0, 1):
        if calls:
            connection.execute("INSERT INTO MPI_P2P_EVENTS VALUES (10, 20, 5, 1)")
        connection.commit()
        document = normalise(with_mpi, tmp_path / str(calls), export="0", source="x")
        error = document["error"]
        assert document["status"] == "refused"
        assert ("; it holds MPI calls, but analyses are of ranks with GPU work" in error["found"]) == bool(calls)
        assert ("Leave it out if its rank has no GPU work." in error["advice"]) == bool(calls)
    connection.close()


def test_where_tables_hold_the_calls_of_mpi_its_ranges_stay_ranges(tmp_path):
    tables = (
        "CREATE TABLE MPI_OTHER_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER);"
        f"INSERT INTO MPI_OTHER_EVENTS VALUES (11, 29, {(700 << 24) + 5}, 1);"
    )
    read = Read(mpi_ranges(tmp_path / "x.sqlite", tables), tmp_path / "e")
    assert [(row["name"], row["start_ns"]) for row in read.mpi.to_pylist()] == [("MPI_Send", 11)]
    assert read.ranges.num_rows == 7


def test_a_real_export_of_2022_has_its_calls_of_mpi(data, tmp_path):
    read = Read(data / "nsys_sqlite/pipit/saxpy-mpi-cuda_nsys_perlmutter0.sqlite", tmp_path / "e")
    times: dict[str, list[int]] = {}
    for row in read.mpi.to_pylist():
        times.setdefault(row["name"], []).append(row["duration_ns"])
    assert {name: len(found) for name, found in times.items()} == {
        "MPI_Init": 1, "MPI_Send": 10, "MPI_Recv": 5, "MPI_Finalize": 1
    }  # fmt: skip
    assert [round(sum(times[name]) / 1e6) for name in ("MPI_Init", "MPI_Send", "MPI_Recv")] == [646, 136, 108]
    assert set(read.ranges.column("name").to_pylist()) == {"saxpy"}
