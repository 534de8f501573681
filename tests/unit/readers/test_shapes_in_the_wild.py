"""Shapes of real exports that public tools and threads show and the stored exports lack: preambles, blanks, locales,
fewer columns.
"""

import json

import pytest
from reading import Read, kernel

NSYS_STATS = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes"
    " (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)
NCU = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid'
    ' Size","Device","CC","Section Name"'
)
NCU += ',"Metric Name","Metric Unit","Metric Value"'


def read(tmp_path, name, text, **row):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return Read(path, tmp_path / "t", **row)


def test_a_report_of_nsys_stats_after_its_notices(tmp_path):
    preamble = (
        "\nNOTICE: Existing SQLite export found: reports/x.sqlite\n        It is assumed file was previously"
        " exported\n\n"
    )
    preamble += "Processing [reports/x.sqlite] with [cuda_gpu_trace.py]... \n"
    rows = [
        (
            "1134711990,661398,123,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA RTX 5000 (0),1,,13,[CUDA memcpy"
            " Host-to-Device]"
        ),
        (
            "1136125733,7072,128,4096,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000"
            ' (0),1,,13,"ns::<unnamed>::saxpy(float, const float *)"'
        ),
        "1136135733,800,344,,,,,,,,,,0.000,340.000,Device,,NVIDIA RTX 5000 (0),1,,7,[CUDA memset]",
    ]
    export = read(tmp_path, "trace.csv", preamble + "\n".join([NSYS_STATS, *rows]) + "\n")
    assert export.status == "read"
    assert export.launches.select(["start_ns", "duration_ns", "stream"]).to_pylist() == [
        {"start_ns": 1136125733, "duration_ns": 7072, "stream": 13}
    ]
    assert export.transfers.column("copy_kind").to_pylist() == [1, 255]
    # 340 MB/s for 800 ns are 272 bytes, which three decimals of an MB cannot say
    assert export.transfers.column("bytes").to_pylist() == [4_194_000, None]
    assert export.kernels.column("name").to_pylist() == ["ns::<unnamed>::saxpy(float, const float *)"]


def test_a_report_of_nsys_stats_of_2021_without_the_green_context_and_with_another_unit(tmp_path):
    header = NSYS_STATS.replace("GreenCtx,", "").replace("(MB/s)", "(MBps)")
    text = header + "\n9961685,2707098,67,1,1,2304,128,1,1,160,0.000,0.025,,,,,GPU,1,7,cutlass_kernel\n"
    export = read(tmp_path, "trace.csv", text)
    assert export.status == "read"
    row = export.configurations.to_pylist()[0]
    assert (row["grid_z"], row["block_x"], row["registers_per_thread"], row["dynamic_shared_bytes"]) == (
        2304,
        128,
        160,
        25_000,
    )


NVPROF = (
    "Start,Duration,Grid X,Grid Y,Grid Z,Block X,Block Y,Block Z,Registers Per Thread,Static SMem,Dynamic SMem,Size"
)
NVPROF = ",".join(f'"{name}"' for name in NVPROF.split(",")) + ","


@pytest.mark.parametrize("places", ['"Src Dev","Src Ctx","Dst Dev","Dst Ctx",', ""])
def test_nvprof_after_a_warning_with_or_without_columns_of_peers(tmp_path, places):
    blank = "," * places.count(",")
    text = (
        "======== Warning: 376746 records have invalid timestamps due to insufficient device buffer space.\n========"
        " Profiling result:\n"
    )
    text += (
        NVPROF + f'"Throughput","SrcMemType","DstMemType","Device","Context","Stream",{places}"Name","Correlation_ID"\n'
    )
    text += f"us,us,,,,,,,,KB,KB,KB,GB/s,,,,,,{blank},\n"
    text += (
        f'0.000000,1.568000,,,,,,,,,,1.003906,0.610586,"Device",,"GeForce RTX 2080 Ti (0)","1","7",{blank}"[CUDA'
        ' memset]",274\n'
    )
    text += (
        f'4643.346000,1.536000,,,,,,,,,,0.125000,0.077610,"Pinned","Device","GeForce (0)","1","22",{blank}"[CUDA memcpy'
        ' HtoD]",316\n'
    )
    text += f'4650.000000,2.000000,8,1,1,64,1,1,32,0,0,,,,,"GeForce RTX 2080 Ti (0)","1","22",{blank}"k(int)",317\n'
    export = read(tmp_path, "nvprof.csv", text)
    assert (export.status, export.capabilities["left_out"]) == ("partial", {"rows": 376_746, "of": 376_747})
    assert export.launches.column("start_ns").to_pylist() == [4_650_000]
    assert export.transfers.column("bytes").to_pylist() == [1028, 128]
    assert export.transfers.column("duration_ns").to_pylist() == [1568, 1536]
    assert export.count("dropped_events") == 376_746


