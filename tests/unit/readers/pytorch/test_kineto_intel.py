"""PyTorch's traces of devices of other vendors, as Intel XPU, made up: no real one is at hand."""

import json

import pytest
from reading import Read


def test_a_trace_of_an_intel_device_has_queues_for_streams_and_no_shapes(tmp_path):
    """Laid out as Kineto's plugin writes it (libkineto/src/plugin/xpupti/XpuptiActivityHandlers.cpp, 2026): kernels
    without stream, grid and block, copies named by PTI, calls of Unified Runtime and Level Zero.
    """
    own = {"device": 0, "context": "0x000000000a", "l0 queue": "0x000000000b", "appended": "1.5", "submitted": "1.75"}
    work = (
        ("kernel", "gemm_kernel", 20, 10.125, {"kernel_id": 7, "sycl_node_id": 1, "sycl queue": 64, "correlation": 11}),
        ("kernel", "at::native::xpu::VectorizedElementwise", 40, 5, {"sycl queue": 65, "correlation": 12}),
        ("gpu_memcpy", "Memcpy M2D (Memory -> Device)", 3, 4, {"sycl queue": 64, "bytes": 4096, "correlation": 10}),
        ("gpu_memcpy", "Memcpy D2M (Device -> Memory)", 60, 4, {"sycl queue": 64, "bytes": 16, "correlation": 13}),
        ("gpu_memcpy", "Memcpy S2D (Shared -> Device)", 70, 4, {"sycl queue": 64, "bytes": 8, "correlation": 14}),
        ("gpu_memset", "Memset (0 -> Device)", 80, 1, {"sycl queue": 64, "bytes": 32, "correlation": 15}),
    )
    events = [
        {"ph": "X", "cat": kind, "name": name, "pid": 0, "tid": args["sycl queue"], "ts": start, "dur": lasts}
        | {"args": own | args | ({"l0 call": "zeCommandListAppendMemoryCopy"} if kind != "kernel" else {})}
        for kind, name, start, lasts, args in work
    ]
    calls = (
        ("xpu_runtime", "urEnqueueKernelLaunch", 15, 11),
        ("xpu_driver", "zeCommandListAppendLaunchKernel", 16, 11),
    )
    calls += (("xpu_runtime", "urEnqueueKernelLaunch", 30, 12), ("xpu_runtime", "urQueueFinish", 62, 99))
    events += [
        {
            "ph": "X",
            "cat": kind,
            "name": name,
            "pid": 5,
            "tid": 6,
            "ts": start,
            "dur": 1,
            "args": {"correlation": number},
        }
        for kind, name, start, number in calls
    ]
    path = tmp_path / "xpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    launches = export.launches.to_pydict()
    assert launches["start_ns"] == [20_000, 40_000]
    assert launches["duration_ns"] == [10_125, 5_000]
    assert launches["stream"] == [64, 65]
    assert launches["correlation"] == [11, 12]
    transfers = export.transfers.to_pydict()
    assert transfers["copy_kind"] == [1, 2, 0, 255]
    assert transfers["bytes"] == [4096, 16, 8, 32]
    assert transfers["stream"] == [64] * 4
    assert [str(name) for name in export.calls.column("name").to_pylist()] == [name for _, name, _, _ in calls]
    shapes = export.configurations.to_pylist()
    assert {row[column] for row in shapes for column in ("grid_x", "block_x")} == {None}


@pytest.mark.parametrize("category", ["privateuse1_runtime", "privateuse1_driver"])
def test_calls_of_devices_that_register_themselves_are_calls(category, tmp_path):
    """Categories as Kineto names them (libkineto/src/ActivityType.cpp, 2025): their waits stood without an explanation."""
    rows = (("kernel", "gemm", 0, 9, 20, 10), (category, "launch", 5, 6, 15, 1))
    events = [
        {"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": lasts}
        | {"args": {"device": 0, "stream": 9, "correlation": 3}}
        for kind, name, pid, tid, start, lasts in rows
    ]
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.calls.column("name").to_pylist() == ["launch"]
    assert export.launches.column("queue_ns").to_pylist() == [4_000]
