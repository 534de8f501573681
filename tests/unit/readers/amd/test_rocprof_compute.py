"""rocprofiler-compute: every real file against csv, rounded times, repeated columns against real names, folders of
passes, and damage.
"""

import csv
import re
import shutil

import pytest
from reading import Read

from causeway.readers.common.numbers import integer, is_rounded, nearest_integer
from causeway.readers.containers.csv_batches import CsvFile
from causeway.readers.sink.counter_table import plain_name, simplified
from support import DATA

HERE = DATA / "rocprof_compute"
MERGED = sorted(HERE.rglob("pmc_perf.csv")) if DATA.is_dir() else []
PASSES = sorted(HERE.rglob("SQ_*.csv")) if DATA.is_dir() else []
TIMINGS = sorted(HERE.rglob("timestamps.csv")) if DATA.is_dir() else []
HEADS = {
    *"Dispatch_ID Kernel_Name GPU_ID queue-id queue-index Queue_ID pid PID tid TID Grid_Size Workgroup_Size"
    " LDS_Per_Workgroup".split(),
    *"Scratch_Per_Workitem Arch_VGPR Accum_VGPR SGPR wave_size Wave_Size sig obj DispatchNs Start_Timestamp"
    " End_Timestamp".split(),
    *"CompleteNs Correlation_ID XCC_Index".split(),
}
REPEATED = re.compile(r"(?:wave_size|Wave_Size|obj|Correlation_ID|XCC_Index)_\d+")
SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for


def real(paths):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    return [pytest.param(path, id="-".join(path.parts[-3:])) for path in paths] or [pytest.param(None, marks=why)]


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def are_rounded(rows):
    return "E+" in rows[0]["Start_Timestamp"]


def column_of(raw):
    known = simplified().get(raw)
    return known[0] if known else plain_name(raw)


def by_start(rows):
    return rows if are_rounded(rows) else sorted(rows, key=lambda row: int(row["Start_Timestamp"]))


@pytest.mark.parametrize("path", real(MERGED + PASSES))
def test_counters_equal_the_cells_and_rounded_times_give_no_durations(path, read_once):
    rows = rows_of(path)
    counters = [raw for raw in rows[0] if raw not in HEADS and not REPEATED.fullmatch(raw)]
    export = read_once(path)
    assert export.status == "read"
    assert export.capabilities["rows_in"] == {path.name: len(rows)}
    found = export.counters
    assert found.num_rows == len(rows)
    assert {column_of(raw) for raw in counters} == set(export.capabilities["values"]) - {"gpu_time"}
    for raw in counters:
        assert found.column(column_of(raw)).to_pylist() == [float(row[raw]) for row in by_start(rows)], raw
        assert found.schema.field(column_of(raw)).metadata[b"raw"].decode() == raw
    assert {
        name.removesuffix(" (.kd)").removesuffix(" [clone .kd]") for name in export.kernels.column("name").to_pylist()
    } == {"vecCopy(double*, double*, double*, int, int)"}
    if are_rounded(rows):
        assert export.capabilities["kind"] == "counters"
        assert (
            export.count("rounded_times"),
            "launches" in export.names,
            "gpu_time" in export.capabilities["values"],
        ) == (3, False, False)
        assert not export.capabilities["analyses"]["kernel_variability"]["possible"]
        assert set(found.column("start_ns").to_pylist()) == {None}
    else:
        lengths = [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in by_start(rows)]
        assert export.capabilities["kind"] == "trace"
        assert export.launches.column("duration_ns").to_pylist() == lengths == found.column("gpu_time").to_pylist()
        assert found.column("launch").to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("path", real(MERGED))
def test_numbered_names_are_told_from_repeated_columns(path, read_once):
    header = list(rows_of(path)[0])
    export = read_once(path)
    assert {f"SQC_DCACHE_REQ_READ_{n}" for n in (1, 2, 4, 8, 16)} <= set(export.capabilities["values"])
    assert any(REPEATED.fullmatch(raw) for raw in header)
    assert not [
        name for name in export.counters.column_names if re.match(r"(?i)(wave_size|obj|correlation_id|xcc_index)", name)
    ]
    assert export.count("other_execution") == 3


@pytest.mark.parametrize("path", real([path for path in MERGED if "vcopy" in str(path)]))
def test_counters_bear_the_papers_names(path, read_once):
    names = set(read_once(path).capabilities["values"])
    wanted = (
        "sq_waves sq_busy_cycles sq_insts_valu sq_insts_salu sq_insts_vmem tcc_rw_req tcc_busy tcc_tag_stall tcc_hit"
        " tcc_miss tcc_read"
    )
    assert {
        *wanted.split(),
        "tcc_write",
        "tcp_pending_stall",
        "ta_buf_read",
        "ta_buf_write",
        "td_load",
        "td_store",
    } <= names


