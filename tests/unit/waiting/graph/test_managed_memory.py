"""Migrations of managed memory: the host's accesses end gaps and stand on its path, kernels are on theirs."""

from collections import Counter

import pytest
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.codes import HOST_ACCESS
from causeway.core.tables import read_table, write_json
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.find_critical_paths import find_critical_paths

MS = 1_000_000


def tables_of():
    """Return a program that fills pages (100 to 112 ms), runs a kernel of 40 ms, and reads its result up to 302 ms."""
    call = {"rank": 0, "thread": 1}
    page = {"rank": 0, "duration_ns": 2 * MS, "stream": 0, "bytes": 4096}
    return {
        "launches": [{"start_ns": 151 * MS, "duration_ns": 40 * MS, "rank": 0, "stream": 7, "correlation": 2}],
        "calls": [
            call | {"start_ns": 10 * MS, "duration_ns": 20 * MS, "name": "cudaMallocManaged", "correlation": 1},
            call | {"start_ns": 150 * MS, "duration_ns": MS, "name": "cudaLaunchKernel", "correlation": 2},
            call | {"start_ns": 152 * MS, "duration_ns": 40 * MS, "name": "cudaDeviceSynchronize", "correlation": 3},
        ],
        "transfers": [
            *(page | {"start_ns": moment * MS, "copy_kind": 12, "migration_cause": 2} for moment in (100, 110)),
            page | {"start_ns": 160 * MS, "copy_kind": 11, "migration_cause": 2},
            page | {"start_ns": 170 * MS, "copy_kind": 12, "migration_cause": 4},  # evicted while the kernel runs
            page | {"start_ns": 300 * MS, "copy_kind": 12, "migration_cause": 2},
        ],
    }


@pytest.fixture
def folder(tmp_path):
    write_export(tmp_path, tables_of())
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    return tmp_path


def test_a_gap_that_ends_with_a_migration_is_host_code(folder):
    explain_waiting("d", [folder], folder / "clocks.json", None, folder / "waiting.parquet")
    sums = Counter()
    for row in read_table(folder / "waiting.parquet", "waiting").to_pylist():
        sums[row["reason"], row["detail"]] += row["wait_ns"]
    assert sums["launch_starved", HOST_ACCESS] == (110 - 102 + 300 - 191) * MS
    assert sums["launch_starved", "host code not recorded"] == (150 - 112) * MS
    assert not [reason for reason, _ in sums if reason in ("unknown", "dependency_stalled")]


def test_the_host_and_the_kernel_are_the_path_and_no_migration_is_work(folder):
    outs = [folder / f"{name}.parquet" for name in ("path", "replay", "pieces")]
    find_critical_paths("d", [folder], folder / "clocks.json", None, [], *outs)
    sums = Counter()
    for row in read_table(outs[0], "critical_path").to_pylist():
        sums[row["kind"], row["name"]] += row["path_ns"]
    assert sums == {
        ("host", "cudaMallocManaged"): 20 * MS,
        ("host", "host code between calls"): (150 - 30 + 302 - 192) * MS,
        ("launch", "cudaLaunchKernel"): MS,
        ("kernel", "gemm"): 40 * MS,
        ("host", "cudaDeviceSynchronize"): MS,
    }
    replays = {row["change"]: row for row in read_table(outs[1], "replay").to_pylist() if row["name"] is None}
    assert "copies_free" not in replays
    free = replays["host_free"]
    assert free["time_ns"] - free["device_time_ns"] == 90 * MS, "devices are at work from the first page to the last"
    assert free["predicted_ns"] < 60 * MS


def test_an_export_without_calls_has_no_accesses_either(folder):
    (folder / "calls.parquet").unlink()
    outs = [folder / f"{name}.parquet" for name in ("path", "replay", "pieces")]
    find_critical_paths("d", [folder], folder / "clocks.json", None, [], *outs)
    rows = read_table(outs[0], "critical_path").to_pylist()
    assert {(row["kind"], row["name"], row["path_ns"]) for row in rows} == {("kernel", "gemm", 40 * MS)}
