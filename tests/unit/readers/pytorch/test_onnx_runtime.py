"""Profiles of ONNX Runtime: a list of events, with kernels and copies in one category, without a device."""

import json

from reading import Read

SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def on_device(name, ts, dur, sizes, stream="13"):
    """Return an event as ONNX Runtime writes it, by its CUPTI manager: all arguments are text."""
    args = {"stream": stream, **dict(zip(SHAPE, map(str, sizes), strict=True)), "op_name": "Conv"}
    return {"cat": "Kernel", "pid": -1, "tid": -1, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args}


def test_kernels_have_their_shapes_and_copies_are_transfers(tmp_path):
    host = {"pid": 9, "tid": 9, "ph": "X", "args": {"op_name": "Conv", "provider": "CUDAExecutionProvider"}}
    events = [
        {"cat": "Session", "name": "model_run", "ts": 10, "dur": 900} | host,
        {"cat": "Node", "name": "Conv_0_kernel_time", "ts": 20, "dur": 300} | host,
        on_device("MemcpyHostToDevice", 30, 5, [-1] * 6, stream="14"),
        on_device("void conv<int>(int)", 40, 60, [4, 2, 1, 128, 1, 1]),
        on_device("void conv<int>(int)", 140, 62, [8, 2, 1, 128, 1, 1]),
        on_device("MemcpyDeviceToHost", 300, 7, [-1] * 6, stream="14"),
    ]
    path = tmp_path / "onnxruntime_profile.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    launches = export.launches.to_pydict()
    assert launches["start_ns"] == [40_000, 140_000]
    assert launches["duration_ns"] == [60_000, 62_000]
    assert (launches["stream"], launches["device"]) == ([13, 13], [0, 0])
    shapes = [[row[column] for column in SHAPE] for row in export.configurations.to_pylist()]
    assert shapes == [[4, 2, 1, 128, 1, 1], [8, 2, 1, 128, 1, 1]]
    transfers = export.transfers.to_pydict()
    assert transfers["copy_kind"] == [1, 2]
    assert (transfers["stream"], transfers["device"]) == ([14, 14], [0, 0])
    assert transfers["bytes"] == [None, None]
    assert export.issue("device_assumed")
