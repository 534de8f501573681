"""Traces of PaddlePaddle's profiler, as its writer prints them (chrometracing_logger.cc)."""

import json

import numpy as np
import pytest
from reading import Read, kernel, write_trace

from causeway.readers.containers.chrome_json import Event
from causeway.readers.pytorch.foreign_events import turn_foreign

START_US = 1_650_000_000_000_000
LENGTHS_NS = (12_000, 15_815, 999_999, 1_000_001, 2_345_678, 16_777_217, 73_123_456_789)


def ms(ns):
    """Return a duration in ms as the writer has it: a number of single precision."""
    return np.float32(np.float32(ns) / np.float32(1000)) / np.float32(1000)


def ending(ns, version):
    """Return what is written behind a name: until 2.3 always ms, then us up to 1 ms."""
    if version == "1.0.0" or ms(ns) > 1:
        return f"[{ms(ns):.3f} ms]"
    return f"[{ms(ns) * np.float32(1000):.3f} us]"


def event(version, category, name, start, ns, pid, tid, **args):
    return (
        f'{{ "name": {json.dumps(name + ending(ns, version))}, "pid": {pid}, "tid": {json.dumps(tid)}, "ts": {start},'
        f' "dur": {np.float32(ns) / np.float32(1000):.3f}, "ph": "X", "cat": "{category}", "args": {json.dumps(args)} }}'
    )


def trace(version):
    """Return a trace: each launch lasts one of `LENGTHS_NS`, has a call of 6,012 ns, and begins 20 us after it began."""
    events = [event(version, "ProfileStep", "ProfileStep#1", START_US - 50, 9_000, 4711, "4711(Python)")]
    at = START_US
    for number, length in enumerate(LENGTHS_NS, 1):
        numbers = {"stream": 7, "correlation id": number}
        shape = {"registers per thread": 32, "shared memory": 0, "grid": [108, 1, 1], "block": [256, 1, 1]}
        events += [
            event(version, "Operator", "matmul_v2", at - 30, 40_000, 4711, "4711(C++)", input_shapes={}),
            event(version, "OperatorInner", "compute", at - 25, 30_000, 4711, "4711(C++)"),
            event(version, "CudaRuntime", "cudaLaunchKernel", at - 20, 6_012, 4711, "4711(C++)", **numbers),
            event(version, "Kernel", "void gemm<int [2]>(float*)", at, length, 1, 7, device=1, **numbers, **shape),
        ]
        at += length // 1000 + 100
    more = {"stream": 7, "correlation id": 90, "bytes": 4096}
    events.append(event(version, "Memcpy", "MEMCPY_HtoD", at, 1_500, 1, 7, **more))
    events.append(event(version, "Memset", "MEMSET", at + 10, 1_250, 1, 7, device=1, **more))
    device = {"id": 1, "name": "A100", "totalGlobalMem": 3_850_567_680, "smCount": 108}
    head = {"schemaVersion": version, "displayTimeUnit": "ms", "span_indx": "0", "deviceProperties": [device]}
    return f'{json.dumps(head)[:-1]}, "traceEvents": [{", ".join(events)}, {{}} ], "ExtraInfo": {{}} }}'


@pytest.mark.parametrize("version", ["1.0.0", "1.0.1"])
def test_launches_are_of_one_kernel_and_have_their_calls(tmp_path, version):
    path = tmp_path / "x.paddle_trace.json"
    path.write_text(trace(version), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.kernels.column("name").to_pylist() == ["void gemm<int [2]>(float*)"]
    assert export.configurations.num_rows == 1
    launches = export.launches.to_pydict()
    assert launches["duration_ns"][:5] == list(LENGTHS_NS[:5])
    assert launches["queue_ns"] == [20_000 - 6_012] * len(LENGTHS_NS)
    assert launches["correlation"] == list(range(1, len(LENGTHS_NS) + 1))
    assert {*launches["device"], *launches["stream"]} == {1, 7}
    assert set(map(str, export.calls.column("name").to_pylist())) == {"cudaLaunchKernel"}
    assert set(export.calls.column("thread").to_pylist()) == {4711}
    assert list(map(str, export.ranges.column("name").to_pylist())) == ["ProfileStep#1"]
    copies = export.transfers.to_pydict()
    assert (copies["bytes"], copies["duration_ns"], copies["device"]) == ([4096] * 2, [1_500, 1_250], [1, 1])
    assert copies["copy_kind"] == [1, 255]
    assert export.devices.to_pylist()[0] == {"rank": 0, "device": 1, "name": "A100", "multiprocessors": 108} | {
        name: None for name in export.devices.column_names if name not in ("rank", "device", "name", "multiprocessors")
    }


def test_the_operator_around_the_call_is_that_of_the_launch(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(trace("1.0.1"), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert {str(name) for name in export.operators.column("name").to_pylist()} == {"matmul_v2"}
    assert export.launches.column("operator").to_pylist() == [0] * len(LENGTHS_NS)


@pytest.mark.parametrize(
    ("name", "dur", "plain"),
    [
        ("k[12.000 us]", "12.000", "k"),
        ("k[12.000 us]", 12, "k"),
        ("k[0.012 ms]", "12.499", "k"),
        ("k[0.012 ms]", "12.502", None),
        ("k[12.000 us]", "12.002", None),
        ("k[12.000 us]", None, None),
        ("k[12 us]", 12, None),
        ("k[12.000 us] ", 12, None),
        ("k[12.000 s]", "12000000.000", None),
        ("k[0.000 ms]", "0.000", "k"),
        ("[12.000 us]", 12, ""),
        (5, 12, None),
    ],
)
def test_only_an_ending_that_is_the_duration_is_taken_off(name, dur, plain):
    one = Event(ph="X", cat="Kernel", name=name, tid="9(C++)", dur=dur)
    turn_foreign([one], {"Kernel": "kernel"})
    expected = ("Kernel", name, "9(C++)") if plain is None else ("kernel", plain, 9)
    assert (one.cat, one.name, one.tid) == expected


def test_a_kernel_of_pytorch_keeps_its_name(tmp_path):
    path = write_trace(tmp_path / "x.json", [kernel(100, 12, "k[12.000 us]"), kernel(200, 12, "k[12.000 us]")])
    assert Read(path, tmp_path / "t").kernels.column("name").to_pylist() == ["k[12.000 us]"]
