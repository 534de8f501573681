"""Chrome traces without a kernel of torch.profiler: each is told what it is and what to do, not what would not help."""

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
    [JAX, TENSORFLOW, AUTOGRAD, [], ROCPROF_SYS],
    ids=["JAX", "TensorFlow", "autograd", "none", "rocprof-sys"],
)
def test_a_chrome_trace_of_another_tool_is_not_told_to_set_an_option_of_pytorch(events, tmp_path):
    read = Read(write_trace(tmp_path / "t.json", events, displayTimeUnit="ns"), tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"].startswith("it is a Chrome trace without events of torch.profiler")
    assert "older PyTorch" in read.error["found"]
    assert "`nsys profile`" in read.error["advice"]
    assert "`rocprofv3`" in read.error["advice"]
    assert "ProfilerActivity" not in read.error["advice"]


def test_a_trace_of_calls_alone_is_not_told_to_trace_the_gpu(tmp_path):
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 7, "tid": 7, "ts": 1, "dur": 9}
    read = Read(write_trace(tmp_path / "t.json", [call]), tmp_path / "e")
    assert read.error["found"] == "there is no GPU kernel in it (1 cuda_runtime)"
    assert read.error["advice"].startswith("Calls of the GPU were traced, but no kernel")
