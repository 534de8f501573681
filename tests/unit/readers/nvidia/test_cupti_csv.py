"""Plain CSV dumps of CUPTI activity, and nsys stats' cuda_gpu_trace. No real file is at hand: the columns are those of
CUPTI's records (CUpti_ActivityKernel, _Memcpy, _Memset, _API) as dumps name them, and of the report as NVIDIA's
documentation prints it.
"""

import gzip
import random

import pytest
from reading import Read

from causeway.readers.detect import detect
from causeway.readers.nvidia.activity_columns import exact_ns, size_in_bytes

EPOCH = 1_496_933_427_584_362_152
KERNEL = "deviceId,streamId,correlationId,gridX,gridY,gridZ,blockX,blockY,blockZ"
KERNEL += ",registersPerThread,staticSharedMemory,dynamicSharedMemory,name"


def written(path, text, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip() + end, encoding="utf-8")
    return path


def kernels(number, start="start", end="end"):
    """Return a dump of kernels 1000 ns apart, the n-th of 100 + n ns."""
    rows = [
        f"{EPOCH + 1000 * at},{EPOCH + 1000 * at + 100 + at},0,7,{at},8,1,1,64,1,1,16,32,0,_Z3addPf"
        for at in range(number)
    ]
    return "\n".join([f"{start},{end},{KERNEL},name", *rows])


@pytest.mark.parametrize(
    ("start", "end"), [("start", "end"), ("start_ns", "end_ns"), ("Start (ns)", "End (ns)"), ("START", "END")]
)
def test_a_dump_of_kernels_under_any_spelling(start, end, tmp_path):
    read = Read(written(tmp_path / "kernels.csv", kernels(50, start, end)), tmp_path / "e")
    assert (read.status, read.capabilities["format"], read.launches.num_rows) == ("read", "cupti", 50)
    assert read.total("launches") == sum(100 + at for at in range(50))
    assert read.capabilities["time"]["first_ns"] == EPOCH  # no bit is lost, though it does not fit a float
    shape = read.configurations.to_pylist()[0]
    assert [shape[name] for name in ("grid_x", "block_x", "registers_per_thread", "static_shared_bytes")] == [
        8,
        64,
        16,
        32,
    ]
    assert read.count("several_processes") == 0


def test_spellings_of_other_writers(tmp_path):
    text = f"""
kernel_name,start_time_ns,duration_us,device_id,stream_id,correlation_id,grid,block,pid
"void f<int, 3>(int)",{EPOCH},1.5,1,0x1f,9,"(4 2 1)","[128, 1, 1]",77
"void f<int, 3>(int)",{EPOCH + 5000},2,1,0x1f,10,4x2x1,128x1x1,77
"""
    read = Read(written(tmp_path / "k.csv", text), tmp_path / "e", form="cupti")
    assert [(row["duration_ns"], row["device"], row["stream"]) for row in read.launches.to_pylist()] == [
        (1500, 1, 31),
        (2000, 1, 31),
    ]
    shape = read.configurations.to_pylist()
    assert [(row["grid_x"], row["grid_y"], row["block_x"]) for row in shape] == [(4, 2, 128)]


def test_one_file_with_all_kinds_of_records(tmp_path):
    text = f"""
kind,start,end,deviceId,streamId,correlationId,bytes,copyKind,name,threadId,processId
CUPTI_ACTIVITY_KIND_RUNTIME,{EPOCH},{EPOCH + 10},,,1,,,cudaLaunchKernel_v7000,5,70
CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,{EPOCH + 40},{EPOCH + 90},0,7,1,,,memcpy_like(int),,70
MEMCPY,{EPOCH + 100},{EPOCH + 120},0,7,2,4096,CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,,,70
2,{EPOCH + 130},{EPOCH + 131},0,7,3,64,,,,70
OVERHEAD,{EPOCH},{EPOCH + 99},,,,,,,,70
10,{EPOCH + 200},{EPOCH + 210},0,7,4,,,second,,70
"""
    read = Read(written(tmp_path / "all.csv", text), tmp_path / "e")
    assert [row["queue_ns"] for row in read.launches.to_pylist()] == [30, None]
    assert [(row["copy_kind"], row["bytes"]) for row in read.transfers.to_pylist()] == [(2, 4096), (255, 64)]
    assert read.calls.num_rows == 1
    assert read.capabilities["rows_in"] == {
        "calls": 1,
        "kernels": 2,
        "memory copies": 1,
        "memory sets": 1,
        "other records": 1,
    }


