"""Chrome traces without a kernel of torch.profiler: each is told what it is and what to do, not what would not help."""

import json
import pickle

import pytest
from reading import Read, write_trace

JAX = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
    {"ph": "X", "name": "fusion", "pid": 1, "tid": 13, "ts": 1.5, "dur": 2.5, "args": {"hlo_op": "fusion"}},
    {},
]
TENSORFLOW = [
    {"ph": "X", "cat": "Op", "name": "MatMul", "pid": 5, "tid": 0, "ts": 1, "dur": 2, "args": {"op": "MatMul"}}
]
AUTOGRAD = [  # of PyTorch before 1.8: no categories but that of the arrows
    {"ph": "X", "name": "aten::add", "pid": "CPU functions", "tid": 1, "ts": 1.5, "dur": 9.5, "args": {}},
    {"ph": "s", "name": "aten::add", "pid": "CPU functions", "tid": 1, "ts": 1.5, "id": 1, "cat": "cpu_to_cuda"},
    {"ph": "f", "name": "k(int)", "pid": "CUDA functions", "tid": 0, "ts": 4.5, "id": 1, "cat": "cpu_to_cuda"},
    {"ph": "X", "name": "k(int)", "pid": "CUDA functions", "tid": 0, "ts": 4.5, "dur": 2.5, "args": {}},
]

ROCPROF_SYS = [
    {"ph": "X", "cat": "rocm_kernel_dispatch", "name": "k(int)", "pid": 7, "tid": 3, "ts": 1.5, "dur": 2.5, "args": {}}
]


@pytest.mark.parametrize(
    "events",
    [TENSORFLOW, [], ROCPROF_SYS],
    ids=["TensorFlow", "none", "rocprof-sys"],
)
def test_a_chrome_trace_of_another_tool_is_not_told_to_set_an_option_of_pytorch(events, tmp_path):
    read = Read(write_trace(tmp_path / "t.json", events, displayTimeUnit="ns"), tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"].startswith("it is a Chrome trace without events of torch.profiler")
    assert "a program that is not known" in read.error["found"]
    assert "`nsys profile`" in read.error["advice"]
    assert "`rocprofv3`" in read.error["advice"]
    assert "ProfilerActivity" not in read.error["advice"]


TIMELINE = [
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "/gpu:0/stream:12 Compute"}},
    TENSORFLOW[0] | {"pid": 7},
]
NODES = [{"cat": "Session", "pid": 3, "tid": 3, "dur": 9, "ts": 1, "ph": "X", "name": "model_run", "args": {}}]
ASCEND = [
    {"ph": "M", "name": "process_name", "pid": 4, "args": {"name": "Ascend Hardware"}},
    {"ph": "X", "name": "Free", "ts": "169.5", "dur": 100, "tid": 3, "pid": 4},
]

OF_NCCL = [{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": 3, "tid": 1, "ts": 1.5, "args": {}}]
CONVERTED = [
    {"name": "k", "ph": "X", "ts": 1.5, "dur": 2.75, "pid": "Device 0", "tid": "Stream 1", "cat": "cuda", "args": {}}
]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (JAX, "is a trace of JAX or TensorFlow in which no event of a GPU has kernel_details"),
        (TIMELINE, "is a timeline of TensorFlow 1"),
        (NODES, "is a profile of ONNX Runtime without kernels"),
        (ASCEND, "is a trace of Ascend's NPUs"),
        (OF_NCCL, "is a trace of NCCL's example profiler"),
        (CONVERTED, "was converted from an export of Nsight Systems"),
        (AUTOGRAD, "is a trace of torch.autograd.profiler"),
    ],
)
def test_a_chrome_trace_of_a_known_tool_is_named(events, said, tmp_path):
    read = Read(write_trace(tmp_path / "t.json", events, displayTimeUnit="ns"), tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"].startswith(f"it {said}")
    assert "ProfilerActivity" not in read.error["advice"]


def test_a_trace_that_its_tool_damaged_is_named_by_the_tool(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(AUTOGRAD).replace('"tid": 0', 'tid": 0'))  # as PyTorch 1.4 did
    read = Read(tmp_path / "t.json", tmp_path / "e")
    assert read.error["found"].startswith("it is a trace of torch.autograd.profiler")


def test_a_trace_of_calls_alone_is_not_told_to_trace_the_gpu(tmp_path):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 7, "tid": 7, "ts": 1, "dur": 9}
    read = Read(write_trace(tmp_path / "t.json", [call]), tmp_path / "e")
    assert read.error["found"] == "there is no GPU kernel in it (1 cuda_runtime)"
    assert read.error["advice"].startswith("Calls of the GPU were traced, but no kernel")


