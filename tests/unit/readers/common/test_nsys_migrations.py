"""Migrations of managed memory in exports of Nsight Systems: no call makes them, and they are no copies."""

import sqlite3

from reading import Read

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"


def database(path, copies):
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {KERNEL} (start, end, deviceId, streamId, correlationId, demangledName)")
        connection.execute(f"INSERT INTO {KERNEL} VALUES (100, 200, 0, 7, 2, 1)")
        connection.execute("CREATE TABLE StringIds (id, value)")
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "saxpy"), (2, "cudaMalloc")])
        columns = "start, end, deviceId, streamId, correlationId, bytes, copyKind, migrationCause"
        connection.execute(f"CREATE TABLE {COPY} ({columns})")
        connection.executemany(f"INSERT INTO {COPY} VALUES (?, ?, 0, 0, ?, 4096, ?, ?)", copies)
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 5, 0, 2)")  # its number is 0, too
    connection.close()
    return path


def test_a_migration_keeps_its_cause_and_no_call(tmp_path):
    read = Read(
        database(tmp_path / "a", [(10, 20, 0, 12, 2), (120, 130, 0, 11, None), (300, 310, 4, 1, 2)]), tmp_path / "e"
    )
    assert [(row["copy_kind"], row["correlation"], row["migration_cause"]) for row in read.transfers.to_pylist()] == [
        (12, None, 2),
        (11, None, None),
        (1, 4, None),
    ]
    assert read.capabilities["analyses"]["memory_stall"]["possible"]


def test_migrations_alone_are_no_copies(tmp_path):
    read = Read(database(tmp_path / "a", [(10, 20, 0, 12, 2), (120, 130, 0, 11, 2)]), tmp_path / "e")
    assert read.transfers.num_rows == 2
    assert read.count("no_transfers") == 1
    assert read.capabilities["analyses"]["memory_stall"] == {"possible": False, "why": "no memory transfers"}