def test_a_folder_with_one_file_per_kind(tmp_path):
    folder = tmp_path / "dump"
    written(folder / "kernel.csv", kernels(3))
    place = "start,end,deviceId,streamId,correlationId"
    written(folder / "memcpy.csv", f"copyKind,srcKind,dstKind,bytes,{place}\n1,1,3,4096,{EPOCH},{EPOCH + 5},0,7,10")
    written(folder / "memset.csv", f"value,bytes,{place}\n0,256,{EPOCH},{EPOCH + 6},0,7,11")
    written(folder / "runtime.csv", f"cbid,start,end,threadId,correlationId\n211,{EPOCH - 50},{EPOCH - 20},9,0")
    written(folder / "notes.csv", "a,b\n1,2")
    assert detect(folder) == "cupti"
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.launches.num_rows) == ("read", 3)
    rows = [(row["copy_kind"], row["bytes"], row["src_kind"], row["dst_kind"]) for row in read.transfers.to_pylist()]
    assert rows == [(1, 4096, 0, 2), (255, 256, None, None)]
    assert read.calls.column("name").to_pylist() == ["cudaLaunchKernel"]
    assert read.launches.column("queue_ns").to_pylist() == [20, None, None]


def test_the_report_of_nsys_stats(tmp_path):
    text = """
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
300288245,5056,125,,,,,,,,,,0.101,20050.633,Pageable,Device,NVIDIA GH200 480GB (0),1,7,[CUDA memcpy Host-to-Device]
300849685,34752,179,99,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA GH200 480GB (0),1,13,"producer1(float *, int)"
300950000,1000,180,,,,,,,,,,0.000,,Device,,NVIDIA GH200 480GB (0),1,13,[CUDA memset]
"""
    read = Read(written(tmp_path / "report_cuda_gpu_trace.csv", text), tmp_path / "e")
    assert read.capabilities["format"] == "cupti"
    assert [(row["start_ns"], row["duration_ns"], row["stream"]) for row in read.launches.to_pylist()] == [
        (300849685, 34752, 13)
    ]
    assert [(row["copy_kind"], row["bytes"]) for row in read.transfers.to_pylist()] == [
        (1, 101_000),
        (255, None),
    ]  # MB of 10^6, rounded: the memset has between 0 and 499 bytes
    assert read.devices.column("name").to_pylist() == ["NVIDIA GH200 480GB"]


def test_processes_and_ranks_by_column(tmp_path):
    head = "start,end,deviceId,streamId,correlationId,name,rank,pid"
    rows = [
        f"{EPOCH + at},{EPOCH + at + 5},0,7,{at},k,{rank},{pid}"
        for at, (rank, pid) in enumerate([(4, 90), (2, 91), (4, 90)])
    ]
    read = Read(written(tmp_path / "ranks.csv", "\n".join([head, *rows])), tmp_path / "e")
    assert (read.capabilities["ranks"], read.capabilities["ranks_from"]) == ([2, 4], "export")
    assert read.launches.column("rank").to_pylist() == [4, 2, 4]


def test_times_that_cannot_be_are_counted(tmp_path):
    rows = kernels(4).splitlines()
    rows[1] = rows[1].replace(f"{EPOCH},{EPOCH + 100}", "0,0")
    rows[2] = rows[2].replace(str(EPOCH + 1000), str(EPOCH + 9000), 1)
    rows[3] = rows[3].replace(str(EPOCH + 2000), "123456789012345678901234567890", 1)
    read = Read(written(tmp_path / "odd.csv", "\n".join(rows)), tmp_path / "e")
    assert (read.launches.num_rows, read.count("no_time"), read.count("end_before_start")) == (1, 2, 1)


