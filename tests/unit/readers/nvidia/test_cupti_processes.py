"""Which processes and runs a folder or a text of CUPTI activity holds: nvprof's and `nsys stats`' reports name no
process in their rows. Expected times are worked out by hand from the units above the rows.
"""

import gzip

import pytest
from reading import Read

from causeway.readers.nvidia.activity_processes import Messages

TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB)"
    ",Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)
CALLS = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name"
DUMP = "start,end,deviceId,streamId,correlationId,gridX,gridY,gridZ,blockX,blockY,blockZ,name"


def launches(first, names=("k(int)", "h(int)"), length=500):
    """Return a GPU trace whose launches begin 1000 ns apart; correlations count from 1."""
    rows = [
        f"{first + 1000 * at},{length},{at + 1},4,1,1,64,1,1,16,0.000,0.000,,,,,A GPU (0),1,,7,{name}"
        for at, name in enumerate(names)
    ]
    return [TRACE, *rows]


def calls(first, number=2, pid=77):
    """Return an API trace of calls that return 100 ns after their begin."""
    return [CALLS, *(f"{first + 1000 * at},100,cudaLaunchKernel,0,{at + 1},{pid},78,20,app" for at in range(number))]


def dump(first):
    return [DUMP, f"{first},{first + 40},0,7,1,8,1,1,64,1,1,k", f"{first + 100},{first + 150},0,7,2,8,1,1,64,1,1,k"]


