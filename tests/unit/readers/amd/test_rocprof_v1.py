"""rocprof v1: every real file and folder against csv and sqlite3, passes joined by Index, and damage."""

import csv
import random
import shutil
import sqlite3

import pytest
from reading import Read

from support import DATA

HERE = DATA / "rocprof_v1"
FOLDERS = sorted(path.parent for path in HERE.rglob("results.csv")) if DATA.is_dir() else []
COUNTERS = ["FETCH_SIZE", "WRITE_SIZE", "TCP_TOTAL_CACHE_ACCESSES_sum", "TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum"]
SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for
HEAD = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj"
)
TIMES = "DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs"


def real(paths):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    return [pytest.param(path, id=path.name[:12]) for path in paths] or [pytest.param(None, marks=why)]


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def plain(name):
    return name.strip('"').removesuffix(".kd").removesuffix(" [clone .kd]").strip()


def row(index, name="k(int)", pid=7, begin=None, extra=""):
    head = f'{index},"{name}",1,0,{index},{pid},{pid},4096,256,512,0,8,0,16,64,0x0,0x7f00'
    return (
        head
        + ("" if begin is None else f",{begin - 100},{begin},{begin + 50 + index},{begin + 500},{50 + index}")
        + extra
    )


def written(path, header, rows, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + end, encoding="utf-8")
    return path


@pytest.mark.parametrize("folder", real(FOLDERS))
@pytest.mark.parametrize("form", ["csv", "db"])
def test_launches_equal_the_rows(folder, form, tmp_path):
    path = folder / f"results.{form}"
    if form == "db" and not path.exists():
        pytest.skip("no database in this folder")
    if form == "db":
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        rows = [dict(one) for one in connection.execute("SELECT * FROM KERN")]
        connection.close()
    else:
        rows = rows_of(path)
    export = Read(path, tmp_path / "t")
    assert (export.status, export.capabilities["kind"], export.capabilities["format"]) == ("read", "trace", "rocprof")
    assert export.capabilities["rows_in"] == {path.name: len(rows)}
    assert export.launches.column("start_ns").to_pylist() == sorted(int(one["BeginNs"]) for one in rows)
    assert export.total("launches") == sum(int(one["DurationNs"]) for one in rows)
    assert set(export.kernels.column("name").to_pylist()) == {plain(one["KernelName"]) for one in rows}
    queue = {int(one["BeginNs"]): int(one["BeginNs"]) - int(one["DispatchNs"]) for one in rows}
    assert all(queue[one["start_ns"]] == one["queue_ns"] for one in export.launches.to_pylist())
    assert export.capabilities["analyses"]["kernel_variability"]["possible"]
    assert export.capabilities["analyses"]["queue_delay"]["possible"]
    assert not export.capabilities["analyses"]["counter_deviation"]["possible"]
    assert export.count("coarse_clock") == export.count("zero_duration") == 0


@pytest.mark.parametrize("folder", real([folder for folder in FOLDERS if (folder / "data_movement.csv").exists()]))
def test_a_folder_joins_its_counters_by_index(folder, tmp_path):
    timing = {int(one["Index"]): one for one in rows_of(folder / "results.csv")}
    counted = {int(one["Index"]): one for one in rows_of(folder / "data_movement.csv")}
    export = Read(folder, tmp_path / "t")
    assert export.capabilities["tables"]["launches"] == len(timing)
    assert export.capabilities["tables"]["counters"] == len(counted)
    assert export.total("launches") == sum(int(one["DurationNs"]) for one in timing.values())
    assert set(export.capabilities["values"]) == {*COUNTERS, "gpu_time"}
    assert export.count("other_execution") == len(counted)  # two executions, two process ids
    launches = export.launches.to_pylist()
    counters = export.counters.to_pylist()
    index = {int(one["BeginNs"]): number for number, one in timing.items()}
    for one in random.Random(1).sample(counters, 200):
        number = index[one["start_ns"]]
        assert [one[name] for name in COUNTERS] == [float(counted[number][name]) for name in COUNTERS]
        assert one["gpu_time"] == float(timing[number]["DurationNs"])
        assert launches[one["launch"]]["start_ns"] == one["start_ns"]
        assert launches[one["launch"]]["configuration"] == one["configuration"]
    assert all(
        export.capabilities["analyses"][name]["possible"]
        for name in ("kernel_variability", "counter_deviation", "causes")
    )