KEY_AVERAGES = """\
STAGE:2024-01-01 ActivityProfilerController.cpp:312] Completed Stage: Collection
-------------------------  ------------  ------------  ------------
                     Name    Self CPU %      Self CPU   CPU total %
-------------------------  ------------  ------------  ------------
             aten::conv2d         0.10%      50.000us        50.00%
-------------------------  ------------  ------------  ------------
Self CPU time total: 100.000ms
"""
STACKS = (
    "<built-in_method_zeros>;site-packages/torch/autograd/profiler.py(426):___init__ 44\n"
    "<built-in_method_conv2d>;torch/nn/modules/conv.py(446):_forward;nn.Module:_Conv2d 8451\n"
)
EXECUTION = (
    '{\n  "schema": "1.1.1-chakra.0.0.4", "pid": 9, "time": "2024-01-01", "start_ts": 1,\n  "nodes": ['
    '{"id": 2, "name": "aten::mm", "ctrl_deps": 1}], "finish_ts": 2}'
)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("table.txt", KEY_AVERAGES.encode(), "a summary of torch.profiler"),
        ("profiler_stacks.txt", STACKS.encode(), "stacks of torch.profiler"),
        ("et.json", EXECUTION.encode(), "an execution trace of PyTorch"),
        ("snapshot.pickle", pickle.dumps({"segments": [], "device_traces": [[]]}), "a snapshot of PyTorch's memory"),
    ],
)
def test_what_pytorch_writes_beside_traces_is_named(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    read = Read(tmp_path / name, tmp_path / "t")
    assert read.status == "refused"
    assert said in read.error["found"]
    assert "export_chrome_trace" in read.error["advice"]


def operator(name="aten::mm", ts=0):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": 5, "args": {}}


@pytest.mark.parametrize("category", ["mtia_ccp_events", "privateuse1_kernel", "<b>&"])
def test_work_of_an_accelerator_that_is_not_read_is_named_with_its_count(category, tmp_path):
    events = [operator(ts=at) for at in range(4)]
    events += [operator(ts=at) | {"cat": "x_runtime", "args": {"correlation": at}} for at in range(2)]
    events += [operator(ts=at) | {"cat": category, "args": {"device": 0, "stream": 3}} for at in range(3)]
    events += [operator(ts=at) | {"cat": "ac2g", "ph": "s"} for at in range(9)]
    error = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t").error
    assert error["found"] == f"there is no GPU kernel in it (4 cpu_op; not read: 3 {category}, 2 x_runtime)"
    assert error["advice"].startswith("Work of this accelerator is not read")
    assert "CUDA" not in error["advice"]


@pytest.mark.parametrize("name", ["aten::_mps_convolution", "aten::mps_convolution_backward", "aten::_lstm_mps"])
def test_a_trace_of_mps_is_not_told_to_profile_cuda(name, tmp_path):
    error = Read(write_trace(tmp_path / "trace.json", [operator(), operator(name, 9)]), tmp_path / "t").error
    assert error["advice"].startswith("It ran on Apple's MPS")


@pytest.mark.parametrize(("backend", "begin"), [("gloo", "Its ranks communicate by gloo"), ("nccl", "Profile again")])
def test_ranks_of_gloo_are_told_that_cpus_have_no_kernels(backend, begin, tmp_path):
    top = {"distributedInfo": {"backend": backend, "rank": 0, "world_size": 2}}
    error = Read(write_trace(tmp_path / "trace.json", [operator()], **top), tmp_path / "t").error
    assert error["advice"].startswith(begin)


def test_of_many_categories_the_largest_are_named(tmp_path):
    events = [operator()] + [operator(ts=at) | {"cat": f"c{at}" * 30} for at in range(9)]
    error = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t").error
    assert error["found"].endswith("and 3 more categories)")
    assert len(error["found"]) < 400


@pytest.mark.parametrize("inner", [{"trace": {"traceEvents": []}}, {"traceEvents": {"0": {"ph": "X"}}}])
def test_events_that_stand_elsewhere_are_not_said_to_be_of_another_tool(inner, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1} | inner), encoding="utf-8")
    error = Read(path, tmp_path / "e").error
    assert error["found"].startswith('it has no list "traceEvents" at its top level')
    assert '{"traceEvents": [...]}' in error["advice"]


def test_copies_alone_are_read_as_those_of_other_profilers(tmp_path):
    place = {"pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "bytes": 1 << 20}}
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "dur": 5} | place
    copies = [copy | {"ts": 10 * at} for at in range(9)]
    read = Read(write_trace(tmp_path / "x.json", copies), tmp_path / "t")
    assert (read.status, read.count("no_launches"), read.transfers.num_rows) == ("read", 1, 9)
    for at, lost in enumerate(({"ph": "B"}, {"dur": -1}, {"ts": None})):
        odd = copy | {"cat": "kernel", "name": "k", "ts": 1000} | lost
        error = Read(write_trace(tmp_path / f"{at}.json", [*copies, odd]), tmp_path / f"t{at}").error
        said = ("1 kernel without a duration", "times that can be", "times that can be")[at]
        assert said in error["found"]


def test_kernels_without_a_start_are_said_to_lack_it(tmp_path):
    """They had a duration, and no phase: "without a duration, as their ph is not X"."""
    events = [{"cat": "kernel", "name": "k1", "dur": duration} for duration in (100, 50)]
    error = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t").error
    assert error["found"] == "none of its 2 GPU kernels has times that can be: ts and dur count microseconds"
    assert "Is ts missing?" in error["advice"]


@pytest.mark.parametrize("ids", [{}, {"device": 0, "stream": 3}])
def test_what_a_trace_of_an_unknown_program_holds_is_named(ids, tmp_path):
    """Only what stood beside categories that are read was named."""
    events = [operator(ts=at) | {"cat": "npu_kernel", "args": ids} for at in range(3)]
    error = Read(write_trace(tmp_path / "trace.json", events), tmp_path / "t").error
    assert error["found"].endswith("of a program that is not known (not read: 3 npu_kernel)")
    assert error["advice"].startswith("Work of this accelerator" if ids else "Name a trace of torch.profiler")
