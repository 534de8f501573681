"""Traces of JAX: what runs on a stream is read, what XLA derives from it is not; every number is worked out by hand."""

import json
from contextlib import closing

import pytest
from reading import Read

from causeway.core.errors import ExportError
from causeway.core.schemas.launch_threads import launch_threads
from causeway.core.tables import table_metadata
from causeway.readers.common.options import Options
from causeway.readers.pytorch import jax_trace
from causeway.readers.sink.sink import Sink

DETAILS = "regs:24 static_shared:512 dynamic_shared:1024 grid:96,2,1 block:128,1,1 occ_pct:16.6667"
COPY = "kind_src:pinned kind_dst:device size:64 dest:0 async:1"


def name(pid, text, tid=None):
    """Return the event that names a process or a thread."""
    event = {"ph": "M", "pid": pid, "name": "process_name" if tid is None else "thread_name", "args": {"name": text}}
    return event if tid is None else event | {"tid": tid}


def span(pid, tid, ts, dur, text, **args):
    """Return a complete event; XLA writes all arguments as text."""
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": text, "args": args}


def write(path, *events):
    """Write a trace, whose last event is empty, as XLA's are; return its path."""
    document = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


NAMES = [
    name(1, "/device:GPU:0"),
    name(1, "Stream #14(Compute,MemcpyH2D)", 14),
    name(1, "XLA Ops", 90),
    name(2, "/device:GPU:1"),
    name(2, "Stream #15(Compute)", 15),
    name(701, "/host:CPU"),
    name(701, "python", 33),
]
HOST = [
    span(701, 33, 0, 50, "train", step_num="3"),
    span(701, 33, 1, 20, "PjitFunction(f)"),
    span(701, 33, 2, 1, "$/home/somebody/train.py:12 f"),
    span(701, 33, 3.5, 2, "loop_add_fusion", correlation_id="7", device_id="0"),
    span(701, 33, 6, 2, "cuGraphLaunch (CudaGraph:3)", correlation_id="8", device_id="0"),
    span(701, 33, 9, 2, "MemcpyH2D", correlation_id="9", memcpy_details=COPY),
]
DEVICE = [
    span(1, 14, 10.125, 4.0625, "loop_add_fusion", correlation_id="7", kernel_details=DETAILS, hlo_op="add"),
    span(1, 90, 10.125, 4.0625, "add", correlation_id="7", kernel_details=DETAILS),
    span(1, 14, 20, 3, "a", correlation_id="8", kernel_details=DETAILS),
    span(1, 14, 24, 3, "b", correlation_id="8", kernel_details=DETAILS),
    span(1, 14, 30, 1, "MemcpyH2D", correlation_id="9", memcpy_details=COPY),
    span(1, 14, 32, 1, "Memset", correlation_id="10", memset_details="kind:device num_bytes:128 async:1"),
    span(2, 15, 20, 3, "a", correlation_id="18", kernel_details=DETAILS),
]


def test_launches_are_those_of_streams_with_their_calls(tmp_path):
    export = Read(write(tmp_path / "x.json", *NAMES, *HOST, *DEVICE), tmp_path / "t")
    columns = ("start_ns", "duration_ns", "device", "stream", "queue_ns")
    assert [tuple(row[column] for column in columns) for row in export.launches.to_pylist()] == [
        (10125, 4062, 0, 14, 10125 - 5500),
        (20000, 3000, 0, 14, 12000),
        (20000, 3000, 1, 15, None),
        (24000, 3000, 0, 14, 16000),
    ]
    shape = export.configurations.to_pylist()[0]
    assert [shape[f"{size}_{axis}"] for size in ("grid", "block") for axis in "xyz"] == [96, 2, 1, 128, 1, 1]
    assert [shape[size] for size in ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes")] == [
        24,
        512,
        1024,
    ]


@pytest.mark.parametrize(
    ("details", "counts", "threads"),
    [
        (DETAILS, "blocks", 96 * 2 * 128),
        ("grid:96,2,1 block:32,1,1 private_mem:16 group_mem:64 occ_pct:50", "work-items", 96 * 2),
    ],
)
def test_grids_count_work_items_where_rocprofiler_sdk_recorded_them(tmp_path, details, counts, threads):
    """By rocm_tracer.cc of XLA: the grid of a dispatch, with its private segment; else of roctracer and CUPTI, blocks."""
    launch = span(1, 14, 10, 4, "loop_add_fusion", correlation_id="7", kernel_details=details)
    export = Read(write(tmp_path / "x.json", *NAMES, launch), tmp_path / "t")
    assert table_metadata(export.folder / "configurations.parquet").get("grid", "blocks") == counts
    assert launch_threads(export.configurations) == [threads]