@pytest.mark.parametrize("folder", real([folder for folder in FOLDERS if (folder / "data_movement.csv").exists()][:2]))
def test_a_counter_pass_alone_is_counters_without_times(folder, tmp_path):
    rows = rows_of(folder / "data_movement.csv")
    export = Read(folder / "data_movement.csv", tmp_path / "t")
    assert (export.status, export.capabilities["kind"]) == ("read", "counters")
    assert export.names == {"counters", "configurations", "kernels", "devices"}
    assert export.counters.column("launch").to_pylist() == list(range(len(rows)))
    assert set(export.counters.column("start_ns").to_pylist()) == {None}
    for name in COUNTERS:
        assert export.counters.column(name).to_pylist() == [float(one[name]) for one in rows]
    assert "gpu_time" not in export.capabilities["values"]


@pytest.mark.parametrize("folder", real(FOLDERS[:1]))
def test_a_database_and_its_csv_give_equal_tables(folder, tmp_path):
    one = Read(folder / "results.csv", tmp_path / "a")
    other = Read(folder / "results.db", tmp_path / "b")
    for table in ("launches", "configurations", "kernels", "devices"):
        assert getattr(one, table).equals(getattr(other, table)), table


@pytest.mark.parametrize("folder", real(FOLDERS[:1]))
def test_totals_stand_in_x_and_count_work_items(folder, tmp_path):
    export = Read(folder / "results.csv", tmp_path / "t")
    rows = rows_of(folder / "results.csv")
    shapes = {
        (int(one["grd"]), int(one["wgr"]), int(one["lds"]), int(one["arch_vgpr"]), int(one["sgpr"])) for one in rows
    }
    found = export.configurations.to_pylist()
    assert {(one["grid_x"], one["block_x"], one["lds_bytes"], one["arch_vgpr"], one["sgpr"]) for one in found} == shapes
    assert all(one["grid_y"] is None and one["grid_z"] is None and one["block_y"] is None for one in found)


@pytest.mark.parametrize("folder", real(FOLDERS))
def test_a_summary_is_refused_with_the_reason(folder, tmp_path):
    export = Read(folder / "results.stats.csv", tmp_path / "t")
    assert export.status == "refused"
    assert "summary" in export.error["found"]


# made-up files, for what real ones do not show


def test_several_passes_in_any_order_of_files_and_rows(tmp_path):
    folder = tmp_path / "run"
    written(folder / "results.csv", f"{HEAD},{TIMES}", [row(i, begin=10_000 - 1000 * i) for i in range(5)])
    written(folder / "pass_b.csv", f"{HEAD},B", [row(i, pid=8, extra=f",{i * 2}") for i in (4, 2, 0, 1, 3)])
    written(folder / "pass_a.csv", f"{HEAD},A,SQ_WAVES", [row(i, pid=9, extra=f",{i},{100 + i}") for i in range(5)])
    export = Read(folder, tmp_path / "t")
    found = export.counters.to_pylist()
    assert [one["A"] for one in found] == [4.0, 3.0, 2.0, 1.0, 0.0]  # ordered by start, as the launches are
    assert [one["B"] for one in found] == [8.0, 6.0, 4.0, 2.0, 0.0]
    assert [one["sq_waves"] for one in found] == [104.0, 103.0, 102.0, 101.0, 100.0]
    assert [one["launch"] for one in found] == [0, 1, 2, 3, 4]
    assert [one["gpu_time"] for one in found] == [54.0, 53.0, 52.0, 51.0, 50.0]