def folder(path, files):
    path.mkdir()
    for name, lines in files.items():
        content = ("\n".join(lines) + "\n").encode()
        (path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def text(path, *reports):
    path.write_text("\n".join(line for lines in reports for line in lines) + "\n", encoding="utf-8")
    return path


def by_rank(read, *columns):
    """Return the launches' columns by rank."""
    found = {}
    for row in read.launches.to_pylist():
        found.setdefault(row["rank"], []).append(tuple(row[name] for name in columns or ["start_ns"]))
    return found


# folders


def test_reports_of_two_runs_are_two_processes_in_the_order_of_their_numbers(tmp_path):
    files = {"report10_cuda_gpu_trace.csv": launches(5000), "report9_cuda_gpu_trace.csv.gz": launches(5300, length=7)}
    read = Read(folder(tmp_path / "x", files), tmp_path / "e")
    assert read.status == "read"
    found = by_rank(read, "start_ns", "duration_ns")
    assert found == {0: [(5300, 7), (6300, 7)], 1: [(5000, 500), (6000, 500)]}  # 9 before 10
    assert (read.count("several_processes"), read.count("outlasting"), read.count("clock_reset")) == (2, 0, 0)


@pytest.mark.parametrize(
    "name", ["rank{}_cuda_gpu_trace.csv", "train.rank-{}.gputrace.csv", "cuda_gpu_trace_rank_{}.csv"]
)
def test_ranks_in_names_are_the_ranks(name, tmp_path):
    files = {name.format(rank): launches(5000 + rank) for rank in (3, 12)}
    read = Read(folder(tmp_path / "x", files), tmp_path / "e")
    assert by_rank(read) == {3: [(5003,), (6003,)], 12: [(5012,), (6012,)]}
    assert (read.capabilities["ranks_from"], read.count("several_processes")) == ("export", 0)


def test_reports_of_one_run_are_one_process(tmp_path):
    """Each run's calls are those of its own launches, whose delays are 900 and 700 ns after the calls' return."""
    files = {
        "a_cuda_gpu_trace.csv": launches(5000),
        "a_cuda_api_trace.csv": calls(4000),
        "b_cuda_api_trace.csv": calls(4200),
        "b_cuda_gpu_trace.csv": launches(5000, length=9),
    }
    read = Read(folder(tmp_path / "x", files), tmp_path / "e")
    assert by_rank(read, "duration_ns", "queue_ns") == {0: [(500, 900)] * 2, 1: [(9, 700)] * 2}
    assert read.count("other_processes") == 0
    one = Read(folder(tmp_path / "y", {name: files[name] for name in files if name[0] == "a"}), tmp_path / "f")
    assert by_rank(one, "queue_ns") == {0: [(900,)] * 2}
    assert one.count("several_processes") == 0


def test_calls_under_any_name_are_those_of_the_only_run_and_left_out_beside_several(tmp_path):
    files = {"run_gputrace.csv": launches(5000), "host.csv": calls(4000)}
    assert by_rank(Read(folder(tmp_path / "x", files), tmp_path / "e"), "queue_ns") == {0: [(900,)] * 2}
    files["other_gputrace.csv"] = launches(5000, length=9)
    read = Read(folder(tmp_path / "y", files), tmp_path / "f")
    assert by_rank(read, "queue_ns") == {0: [(None,)] * 2, 1: [(None,)] * 2}
    assert read.count("other_processes") == 2


def test_dumps_of_single_kinds_of_records_are_one_process_and_numbered_ones_several(tmp_path):
    place = "start,end,deviceId,streamId,correlationId"
    copies = [f"copyKind,bytes,{place}", "1,4096,9000,9005,0,7,9"]
    runtime = ["cbid,start,end,threadId,correlationId", "211,900,950,9,1"]
    one = {"kernel.csv": dump(1000), "memcpy.csv": copies, "runtime.csv": runtime}
    read = Read(folder(tmp_path / "x", one), tmp_path / "e")
    assert (by_rank(read, "queue_ns"), read.transfers.num_rows) == ({0: [(50,), (None,)]}, 1)
    several = {f"{name.removesuffix('.csv')}_{at}.csv": lines for name, lines in one.items() for at in (4, 7)}
    several["kernel_7.csv"] = dump(990)
    read = Read(folder(tmp_path / "y", several), tmp_path / "f")
    assert by_rank(read, "queue_ns") == {0: [(50,), (None,)], 1: [(40,), (None,)]}
    assert read.transfers.column("rank").to_pylist() == [0, 1]


def test_rows_that_name_their_process_are_of_it_in_every_file(tmp_path):
    lines = ["start,end,deviceId,streamId,name,pid", "10,20,0,7,k,91", "30,40,0,7,k,92"]
    more = [lines[0], "50,60,0,7,k,91"]
    read = Read(folder(tmp_path / "x", {"a.csv": lines, "b.csv": more}), tmp_path / "e")
    assert by_rank(read) == {0: [(10,), (50,)], 1: [(30,)]}


def test_a_report_in_another_form_is_no_further_run(tmp_path):
    files = {
        "r_cuda_gpu_trace.csv": launches(5000, ["k<float>(int)", "h(int)"]),
        "r_cuda_gpu_trace_base.csv": launches(5000, ["k", "h"]),
    }
    read = Read(folder(tmp_path / "x", files), tmp_path / "e")
    assert read.kernels.column("name").to_pylist() == ["k<float>(int)", "h(int)"]
    assert (by_rank(read), read.capabilities["rows_in"]) == (
        {0: [(5000,), (6000,)]},
        {"kernels": 2, "other records": 2},
    )


# texts


def test_a_text_says_a_report_again_in_another_form(tmp_path):
    titles = [[f" ** CUDA GPU Trace (cuda_gpu_trace{form}):", ""] for form in ("", ":base")]
    copy = "4000,50,9,,,,,,,,,,8.389,167.0,Pageable,Device,A GPU (0),1,,7,[CUDA memcpy Host-to-Device]"
    first = launches(5000, ["k<float>(int)", "h(int)"])
    first.insert(1, copy)
    path = text(tmp_path / "all.csv", titles[0], first, [""], titles[1], launches(5000, ["k", "h"]))
    read = Read(path, tmp_path / "e")
    assert read.kernels.column("name").to_pylist() == ["k<float>(int)", "h(int)"]
    assert (read.launches.num_rows, read.transfers.num_rows) == (2, 1)
    assert read.count("unreadable_rows") == 0


@pytest.mark.parametrize("calls_first", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_reports_of_several_runs_in_one_text(calls_first, named, tmp_path):
    reports = []
    for name, first, called in (("b", 5000, 4000), ("a", 5200, 4100)):
        run = [launches(first), calls(called)]
        reports += [[f"Processing [{name}.sqlite] with [/opt/x.py]..."]] if named else []
        reports += reversed(run) if calls_first else run
    read = Read(text(tmp_path / "all.csv", *reports), tmp_path / "e")
    times = [[(5000, 900), (6000, 900)], [(5200, 1000), (6200, 1000)]]
    assert by_rank(read, "start_ns", "queue_ns") == dict(enumerate(reversed(times) if named else times))
    assert read.count("other_processes") == 0


HEADER = '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Size","Device","Stream","Name"'


def result(pid, units, rows, device=0):
    """Return one process's result as nvprof prints it: its rows are start and duration."""
    unit = dict(zip(("start", "duration"), units, strict=True))
    lines = [f"=={pid}== Profiling result:", HEADER, f"{unit['start']},{unit['duration']},,,,,,,KB,,,"]
    return lines + [f'{start},{length},8,1,1,64,1,1,,"V100 ({device})","7","k(int)"' for start, length in rows]


def test_each_result_of_nvprof_has_its_own_process_and_units(tmp_path):
    banner = [f"=={pid}== NVPROF is profiling process {pid}, command: app, 1, 2" for pid in (111, 12)]
    first = result(111, ("ms", "us"), [("100.5", "2.000"), ("101.5", "2.125")])
    second = result(12, ("s", "ms"), [("2.5", "0.002"), ("2.75", "0.0021")])
    end = ["==12== Warning: 3 records dropped", "==12== Profiling application: app, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"]
    read = Read(text(tmp_path / "log.csv", banner, first, second, end), tmp_path / "e")
    assert by_rank(read, "start_ns", "duration_ns") == {
        0: [(2_500_000_000, 2000), (2_750_000_000, 2100)],  # by process id, 12 before 111
        1: [(100_500_000, 2000), (101_500_000, 2125)],
    }
    assert (read.count("no_time"), read.count("unreadable_rows"), read.count("dropped_events")) == (0, 0, 3)
    assert read.capabilities["rows_in"] == {"kernels": 4}


def test_two_results_of_one_process_are_one_process(tmp_path):
    results = [result(5, ("ms", "us"), [("1", "2")]), result(5, ("us", "us"), [("3000", "4")])]
    read = Read(text(tmp_path / "log.csv", *results), tmp_path / "e")
    assert by_rank(read, "start_ns", "duration_ns") == {0: [(1_000_000, 2000), (3_000_000, 4000)]}


def test_a_header_that_is_written_again_begins_no_process_in_a_dump(tmp_path):
    """As data frames that are appended to a file write it."""
    read = Read(text(tmp_path / "k.csv", dump(1000), dump(2000)), tmp_path / "e")
    assert by_rank(read) == {0: [(1000,), (1100,), (2000,), (2100,)]}
    assert read.count("no_time") == 0


def test_what_messages_say():
    messages = Messages()
    for line in ("==7== Profiling application: x", "==7== Warning: 12 records have invalid timestamps", "k,1,2"):
        messages.take(line)
    assert (messages.source, messages.lost) == ("", 12)
    messages.take("==7== Profiling result:")
    earlier = messages.source
    messages.take("==30== Profiling result:")
    assert earlier < messages.source
