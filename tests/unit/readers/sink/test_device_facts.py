"""Facts of devices that all processes share are held once, and found for each; measured by how many are handed over."""

import json
import sqlite3
from contextlib import closing

import pytest
from layouts.rocprofv3_samples import GPUS, make_run, write_csv
from reading import Read

from causeway.readers.sink.sink import Sink

RANKS = 60
DEVICES = 40


def kineto(folder):
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": at, "dur": 1, "args": {"rank": at, "device": at % DEVICES}}
        for at in range(RANKS)
    ]
    known = [{"id": at, "name": f"gpu {at}", "numSms": 100 + at} for at in range(DEVICES)]
    path = folder / "x.json"
    path.write_text(json.dumps({"deviceProperties": known, "traceEvents": events}), encoding="utf-8")
    return path, {(rank, rank % DEVICES): f"gpu {rank % DEVICES}" for rank in range(RANKS)}


def nsys(folder, identified):
    path = folder / "x.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, demangledName)"
        )
        base.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        base.execute("INSERT INTO StringIds VALUES (1, 'k')")
        rows = [(10 * at, 10 * at + 5, 0, 7, (at + 1) << 24, 1) for at in range(RANKS)]
        base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?)", rows)
        base.execute("CREATE TABLE TARGET_INFO_GPU (id, name, smCount)")
        base.execute("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid)")
        gpus = DEVICES if identified else 1
        base.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, ?, ?)", [(at, f"gpu {at}", 8) for at in range(gpus)])
        if identified:
            rows = [(at % DEVICES, 0, at + 1) for at in range(RANKS)]
            base.executemany("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, ?, ?)", rows)
        base.commit()
    return path, {(rank, 0): f"gpu {rank % gpus}" for rank in range(RANKS)}


def rocprofv3(folder):
    for rank in range(8):
        write_csv(make_run(n=20, seed=rank), folder / "csv" / f"rank{rank}")
    return folder / "csv", {(rank, gpu): "A GPU" for rank in range(8) for gpu in GPUS}


@pytest.mark.parametrize(
    ("made", "most"),
    [
        (kineto, DEVICES),
        (lambda folder: nsys(folder, identified=False), RANKS),
        (lambda folder: nsys(folder, identified=True), 2 * RANKS),
        (rocprofv3, 8 * len(GPUS)),
    ],
    ids=["kineto", "nsys all alike", "nsys identified", "rocprofv3"],
)
def test_facts_are_not_held_for_each_process_and_device(tmp_path, monkeypatch, made, most):
    handed = []
    taken = Sink.device

    def counted(sink, process, device, **facts):
        handed.append(device)
        return taken(sink, process, device, **facts)

    monkeypatch.setattr(Sink, "device", counted)
    path, expected = made(tmp_path)
    export = Read(path, tmp_path / "t")
    assert {(row["rank"], row["device"]): row["name"] for row in export.devices.to_pylist()} == expected
    assert 0 < len(handed) <= most