def test_one_file_with_counters_and_times_is_one_execution(tmp_path):
    header = f"{HEAD},SQ_WAVES,{TIMES}"
    rows = [row(i) + f",{i + 7}" + row(i, begin=1000 * i + 1000).removeprefix(row(i)) for i in range(3)]
    export = Read(written(tmp_path / "results.csv", header, rows), tmp_path / "t")
    assert export.capabilities["kind"] == "trace"
    assert export.total("launches") == 50 + 51 + 52
    assert export.counters.column("sq_waves").to_pylist() == [7.0, 8.0, 9.0]
    assert export.counters.column("gpu_time").to_pylist() == [50.0, 51.0, 52.0]
    assert export.count("other_execution") == 0
    assert export.launches.column("queue_ns").to_pylist() == [100, 100, 100]


def test_another_kernel_under_the_same_index_is_not_joined(tmp_path):
    folder = tmp_path / "run"
    written(folder / "results.csv", f"{HEAD},{TIMES}", [row(i, begin=1000 * i + 1000) for i in range(3)])
    written(
        folder / "pmc.csv",
        f"{HEAD},A",
        [row(0, extra=",1"), row(1, name="other(int)", extra=",2"), row(2, extra=",3"), row(9, extra=",4")],
    )
    export = Read(folder, tmp_path / "t")
    assert export.count("unmatched_counters") == 2
    linked = {one["launch"]: one["A"] for one in export.counters.to_pylist()}
    assert linked == {0: 1.0, 2: 3.0, 3: 2.0, 4: 4.0}  # 3 and 4 lie beyond the three launches
    assert [one["start_ns"] for one in export.counters.to_pylist()].count(None) == 2


def test_a_second_timing_run_is_left_out_and_named(tmp_path):
    folder = tmp_path / "run"
    written(folder / "results.csv", f"{HEAD},{TIMES}", [row(i, begin=1000 * i + 1000) for i in range(3)])
    written(folder / "run2.csv", f"{HEAD},{TIMES}", [row(i, begin=9000 * i + 1000) for i in range(3)])
    export = Read(folder, tmp_path / "t")
    assert export.capabilities["tables"]["launches"] == 3
    assert "run2.csv" in export.issue("second_run")["detail"]


@pytest.mark.parametrize("names", [("rank0", "rank1"), ("results_0", "results_1")])
def test_timing_runs_at_the_same_time_are_ranks_and_a_later_one_is_left_out(names, tmp_path):
    folder = tmp_path / "run"
    for rank, name in enumerate(names):
        rows = [row(i, pid=70 + rank, begin=1000 * i + 1000 + 10 * rank) for i in range(4)]
        written(folder / f"{name}.csv", f"{HEAD},{TIMES}", rows)
    both = Read(folder, tmp_path / "t")
    launches = both.launches.to_pylist()
    assert [(one["start_ns"], one["rank"]) for one in launches] == [
        (1000 * i + 1000 + 10 * rank, rank) for i in range(4) for rank in (0, 1)
    ]
    assert both.count("second_run") == 0
    assert both.capabilities["ranks_from"] == "export"
    later = [row(i, pid=72, begin=1000 * i + 90_000) for i in range(4)]
    written(folder / "zlater.csv", f"{HEAD},{TIMES}", later)
    export = Read(folder, tmp_path / "u")
    assert export.launches.column("start_ns").to_pylist() == both.launches.column("start_ns").to_pylist()
    assert "zlater.csv" in export.issue("second_run")["detail"]


def test_rocprofv2_writes_a_file_for_each_process(tmp_path):
    header = "Dispatch_ID,GPU_ID,Queue_ID,Queue_Index,PID,TID,GRD,WGR,Kernel_Name,Start_Timestamp,End_Timestamp"
    for pid in (9, 11, 100):
        rows = [f'{i},{pid},1,{i},{pid},{pid},64,64,"k()",{1000 * i + pid},{1000 * i + pid + 50}' for i in range(1, 4)]
        written(tmp_path / "run" / f"results_{pid}.csv", header, rows)
    export = Read(tmp_path / "run", tmp_path / "t")
    assert export.capabilities["ranks"] == [0, 1, 2]
    found = {(one["rank"], one["device"], one["start_ns"]) for one in export.launches.to_pylist()}
    assert found == {(rank, pid, 1000 * i + pid) for rank, pid in enumerate((9, 11, 100)) for i in range(1, 4)}