@pytest.mark.parametrize("path", real(TIMINGS))
def test_a_timing_run_is_launches_unless_it_was_rounded(path, tmp_path):
    rows = rows_of(path)
    export = Read(path, tmp_path / "t")
    if are_rounded(rows):
        assert export.status == "refused"
        assert "rounded" in export.error["found"]
        assert export.names == set()
        return
    assert export.total("launches") == sum(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in rows)
    queue = [int(row["Start_Timestamp"]) - int(row["DispatchNs"]) for row in by_start(rows)]
    assert export.launches.column("queue_ns").to_pylist() == queue


@pytest.mark.parametrize("path", real([path for path in PASSES if "MI200" in str(path)]))
def test_times_outside_dispatch_to_completion_are_of_another_clock(path, read_once):
    rows = rows_of(path)
    export = read_once(path)
    assert all(int(row["Start_Timestamp"]) > int(row["CompleteNs"]) for row in rows)
    assert export.count("other_clock") == len(rows)
    assert export.launches.column("queue_ns").null_count == len(rows)


@pytest.mark.parametrize("folder", real([path.parent for path in MERGED if "vcopy" in str(path)]))
def test_a_folder_joins_its_passes(folder, tmp_path):
    export = Read(folder, tmp_path / "t")
    merged = rows_of(folder / "pmc_perf.csv")
    level = rows_of(folder / "SQ_LEVEL_WAVES.csv")
    assert export.capabilities["tables"]["counters"] == 3
    found = export.counters
    for raw in ("TCC_HIT_sum", "SQ_WAVES", "TCP_PENDING_STALL_CYCLES_sum"):  # the merged file is the first pass
        assert found.column(column_of(raw)).to_pylist() == [float(row[raw]) for row in merged]
    accumulated = [float(row["SQ_ACCUM_PREV_HIRES"]) for row in level]  # this counter means another thing in each pass
    assert found.column("SQ_LEVEL_WAVES_SQ_ACCUM_PREV_HIRES").to_pylist() == accumulated
    assert found.column("SQ_LEVEL_WAVES").to_pylist() == [float(row["SQ_LEVEL_WAVES"]) for row in level]
    assert export.count("repeated_counters") > 0
    timing = rows_of(folder / "timestamps.csv")
    if are_rounded(timing):
        assert "launches" not in export.names
    else:
        assert export.launches.column("start_ns").to_pylist() == [int(row["Start_Timestamp"]) for row in timing]
        assert found.column("launch").to_pylist() == [0, 1, 2]


def test_the_analysis_database_and_descriptions_are_refused_with_the_reason(data, tmp_path):
    read = Read(data / "rocprof_compute/roc-optiq-sample/rocprof_compute_23ed6f36.db", tmp_path / "a")
    assert read.status == "refused"
    assert "analysis database" in read.error["found"]
    read = Read(data / "rocprof_compute/vcopy/MI100/pmc_dispatch_info.csv", tmp_path / "b")
    assert read.status == "refused"
    assert "without times and without counters" in read.error["found"]
    for name in ("MI100/sysinfo.csv", "MI200/roofline.csv"):
        read = Read(data / "rocprof_compute/vcopy" / name, tmp_path / name.replace("/", "-"))
        assert read.status == "refused"
    assert "hpcfund" not in (tmp_path / "MI100-sysinfo.csv" / "capabilities.json").read_text()


# made-up files


def test_both_spellings_and_a_counter_of_a_later_pass(tmp_path):
    times = ",Start_Timestamp,End_Timestamp"
    old = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,wave_size,A,wave_size_1,A_1,A_2,B_3" + times
    new = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Wave_Size,Kernel_Name,A,Wave_Size_1,A_1,A_2,B_3" + times
    first = tmp_path / "old.csv"
    second = tmp_path / "new.csv"
    first.write_text(
        f"{old}\n0,k [clone .kd],2,64,64,32,1,32,10,100,7,1000,1500\n1,k [clone"
        " .kd],2,64,64,32,,32,20,200,8,2000,2600\n"
    )
    second.write_text(
        f"{new}\n0,2,64,64,32,k (.kd),1,32,10,100,7,1000.0,1500.0\n1,2,64,64,32,k (.kd),,32,20,200,8,2000.0,2600.0\n"
    )
    one = Read(first, tmp_path / "a")
    other = Read(second, tmp_path / "b")
    for export in (one, other):
        assert export.counters.column("A").to_pylist() == [1.0, 20.0]  # the first pass that has a value
        assert export.counters.column("B_3").to_pylist() == [7.0, 8.0]
        assert "A_1" not in export.counters.column_names
        assert export.total("launches") == 1100
        assert export.kernels.column("name").to_pylist() == ["k"]
        assert export.count("repeated_counters") == 3
    for table in ("launches", "counters", "configurations", "kernels"):
        assert getattr(one, table).equals(getattr(other, table)), table