def test_a_file_compressed_and_cut(tmp_path):
    content = gzip.compress(kernels(5000).encode())
    (tmp_path / "whole.csv.gz").write_bytes(content)
    (tmp_path / "cut.csv.gz").write_bytes(content[: len(content) // 2])
    assert Read(tmp_path / "whole.csv.gz", tmp_path / "1").launches.num_rows == 5000
    read = Read(tmp_path / "cut.csv.gz", tmp_path / "2")
    assert (read.status, "compressed file is cut" in read.error["found"]) == ("partial", True)
    assert 0 < read.launches.num_rows < 5000


def test_other_delimiters_marks_and_line_ends(tmp_path):
    text = kernels(3).replace(",", ";").replace("\n", "\r\n")
    (tmp_path / "semicolons.csv").write_bytes(b"\xef\xbb\xbf" + text.encode("utf-8"))
    assert Read(tmp_path / "semicolons.csv", tmp_path / "e").launches.num_rows == 3


def test_hostile_names_travel_unharmed(tmp_path):
    name = '<script>alert(""1"")</script>\'; DROP TABLE x; --' + "k" * 100_000
    rows = [
        kernels(1),
        f'{EPOCH},{EPOCH + 1},0,7,1,1,1,1,1,1,1,1,0,0,"{name}"',
        f"{EPOCH},{EPOCH + 1},0,7,1,1,1,1,1,1,1,1,0,0,a\x00b",
    ]
    read = Read(written(tmp_path / "names.csv", "\n".join(rows)), tmp_path / "e")
    names = read.kernels.column("name").to_pylist()
    assert len(names) == 3
    assert name.replace('""', '"') in names
    assert "a\ufffdb" in names


def test_what_is_no_dump_is_not_taken_for_one(tmp_path):
    for at, text in enumerate(("y,kernel,start,duration,device,stream\n1,a,0,5,0,7", "a,b\n1,2", "start,end\n1,2", "")):
        assert detect(written(tmp_path / f"{at}.csv", text)) != "cupti"
        assert Read(tmp_path / f"{at}.csv", tmp_path / f"e{at}", form="cupti").status == (
            "read" if at == 0 else "refused"
        )


def test_calls_without_correlations_make_no_launch(tmp_path):
    rows = f"kind,start,end,deviceId,correlationId,name\nRUNTIME,{EPOCH},{EPOCH + 9},,,cudaMalloc"
    rows += f"\nKERNEL,{EPOCH},{EPOCH + 5},0,,k"
    read = Read(written(tmp_path / "k.csv", rows), tmp_path / "e")
    assert (read.calls.num_rows, read.launches.column("queue_ns").to_pylist()) == (1, [None])


def test_random_bytes_in_a_dump_never_crash(tmp_path):
    source = kernels(60).encode()
    noise = random.Random(5)
    for _ in range(25):
        content = bytearray(source)
        for _ in range(noise.randrange(1, 40)):
            content[noise.randrange(len(content))] = noise.randrange(256)
        (tmp_path / "noise.csv").write_bytes(bytes(content[: noise.randrange(1, len(content) + 1)]))
        read = Read(tmp_path / "noise.csv", tmp_path / "e", form="cupti")
        assert "did not foresee" not in str(read.error), read.error


def test_numbers_with_units():
    assert exact_ns("1496933427.584362152", "s") == 1_496_933_427_584_362_152
    assert exact_ns("0.0000015", "ms") == 2  # half a nanosecond is rounded up
    assert exact_ns("-12.5us", "ns") == -12_500
    assert [exact_ns(text, "us") for text in ("1,402.25", "1,402,250", "1,402")] == [1_402_250, 1_402_250_000, None]
    assert [exact_ns(text, "ns") for text in ("", "x", "nan", "inf", "1e99", "12 parsec", "9" * 25)] == [None] * 7
    assert size_in_bytes("2.5GiB", "b", False) == 5 * 2**29
    assert size_in_bytes("7.092133", "mb", True) == 7_436_640
    assert size_in_bytes("soon", "b", False) is None


REPORT = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB)"
    ",Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("[CUDA memcpy HtoD]", 1),
        ("[CUDA memcpy Device-to-Device]", 8),
        ("[CUDA memcpy Peer-to-Peer]", 10),
        ("[CUDA Unified Memory memcpy HtoD]", 11),
        ("[CUDA Unified Memory memcpy DtoH]", 12),
        ("[CUDA memcpy Unified Host-to-Device]", 11),
        ("[CUDA memcpy Unified Device-to-Host]", 12),
        ("[CUDA memcpy Unified D2D]", 13),
        ("[Unified Memory Memcpy HtoD]", 11),
    ],
)
def test_copies_of_unified_memory_are_no_kernels(name, kind, tmp_path):
    rows = ["1000,500,9,4,1,1,64,1,1,16,0.000,0.000,,,,,A GPU (0),1,,7,k(int)"]
    rows += [f"2000,300,,,,,,,,,,,0.066,220.0,,,A GPU (0),1,,7,{name}"]
    read = Read(written(tmp_path / "trace.csv", "\n".join([REPORT, *rows])), tmp_path / "e")
    assert read.kernels.column("name").to_pylist() == ["k(int)"]
    assert [(row["copy_kind"], row["bytes"]) for row in read.transfers.to_pylist()] == [(kind, 66_000)]


