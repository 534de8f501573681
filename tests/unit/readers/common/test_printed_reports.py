"""Reports for people are refused with what they are and with the command that writes what is read."""

import gzip

import pytest
from reading import Read

NSYS_SUM = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"
NVPROF = "==77== NVPROF is profiling process 77, command: ./app\n==77== Profiling result:\n"
NCU_SUM = '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","Invocations"'
NCU_SUM += ',"Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
NCU_SUM += (
    '"7","app","h","k(int)","(64, 1, 1)","(8, 1, 1)","0","9.0","4","Occupancy","Achieved Occupancy","%","1","3","2"'
)

SUMMARY = "a summary of `nsys stats`"
COLUMNS = "a report of `nsys stats` in columns or as JSON"
WITHOUT = "a report of `nsys stats` on calls or ranges"
REPORTS = {  # what it is, a part of what to do, text
    "kernels": (SUMMARY, "cuda_gpu_trace", f"{NSYS_SUM},Name\n60.0,600,2,300.0,300.0,200,400,100.0,k(int)\n"),
    "kernels of 2021": (SUMMARY, "cuda_gpu_trace", "Time(%),Total Time (ns),Instances,Average,Name\n60.0,6,2,3.0,k\n"),
    "ranges after notices": (
        SUMMARY,
        "cuda_gpu_trace",
        f"Generating SQLite file a.sqlite\nProcessing [a.sqlite] with [nvtx_sum.py]...\n{NSYS_SUM},Style,Range\n",
    ),
    "sizes": (SUMMARY, "cuda_gpu_trace", "Total (MB),Count,Avg (MB),Operation\n8.0,2,4.0,[CUDA memcpy HtoD]\n"),
    "all in columns": (
        SUMMARY,
        "cuda_gpu_trace",
        "[3/8] Executing 'nvtx_sum' stats report\n\n Time (%)  Total Time (ns)  Instances\n --------  -------------\n",
    ),
    "summary as JSON": (SUMMARY, "cuda_gpu_trace", '[{"Time (%)": 60.0, "Total Time (ns)": 600}]'),
    "trace in columns": (
        COLUMNS,
        "-f csv",
        " Start (ns)   Duration (ns)  CorrId  GrdX\n ------  -----\n 1000  500  9  4\n",
    ),
    "trace in columns of 2020": (
        COLUMNS,
        "was called `gputrace`",
        "Using a.sqlite export for stats reports.\nExporting [gputrace.py a.sqlite] to console...\n\n"
        " Start(sec)  Duration(nsec)  CorrId  GrdX\n ----------  --------------  ------  ----\n   0.35  5,120  57  4\n",
    ),
    "trace as JSON": (COLUMNS, "-f csv", '[{"Start (ns)":"1000","Duration (ns)":"500","Name":"k(int)"}]'),
    "trace as JSON of several lines": (
        COLUMNS,
        "-f csv",
        '[\n    {\n        "Start (ns)": 1000,\n        "Duration (ns)": 500\n    }\n]\n',
    ),
    "launches from call to end in columns": (
        COLUMNS,
        "-f csv",
        " API Start (ns)  API Dur (ns)  Queue Start (ns)  Kernel Start (ns)\n ------  -----\n 1000  500  9  4\n",
    ),
    "launches from call to end": (
        "the report cuda_kern_exec_trace of `nsys stats`",
        "cuda_gpu_trace",
        "API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns)\n1,2,,,3,4\n",
    ),
    "calls": (WITHOUT, "cuda_gpu_trace", "Start (ns),Duration (ns),Name,Result,CorrID,Pid\n1,2,cudaMalloc,0,1,7\n"),
    "calls of 2020": (WITHOUT, "cuda_gpu_trace", "Start(nsec),Duration(nsec),Name,Result,CorrID\n1,2,cudaMalloc,0,1\n"),
    "ranges on the GPU": (WITHOUT, "cuda_gpu_trace", "Name,Projected Start (ns),Projected Duration (ns)\nstep,1,2\n"),
    "nested ranges": (WITHOUT, "cuda_gpu_trace", "Start (ns),End (ns),Duration (ns),DurChild (ns),Name\n1,2,1,0,s\n"),
    "nvprof": (
        "a summary of nvprof",
        "--print-gpu-trace --csv",
        f'{NVPROF}"Type","Time(%)","Time","Calls","Avg","Name"\n,%,ms,,us,\n"GPU activities",60,6,2,3,"k(int)"\n',
    ),
    "nvprof without its lines": (
        "a summary of nvprof",
        "--csv",
        "Time(%),Time,Calls,Avg,Min,Max,Name\n60%,6ms,2,3ms\n",
    ),
    "nvprof without its head": ("a summary of nvprof", "--csv", " GPU activities:   15.95%  1.7s  28  61us  k\n"),
    "nvprof of nothing": ("a profile of nvprof without a kernel", "child", f"{NVPROF}No kernels were profiled.\n"),
    "rocprofv2": (
        "launches as rocprofv2 prints them",
        "plugin",
        'Dispatch_ID(0), GPU_ID(2), Kernel_Name("k"), SQ_CYCLES(9)\n',
    ),
    "rocprof-compute analyze": (
        "a page that `rocprof-compute analyze` prints",
        "pmc_perf.csv",
        "INFO\n0. Top Stats\n0.1 Top Kernels\n",
    ),
    "Nsight Compute without ID": (
        "the page of Nsight Compute without its column ID",
        "ncu --csv",
        '"Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"4","k","Threads","thread","1"\n',
    ),
    "nvprof in columns": ("a summary of nvprof", "--csv", f"{NVPROF}Time(%)      Time     Calls       Avg  Name\n"),
    "nvprof's metrics": (
        "a table of nvprof's metrics",
        "ncu --csv",
        f'{NVPROF}"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n',
    ),
    "nvprof's metrics per launch": (
        "a trace of nvprof's metrics",
        "ncu --csv",
        f'{NVPROF}"Device","Context","Stream","Kernel","Correlation_ID","ipc"\n"A (0)","1","7","k(int)",9,1.5\n',
    ),
    "Nsight Compute": ("a summary of Nsight Compute", "--page raw", f"==PROF== Connected to process 7\n{NCU_SUM}\n"),
    "Nsight Compute without its lines": ("a summary of Nsight Compute", "--page raw", f"{NCU_SUM}\n"),
    "Nsight Compute's source page": (
        "the source page of Nsight Compute",
        "--csv --page raw",
        '"Kernel Name","void k<(int)2>(float *)",\n"Address","Source","Warp Stall Sampling (All Cycles)","# Samples"\n'
        '"0x7fc48541d900","      MOV R1, c[0x0][0x28] ","42","42"\n',
    ),
    "Nsight Compute's source page, numbered": (
        "the source page of Nsight Compute",
        "--csv --page raw",
        '==PROF== Connected to process 7\n"#","Address","Source","Live Registers","Instructions Executed"\n'
        '"1","7f00","EXIT","1","3632"\n',
    ),
    "Nsight Compute's source page, lines and instructions": (
        "the source page of Nsight Compute",
        "--csv --page raw",
        '"File Path","/x/k.cu"\n"Line No","Source","Address","Source","# Samples"\n"7","y = x;","7f00","EXIT","2"\n',
    ),
    "Nsight Compute as text, with columns that are not its own": (
        "a page of Nsight Compute as text",
        "--csv --page raw",
        "==PROF== Connected to process 7\n  k(int) (8, 1, 1)x(64, 1, 1), Context 1, Stream 7\n    Section: Occupancy\n"
        "    Metric Name          Metric Unit Metric Value\n    Achieved Occupancy             %         2\n",
    ),
    "Nsight Compute as text, without the line of the kernel": (
        "a page of Nsight Compute as text that lacks the line which names a kernel",
        "--csv --page raw",
        "    Section: Occupancy\n    ------------------ ----------- ------------\n"
        "    Metric Name        Metric Unit Metric Value\n    ------------------ ----------- ------------\n"
        "    Achieved Occupancy           %        12.44\n    ------------------ ----------- ------------\n",
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_named_with_the_command_that_writes_what_is_read(name, tmp_path):
    what, command, text = REPORTS[name]
    path = tmp_path / "report.txt"
    path.write_text(text, encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert (read.status, read.error["expected"]) == ("refused", "one row per launch")
    assert read.error["found"].startswith(f"it is {what}")
    assert command in read.error["advice"]


@pytest.mark.parametrize(
    "text",
    [
        '"ID","Function Name","Block Size [block]","gpu__time_duration.sum [us]"\n"0","k","64, 1, 1","2.5"\n',
        '"ID","0"\n"Function Name","k"\n"Block Size [block]","64, 1, 1"\n"gpu__time_duration.sum [us]","2.5"\n',
    ],
    ids=["launches in rows", "launches in columns"],
)
def test_a_page_saved_from_the_window_of_nsight_compute_is_named(text, tmp_path):
    path = tmp_path / "page.csv"
    path.write_text(f"\ufeff{text}", encoding="utf-8")
    error = Read(path, tmp_path / "e").error
    assert error["found"].startswith("it is the raw page as the window of Nsight Compute saves it")
    assert "ncu --import REPORT --csv --page raw" in error["advice"]


def test_a_compressed_report_is_named_too(tmp_path):
    path = tmp_path / "report.csv.gz"
    path.write_bytes(gzip.compress(REPORTS["kernels"][2].encode()))
    assert Read(path, tmp_path / "e").error["found"].startswith(f"it is {SUMMARY}")


def test_a_trace_that_is_refused_for_another_reason_is_not_called_a_report(tmp_path):
    path = tmp_path / "trace.csv"
    header = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes (MB),Device,Ctx,Strm,Name"
    path.write_text(f"{header}\nsoon,500,9,4,1,1,64,1,1,,A GPU (0),1,7,k(int)\n", encoding="utf-8")
    found = Read(path, tmp_path / "e").error["found"]
    assert "1 events have no start or end that can be read" in found


def test_a_table_with_a_column_of_times_and_a_target_is_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Time (%),Total Time (ns),y\n1,2,3\n2,3,4\n", encoding="utf-8")
    assert Read(path, tmp_path / "e").status == "read"


def test_what_begins_like_a_format_but_holds_nothing_of_it_is_not_told_to_set_auto(tmp_path):
    path = tmp_path / "messages.txt"
    path.write_text("==77== NVPROF is profiling process 77, command: ./app\nhello\n", encoding="utf-8")
    error = Read(path, tmp_path / "e").error
    assert error["found"] == "it begins like an export of format cupti, but holds nothing of it that can be read"
    assert "auto" not in error["advice"]