def test_counter_files_of_rocprofv2_have_a_launch_configuration_and_no_counters_but_those_asked_for(tmp_path):
    # both headers of its file plugin, each with the empty line after it
    old = "Dispatch_ID,GPU_ID,Queue_ID,Queue_Index,PID,TID,GRD,WGR,LDS,SCR,Arch_VGPR,ACCUM_VGPR,SGPR,Wave_Size,SIG,OBJ,"
    new = (
        "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,"
    )
    new += "Accum_VGPR,SGPR,Wave_Size,"
    end = "Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,SQ_WAVES,FETCH_SIZE\n\n"
    first = tmp_path / "old.csv"
    second = tmp_path / "new.csv"
    first.write_text(
        f"{old}{end}1,3,1,0,9,9,4096,256,512,16,8,4,32,64,140356026185088,1,k(int*) (.kd),1000,1500,0,64.0,12.5\n"
        "2,3,1,2,9,9,4096,256,512,16,8,4,32,64,140356026184832,2,k(int*) (.kd),2000,2600,0,64.0,13.5\n"
    )
    second.write_text(
        f"{new}{end}1,3,1,9,9,4096,256,512,16,8,4,32,64,k(int*) (.kd),1000,1500,0,64.0,12.5\n"
        "2,3,1,9,9,4096,256,512,16,8,4,32,64,k(int*) (.kd),2000,2600,0,64.0,13.5\n"
    )
    one = Read(first, tmp_path / "a")
    other = Read(second, tmp_path / "b")
    for table in ("launches", "counters", "configurations", "kernels"):
        assert getattr(one, table).equals(getattr(other, table)), table
    keys = ["launch", "start_ns", "configuration", "rank", "device"]
    assert one.counters.column_names == [*keys, "sq_waves", "FETCH_SIZE", "gpu_time"]
    shape = one.configurations.to_pylist()[0]
    wanted = {"grid_x": 4096, "block_x": 256, "lds_bytes": 512, "scratch_bytes": 16, "accum_vgpr": 4, "wave_size": 64}
    assert {name: shape[name] for name in wanted} == wanted


@pytest.mark.parametrize("start", [0, 7])
def test_a_launch_does_not_outlast_the_time_since_its_host_began(start, tmp_path):
    """rocprofv2 wrote 7 and 30064771072 for each launch, which was one launch of 30 s."""
    path = tmp_path / "counters.csv"
    row = f"9,9,4096,256,k(int*) (.kd),{start},30064771072"
    path.write_text(
        "Dispatch_ID,GPU_ID,PID,TID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp,SQ_WAVES\n"
        f"1,3,{row},64\n2,3,{row},65\n"
    )
    export = Read(path, tmp_path / "e")
    assert (export.status, export.capabilities["kind"], export.count("torn_times")) == ("read", "counters", 2)
    assert export.counters.column("sq_waves").to_pylist() == [64.0, 65.0]
    assert set(export.counters.column("start_ns").to_pylist()) == {None}
    path.write_text(path.read_text().replace("30064771072", "600"))  # times counted from the run's start
    assert Read(path, tmp_path / "f").count("torn_times") == 0


def test_of_a_launch_that_outlasts_its_host_nothing_is_left_without_counters(tmp_path):
    path = tmp_path / "timestamps.csv"
    path.write_text(
        "Dispatch_ID,GPU_ID,PID,TID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp\n"
        "1,3,9,9,4096,256,k(int*) (.kd),12,1410078546102877\n"
        "2,3,9,9,4096,256,k(int*) (.kd),1410078546122717,1410078546141597\n"
    )
    export = Read(path, tmp_path / "e")
    assert (export.status, export.count("implausible_time"), export.count("torn_times")) == ("partial", 1, 0)


