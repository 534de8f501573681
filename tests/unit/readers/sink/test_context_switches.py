"""When the contexts of other processes had a GPU: switches as Nsight Systems records them with `--gpuctxsw=true`."""

import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
SWITCHES = "GPU_CONTEXT_SWITCH_EVENTS"
REQUEST = 1
ACK = 2
SAVED = 7
RESTORED = 8
STARTED = 9
OWN = 1000
KERNELS = [(200, 300), (320, 400), (700, 800)]
EVENTS = [  # tag, context, process, time: own work until 400, the other's context from 450 to 600, none until 640
    (RESTORED, 5, OWN, 100),
    (STARTED, 5, OWN, 110),
    (REQUEST, 5, OWN, 405),
    (ACK, 5, OWN, 410),
    (SAVED, 5, OWN, 440),
    (RESTORED, 9, 77, 450),
    (STARTED, 9, 77, 455),
    (ACK, 9, 77, 590),
    (SAVED, 9, 77, 600),
    (RESTORED, 5, OWN, 640),
    (SAVED, 5, OWN, 900),
]


def tables_of(events, kernels=((OWN, KERNELS),), device=(), enumeration=()):
    """Return the tables of an export by name: columns and rows."""
    launched = [(begin, end, 0, 7, pid << 24, 1) for pid, each in kernels for begin, end in each]
    switches = [
        (tag, 1, at, context, time, None if pid is None else pid << 24, 0)
        for at, (tag, context, pid, time) in enumerate(events)
    ]
    found = {
        "StringIds": (("id", "value"), [(1, "solve")]),
        KERNEL: (("start", "end", "deviceId", "streamId", "globalPid", "demangledName"), launched),
        SWITCHES: (("tag", "vmId", "seqNo", "contextId", "timestamp", "globalPid", "gpuId"), switches),
        "TARGET_INFO_CUDA_DEVICE": (("gpuId", "cudaId", "pid"), list(device)),
        "ENUM_GPU_CTX_SWITCH": (("id", "name"), list(enumeration)),
    }
    return {name: (columns, rows) for name, (columns, rows) in found.items() if rows}


def database(path, tables):
    with sqlite3.connect(path) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.close()
    return path


def parquet(path, tables):
    path.mkdir()
    for name, (columns, rows) in tables.items():
        table = pa.table({column: [row[at] for row in rows] for at, column in enumerate(columns)})
        pq.write_table(table, path / f"{name}.parquet")
    return path


def turns(read):
    """Return start, end and process of the turns of others by rank and device."""
    columns = ("rank", "device", "start_ns", "duration_ns", "process")
    rows = [tuple(row[name] for name in columns) for row in read.other_contexts.to_pylist()]
    return [(rank, device, start, start + duration, pid) for rank, device, start, duration, pid in rows]


@pytest.mark.parametrize("written", [database, parquet])
def test_a_turn_lasts_from_the_restore_to_the_save(written, tmp_path):
    read = Read(written(tmp_path / "run.sqlite", tables_of(EVENTS)), tmp_path / "e")
    assert turns(read) == [(0, 0, 450, 600, 77)]
    assert read.capabilities["rows_in"][SWITCHES] == len(EVENTS)


def test_the_export_names_its_events_itself(tmp_path):
    renumbered = [(tag + 20, *rest) for tag, *rest in EVENTS]
    names = {
        REQUEST: "REQ_BY_HOST",
        ACK: "FE_ACK",
        SAVED: "SAVE_END",
        RESTORED: "RESTORE_START",
        STARTED: "CONTEXT_START",
    }
    tables = tables_of(renumbered, enumeration=[(number + 20, name) for number, name in names.items()])
    assert turns(Read(database(tmp_path / "run.sqlite", tables), tmp_path / "e")) == [(0, 0, 450, 600, 77)]


def test_without_a_process_the_context_in_which_launches_begin_is_ones_own(tmp_path):
    unnamed = [(tag, context, None, time) for tag, context, _, time in EVENTS]
    assert turns(Read(database(tmp_path / "a.sqlite", tables_of(unnamed)), tmp_path / "a")) == [(0, 0, 450, 600, None)]
    # inside of a container processes have other ids than on the host, which the switches are of
    of_host = [(tag, context, pid + 50_000, time) for tag, context, pid, time in EVENTS]
    assert turns(Read(database(tmp_path / "b.sqlite", tables_of(of_host)), tmp_path / "b")) == [
        (0, 0, 450, 600, 50_077)
    ]


def test_where_nothing_tells_whose_a_context_is_none_is_anothers(tmp_path):
    late = [(900, 950)]  # after the last event: no context is known to have the GPU
    unnamed = [(tag, context, None, time) for tag, context, _, time in EVENTS]
    assert (
        "other_contexts" not in Read(database(tmp_path / "a", tables_of(unnamed, [(OWN, late)])), tmp_path / "e").names
    )


def test_processes_of_the_export_are_no_others(tmp_path):
    """Two processes of the run and one outside of it take turns; each of the two has its own numbers for the GPU."""
    events = [
        (RESTORED, 5, OWN, 100), (SAVED, 5, OWN, 440), (RESTORED, 6, OWN + 1, 450), (SAVED, 6, OWN + 1, 560),
        (RESTORED, 9, 77, 570), (SAVED, 9, 77, 600), (RESTORED, 5, OWN, 640), (SAVED, 5, OWN, 900),
    ]  # fmt: skip
    kernels = [(OWN, KERNELS), (OWN + 1, [(460, 550)])]
    tables = tables_of(events, kernels, device=[(0, 0, OWN), (0, 0, OWN + 1)])
    assert turns(Read(database(tmp_path / "run.sqlite", tables), tmp_path / "e")) == [
        (0, 0, 570, 600, 77),
        (1, 0, 570, 600, 77),
    ]


def test_switches_of_another_gpu_are_left_out(tmp_path):
    tables = tables_of(EVENTS, device=[(3, 0, OWN)])
    assert "other_contexts" not in Read(database(tmp_path / "run.sqlite", tables), tmp_path / "e").names
