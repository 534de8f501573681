"""Communication that is known by no kernel's name: by ranges around launches, by the user, or not at all."""

import json

import pytest
from reading import Read

from causeway.inputs.quality import check

SIZE = {"distributedInfo": {"rank": 0, "world_size": 16}}


def trace(path, launches, facts=SIZE):
    """Write a Kineto trace of launches (kernel, stream, range around its call, or None), 10 us apart."""
    events = []
    for number, (kernel, stream, name) in enumerate(launches, 1):
        at = 10 * number
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 1, "dur": 2, "pid": 1, "tid": 1}
        run = {"cat": "kernel", "name": kernel, "ts": at + 5, "dur": 4, "pid": 0, "tid": stream}
        events += [call | {"ph": "X", "args": {"correlation": number}}]
        events += [run | {"ph": "X", "args": {"correlation": number, "device": 0, "stream": stream}}]
        if name is not None:
            around = {"ph": "X", "cat": "user_annotation", "name": name, "ts": at, "dur": 4, "pid": 1, "tid": 1}
            events.append(around | {"args": {}})
    path.write_text(json.dumps({"traceEvents": events, **facts}))
    return path


def classes(read):
    return {row["name"]: row["class"] for row in read.kernels.to_pylist()}


WORK = [("gemm", 7, "layer"), ("fabric_1", 27, "dispatch(F)"), ("gemm", 7, None), ("fabric_2", 27, "combine(F)")]


def test_a_kernel_on_a_stream_of_communication_in_ranges_that_say_so(tmp_path):
    read = Read(trace(tmp_path / "t.json", 3 * WORK), tmp_path / "out")
    assert classes(read) == {"gemm": "compute", "fabric_1": "communication", "fabric_2": "communication"}
    assert read.issue("no_communication") is None


@pytest.mark.parametrize(
    "launches",
    [
        [*WORK, ("permute", 7, "dispatch(F)")],  # on the stream that computes
        [*WORK, ("permute", 29, "dispatch(F)"), ("permute", 7, None)],  # launched elsewhere, too
        [("permute", 27, "dispatch(F)")],  # nothing computes beside it
        [("gemm", 7, None), ("permute", 27, "dispatch(F)"), ("gelu", 27, None)],  # its stream computes, too
        [("gemm", 7, None), ("permute", 27, "dispatch_attention")],
    ],
)
def test_a_kernel_in_such_a_range_that_may_compute_stays_compute(tmp_path, launches):
    read = Read(trace(tmp_path / "t.json", launches), tmp_path / "out")
    assert classes(read)["permute"] == "compute"


def test_the_innermost_range_decides(tmp_path):
    path = trace(tmp_path / "t.json", [("gemm", 7, None), ("k", 27, "inner")])
    document = json.loads(path.read_text())
    outer = {"ph": "X", "cat": "user_annotation", "name": "all_to_all", "ts": 15, "dur": 20, "pid": 1, "tid": 1}
    document["traceEvents"].append(outer | {"args": {}})
    path.write_text(json.dumps(document))
    assert classes(Read(path, tmp_path / "out"))["k"] == "compute"


UNKNOWN = [(kernel, stream, None) for kernel, stream, _ in WORK]


def test_the_user_says_which_kernels_communicate(tmp_path):
    read = Read(trace(tmp_path / "t.json", UNKNOWN), tmp_path / "out", communication=("fabric",))
    assert classes(read) == {"gemm": "compute", "fabric_1": "communication", "fabric_2": "communication"}
    assert read.issue("no_communication") is None


@pytest.mark.parametrize(
    ("facts", "count"), [(SIZE, 3), ({"distributedInfo": {"rank": 0, "world_size": 1}}, 0), ({}, 0)]
)
def test_a_job_of_several_ranks_without_communication_is_a_caution(tmp_path, facts, count):
    read = Read(trace(tmp_path / "t.json", UNKNOWN, facts), tmp_path / "out")
    assert read.count("no_communication") == count
    if count:
        issue = read.issue("no_communication")
        assert issue["severity"] == "caution"
        assert "none of which is known as communication" in issue["detail"]


@pytest.mark.parametrize("kernel", ["fabric_1", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"])
def test_ranks_of_exports_that_state_no_job_are_compared(tmp_path, kernel):
    folders = []
    for rank in (0, 1):
        launches = [("gemm", 7, None), (kernel if rank else "gemm", 27, None)]
        folders.append(tmp_path / f"out{rank}")
        Read(trace(tmp_path / f"{rank}.json", launches, {"distributedInfo": {"rank": rank}}), folders[-1])
    found = [issue for issue in check("d", folders)["issues"] if issue["kind"] == "no_communication"]
    assert [issue["count"] for issue in found] == ([2] if kernel == "fabric_1" else [])