@pytest.mark.parametrize(
    ("text", "value", "rounded"),
    [
        ("1411551767635712", 1411551767635712, False),
        ("1410078545959517.0", 1410078545959517, False),
        ("1.410078545959517e+15", 1410078545959517, False),
        ("1.62068E+14", 162068000000000, True),
        ("8.1097E+14", 810970000000000, True),
        ("1.7123456789012346e+18", 1712345678901234600, True),
        ("", None, False),
        ("nan", None, False),
        ("1e999999999", None, False),
        ("12.5", 12, False),
        ("41551790005678.37", 41551790005678, False),
        ("4.155179000567837e+13", 41551790005678, False),
    ],
)
def test_times_as_saved(text, value, rounded):
    assert (nearest_integer(text), is_rounded(text)) == (value, rounded)


def test_integers_as_saved():
    assert [integer(text) for text in ("64", "64.0", "0x40", " 64 ", "64.5", "", "1" * 30)] == [
        64,
        64,
        64,
        64,
        None,
        None,
        None,
    ]


def test_zero_durations_on_full_milliseconds_are_rounded(tmp_path):
    path = tmp_path / "pmc_perf.csv"
    path.write_text(
        "Dispatch_ID,Kernel_Name,GPU_ID,SQ_WAVES,Start_Timestamp,End_Timestamp\n"
        "0,k,0,4,162068000000000,162068000000000\n1,k,0,5,162068123456789,162068123457789\n"
    )
    export = Read(path, tmp_path / "t")
    assert (export.count("rounded_times"), export.launches.num_rows, export.total("launches")) == (1, 1, 1000)
    assert sorted(export.counters.column("sq_waves").to_pylist()) == [4.0, 5.0]


# damage


@pytest.mark.parametrize("path", real([path for path in MERGED if "MI200" in str(path)][:1]))
def test_cuts_keep_the_rows_before(path, tmp_path):
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for keep, rows in (
        (len(content) - 5, 2),
        (len(lines[0]) + len(lines[1]) + 50, 1),
        (len(lines[0]) + 20, 0),
        (len(lines[0]) // 2, None),
    ):
        cut = tmp_path / "pmc_perf.csv"
        cut.write_bytes(content[:keep])
        export = Read(cut, tmp_path / f"t{keep}")
        if not rows:
            assert export.status == "refused"
        else:
            assert (export.status, export.counters.num_rows, export.launches.num_rows) == ("partial", rows, rows)


def test_a_missing_column_an_odd_number_and_nul_bytes(tmp_path):
    path = tmp_path / "pmc_perf.csv"
    path.write_text("Dispatch_ID,Kernel_Name,SQ_WAVES,B,C\n0,k,nan,1,x\n1,k,inf,2,y\n2,k\x00,3,1e400,z\n")
    export = Read(path, tmp_path / "t", form="rocprof")
    assert export.status == "read"
    assert export.count("device_assumed") == 1
    assert export.counters.column("sq_waves").to_pylist() == [None, None, 3.0]
    assert export.counters.column("B").to_pylist() == [1.0, 2.0, None]
    assert "C" not in export.counters.column_names
    assert export.count("not_a_number") == 6


def test_secrets_of_a_workload_stay_behind(data, tmp_path):
    folder = shutil.copytree(data / "rocprof_compute/vcopy/MI200", tmp_path / "copy", copy_function=shutil.copyfile)
    text = (folder / "sysinfo.csv").read_text()
    (folder / "sysinfo.csv").write_text(
        text.replace("./tests/vcopy", f"./tests/vcopy --key {SECRET}").replace("hpcfund", SECRET)
    )
    assert SECRET in (folder / "sysinfo.csv").read_text()
    assert SECRET not in Read(folder, tmp_path / "t").texts()


def test_thousands_of_columns_go_through_in_bounded_batches(tmp_path):
    header = [
        "Dispatch_ID",
        "Kernel_Name",
        "GPU_ID",
        *(f"TCC_HIT[{n}]" for n in range(3000)),
        "Start_Timestamp",
        "End_Timestamp",
    ]
    path = tmp_path / "pmc_perf.csv"
    with open(path, "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        for at in range(300):
            writer.writerow([at, "k", 0, *[at * 3000 + n for n in range(3000)], 1000 * at + 1, 1000 * at + 501])
    from causeway.readers.common.issues import Issues

    with CsvFile(path, path.name, "x", Issues()) as file:
        assert max(len(batch) for batch in file.batches()) < 100
    export = Read(path, tmp_path / "t")
    assert export.counters.num_rows == 300
    assert export.counters.column("TCC_HIT_2999").to_pylist() == [at * 3000.0 + 2999 for at in range(300)]
