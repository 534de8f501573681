"""Synchronisation in PyTorch traces (`enable_cuda_sync_events`), as Kineto's source writes it: no real trace at hand
holds any.
"""

import json
from collections import Counter

from reading import Read

from causeway.waiting.idle.export_pass import explain_export

INVALID = (1 << 32) - 1  # CUPTI_SYNCHRONIZATION_INVALID_VALUE


def event(category, name, start, duration, thread, **args):
    row = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": duration}
    return row | {"args": args}


def synchronisation(name, start, duration, stream, correlation, **args):
    fields = {"cuda_sync_kind": name, "stream": stream, "correlation": correlation, "device": 0, "context": 1}
    return event("cuda_sync", name, start, duration, stream, **fields, **args)


def read(tmp_path, events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return Read(path, tmp_path / "out")


def test_every_kind_of_synchronisation_is_taken_with_its_streams_and_its_event(tmp_path):
    newer = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 11, "wait_on_cuda_event_id": 5}
    events = [
        event("kernel", "gemm", 10, 5, 0, device=0, stream=7, correlation=1),
        synchronisation("Stream Wait Event", 12.5, 0.25, 20, 2, **newer),
        synchronisation("Stream Wait Event", 13, 0, 20, 3, wait_on_stream=-1, wait_on_cuda_event_id=6),  # as older ones
        synchronisation("Event Sync", 14, 2, INVALID, 4, wait_on_stream=7, wait_on_cuda_event_id=5),
        synchronisation("Stream Sync", 17, 3, 20, 5),
        synchronisation("Context Sync", 21, 4, -1, 6),
        synchronisation("Something else", 30, 1, "seven", 7),
    ]
    found = read(tmp_path, events).dependencies.to_pylist()
    columns = ("start_ns", "duration_ns", "kind", "stream", "source_stream", "event", "correlation")
    assert [tuple(row[name] for name in columns) for row in found] == [
        (12500, 250, "wait", 20, 7, 5, 2),
        (13000, 0, "wait", 20, None, 6, 3),
        (14000, 2000, "synchronise_event", None, 7, 5, 4),
        (17000, 3000, "synchronise_stream", 20, None, None, 5),
        (21000, 4000, "synchronise_device", None, None, None, 6),
        (30000, 1000, "unknown", None, None, None, 7),
    ]


def test_an_idle_device_names_the_stream_whose_event_its_work_waits_for(tmp_path):
    """Two devices: work of device 1 was queued at 12 us and waits until 40 us for an event of stream 7."""
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 0, 1, 100, correlation=1),
        event("kernel", "first", 5, 5, 0, device=1, stream=20, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 6, 1, 100, correlation=2),
        event("kernel", "other", 8, 30, 0, device=0, stream=7, correlation=2),
        event("cuda_runtime", "cudaStreamWaitEvent", 9, 1, 100, correlation=3),
        synchronisation("Stream Wait Event", 9, 1, 20, 3, wait_on_stream=7, wait_on_cuda_event_id=1),
        event("cuda_runtime", "cudaLaunchKernel", 11, 1, 100, correlation=4),
        event("kernel", "second", 40, 5, 0, device=1, stream=20, correlation=4),
    ]
    found = explain_export(read(tmp_path, events).folder, {})
    sums = Counter()
    for key, wait in found.totals.whole.items():
        sums[found.devices[key[0]][1], found.texts[key[2]]] += wait
    assert sums[1, "event wait on stream 7"] > 20_000


def test_a_trace_without_synchronisation_has_no_such_table(tmp_path):
    found = read(tmp_path, [event("kernel", "gemm", 10, 5, 0, device=0, stream=7, correlation=1)])
    assert "dependencies" not in found.names
