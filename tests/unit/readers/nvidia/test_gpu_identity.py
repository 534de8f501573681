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