def test_an_api_trace_alone_is_refused_in_a_sentence(tmp_path):
    text = (
        "======== Profiling"
        ' result:\n"Start","Duration","Name","Correlation_ID"\nus,us,,\n0.000000,2.866000,"cuDeviceGetPCIBusId",1\n'
    )
    export = read(tmp_path, "api.csv", text, form="cupti")
    assert export.status == "refused"
    assert "no launch" in export.error["found"] or "no kernel" in export.error["found"]


def ncu_row(number, metric, unit, value, name="k(float*)"):
    place = f'"{number}","7","app","127.0.0.1","{name}","1","7","(256, 1, 1)","(16384, 1, 1)","0","12.1"'
    return f'{place},"Command line profiler metrics","{metric}","{unit}","{value}"'


def test_a_profile_of_tensorrt_is_told_to_be_one_of_layers(tmp_path):
    layer = '{ "name" : "Conv_0 + PWN(Clip_3)", "timeMs" : 41.4232, "averageMs" : 0.0662771, "percentage" : 1.36062 }'
    error = read(tmp_path, "profile.json", f'[\n  {{ "count" : 625 }}\n, {layer}\n]\n').error
    assert "`trtexec --exportProfile`" in error["found"]
    assert "`nsys profile`" in error["advice"]


def test_a_table_of_times_of_an_intel_tool_is_told_to_be_a_summary(tmp_path):
    table = "    Kernel, Calls, SIMD, Time (ns),  Time (%)\n      GEMM,     4,   32,    174828, 100.00\n"
    error = read(tmp_path, "log.txt", f"=== Device Timing Results: ===\n\nTotal Time (ns): 3707\n\n{table}").error
    assert "a summary of Intel's unitrace" in error["found"]


def test_a_tally_of_iprof_is_told_to_be_a_summary(tmp_path):
    rows = "  Name |   Time | Time(%) | Calls |\n  gemm | 1.15ms | 100.00% |     1 |\n"
    text = f"Device profiling | 1 Hostnames | 1 Processes | 1 Threads | 1 Devices | 1 Subdevices | \n\n{rows}"
    error = read(tmp_path, "iprof.txt", f"Max error: 0.000000\n\n{text}").error
    assert "a tally of THAPI's iprof" in error["found"]
    assert "unitrace --chrome-kernel-logging" in error["advice"]


def test_ncu_with_a_blank_line_below_the_header_and_a_metric_that_is_not_there(tmp_path):
    rows = [
        ncu_row(0, "dram__throughput.avg.pct_of_peak_sustained_elapsed", "", "n/a"),
        ncu_row(0, "gpu__time_duration.sum", "us", "211.94"),
        ncu_row(1, "dram__throughput.avg.pct_of_peak_sustained_elapsed", "", "n/a"),
        ncu_row(1, "gpu__time_duration.sum", "us", "1,205.00"),
    ]
    text = '==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 9 passes\n' + NCU + "\n\n" + "\n".join(rows) + "\n"
    export = read(tmp_path, "ncu.csv", text)
    assert export.status == "read"
    assert export.counters.column("gpu_time").to_pylist() == pytest.approx([211_940, 1_205_000])
    assert [row["block_x"] for row in export.configurations.to_pylist()] == [256]


def test_rows_of_ncu_that_name_no_launch_are_counted_and_left_out(tmp_path):
    """A table with the cells left blank that repeat those above."""
    rows = [ncu_row(0, "gpu__time_duration.sum", "us", "20"), ncu_row("", "dram__bytes.sum", "byte", "90")]
    export = read(tmp_path, "ncu.csv", "\n".join([NCU, *rows]) + "\n")
    assert export.counters.column("gpu_time").to_pylist() == pytest.approx([20_000])
    assert export.issue("unreadable_rows")["detail"].endswith(": line 3 names no launch")


