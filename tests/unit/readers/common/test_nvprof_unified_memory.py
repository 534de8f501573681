"""What unified memory moves, in nvprof's database: rows of a table of counters, with the columns that public writers of
such databases create.
"""

import sqlite3

import pytest
from reading import Read

COUNTERS = (
    "_id_ INTEGER PRIMARY KEY, counterKind INT, value INT, start INT, end INT, address INT, srcId INT, dstId INT,"
    " streamId INT, processId INT, flags INT"
)
UNTIMED = "_id_ INTEGER PRIMARY KEY, counterKind INT, scope INT, deviceId INT, value INT, timestamp INT, processId INT"
HOST = (1 << 32) - 1
ROWS = [  # counter, value, start, end, source, target; as CUPTI numbers them
    (1, 65_536, 1000, 1012, HOST, 1),  # to device 1
    (2, 4096, 2000, 2003, 0, HOST),  # from device 0
    (8, 8192, 3000, 3004, 0, 1),  # between devices
    (3, 1, 4000, 4000, HOST, HOST),  # a page fault of the host
    (4, 12, 5000, 5090, 0, 0),  # page faults of device 0
    (5, 1, 6000, 6100, 0, 0),  # memory that goes to and fro
    (1, 4096, 0, 0, HOST, 0),  # CUPTI could not take its times
]


def database(path, columns, rows):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("INSERT INTO StringTable VALUES (1, 'add')")
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INT, end INT, deviceId INT, streamId INT, name INT)"
        )
        connection.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (?, ?, ?, 7, 1)",
            [(900, 950, 0), (990, 1990, 1)],
        )
        connection.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER ({columns})")
        table = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"
        for row in rows:
            names = ", ".join(row)
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
    connection.close()
    return path


def test_migrations_are_transfers_of_the_device(tmp_path):
    names = ("counterKind", "value", "start", "end", "srcId", "dstId")
    rows = [dict(zip(names, row, strict=True)) for row in ROWS]
    read = Read(database(tmp_path / "run.nvvp", COUNTERS, rows), tmp_path / "e")
    columns = ("copy_kind", "device", "start_ns", "duration_ns", "bytes", "correlation")
    assert [tuple(row[name] for name in columns) for row in read.transfers.to_pylist()] == [
        (11, 1, 1000, 12, 65_536, None),
        (12, 0, 2000, 3, 4096, None),
        (13, 1, 3000, 4, 8192, None),
    ]
    assert (read.status, read.count("no_time"), read.launches.num_rows) == ("read", 1, 2)
    assert read.capabilities["rows_in"]["CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"] == len(ROWS)


@pytest.mark.parametrize(
    ("columns", "rows"), [(UNTIMED, [{"counterKind": 1, "value": 9, "timestamp": 5}]), (COUNTERS, [])]
)
def test_counters_without_times_and_none_at_all_give_no_transfer(columns, rows, tmp_path):
    read = Read(database(tmp_path / "run.nvvp", columns, rows), tmp_path / "e")
    assert (read.status, "transfers" in read.names, read.count("unreadable_table")) == ("read", False, 0)
