"""The Chrome trace that rocmProfileData makes of its database (tools/rpd2tracing): text for every number."""

from reading import Read, write_trace


def event(pid, tid, name, ts, dur, desc):
    return {
        "pid": f"{pid}",
        "tid": f"{tid}",
        "name": name,
        "ts": f"{ts}",
        "dur": f"{dur}",
        "ph": "X",
        "args": {"desc": desc},
    }


EVENTS = [
    {"name": "process_name", "ph": "M", "pid": "2", "args": {"name": "GPU2"}},
    event(2, 0, "CopyHostToDevice", 100, 90, "CopyHostToDevice"),
    event(2, 0, "gemm_kernel", 200, 50, "KernelExecution"),
    event(2, 1, "reduce(float*)", 260, 6, "KernelExecution"),
    event(2, 0, "FillBuffer", 270, 5, "FillBuffer"),
    event(4711, 4712, "hipLaunchKernel", 190, 4, "stream: 0x0 | kernel: gemm_kernel"),
    event(4711, 4712, "train_step", 90, 200, "train_step"),
    event(4711, 4712, "hsa_signal_create", 91, 1, ""),
    {"pid": "2", "name": "Idle", "ph": "C", "ts": 100, "args": {"idle": 0}},
]


def test_operations_calls_and_markers_are_told_apart_by_their_description(tmp_path):
    export = Read(write_trace(tmp_path / "t.json", EVENTS), tmp_path / "e")
    assert export.status == "read"
    assert sorted(export.kernels.column("name").to_pylist()) == ["gemm_kernel", "reduce(float*)"]
    launches = export.launches.to_pydict()
    assert (launches["duration_ns"], launches["device"], launches["stream"]) == ([50_000, 6_000], [2, 2], [0, 1])
    copies = export.transfers.to_pydict()
    assert (copies["copy_kind"], copies["duration_ns"]) == ([1, 255], [90_000, 5_000])
    assert [str(name) for name in export.calls.column("name").to_pylist()] == ["hipLaunchKernel"]
    assert [str(name) for name in export.ranges.column("name").to_pylist()] == ["train_step"]


def test_a_description_alone_makes_no_kernel(tmp_path):
    """Other programs describe their events, too."""
    events = [event(1, 1, "render", 1, 5, "render"), event(1, 1, "Copy rows", 9, 5, "a step of the program")]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "e")
    assert export.status != "read"