def test_ncu_of_a_european_locale(tmp_path):
    rows = [
        ncu_row(0, "gpu__time_duration.sum", "ns", "117.344"),
        ncu_row(0, "dram__bytes.sum", "byte", "27.595.520"),
        ncu_row(0, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "65,77"),
    ]
    export = read(tmp_path, "ncu.csv", "==PROF== Connected to Process 7\n" + "\n".join([NCU, *rows]) + "\n")
    found = export.counters.to_pylist()[0]
    assert found["gpu_time"] == 117_344
    assert found["sm_throughput"] == pytest.approx(0.6577)
    assert 27_595_520 in found.values()


@pytest.mark.parametrize(
    "header",
    ['"ID","Process ID","Kernel Name","Block Size","Grid Size","Section Name"', '"ID","Process ID","Kernel Name"'],
)
def test_ncu_with_few_columns(tmp_path, header):
    names = header.replace('"', "").split(",")
    cells = {
        "ID": "0",
        "Process ID": "1",
        "Kernel Name": "k<256, 8>(int)",
        "Block Size": "256",
        "Grid Size": "1024",
        "Section Name": "",
    }
    row = ",".join(f'"{cells[name]}"' for name in names) + ',"gpu__time_duration.sum","nsecond","1,000"'
    export = read(tmp_path, "ncu.csv", header + ',"Metric Name","Metric Unit","Metric Value"\n' + row + "\n")
    assert export.counters.column("gpu_time").to_pylist() == [1000]
    assert export.kernels.column("name").to_pylist() == ["k<256, 8>(int)"]


V3 = "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id"
V3 += ",Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count"
V3 += ",Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"


def test_rocprofv3_of_rocm_7_with_streams_of_copies_and_texts_of_markers(tmp_path):
    folder = tmp_path / "host" / "out"
    folder.mkdir(parents=True)
    (folder / "7_kernel_trace.csv").write_text(
        f'{V3}\n"KERNEL_DISPATCH","Agent 4","1","3","9","1","8","k(int) [clone'
        ' .kd]","5","1000","1700","0","0","32","0","80","256","1","1","512","1","1"\n'
    )
    (folder / "7_memory_copy_trace.csv").write_text(
        "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
        '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","3","Agent 0","Agent 4","2","100","400"\n'
    )
    (folder / "7_marker_api_trace.csv").write_text(
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
        '"MARKER_CORE_RANGE_API","step, one",7,9,2,50,2000\n'
    )
    export = Read(tmp_path / "host", tmp_path / "t")
    assert export.status == "read"
    assert export.transfers.column("stream").to_pylist() == [3]
    assert export.transfers.column("copy_kind").to_pylist() == [1]
    assert export.ranges.column("name").to_pylist() == ["step, one"]
    assert export.kernels.column("name").to_pylist() == ["k(int)"]


# Chrome traces


def event(name, ts, **more):
    return kernel(ts, 5, name) | more


@pytest.mark.parametrize(
    "document",
    [
        lambda events: json.dumps({"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"a": [1, {"b": []}]}}),
        lambda events: "[\n" + ",\n".join(map(json.dumps, events)) + ",\n",  # written as it goes, never closed
        lambda events: json.dumps({"traceEvents": events}).replace("}, {", "},{"),
        lambda events: json.dumps({"traceEvents": events}, indent="\t"),
    ],
    ids=["frame", "open list", "dense", "tabs"],
)
def test_chrome_traces_as_different_writers_lay_them_out(tmp_path, document):
    events = [event(f"k{n % 2}", 10 * n) for n in range(50)]
    events.insert(7, {"ph": "B", "cat": "kernel", "name": "begin", "ts": 3})
    events.insert(9, {"ph": "C", "name": "counter", "args": {"value": 1}})
    export = read(tmp_path, "trace.json", document(events))
    assert export.capabilities["tables"]["launches"] == 50
    cut = document(events).endswith(",\n")
    assert export.status == "partial"  # a kernel of 51 has no duration
    assert "ends early" in export.error["found"] if cut else "incomplete events (1)" in export.error["found"]


def test_ids_beyond_64_bits_negative_times_and_hexadecimal_streams(tmp_path):
    events = [
        event("k", -20, args={"device": 0, "stream": "0x7", "correlation": 2**70}),
        event("k", 30, args={"device": 10**9, "stream": -1, "correlation": -5}),
        event("k", "40.5", args={"device": 0, "stream": 7, "grid": [1, 2], "block": "256"}),
    ]
    export = read(tmp_path, "trace.json", json.dumps({"traceEvents": events}))
    assert export.launches.column("start_ns").to_pylist() == [-20_000, 30_000, 40_500]
    assert export.launches.column("stream").to_pylist()[0] == 7
    assert export.count("out_of_range") == 1
