"""Reports of `nsys stats` and `nsys analyze` on other things than CUDA's launches, copies and calls, beside those in a
folder and between them in a text: none of their rows is an event. The columns are those that NVIDIA's documentation of
the reports lists; what is expected is what the trace alone gives.
"""

import itertools
import re

import pytest
from reading import Read

TRACE = [
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB)"
    ",Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name",
    "1000,200,10,,,,,,,,,,0.101,505.000,Pageable,Device,A100 (0),1,,7,[CUDA memcpy Host-to-Device]",
    '1500,300,11,2,1,1,128,1,1,16,0.000,0.033,,,,,A100 (0),1,,7,"void foo<int, 3>(int *)"',
    "2100,50,13,2,1,1,128,1,1,16,0.000,0.033,,,,,A100 (0),1,,13,bar",
]
CALLS = [
    "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name",
    "1400,60,cudaLaunchKernel,0,11,47,47,20,app",
    "2000,60,cudaLaunchKernel,0,13,47,47,20,app",
]
OTHERS = {
    "vulkan_api_trace": [  # its correlations are of Vulkan's calls
        "Start (ns),Duration (ns),Name,Event Class,Context,CorrID,Pid,Tid,T-Pri,Thread Name",
        "1450,5,vkQueueSubmit,VulkanEvent,1,11,47,48,20,render",
    ],
    "network_congestion": [
        "Start (ns),End (ns),Duration (ns),Send wait rate,GUID,Name",
        "1400,2400,1000,20000,0x1234,mlx5_0",
    ],
    "mpi_event_trace": [
        "Start (ns),End (ns),Duration (ns),Event,Pid,Tid,Tag,Rank,PeerRank,RootRank,Size (MB),CollSendSize (MB)"
        ",CollRecvSize (MB)",
        "1000,1100,100,MPI_Send,47,47,0,0,1,,0.001,,",
    ],
    "cuda_memcpy_async": [
        "Duration (ns),Start (ns),Src Kind,Dst Kind,Bytes (MB),PID,Device ID,Context ID,Green Context ID,Stream ID"
        ",API Name",
        "200,1000,Pageable,Device,0.101,47,0,1,,7,cudaMemcpyAsync_v3020",
    ],
    "gpu_gaps": ["Row#,Duration (ns),Start (ns),PID,Device ID,Context ID", "1,600000000,1000,47,0,1"],
    "cuda_kern_exec_sum": [  # without a unit in its first five columns
        "PID,TID,DevId,Count,QCount,AAvg (ns),AMed (ns),AMin (ns),AMax (ns),API Name,Kernel Name",
        "47,47,0,2,2,60.0,60.0,60,60,cudaLaunchKernel,bar",
    ],
    "nvtx_kern_sum": [
        "NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Kernel Name",
        ":step,PushPop,47,47,1,2,350,175.0,bar",
    ],
    "um_sum": [
        "Virtual Address,HtoD Migration Size (MB),DtoH Migration Size (MB),CPU Page Faults,GPU PageFaults"
        ",Migration Throughput (MB/s)",
        "0x7F00,0.1,0.1,2,2,1000.0",
    ],
    "um_cpu_page_faults_sum": ["CPU Page Faults,CPU Instruction Address", "12,0x7f00", "7,0x7f10"],
}
TABLES = ("launches", "kernels", "transfers", "calls", "devices")


def tables(path, folder):
    """Return the tables of an export as rows."""
    read = Read(path, folder)
    assert (read.status, read.count("several_processes"), read.count("other_processes")) == ("read", 0, 0)
    return {name: getattr(read, name).to_pylist() for name in TABLES}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables of the trace and the calls alone."""
    path = tmp_path_factory.mktemp("alone")
    (path / "a.csv").write_text("\n".join(TRACE + CALLS) + "\n", encoding="utf-8")
    found = tables(path / "a.csv", path / "e")
    assert [(row["start_ns"], row["queue_ns"]) for row in found["launches"]] == [(1500, 40), (2100, 40)]
    return found


def test_files_beside_a_trace(alone, tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    for name, lines in {"cuda_gpu_trace": TRACE, "cuda_api_trace": CALLS, **OTHERS}.items():
        (folder / f"run_{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert tables(folder, tmp_path / "e") == alone


@pytest.mark.parametrize("between", ["", "\n", "\nProcessing [run.sqlite] with [reports/x.py]...\n\n"])
@pytest.mark.parametrize("first", ["trace", "others"])
def test_reports_in_one_text(between, first, alone, tmp_path):
    mine = [TRACE, CALLS]
    reports = [TRACE, *OTHERS.values(), CALLS] if first == "trace" else [*OTHERS.values(), *mine]
    text = "".join(between + "\n".join(lines) + "\n" for lines in reports)
    (tmp_path / "all.csv").write_text(text, encoding="utf-8")
    assert tables(tmp_path / "all.csv", tmp_path / "e") == alone


@pytest.mark.parametrize("one", OTHERS)
def test_each_below_a_trace_and_above_the_calls(one, alone, tmp_path):
    lines = itertools.chain(TRACE, OTHERS[one], CALLS)
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert tables(tmp_path / "all.csv", tmp_path / "e") == alone


@pytest.mark.parametrize("one", OTHERS)
def test_each_alone_is_refused_as_a_report(one, tmp_path):
    path = tmp_path / "report.csv"
    path.write_text("\n".join(OTHERS[one]) + "\n", encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert (read.status, read.error["expected"]) == ("refused", "one row per launch")
    assert re.match("it is a (report|summary) of `nsys (stats|analyze)`", read.error["found"])
    assert "cuda_gpu_trace" in read.error["advice"]
