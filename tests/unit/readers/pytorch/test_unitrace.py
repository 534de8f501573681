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


KERNELS = ["piKernel", "clBlasGemm", "zeRoStep", "urQMD", "zeEventsOf", "clSettle<float>", "clCopy"]


def test_kernels_may_begin_like_calls(tmp_path):
    shape = "[SIMD32 {8; 2; 1} {256; 4; 1}]"
    events = [on_device(name, 10 * number, 5) for number, name in enumerate(KERNELS, 1)]
    events += [on_device("zeMemFillPattern" + shape, 200, 5)]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "e")
    assert sorted(export.kernels.column("name").to_pylist()) == sorted([*KERNELS, "zeMemFillPattern"])
    assert export.launches.num_rows == len(events)


@pytest.mark.parametrize("call", ["ReadImage", "WriteImage", "CopyImageToBuffer", "ReadBufferRect", "SVMMemcpy"])
def test_copies_of_opencl(tmp_path, call):
    events = [on_device(f"clEnqueue{call}[64]", 1, 2), on_device("gemm", 4, 5), on_device("clEnqueueMarker", 10, 5)]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "e")
    assert export.transfers.column("bytes").to_pylist() == [64]
    assert export.launches.num_rows == 1


CALLS = [
    "zeInit", "zeCommandQueueExecuteCommandLists", "zeEventHostSynchronize", "zesDeviceGet", "zeMemAllocDevice",
    "clFinish", "clEnqueueNDRangeKernel", "clSetKernelArg", "urEnqueueKernelLaunch", "piEnqueueKernelLaunch",
    "piextUSMEnqueueMemcpy", "urUSMDeviceAlloc",
]  # fmt: skip


def test_calls_are_known_long_before_work_of_a_device(tmp_path):
    """They fill several windows of the text before the first that names one."""
    events = [of_host(CALLS[number % len(CALLS)], number, 0.5) for number in range(60_000)]
    events += [of_host("gelu", 60_001, 1), on_device("gemm", 60_002, 5)]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "e")
    assert export.calls.num_rows == 60_000
    assert export.host_operators.column("name").to_pylist() == ["gelu"]


def test_a_barrier_alone_is_of_a_program_that_is_known(tmp_path):
    read = Read(write_trace(tmp_path / "t.json", [on_device(f"{APPEND}Barrier", 60, 500)]), tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"] == "there is no GPU kernel in it (no event of any category read; not read: 1 gpu_op)"
