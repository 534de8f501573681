"""rocprofiler-compute of ROCm 7 collects with rocpd: a row for each counter of a launch, and files packed with gzip."""

import gzip

import pytest
from reading import Read

COLUMNS = (
    "GPU_ID,GUID,Correlation_Id,Dispatch_ID,PID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,"
    "Arch_VGPR,Accum_VGPR,SGPR,Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value"
)
FIRST = {"SQ_WAVES": 7, "SQ_INSTS_VALU": 70}
SECOND = {"GRBM_GUI_ACTIVE": 700, "SQ_ACCUM_PREV_HIRES": 0.5}


def rows(counters, begin, by_counter=False):
    """Return the rows of three launches in one pass, those of a launch or of a counter one after the other."""
    found = [
        (launch, name, f'4,ab-1,{launch},{launch},77,{256 * launch},64,512,0,8,4,16,"k<int, 2>(float*)",'
         f"{begin + 1000 * launch},{begin + 1000 * launch + 250 + launch},5,{name},{value * launch}")
        for launch in (1, 2, 3)
        for name, value in counters.items()
    ]  # fmt: skip
    return [text for _, _, text in (sorted(found, key=lambda row: row[1:2]) if by_counter else found)]


def check(export):
    """Compare with the rows of the passes `FIRST` and `SECOND`."""
    assert export.status == "read"
    assert export.launches.column("start_ns").to_pylist() == [10**9 + 1000 * launch for launch in (1, 2, 3)]
    assert export.launches.column("duration_ns").to_pylist() == [251, 252, 253]
    assert set(export.launches.column("device").to_pylist()) == {4}
    assert export.configurations.column("grid_x").to_pylist() == [256, 512, 768]
    assert export.configurations.column("lds_bytes").to_pylist() == [512] * 3
    found = export.counters
    assert found.num_rows == 3
    assert found.column("gpu_time").to_pylist() == [251, 252, 253]
    assert found.column("sq_waves").to_pylist() == [7, 14, 21]
    assert found.column("sq_insts_valu").to_pylist() == [70, 140, 210]
    assert found.column("GRBM_GUI_ACTIVE").to_pylist() == [700, 1400, 2100]
    assert not {"Counter_Value", "Correlation_Id", "GUID", "PID"} & set(found.column_names)
    assert export.count("not_a_number") == 0
    assert export.count("other_execution") == 3  # two passes are two executions


@pytest.mark.parametrize("by_counter", [False, True], ids=["by launch", "by counter"])
def test_a_row_for_each_counter_becomes_a_row_for_each_launch(by_counter, tmp_path):
    path = tmp_path / "pmc_perf.csv"
    lines = [COLUMNS, *rows(FIRST, 10**9, by_counter), *rows(SECOND, 2 * 10**9, by_counter)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    check(export)
    assert export.count("repeated_counters") == 0
    assert export.capabilities["rows_in"] == {"pmc_perf.csv": 12}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_workload_of_passes_of_such_rows(packed, tmp_path):
    folder = tmp_path / "workload"
    folder.mkdir()
    third = {"SQ_ACCUM_PREV_HIRES": 0.25}  # another meaning in each pass
    for number, counters in enumerate((FIRST, SECOND, third)):
        lines = [COLUMNS, *rows(counters, (1 + number) * 10**9)]
        data = ("\n".join(lines) + "\n").encode()
        name = f"results_pmc_perf_{number}.csv"
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
    (folder / "sysinfo.csv").write_text("workload_name,ip_blocks\nw,SQ\n", encoding="utf-8")
    export = Read(folder, tmp_path / "t")
    check(export)
    assert export.counters.column("results_pmc_perf_1_SQ_ACCUM_PREV_HIRES").to_pylist() == [0.5, 1.0, 1.5]
    assert export.counters.column("results_pmc_perf_2_SQ_ACCUM_PREV_HIRES").to_pylist() == [0.25, 0.5, 0.75]


def test_a_counter_without_a_number_is_absent_and_counted(tmp_path):
    path = tmp_path / "pmc_perf.csv"
    lines = [COLUMNS, *rows(FIRST, 10**9)]
    lines[2] = lines[2].rpartition(",")[0] + ",nan"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.counters.column("sq_insts_valu").to_pylist() == [None, 140, 210]
    assert export.counters.column("sq_waves").to_pylist() == [7, 14, 21]
    assert export.count("not_a_number") == 1


def test_a_launch_without_counters_stays_a_launch(tmp_path):
    path = tmp_path / "pmc_perf.csv"
    lines = [COLUMNS, *rows({"": 0}, 10**9)[:2], *rows(FIRST, 10**9)[4:]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.launches.column("duration_ns").to_pylist() == [251, 252, 253]
    assert export.counters.column("sq_waves").to_pylist() == [None, None, 21]
    assert set(export.capabilities["values"]) == {"sq_waves", "sq_insts_valu", "gpu_time"}
