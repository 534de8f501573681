"""Traces of Ascend's NPUs, trace_view.json, as torch_npu and msprof write them (gitee.com/ascend/mstt, its tests)."""

import pytest
from reading import Read, write_trace

PYTHON = 3132
CANN = 100213792
NPU = 100213824
COLLECTIVES = 100213984
SUMS = 100214016


def event(name, pid, tid, ts, dur, **args):
    return {"name": name, "pid": pid, "tid": tid, "ts": f"1723545784{ts:010.3f}", "dur": dur, "args": args, "ph": "X"}


def task(name, kind, ts, dur, stream, connection):
    ids = {"Stream Id": stream, "Task Id": connection, "connection_id": connection}
    return event(name, NPU, stream, ts, dur, **{"Task Type": kind, **ids})


def kernels_of(export):
    """Return the kernel of each launch."""
    of_configuration = export.configurations.column("kernel").to_pylist()
    return [of_configuration[code] for code in export.launches.column("configuration").to_pylist()]


@pytest.fixture
def export(tmp_path):
    events = [
        event("aten::mm", PYTHON, 7, 10, 40) | {"cat": "cpu_op"},
        event("Node@launch", CANN, 7, 20, 5, connection_id=41),
        event("aten::add", PYTHON, 7, 60, 40) | {"cat": "cpu_op"},
        event("Node@launch", CANN, 7, 70, 5, connection_id=42),
        task("MatMulV2", "AI_CORE", 100.125, 50, 2, 41),
        task("Add", "AI_VECTOR_CORE", 160, 20, 2, 42),
        task("EVENT_RECORD", "EVENT_RECORD", 181, 0.02, 2, 43),
        task("EVENT_WAIT", "EVENT_WAIT", 0, 180, 5, 44),
        task("Notify_Wait", "NOTIFY_WAIT_SQE", 190, 80, 5, 45),
        task("MEMCPY_ASYNC", "SDMA", 270, 30, 5, 45),
        task("hcom_allReduce__1", "COMMUNICATION", 190, 120, 5, 45),
        event("hcom_allReduce__547_3_1", COLLECTIVES, 4, 190, 120, connection_id=45, data_type="BFP16"),
        event("Notify_Wait", COLLECTIVES, 5, 190, 80, transport="SDMA"),
        event("Computing", SUMS, 0, 100.125, 50),
        event("Free", SUMS, 3, 150, 10),
    ]
    return Read(write_trace(tmp_path / "trace_view.json", events), tmp_path / "e")


def test_tasks_and_collectives_are_launches_once(export):
    assert export.status == "read"
    names = export.kernels.column("name").to_pylist()
    rows = {
        names[kernel]: (start, duration)
        for kernel, start, duration in zip(
            kernels_of(export),
            export.launches.column("start_ns").to_pylist(),
            export.launches.column("duration_ns").to_pylist(),
            strict=True,
        )
    }
    first = 1_723_545_784_000_100_125
    assert rows == {
        "MatMulV2": (first, 50_000),
        "Add": (first + 59_875, 20_000),
        "hcom_allReduce": (first + 89_875, 120_000),
    }
    classes = dict(zip(names, map(str, export.kernels.column("class").to_pylist()), strict=True))
    assert classes["hcom_allReduce"] == "communication"
    assert export.transfers.column("duration_ns").to_pylist() == [30_000]


def test_calls_and_operators_are_of_one_process(export):
    """CANN's number is another than Python's: each launch has its call, by the connection, and its operator."""
    assert export.launches.column("correlation").to_pylist() == [41, 42, 45]
    assert set(export.launches.column("rank").to_pylist()) == {0}
    assert len(set(export.launches.column("device").to_pylist())) == 1
    assert export.calls.column("correlation").to_pylist() == [41, 42]
    assert export.count("mixed_processes") == 0


def test_a_trace_without_tasks_is_named(tmp_path):
    named = {"ph": "M", "name": "process_name", "pid": NPU, "args": {"name": "Ascend Hardware"}}
    export = Read(write_trace(tmp_path / "t.json", [named, event("Free", SUMS, 3, 150, 10)]), tmp_path / "e")
    assert export.status == "refused"
    assert "is a trace of Ascend's NPUs" in export.error["found"]
