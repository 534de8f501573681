"""Traces of Intel's unitrace, as its logger writes them (pti-gpu, tools/unitrace/src/chromelogger.h)."""

import pytest
from reading import Read, write_trace

APPEND = "zeCommandListAppend"


def on_device(name, ts, dur):
    return {"ph": "X", "tid": 1, "pid": 4, "name": name, "cat": "gpu_op", "ts": ts, "dur": dur, "args": {"id": "2"}}


def of_host(name, ts, dur):
    return {"ph": "X", "tid": 285, "pid": 285, "name": name, "cat": "cpu_op", "ts": ts, "dur": dur, "id": 0}


@pytest.fixture
def export(tmp_path):
    events = [
        of_host(f"{APPEND}LaunchKernel", 1, 2),
        on_device(f"{APPEND}MemoryCopy(M2D)[4096]", 2, 1.5),
        on_device("gemm[SIMD32 {8; 2; 1} {256; 4; 1}]", 4.5, 55.125),
        on_device(f"{APPEND}Barrier", 60, 500),
        on_device(f"{APPEND}MemoryFill(D)[64]", 600, 2),
        on_device("gemm[SIMD32 {8; 2; 1} {256; 4; 1}]", 700, 50),
        on_device("reduce(float*)", 800, 5),
    ]
    return Read(write_trace(tmp_path / "t.json", events), tmp_path / "e")


def test_kernels_have_the_sizes_that_their_names_end_in(export):
    assert export.status == "read"
    assert export.kernels.column("name").to_pylist() == ["gemm", "reduce(float*)"]
    launches = export.launches.to_pydict()
    assert launches["duration_ns"] == [55_125, 50_000, 5_000]
    shapes = export.configurations.to_pylist()
    sizes = [[shape[f"{size}_{axis}"] for size in ("grid", "block") for axis in "xyz"] for shape in shapes]
    assert sizes == [[8, 2, 1, 256, 4, 1], [None] * 6]


def test_copies_are_no_kernels_and_a_barrier_is_no_work(export):
    copies = export.transfers.to_pydict()
    assert (copies["bytes"], copies["duration_ns"], copies["copy_kind"]) == ([4096, 64], [1_500, 2_000], [1, 255])
    assert export.launches.num_rows + export.transfers.num_rows == 5


def test_calls_of_the_driver_are_no_operators(export):
    assert [str(name) for name in export.calls.column("name").to_pylist()] == [f"{APPEND}LaunchKernel"]
    assert "host_operators" not in export.names
