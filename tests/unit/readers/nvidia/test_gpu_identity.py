"""Which GPU a process drives, where Nsight Systems says so."""

import sqlite3

import pytest
from reading import Read

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def written(path, devices, columns="gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT"):
    """Write an export of two processes, 700 and 701, that launch on what each of them calls device 0."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("INSERT INTO StringIds VALUES (0, 'add')")
        connection.execute(
            f"CREATE TABLE {KERNEL} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER,"
            " demangledName INTEGER)"
        )
        for rank, pid in enumerate((700, 701)):
            connection.execute(f"INSERT INTO {KERNEL} VALUES (?, ?, 0, 7, ?, 0)", (1000 + rank, 1100 + rank, pid << 24))
        connection.execute(f"CREATE TABLE TARGET_INFO_CUDA_DEVICE ({columns})")
        connection.executemany(
            f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES ({','.join('?' * len(devices[0]))})", devices
        )
    connection.close()
    return path


@pytest.mark.parametrize(
    ("uuids", "alike"),
    [(("GPU-aa-1", "GPU-aa-1"), True), (("GPU-aa-1", "GPU-bb-2"), False)],
    ids=["shared", "each its own"],
)
def test_equal_uuids_are_one_gpu_and_are_not_written(tmp_path, uuids, alike):
    path = written(tmp_path / "e.sqlite", [(0, 0, 700, uuids[0]), (0, 0, 701, uuids[1])])
    export = Read(path, tmp_path / "t")
    first, second = export.devices.column("gpu").to_pylist()
    assert (first == second) == alike
    assert "aa-1" not in " ".join(export.texts())
    assert not first.isdigit()


def test_without_uuids_gpus_have_their_numbers_in_the_export(tmp_path):
    path = written(tmp_path / "e.sqlite", [(3, 0, 700), (4, 0, 701)], "gpuId INTEGER, cudaId INTEGER, pid INTEGER")
    assert Read(path, tmp_path / "t").devices.column("gpu").to_pylist() == ["3", "4"]


def test_a_part_of_a_gpu_has_its_own_multiprocessors_and_no_known_memory(tmp_path):
    """An instance of a divided A100 (MIG, 1g.5gb) has 14 of its 108 multiprocessors and an eighth of its memory, which
    stands nowhere; the other process drives the whole of a further GPU. Where the export does not know the GPU of a
    device, its multiprocessors are known all the same.
    """
    columns = "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER"
    rows = [(0, 0, 700, "aa-1", 14), (1, 0, 701, "bb-2", 108)]
    path = written(tmp_path / "e.sqlite", rows, columns)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE TARGET_INFO_GPU (id, name, totalMemory, clockRate, smCount)")
        connection.executemany(
            "INSERT INTO TARGET_INFO_GPU VALUES (?, 'A100', 42405855232, 1410000000, 108)", [(0,), (1,)]
        )
    connection.close()
    devices = Read(path, tmp_path / "t").devices
    facts = ("name", "multiprocessors", "memory_bytes", "clock_hz")
    assert [tuple(row[fact] for fact in facts) for row in devices.to_pylist()] == [
        ("A100", 14, None, 1410000000),
        ("A100", 108, 42405855232, 1410000000),
    ]
    unknown = written(tmp_path / "u.sqlite", [(None, 0, 700, "aa-1", 14), (None, 0, 701, "bb-2", None)], columns)
    assert Read(unknown, tmp_path / "u").devices.column("multiprocessors").to_pylist() == [14, None]


@pytest.mark.parametrize(("gpus", "known"), [(1, ["0", "0"]), (2, [None, None])])
def test_processes_on_a_machine_of_one_gpu_share_it(tmp_path, gpus, known):
    """Two processes on the only GPU were told as two GPUs, each idle half of the time."""
    path = written(tmp_path / "e.sqlite", [(None, None, None)], "gpuId INTEGER, cudaId INTEGER, pid INTEGER")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE TARGET_INFO_CUDA_DEVICE")
        connection.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, 'A100')", [(gpu,) for gpu in range(gpus)])
    connection.close()
    assert Read(path, tmp_path / "t").devices.column("gpu").to_pylist() == known