def test_what_accumulates_the_counter_before_it_is_another_in_each_pass(tmp_path):
    folder = tmp_path / "run"
    for name, values in (("SQ_IFETCH_LEVEL", (5, 6)), ("SQ_LEVEL_WAVES", (50, 60))):
        rows = [row(i, extra=f",{i + 1},{value}") for i, value in enumerate(values)]
        written(folder / f"{name}.csv", f"{HEAD},{name},SQ_ACCUM_PREV_HIRES", rows)
    export = Read(folder, tmp_path / "t")
    assert export.counters.column("SQ_IFETCH_LEVEL_SQ_ACCUM_PREV_HIRES").to_pylist() == [5.0, 6.0]
    assert export.counters.column("SQ_LEVEL_WAVES_SQ_ACCUM_PREV_HIRES").to_pylist() == [50.0, 60.0]
    assert export.count("repeated_counters") == 0


def test_two_processes_in_one_file_are_two_ranks(tmp_path):
    rows = [row(i, pid=100 + i % 2, begin=1000 * i + 1000) for i in range(6)]
    export = Read(written(tmp_path / "results.csv", f"{HEAD},{TIMES}", rows), tmp_path / "t")
    assert export.capabilities["ranks"] == [0, 1]
    assert export.launches.column("rank").to_pylist() == [0, 1, 0, 1, 0, 1]


def test_times_of_another_clock_have_no_queue_delay(tmp_path):
    rows = [row(0, begin=10_000_000).replace("9999900", "500"), row(1, begin=20_000_000)]
    export = Read(
        written(tmp_path / "results.csv", f"{HEAD},{TIMES}", [rows[0].replace("10000500", "600"), rows[1]]),
        tmp_path / "t",
    )
    assert export.count("other_clock") == 1
    assert export.launches.column("queue_ns").to_pylist() == [None, 100]


# damage


