"""Files that AMD's profilers write beside their launches: one alone is refused with what it is and what to do."""

import json

import pytest
from reading import Read

from causeway.core.codes import MEMSET_KIND

TIMES = "1000,2000"
ALONE = {
    "1_memory_allocation_trace.csv": (
        '"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
        f'"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 0",1024,"0x7f00",1,{TIMES}\n'
    ),
    "1_scratch_memory_trace.csv": (
        '"Kind","Operation","Agent_Id","Queue_Id","Thread_Id","Alloc_Flags","Start_Timestamp","End_Timestamp",'
        '"Allocation_Size"\n'
        f'"SCRATCH_MEMORY","SCRATCH_MEMORY_ALLOC","Agent 1",1,7,1,{TIMES},4096\n'
    ),
    "1_pc_sampling_host_trap.csv": (
        '"Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment","Correlation_Id"\n'
        '1000,65535,1,"s_load_dword s8, s[4:5], 0x24","",1\n'
    ),
    "1_agent_info.csv": (
        '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Product_Name"\n'
        '2,2,"GPU",304,2100,"AMD Instinct MI300X"\n'
    ),
}
OF_ROCPROF_V2 = {
    "hip_api_trace_1.csv": (
        "Domain,Function,Start_Timestamp,End_Timestamp,Correlation_ID\n\n"
        f'HIP_API_DOMAIN,"hipGetDeviceCount",{TIMES},1\n'
    ),
    "hcc_ops_trace_1.csv": (
        f"Domain,Operation,Kernel_Name,Start_Timestamp,Stop_Timestamp,Correlation_ID\n\nHIP_OPS_DOMAIN,,k,{TIMES},1\n"
    ),
}
V1_TRACE = [
    {},
    {"args": {"name": "CPU HIP API"}, "ph": "M", "pid": 2, "name": "process_name", "sort_index": 0},
    {
        "ph": "X",
        "name": "hipMalloc",
        "pid": 2,
        "tid": 7,
        "ts": "1",
        "dur": "1",
        "args": {"BeginNs": "9", "EndNs": "90"},
    },
]


@pytest.mark.parametrize("name", ALONE)
def test_a_file_of_rocprofv3_that_holds_no_launch_is_named(name, tmp_path):
    path = tmp_path / name
    path.write_text(ALONE[name])
    kind = name[2:].removesuffix(".csv").removesuffix("_host_trap")
    for source in (path, tmp_path):
        export = Read(source, tmp_path.with_name("t"))
        assert export.status == "refused"
        assert export.error["found"] == f"it holds {kind} and no launch of a kernel"
        assert "*_kernel_trace.csv" in export.error["advice"]


@pytest.mark.parametrize("name", OF_ROCPROF_V2)
def test_a_trace_of_rocprofv2_is_named(name, tmp_path):
    (tmp_path / name).write_text(OF_ROCPROF_V2[name])
    export = Read(tmp_path / name, tmp_path / "t")
    assert export.status == "refused"
    assert "rocprofv2" in export.error["found"]
    assert "rocprofv3 --kernel-trace" in export.error["advice"]


def test_a_trace_of_rocprofv2_does_not_hide_the_launches_beside_it(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name, text in OF_ROCPROF_V2.items():
        (folder / name).write_text(text)
    (folder / "results_1.csv").write_text(
        "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp\n1,0,64,64,k,1000,1500\n"
    )
    export = Read(folder, tmp_path / "t")
    assert (export.status, export.total("launches")) == ("read", 500)


EMPTY_V1_TRACE = ',{"args":{"name":"COPY"},"ph":"M","pid":1,"name":"process_name","sort_index":0}\n'


def v1_trace(path, events):
    events = "\n,".join(json.dumps(event, separators=(",", ":")) for event in events)
    path.write_text('{ "traceEvents":[' + events + '],\n"otherData": {"CMD": "x"}}\n')
    return path


def test_launches_and_copies_are_read_from_the_trace_for_a_viewer_of_rocprof_v1(tmp_path):
    kernel = {"dev-id": "1", "queue-id": "3", "stream-id": "2", "Name": 'k<"a">(int*)', "pid": "88", "tid": "88"}
    copy = {"dev-id": "1", "queue-id": "0", "stream-id": "0", "Name": "CopyHostToDevice", "pid": "88", "tid": "88"}
    fill = copy | {"Name": "FillBuffer"}
    marker = {"Name": "step", "pid": "88", "tid": "88"}
    events = [
        {"ph": "X", "name": row["Name"], "pid": process, "tid": 1, "ts": "1", "dur": "1", "args": times | row}
        for process, row, times in (
            (7, kernel, {"BeginNs": "1000", "EndNs": "1500"}),
            (9, kernel | {"dev-id": "3"}, {"BeginNs": "1200", "EndNs": "1300"}),
            (1, copy, {"BeginNs": "100", "EndNs": "400"}),
            (1, fill, {"BeginNs": "500", "EndNs": "520"}),
            (0, marker, {"BeginNs": "90", "EndNs": "1600"}),
        )
    ]
    export = Read(
        v1_trace(tmp_path / "results.json", [*V1_TRACE, *events, {"ph": "X", "pid": "9" * 5000, "args": [1]}]),
        tmp_path / "t",
    )
    assert (export.status, export.total("launches"), export.total("transfers")) == ("read", 600, 320)
    assert sorted(export.launches.column("device").to_pylist()) == [1, 3]
    assert export.launches.column("stream").to_pylist() == [2, 2]
    assert sorted(export.transfers.column("copy_kind").to_pylist()) == [1, MEMSET_KIND]
    assert (export.calls.num_rows, export.ranges.num_rows) == (1, 1)


def test_an_empty_trace_for_a_viewer_of_rocprof_v1_is_not_taken_for_a_table(tmp_path):
    (tmp_path / "results.json").write_text(EMPTY_V1_TRACE)
    export = Read(tmp_path / "results.json", tmp_path / "t")
    assert export.status == "refused"
    assert "no launch was found" in export.error["found"]


def test_the_trace_for_a_viewer_of_rocprof_v1_is_not_taken_for_pytorchs(tmp_path):
    export = Read(v1_trace(tmp_path / "results.json", V1_TRACE), tmp_path / "t")
    assert export.status == "refused"
    assert "rocprof --hip-trace" in export.error["found"]
    assert "results.csv" in export.error["advice"]
    assert "ProfilerActivity" not in export.error["advice"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pmc_kernel_top.csv", 'Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\n"k(int)",2,8.5,4.25,4.25,100\n'),
        ("sysinfo.csv", "workload_name,command,ip_blocks,timestamp\nvcopy,./vcopy,SQ,Fri\n"),
        ("roofline.csv", "device,HBMBw,HBMBwLow,HBMBwHigh\n0,1.5,1,2\n"),
    ],
)
def test_facts_of_the_machine_and_summaries_are_no_table_of_launches(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    export = Read(tmp_path / name, tmp_path / "t")
    assert export.status == "refused"
    assert " rocprofiler-compute " in export.error["found"]
    assert "pmc_perf.csv" in export.error["advice"]


def test_an_archive_of_otf2_is_named(tmp_path):
    (tmp_path / "1_results.otf2").write_bytes(b"\x01\x00OTF2" + bytes(50))
    export = Read(tmp_path / "1_results.otf2", tmp_path / "t")
    assert export.status == "refused"
    assert export.error["found"] == "it is an archive of OTF2, which is not read"
    assert "rocpd" in export.error["advice"]
