"""What versions of PyTorch wrote that is no JSON: each event of it is read, as far as it can be."""

import json

import pytest
from reading import Read, kernel, write_trace

from causeway.readers.containers import chrome_json

FAULTS = {
    "inf": '"est. achieved occupancy %": 0, "memory bandwidth (GB/s)": inf',  # kineto 105
    "minus nan": '"warps per SM": -nan',
    "nan of Windows": '"warps per SM": -nan(ind)',
    "no value": '"Process Group Description": ',  # of a process group without one
    "trailing comma": '"warps per SM": 1.5,',
    "path of Windows": '"Call stack": "torch\\cuda\\__init__.py(219): _lazy_init"',  # pytorch 98432
    "path after an escape": '"Call stack": "a \\"b\\" C:\\\\x\\q"',
    "a list of objects": '"inputs": [{"size": inf}], "more": [{"size": 1}]',
}


def text_of(faults, **top):
    """Return a trace of as many kernels as there are texts, each among the arguments of one."""
    events = []
    for number, fault in enumerate(faults):
        event = json.dumps(kernel(10 * number, 2, f"k{number}", correlation=number + 1))
        events.append(event.replace('"device": 0', f'"device": 0, {fault}' if fault else '"device": 0', 1))
    events = [event.replace(",, ", ", ") for event in events]
    return json.dumps(top | {"traceEvents": []}).replace("[]", f"[{', '.join(events)}]")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("number", range(3), ids=["first", "middle", "last"])
def test_an_event_with_a_known_fault_is_read_and_so_are_those_around_it(fault, number, tmp_path):
    faults = ["", "", ""]
    faults[number] = fault
    path = tmp_path / "x.json"
    body = text_of(faults, schemaVersion=1)
    if fault.endswith(","):  # the comma stands before the end of the object
        body = body.replace('1.5, "stream": 7, ', '1.5, "stream": 7, ').replace(
            f'"correlation": {number + 1}}}', f'"correlation": {number + 1},}}'
        )
    path.write_text(body, encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.launches.column("start_ns").to_pylist() == [0, 10_000, 20_000]
    assert export.launches.column("correlation").to_pylist() == [1, 2, 3]
    assert export.kernels.column("name").to_pylist() == ["k0", "k1", "k2"]
    assert export.count("unreadable_rows") == 0


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_trace_of_such_events_alone_is_read_whole(fault, tmp_path, monkeypatch):
    """More than the window that is read at a time."""
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 1 << 17)
    path = tmp_path / "x.json"
    path.write_text(text_of([fault.rstrip(",")] * 1000), encoding="utf-8")
    assert path.stat().st_size > chrome_json.WINDOW_BYTES
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("read", 1000)


def test_a_damaged_last_event_is_no_cut(tmp_path):
    """A key without its first quotation mark (pytorch 33961): one event is lost, the trace is whole."""
    path = tmp_path / "x.json"
    path.write_text(text_of(["", "", '"x": 1']).replace('"x": 1', 'x": 1'), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("partial", 2)
    assert (export.count("unreadable_rows"), export.count("truncated")) == (1, 0)


def test_a_cut_last_event_is_a_cut(tmp_path):
    """Also behind a list of objects, whose end looks like that of all events."""
    path = tmp_path / "x.json"
    whole = text_of(["", "", '"inputs": [{"size": 1}], "more": 2'])
    path.write_text(whole[: whole.index('"more"') + 5], encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("partial", 2)
    assert export.count("truncated") == 1


def test_a_trace_without_an_event_that_can_be_parsed_says_so(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text_of(["x: 1"] * 3), encoding="utf-8")
    found = Read(path, tmp_path / "t").error["found"]
    assert found.startswith("the text is damaged after 17 characters: 3 events could not be parsed")


def test_a_phase_that_is_no_text_is_that_of_an_incomplete_event(tmp_path):
    events = [kernel(1, 2), kernel(5, 2) | {"ph": ["X"]}, kernel(9, 2) | {"ph": None}]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("partial", 1)
    assert export.count("incomplete_events") == 2


def test_a_correlation_of_zero_links_nothing(tmp_path):
    """ROCm writes 0 for launches whose call its tracer does not know, and for calls of no launch (roctracer 100)."""
    launches = [kernel(f"{1000 + 100 * at}.000", "80.123", f"k{at}", correlation=at % 2 * at) for at in range(1, 6)]
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "hipExtLaunchKernel", "pid": 9, "tid": 9, "ts": 950 + 100 * at}
        | {"dur": 4, "args": {"correlation": at}}
        for at in range(6)
    ]
    export = Read(write_trace(tmp_path / "x.json", calls + launches), tmp_path / "t")
    assert export.launches.column("correlation").to_pylist() == [1, None, 3, None, 5]
    # a call ends 46 us before its launch starts; that of number 0 ended 246 us before the launch of number 2
    assert export.launches.column("queue_ns").to_pylist() == [46_000, None, 46_000, None, 46_000]
    assert export.calls.column("correlation").to_pylist() == [None, 1, 2, 3, 4, 5]
    assert (export.count("clock_reset"), export.count("no_launch_calls")) == (0, 2)


def test_events_without_a_phase_are_complete_ones_and_without_a_stream_none_is_cut(tmp_path):
    """They were refused; two short kernels beside a long one cut it to a tenth, as of one stream."""
    times = [("compute", 0, 100), ("nccl", 10, 10), ("compute", 30, 10)]
    events = [{"cat": "kernel", "name": name, "ts": ts, "dur": dur} for name, ts, dur in times]
    export = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t")
    assert sorted(export.launches.column("duration_ns").to_pylist()) == [10_000, 10_000, 100_000]
    assert (export.count("outlasting"), export.count("stream_assumed")) == (0, 3)
    events = [event | {"tid": 7} for event in events]
    export = Read(write_trace(tmp_path / "streams.json", events), tmp_path / "s")
    assert sorted(export.launches.column("duration_ns").to_pylist()) == [10_000, 10_000, 10_000]
    assert (export.count("outlasting"), export.count("stream_assumed")) == (1, 0)


def test_launches_without_a_stream_have_no_order_beside_others_that_have_one(tmp_path):
    """One kernel on a stream let two short ones cut a long one, and none was said to have no stream."""
    times = [(0, 100, None), (10, 10, None), (20, 80, 7), (30, 10, 7), (40, 10, None)]
    events = [{"ph": "X", "cat": "kernel", "name": f"k{ts}", "ts": ts, "dur": dur} for ts, dur, _ in times]
    events = [event | ({"tid": stream} if stream else {}) for event, (_, _, stream) in zip(events, times, strict=True)]
    export = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t")
    assert export.launches.column("stream").to_pylist() == [0, 0, 7, 7, 0]
    assert export.launches.column("duration_ns").to_pylist() == [100_000, 10_000, 10_000, 10_000, 10_000]
    assert (export.count("outlasting"), export.count("stream_assumed")) == (1, 3)