@pytest.mark.parametrize("folder", real(FOLDERS[:1]))
def test_a_file_cut_mid_row_keeps_the_rows_before(folder, tmp_path):
    whole = (folder / "results.csv").read_bytes()
    for keep in (len(whole) // 2, len(whole) - 3, len(whole) - 40):
        path = tmp_path / "results.csv"
        path.write_bytes(whole[:keep])
        export = Read(path, tmp_path / f"t{keep}")
        rows = len(whole[:keep].splitlines()) - 2
        assert export.status == "partial"
        assert export.capabilities["tables"]["launches"] == rows
        assert "line" in export.error["found"]
        assert export.count("truncated") == 1


@pytest.mark.parametrize("folder", real(FOLDERS[-1:]))
def test_a_cut_counter_pass_leaves_the_launches_whole(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    whole = (copy / "data_movement.csv").read_bytes()
    (copy / "data_movement.csv").write_bytes(whole[: len(whole) // 2])
    export = Read(copy, tmp_path / "t")
    assert (export.status, export.capabilities["tables"]["launches"]) == ("partial", 1023)
    assert 400 < export.capabilities["tables"]["counters"] < 700
    assert "data_movement.csv" in export.error["found"]


@pytest.mark.parametrize("folder", real(FOLDERS[:1]))
def test_a_truncated_database_is_named(folder, tmp_path):
    path = tmp_path / "results.db"
    whole = (folder / "results.db").read_bytes()
    for keep in (100, 5000, len(whole) // 2):
        path.write_bytes(whole[:keep])
        export = Read(path, tmp_path / f"t{keep}")
        assert export.status in ("refused", "partial")
        assert export.error["found"]


def test_bad_rows_cost_themselves(tmp_path):
    rows = [row(i, begin=1000 * i + 1000) for i in range(8)]
    rows[1] = rows[1].replace('"k(int)"', '"k(int)')  # the quote is never closed
    rows[2] = "1,2,3"
    rows[3] = rows[3].replace(",4000,", ",abc,")
    rows[4] = rows[4].replace(",5054,", ",4000,")  # ends before it starts
    rows[5] = rows[5].replace('"k(int)"', '"k\x00(<script>)"')
    rows[6] = rows[6].replace("k(int)", "n" * 100_000 + "; DROP TABLE x --")
    export = Read(written(tmp_path / "results.csv", f"{HEAD},{TIMES}", rows), tmp_path / "t", form="rocprof")
    assert export.status == "partial"
    assert export.launches.num_rows == 4
    assert (export.count("unreadable_rows"), export.count("no_time"), export.count("end_before_start")) == (2, 1, 1)
    assert export.count("altered_text") == 1
    assert export.capabilities["rows_in"] == {"results.csv": 8}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"{HEAD},{TIMES}\n".encode(), "no launch with usable times"),
        (f"{HEAD}\n{row(0)}\n".encode(), "without times and without counters"),
        (HEAD.replace("KernelName", "Kernel").encode() + b"\n1,2\n", ""),
        (b"\x00\x01\x02\x03" * 300, ""),
    ],
)
def test_nothing_measured_is_refused(content, said, tmp_path):
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    export = Read(path, tmp_path / "t", form="rocprof")
    assert export.status == "refused"
    assert said in export.error["found"]
    assert export.names == set()


def test_a_folder_where_a_file_is_expected_and_an_empty_folder(tmp_path):
    (tmp_path / "results.csv").mkdir()
    assert Read(tmp_path / "results.csv", tmp_path / "t", form="rocprof").status == "refused"


def test_rounded_times_give_no_durations(tmp_path):
    rows = [
        row(i, begin=1000).replace(",1000,", ",1.62068E+14,").replace(f",{1050 + i},", ",1.62068E+14,")
        for i in range(3)
    ]
    export = Read(written(tmp_path / "results.csv", f"{HEAD},{TIMES}", rows), tmp_path / "t")
    assert export.status == "refused"
    assert "rounded" in export.error["found"]


def test_secrets_beside_the_columns_stay_behind(tmp_path):
    folder = tmp_path / "run"
    written(
        folder / "results.csv",
        f"{HEAD},{TIMES},Command",
        [row(i, begin=1000 * i + 1000, extra=f",{SECRET}") for i in range(3)],
    )
    written(folder / "sysinfo.csv", "command,hostname", [f"./a --token {SECRET},{SECRET}.cluster"])
    (folder / "input.txt").write_text(SECRET)
    export = Read(folder, tmp_path / "t")
    assert export.launches.num_rows == 3
    assert SECRET not in export.texts()


@pytest.mark.parametrize("counter", ["", "SQ_WAVES,"])
def test_rocprofv2_names_columns_that_no_row_has_and_notes_neither_dispatch_nor_completion(counter, tmp_path):
    value = "64.000000," if counter else ""
    rows = [""] + [
        f'{at},"k(int) (.kd)",2,1,0,7,9,4096,256,512,0,8,4,16,64,{value}0,{10**9 + at * 4000},{10**9 + at * 4000 + 50},0'
        for at in (1, 2, 3)
    ]
    header = f"{HEAD},{counter}DispatchNs,BeginNs,EndNs,CompleteNs"
    export = Read(written(tmp_path / "results_0.csv", header, rows), tmp_path / "t")
    assert export.status == "read"
    assert export.launches.column("start_ns").to_pylist() == [10**9 + at * 4000 for at in (1, 2, 3)]
    assert export.launches.column("duration_ns").to_pylist() == [50, 50, 50]
    assert export.launches.column("queue_ns").null_count == 3
    assert export.configurations.to_pylist()[0]["wave_size"] == 64
    assert export.count("other_clock") == export.count("unreadable_rows") == 0
    if counter:
        assert export.counters.column("sq_waves").to_pylist() == [64.0, 64.0, 64.0]


def test_one_short_row_says_nothing_of_the_columns(tmp_path):
    rows = [row(0, begin=1000).replace(",0x0,0x7f00", ""), *(row(at, begin=1000 * at + 1000) for at in (1, 2))]
    export = Read(written(tmp_path / "results.csv", f"{HEAD},{TIMES}", rows), tmp_path / "t")
    assert export.launches.num_rows == 2
    assert export.count("unreadable_rows") == 1