def test_sizes_that_are_rounded_to_zero_are_absent(tmp_path):
    rows = [
        f"{at}000,500,9,,,,,,,,,,{size},1.0,Pageable,Device,A GPU (0),1,,7,[CUDA memcpy HtoD]"
        for at, size in enumerate(["0.000", "0.001", "0", "0.0000000"], 1)
    ]
    rows += ["9000,500,9,4,1,1,64,1,1,16,0.000,0.000,,,,,A GPU (0),1,,7,k(int)"]
    read = Read(written(tmp_path / "trace.csv", "\n".join([REPORT, *rows])), tmp_path / "e")
    assert read.transfers.column("bytes").to_pylist() == [None, 1000, None, 0]
    assert read.count("rounded_sizes") == 2


REPORTS = {  # as `nsys stats --format csv` prints them: header, rows
    "cuda_gpu_trace": (
        REPORT,
        "1000,500,11,4,1,1,64,1,1,16,0.000,0.000,,,,,A GPU (0),1,,7,k(int)",
        "2000,300,12,,,,,,,,,,0.066,220.0,Pinned,Device,A GPU (0),1,,7,[CUDA memcpy HtoD]",
    ),
    "cuda_api_trace": (
        "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name",
        "900,50,cudaLaunchKernel,0,11,77,78,20,app",
        "1900,60,cudaMemcpyAsync,0,12,77,78,20,app",
    ),
    "cuda_gpu_kern_sum": (
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
        "100.0,500,1,500.0,500.0,500,500,0.0,k(int)",
    ),
    "cuda_gpu_mem_size_sum": (
        "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation",
        "0.066,1,0.066,0.066,0.066,0.066,0.000,[CUDA memcpy HtoD]",
    ),
}


@pytest.mark.parametrize("first", ["cuda_gpu_trace", "cuda_gpu_kern_sum"])
@pytest.mark.parametrize("said", [True, False])
def test_several_reports_in_one_text(first, said, tmp_path):
    lines = []
    for name in (first, *(other for other in REPORTS if other != first)):
        lines += [f"Processing [r.sqlite] with [/opt/{name}.py]... "] if said else []
        lines += ["", *REPORTS[name], ""]
    read = Read(written(tmp_path / "stats.csv", "\n".join(lines)), tmp_path / "e")
    assert (read.status, read.capabilities["ranks"]) == ("read", [0])
    assert read.kernels.column("name").to_pylist() == ["k(int)"]
    (launch,) = read.launches.to_pylist()
    assert [launch[name] for name in ("start_ns", "duration_ns", "stream", "queue_ns")] == [1000, 500, 7, 50]
    assert read.calls.column("name").to_pylist() == ["cudaLaunchKernel", "cudaMemcpyAsync"]
    assert read.transfers.column("bytes").to_pylist() == [66_000]
    passed_over = 1 if first == "cuda_gpu_kern_sum" else 2  # a summary before the first trace is no row at all
    assert read.capabilities["rows_in"]["other records"] == passed_over
    assert read.count("unreadable_rows") == read.count("no_time") == 0


RANGES = (
    "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,RangeStack",
    "800,4000,3200,0,3200,:step,77,78,0,0,1,:1",
)


@pytest.mark.parametrize("in_one", [True, False])
def test_calls_before_the_trace_of_the_gpu_are_linked_and_ranges_are_no_calls(in_one, tmp_path):
    reports = {"cuda_api_trace": REPORTS["cuda_api_trace"], "nvtx_pushpop_trace": RANGES, **REPORTS}
    if in_one:
        path = written(tmp_path / "stats.csv", "\n\n".join("\n".join(lines) for lines in reports.values()))
    else:
        path = tmp_path / "stats"
        for name, lines in reports.items():
            written(path / f"r_{name}.csv", "\n".join(lines))
    read = Read(path, tmp_path / "e")
    assert (read.status, read.capabilities["ranks"]) == ("read", [0])
    assert read.launches.column("queue_ns").to_pylist() == [50]
    assert read.calls.column("name").to_pylist() == ["cudaLaunchKernel", "cudaMemcpyAsync"]
    assert read.count("no_launch_calls") == 0


@pytest.mark.parametrize("mu", ["u", "\u00b5", "\u03bc"], ids=["u", "micro sign", "Greek letter"])
def test_microseconds_in_each_spelling(mu, tmp_path):
    text = f"Start ({mu}s),Duration ({mu}s),Name,Device,Stream\n10.5,1.25,k,0,7\n20.5{mu}s,1.5{mu}s,k,0,7"
    read = Read(written(tmp_path / "k.csv", text), tmp_path / "e")
    assert [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()] == [
        (10_500, 1250),
        (20_500, 1500),
    ]


