"""Annotations of a trace that are written as two events, and those that never end."""

from reading import Read, kernel, write_trace


def half(ph, ts, name="step", category="user_annotation", tid=5, **more):
    found = {"ph": ph, "cat": category, "name": name, "pid": 5, "tid": tid, "ts": ts} | more
    return {key: value for key, value in found.items() if value is not None}


def ranges_of(export):
    rows = export.ranges.to_pylist()
    return sorted((row["name"], row["start_ns"], row["duration_ns"]) for row in rows)


def test_begin_and_end_are_paired_thread_by_thread_and_nested(tmp_path):
    events = [
        half("B", 10, "outer"),
        half("B", "11.500", "other thread", tid=6),
        half("B", 12, "inner"),
        half("B", 13, "another kind", "not read"),
        half("E", 14, None, None),  # an end may name neither category nor name: that of the other kind
        half("E", "15.250", None, None),
        half("E", 16, None),
        half("E", 17, tid=6),
        kernel(20, 5),
    ]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert ranges_of(export) == [("inner", 12_000, 3250), ("other thread", 11_500, 5500), ("outer", 10_000, 6000)]
    assert (export.count("open_events"), export.count("incomplete_events")) == (0, 0)


def test_an_annotation_without_an_end_lasts_to_the_end_of_the_recording(tmp_path):
    events = [half("B", 10, "epoch"), kernel(20, 5), kernel(30, 7.5), half("B", 31, "last")]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert ranges_of(export) == [("epoch", 10_000, 27_500), ("last", 31_000, 6500)]
    assert export.issue("open_events")["detail"].endswith(": 2 ranges without an end")
    assert export.status == "read"


def test_what_is_no_pair_is_counted(tmp_path):
    events = [
        half("E", 10),
        half("B", 11),
        half("E", 12),
        half("E", 13),
        half("B", "soon"),
        half("E", 14),
        kernel(20, 5),
    ]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert ranges_of(export) == [("step", 11_000, 1000)]
    assert (export.count("incomplete_events"), export.count("no_time")) == (2, 1)


def test_a_kernel_that_has_begun_is_no_launch_and_no_open_event(tmp_path):
    events = [kernel(20, 5), half("B", 1, "k", "kernel", tid=7), kernel(30, 5)]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert (export.launches.num_rows, export.count("incomplete_events"), export.count("open_events")) == (2, 1, 0)


def test_kernels_calls_and_operators_are_paired(tmp_path):
    """The same trace with complete events and with pairs, which Chrome's format allows for all."""
    whole = []
    for at in range(20):
        host = {"ph": "X", "pid": 5, "tid": 5}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 100 * at, "dur": 5}
        operator = {"cat": "cpu_op", "name": "aten::mm", "ts": 100 * at - 2, "dur": 9.5}
        copy = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "ts": 100 * at + 70, "dur": 3}
        args = {"device": 0, "stream": 7, "correlation": at + 1}
        whole += [host | operator, host | call | {"args": args}]
        whole += [kernel(100 * at + 10, 40 + at, correlation=at + 1), kernel(0, 0) | copy]
    pairs = []
    for event in whole:
        begin = {key: value for key, value in event.items() if key != "dur"} | {"ph": "B"}
        end = {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + event["dur"]}
        pairs += [begin, end]
    pairs.sort(key=lambda event: event["ts"])
    once = Read(write_trace(tmp_path / "x.json", whole), tmp_path / "t")
    export = Read(write_trace(tmp_path / "y.json", pairs), tmp_path / "u")
    assert (export.status, export.launches.num_rows) == ("read", 20)
    for table in ("launches", "transfers", "calls", "operators"):
        assert getattr(export, table).equals(getattr(once, table)), table


def test_a_trace_of_begins_alone_says_what_they_lack(tmp_path):
    export = Read(write_trace(tmp_path / "x.json", [kernel(20, 5) | {"ph": "B"}]), tmp_path / "t")
    assert export.status == "refused"
    assert "1 kernel without a duration" in export.error["found"]
    assert "a begin and an end (B, E)" in export.error["advice"]
