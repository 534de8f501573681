"""Files that AMD's profilers write beside their launches: one alone is refused with what it is and what to do."""

import json

import pytest
from reading import Read

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
    {"ph": "X", "name": "k(int*)", "pid": "6", "tid": "1", "ts": "1", "dur": "1", "args": {"BeginNs": "1000"}},
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


def test_the_trace_for_a_viewer_of_rocprof_v1_is_not_taken_for_pytorchs(tmp_path):
    path = tmp_path / "results.json"
    events = "\n,".join(json.dumps(event, separators=(",", ":")) for event in V1_TRACE)
    path.write_text('{ "traceEvents":[' + events + '],\n"otherData": {"CMD": "x"}}\n')
    export = Read(path, tmp_path / "t")
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