def test_decimal_commas_are_named_as_the_reason(tmp_path):
    text = "start [ms];duration [ms];name;device;stream\n1,5;0,25;k;0;7\n2,5;0,25;k;0;7"
    read = Read(written(tmp_path / "k.csv", text), tmp_path / "e")
    assert read.status == "refused"
    assert "2 events have no start or end that can be read (times need a decimal point)" in read.error["found"]


def test_details_of_visual_profiler_have_neither_device_nor_stream(tmp_path):
    header = "Name,Start Time(ns),Duration(ns),GridX,GridY,GridZ,BlockX,BlockY,BlockZ,Registers/Thread"
    header += ",Static Shared Memory,Dynamic Shared Memory,Size(bytes),Throughput(bytes/sec),Achieved Occupancy"
    rows = [
        '"memset (0)",1000,60,,,,,,,,,,80000,1300000000,',
        '"Memcpy HtoD [sync]",2000,140,,,,,,,,,,784000,5500000000,',
        '"Memcpy DtoH [async]",3000,10,,,,,,,,,,552,539000000,',
        '"k(double*, int)",4000,900,20,2,1,512,1,1,42,4096,16,,,0.405',
        '"k(double*, int)",5000,901,20,2,1,512,1,1,42,4096,16,,,0.405',
    ]
    path = written(tmp_path / "details.csv", "\n".join([header, *rows]))
    assert detect(path) == "cupti"
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.launches.column("duration_ns").to_pylist() == [900, 901]
    shape = export.configurations.to_pylist()[0]
    assert (shape["grid_y"], shape["block_x"], shape["registers_per_thread"]) == (2, 512, 42)
    assert (shape["static_shared_bytes"], shape["dynamic_shared_bytes"]) == (4096, 16)
    transfers = export.transfers.to_pydict()
    assert transfers["copy_kind"] == [255, 1, 2]
    assert transfers["bytes"] == [80_000, 784_000, 552]
    assert "calls" not in export.names


def test_durations_in_a_smaller_unit_than_the_ends_count(tmp_path):
    text = """
Start(sec),End(sec),Duration(nsec),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Ctx,Strm,Name
0.364801,0.365023,222080,74,1,1,1,33,1,1,A100 (0),1,13,k(int)
0.365801,0.366023,221980,75,1,1,1,33,1,1,A100 (0),1,13,k(int)
0.366801,0.367024,,76,1,1,1,33,1,1,A100 (0),1,13,k(int)
"""
    export = Read(written(tmp_path / "trace.csv", text), tmp_path / "t")
    assert export.launches.column("start_ns").to_pylist() == [364_801_000, 365_801_000, 366_801_000]
    assert export.launches.column("duration_ns").to_pylist() == [222_080, 221_980, 223_000]


def test_the_trace_that_nvprof_prints_in_columns(tmp_path):
    """It was refused, though it holds each launch: most of what users of nvprof have kept looks so."""
    text = """==8162== NVPROF is profiling process 8162, command: ./stream
==8162== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name
316.86ms  1.2257ms            (256 1 1)      (1024 1 1)        13  8.0000KB        0B         -           -           -           -     TITAN Xp (0)         1         7  void dot<double>(double const *, double*) [167]
318.08ms  1.7920us                    -               -         -         -         -  2.0000KB  1.0644GB/s      Device    Pageable     TITAN Xp (0)         1         7  [CUDA memcpy DtoH]

Regs: Number of registers used per CUDA thread.
"""
    export = Read(written(tmp_path / "trace.txt", text), tmp_path / "t")
    (launch,) = export.launches.to_pylist()
    assert [launch[name] for name in ("start_ns", "duration_ns", "stream")] == [316_860_000, 1_225_700, 7]
    (shape,) = export.configurations.to_pylist()
    assert [shape[name] for name in ("grid_x", "block_x", "static_shared_bytes")] == [256, 1024, 8192]
    assert export.kernels.column("name").to_pylist() == ["void dot<double>(double const *, double*)"]
    (copy,) = export.transfers.to_pylist()
    assert [copy[name] for name in ("duration_ns", "bytes", "copy_kind")] == [1792, 2048, 2]
    assert export.count("unreadable_rows") == export.count("not_a_number") == 0


def test_a_trace_of_few_columns_with_a_context_and_a_stream(tmp_path):
    """It was refused as a report without launches."""
    text = "Start (ms),Duration (ms),Name,Bytes,SrcMemKd,DstMemKd,Ctx,Strm\n"
    text += "0.0,2.5,[CUDA memcpy DtoH],2097152,Device,Pageable,1,7\n0,1,my_kernel,0,Device,Device,1,7\n"
    export = Read(written(tmp_path / "trace.csv", text), tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == [1_000_000]
    assert export.transfers.column("bytes").to_pylist() == [2_097_152]