@pytest.mark.parametrize(("stream", "number"), [("Stream", 14), ("Stream #9(Compute)", 9)])
def test_work_of_a_stream_is_a_launch_without_details_of_its_kernel(tmp_path, stream, number):
    events = [name(1, "/device:GPU:0"), name(1, stream, 14), name(1, "XLA Ops", 90)]
    events += [
        span(1, 14, 10, 4, "Cijk_gemm", hlo_op="dot"),
        span(1, 90, 10, 4, "dot"),
        span(1, 14, 20, 1, "MemcpyD2H"),
    ]
    launches = Read(write(tmp_path / "x.json", *events), tmp_path / "t").launches
    assert launches.column("duration_ns").to_pylist() == [4000]
    assert launches.column("stream").to_pylist() == [number]


def test_copies_have_sizes_and_kinds(tmp_path):
    export = Read(write(tmp_path / "x.json", *NAMES, *HOST, *DEVICE), tmp_path / "t")
    columns = ("bytes", "copy_kind", "src_kind", "dst_kind", "device")
    assert [tuple(row[column] for column in columns) for row in export.transfers.to_pylist()] == [
        (64, 1, 1, 2, 0),
        (128, 255, None, 2, 0),
    ]


def test_a_synchronisation_that_the_runtime_was_asked_for_is_no_launch(tmp_path):
    """As one it was work of the host, and a replay said that the host limits the run."""
    call = span(701, 33, 20, 5, "cudaStreamSynchronize", correlation_id="70")
    export = Read(write(tmp_path / "x.json", *NAMES, *HOST, *DEVICE, call), tmp_path / "t")
    assert "cudaStreamSynchronize" in export.calls.column("name").to_pylist()


def test_annotations_are_ranges_and_paths_of_python_are_not_read(tmp_path):
    export = Read(write(tmp_path / "x.json", *NAMES, *HOST, *DEVICE), tmp_path / "t")
    assert export.ranges.column("name").to_pylist() == ["train (step 3)", "PjitFunction(f)"]
    assert export.calls.column("name").to_pylist() == ["kernel launch", "cuGraphLaunch", "MemcpyH2D"]
    assert export.operators.column("name").to_pylist() == ["PjitFunction(f)"]
    assert "somebody" not in export.texts()


def test_a_graph_traced_as_a_whole_is_a_range(tmp_path):
    graph = span(1, 14, 40, 3, "CudaGraph", cuda_graph_exec_id="5")
    export = Read(write(tmp_path / "x.json", *NAMES, *DEVICE, graph), tmp_path / "t")
    assert export.ranges.column("name").to_pylist() == ["CUDA graph 5"]
    assert export.count("graphs_without_launches") == 1
    (row,) = export.graphs.to_pylist()
    assert (row["start_ns"], row["duration_ns"], row["rank"], row["device"]) == (40_000, 3_000, 0, 0)
    assert row["stream"] in export.launches.column("stream").to_pylist()
    assert export.launches.num_rows == 4


def test_a_full_trace_is_said_to_lack_events(tmp_path, monkeypatch):
    monkeypatch.setattr(jax_trace, "MOST_EVENTS", len(DEVICE))
    full = Read(write(tmp_path / "x.json", *NAMES, *DEVICE), tmp_path / "t")
    assert full.count("dropped_events") == 1
    less = Read(write(tmp_path / "y.json", *NAMES, *DEVICE[1:]), tmp_path / "u")
    assert less.count("dropped_events") == 0


def test_a_reader_of_no_trace_says_so(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("7", encoding="utf-8")
    with (
        closing(Sink(tmp_path, {"source": "x"}, None, 0)) as sink,
        pytest.raises(ExportError, match="it is not a trace"),
    ):
        jax_trace.read(path, sink, Options("x", 1, ()))


def test_kernels_without_a_begin_are_told_to_have_no_times(tmp_path):
    """They have details of kernels; a summary of a trace may leave their times out."""
    timeless = [{field: value for field, value in event.items() if field != "ts"} for event in DEVICE]
    error = Read(write(tmp_path / "x.json", *NAMES, *timeless), tmp_path / "t").error
    assert error["found"].startswith("none of its 4 GPU kernels has times that can be")
