"""rocprofv3's CSV files: every real one against csv, folders of one or more processes, counters joined by number and
name, and damage.
"""

import csv
import gzip
import re

import pytest
from layouts.rocprofv3_samples import KERNELS, SECRET, make_run, write_csv
from reading import Read

from causeway.readers.sink.counter_table import plain_name, simplified
from support import DATA

HERE = DATA / "rocprofv3"
TRACES = sorted(HERE.rglob("*kernel_trace.csv")) if DATA.is_dir() else []
COUNTED = sorted([*HERE.rglob("*counter_collection.csv"), *HERE.rglob("kernel_names.csv")]) if DATA.is_dir() else []
OTHERS = sorted(path for path in HERE.rglob("*.csv") if path not in (*TRACES, *COUNTED)) if DATA.is_dir() else []


def real(paths):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    return [pytest.param(path, id=path.stem) for path in paths] or [pytest.param(None, marks=why)]


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def column_of(raw):
    known = simplified().get(raw)
    return known[0] if known else plain_name(raw)


@pytest.mark.parametrize("path", real(TRACES))
def test_launches_equal_the_rows(path, tmp_path):
    rows = sorted(rows_of(path), key=lambda row: int(row["Start_Timestamp"]))
    export = Read(path, tmp_path / "t")
    assert (export.status, export.capabilities["kind"]) == ("read", "trace")
    assert export.capabilities["rows_in"] == {path.name: len(rows)}
    found = export.launches.to_pylist()
    assert [one["start_ns"] for one in found] == [int(row["Start_Timestamp"]) for row in rows]
    assert export.total("launches") == sum(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in rows)
    assert [one["correlation"] for one in found] == [int(row["Correlation_Id"]) for row in rows]
    assert [one["stream"] for one in found] == [int(row.get("Stream_Id") or row["Queue_Id"]) for row in rows]
    assert {one["device"] for one in found} == {int(row["Agent_Id"].removeprefix("Agent ")) for row in rows}
    names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    shapes = {row["configuration"]: row for row in export.configurations.to_pylist()}
    for one, row in zip(found, rows, strict=True):
        shape = shapes[one["configuration"]]
        assert names[shape["kernel"]] == row["Kernel_Name"]
        sizes = [int(row[f"{what}_Size_{axis}"]) for what in ("Grid", "Workgroup") for axis in "XYZ"]
        assert [shape[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"] == sizes
        assert shape["lds_bytes"] == int(row.get("LDS_Block_Size") or row["Group_Segment_Size"])
        assert shape["arch_vgpr"] == (int(row["VGPR_Count"]) if "VGPR_Count" in row else None)
    possible = {name for name, one in export.capabilities["analyses"].items() if one["possible"]}
    assert possible == {"kernel_variability", "causes", "time_line"}


@pytest.mark.parametrize("path", real(COUNTED))
def test_counters_equal_the_cells(path, tmp_path):
    rows = rows_of(path)
    launches = {row["Dispatch_Id"]: row for row in rows}
    timed = "Start_Timestamp" in rows[0]
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.capabilities["rows_in"] == {path.name: len(rows)}
    counters = {row["Counter_Name"] for row in rows}
    assert set(export.capabilities["values"]) == {column_of(raw) for raw in counters} | (
        {"gpu_time"} if timed else set()
    )
    order = sorted(launches.values(), key=lambda row: int(row["Start_Timestamp"] if timed else row["Dispatch_Id"]))
    cells = {(row["Dispatch_Id"], row["Counter_Name"]): float(row["Counter_Value"]) for row in rows}
    for raw in counters:
        assert export.counters.column(column_of(raw)).to_pylist() == [
            cells[row["Dispatch_Id"], raw] for row in order
        ], raw
    if timed:
        lengths = [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in order]
        assert (
            export.counters.column("gpu_time").to_pylist()
            == lengths
            == export.launches.column("duration_ns").to_pylist()
        )
    else:
        assert (export.capabilities["kind"], "launches" in export.names) == ("counters", False)
    sizes = {(int(row["Grid_Size"]), int(row["Workgroup_Size"])) for row in rows}
    found = export.configurations.to_pylist()
    assert {(one["grid_x"], one["block_x"]) for one in found} == sizes
    assert {one["grid_y"] for one in found} == {None}


@pytest.mark.parametrize("path", real(OTHERS))
def test_files_without_launches(path, tmp_path):
    export = Read(path, tmp_path / "t")
    if "memory_copy" in path.name:
        rows = rows_of(path)
        assert export.status == "read"
        assert export.count("no_launches") == 1
        assert export.total("transfers") == sum(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in rows)
        assert export.transfers.column("copy_kind").to_pylist() == [1, 2]
        assert export.transfers.column("device").to_pylist() == [1, 1]
        assert export.transfers.column("bytes").null_count == 2
    else:
        assert export.status == "refused"
        assert ("summary" if "stats" in path.name else "no launch of a kernel") in export.error["found"]


def test_a_folder_of_one_run_and_its_counter_runs(data, tmp_path):
    folder = data / "rocprofv3/llama-rdna35"
    traced = rows_of(folder / "decode_kernel_trace.csv")
    calls = rows_of(folder / "decode_hip_api_trace.csv")
    stall = rows_of(folder / "decode_stall_counter_collection.csv")
    fetch = rows_of(folder / "decode_fetch_counter_collection.csv")
    export = Read(folder, tmp_path / "t")
    assert export.capabilities["tables"] | {"configurations": 0} == {
        "launches": len(traced), "calls": len(calls), "counters": 34, "configurations": 0, "kernels": 17, "devices": 1,
    }  # fmt: skip
    assert export.capabilities["ranks"] == [0]
    assert export.total("launches") == sum(int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in traced)
    names = {row["Dispatch_Id"]: row["Kernel_Name"] for row in traced}
    joined = {row["Dispatch_Id"] for row in stall if names.get(row["Dispatch_Id"]) == row["Kernel_Name"]}
    assert len(joined) == 20
    assert export.count("unmatched_counters") == 34 - len(joined)
    assert export.count("other_execution") == 34  # three executions: other process ids, other times
    cells = {(row["Dispatch_Id"], row["Counter_Name"]): float(row["Counter_Value"]) for row in (*stall, *fetch)}
    start = {row["Dispatch_Id"]: int(row["Start_Timestamp"]) for row in traced}
    launches = export.launches.column("start_ns").to_pylist()
    of = {row["launch"]: row for row in export.counters.to_pylist()}
    for number in joined:
        row = of[launches.index(start[number])]
        assert (row["FETCH_SIZE"], row["L2CacheHit"]) == (cells[number, "FETCH_SIZE"], cells[number, "L2CacheHit"])
    assert sorted(number for number in of if number >= len(traced)) == list(range(len(traced), len(traced) + 14))


def test_calls_and_markers_of_a_folder(data, tmp_path):
    folder = data / "rocprofv3/sdk-docs-2024"
    export = Read(folder, tmp_path / "t")
    marks = rows_of(folder / "marker_api_trace.csv")
    assert sorted(export.ranges.column("name").to_pylist()) == sorted(row["Function"] for row in marks)
    assert set(export.ranges.column("kind").to_pylist()) == {"roctx"}
    calls = [
        row["Function"]
        for name in ("hip_runtime", "hip_compile", "hsa_api")
        for row in rows_of(folder / f"{name}_trace.csv")
    ]
    assert sorted(export.calls.column("name").to_pylist()) == sorted(calls)


# made-up runs


def not_possible(export):
    return {name for name, one in export.capabilities["analyses"].items() if not one["possible"]}


def test_launches_find_their_calls_and_ranges(tmp_path):
    run = make_run()
    write_csv(run, tmp_path / "csv")
    export = Read(tmp_path / "csv", tmp_path / "t")
    ends = {call[1]: call[4] for call in run["calls"]}
    queue = {one["start"]: one["start"] - ends[one["correlation"]] for one in run["launches"]}
    for row in export.launches.to_pylist():
        assert row["queue_ns"] == (queue[row["start_ns"]] if queue[row["start_ns"]] >= 0 else None)
    assert export.launches.column("range").null_count < len(run["launches"])
    absent = {"device_metrics", "mpi_calls"}
    while_counted = {"time_line", "queue_delay", "overlap", "efficiency", "stragglers"}
    assert not_possible(export) == absent | while_counted  # counters of the same launches lie beside them
    (tmp_path / "csv" / f"{run['pid']}_counter_collection.csv").unlink()
    assert not_possible(Read(tmp_path / "csv", tmp_path / "alone")) == absent | {"counter_deviation"}


def test_counters_of_the_same_run_are_linked_without_a_caution(tmp_path):
    run = make_run()
    write_csv(run, tmp_path / "csv")
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert export.counters.column("launch").to_pylist() == list(range(40))
    assert export.counters.column("configuration").to_pylist() == export.launches.column("configuration").to_pylist()
    assert export.counters.column("gpu_time").to_pylist() == export.launches.column("duration_ns").to_pylist()
    assert (export.count("other_execution"), export.count("unmatched_counters")) == (0, 0)


def test_copies_between_two_gpus_are_peer_to_peer(tmp_path):
    run = make_run()
    write_csv(run, tmp_path / "csv")
    export = Read(tmp_path / "csv", tmp_path / "t")
    kinds = {1: (1, 1), 2: (2, 2), 3: (10, 2)}  # way in the file -> CUPTI's kind, device
    assert sorted((row["start_ns"], row["copy_kind"], row["device"]) for row in export.transfers.to_pylist()) == sorted(
        (copy[3], *kinds[copy[0]]) for copy in run["copies"]
    )


@pytest.mark.parametrize("deep", ["", "host/", "out/host/"])
def test_several_processes_in_one_folder_are_ranks(deep, tmp_path):
    runs = [make_run(pid=pid, seed=pid) for pid in (30, 4, 500)]
    for run in runs:
        write_csv(run, tmp_path / "csv" / deep)
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["format"], export.capabilities["ranks"]) == ("rocprofv3", [0, 1, 2])
    for rank, pid in enumerate((4, 30, 500)):  # in the order of process ids
        mine = next(run for run in runs if run["pid"] == pid)
        rows = [row for row in export.launches.to_pylist() if row["rank"] == rank]
        assert sum(row["duration_ns"] for row in rows) == sum(one["stop"] - one["start"] for one in mine["launches"])
        counted = [row["sq_waves"] for row in export.counters.to_pylist() if row["rank"] == rank]
        assert sorted(counted) == sorted(sum(found["SQ_WAVES"]) for _, found in mine["counters"])


def test_ranks_named_by_the_files_are_taken(tmp_path):
    for rank in (3, 7):
        write_csv(make_run(pid=90 - rank, seed=rank), tmp_path / "csv", prefix=f"job_rank{rank}")
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == ([3, 7], "export")


FOLDERS_OF_RANKS = pytest.mark.parametrize(
    ("folders", "ranks"),
    [
        (("rank3", "rank7"), [3, 7]),
        (("job_rank_10/host", "job_rank_2/host"), [2, 10]),
        (("1/host", "0/host"), [0, 1]),  # --output-directory %rank%
        (("4711", "4712"), [0, 1]),  # numbers, but not those of two ranks: processes
        (("one", "two"), [0, 1]),
    ],
)
"""Folders of the same names of files, and the ranks that their processes are, in ascending order."""


def ranked(export, runs, folders, ranks):
    """Check that each folder's launches are those of one rank, and that only the numbered ones are noted as such."""
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == (ranks, "export")
    found = {
        rank: sorted(row["start_ns"] for row in export.launches.to_pylist() if row["rank"] == rank) for rank in ranks
    }
    by_number = sorted(zip(folders, runs, strict=True), key=lambda one: int("0" + re.sub(r"\D", "", one[0])))
    assert found == {
        rank: sorted(one["start"] for one in run["launches"]) for rank, (_, run) in zip(ranks, by_number, strict=True)
    }
    stated = not {"4711", "one"} & set(folders)
    assert (export.count("several_processes"), export.count("rank_assumed")) == (0 if stated else 2, 0)


@FOLDERS_OF_RANKS
@pytest.mark.parametrize("traced", [True, False])
def test_folders_with_the_same_names_of_files_are_ranks(folders, ranks, traced, tmp_path):
    """Also where both processes have one process id, as in containers, and where no call tells it."""
    runs = [make_run(pid=1, seed=seed) for seed in (5, 6)]
    for folder, run in zip(folders, runs, strict=True):
        write_csv(run, tmp_path / "csv" / folder, prefix="results")
    for file in (tmp_path / "csv").rglob("*.csv"):
        if not traced and "kernel_trace" not in file.name:
            file.unlink()
    ranked(Read(tmp_path / "csv", tmp_path / "t"), runs, folders, ranks)


def test_counters_find_their_launches_where_a_process_is_no_rank(tmp_path):
    runs = {"rank2": make_run(seed=5), "helper": make_run(seed=6), "rank4": make_run(seed=7)}
    for folder, run in runs.items():
        write_csv(run, tmp_path / "csv" / folder)
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["ranks"], export.count("unranked_processes")) == ([2, 4], 1)
    waves = {
        (rank, one["start"]): sum(found["SQ_WAVES"])
        for rank in (2, 4)
        for one, found in runs[f"rank{rank}"]["counters"]
    }
    launches = [(row["rank"], row["start_ns"]) for row in export.launches.to_pylist()]
    counters = export.counters.to_pylist()
    assert {launches[row["launch"]]: row["sq_waves"] for row in counters} == waves
    assert [(row["rank"], row["start_ns"]) for row in counters] == [launches[row["launch"]] for row in counters]


def test_passes_that_were_traced_too_stay_executions_of_one_process(tmp_path):
    for number in (1, 2):
        write_csv(make_run(n=6, pid=1, seed=number), tmp_path / "csv" / f"pass_{number}", prefix="results")
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["ranks"], export.capabilities["tables"]["launches"]) == ([0], 12)


def test_passes_of_counters_in_folders_are_joined(tmp_path):
    run = make_run(n=6)
    for number, counter in enumerate(("SQ_WAVES", "TCC_HIT_sum"), 1):
        part = run | {
            "pid": 4242 + number,
            "counters": [(one, {counter: found[counter]}) for one, found in run["counters"]],
        }
        write_csv(part, tmp_path / "csv" / f"pass_{number}")
    for path in (tmp_path / "csv").rglob("*.csv"):
        if "counter" not in path.name:
            path.unlink()
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert export.counters.num_rows == 6
    assert export.counters.column("tcc_hit").to_pylist() == [found["TCC_HIT_sum"][0] for _, found in run["counters"]]
    assert export.counters.column("sq_waves").to_pylist() == [sum(found["SQ_WAVES"]) for _, found in run["counters"]]


def test_rows_of_one_launch_may_lie_apart(tmp_path):
    write_csv(make_run(), tmp_path / "csv")
    path = tmp_path / "csv/4242_counter_collection.csv"
    header, *rows = path.read_text().splitlines()
    whole = Read(path, tmp_path / "a")
    path.write_text("\n".join([header, *sorted(rows, key=lambda row: row.split(",")[15])]) + "\n")
    apart = Read(path, tmp_path / "b")
    assert apart.counters.equals(whole.counters)


def test_the_spelling_of_rocpd_convert_and_gzip(tmp_path):
    run = make_run()
    write_csv(run, tmp_path / "csv")
    path = tmp_path / "csv/4242_kernel_trace.csv"
    text = path.read_text().replace("LDS_Block_Size", "Lds_Block_Size").replace("VGPR_Count", "Vgpr_Count")
    lines = text.splitlines()
    text = "\n".join(['"Guid",' + lines[0], *('"abc-1",' + line for line in lines[1:])]) + "\n"
    other = tmp_path / "trace.csv.gz"
    other.write_bytes(gzip.compress(text.encode()))
    one = Read(path, tmp_path / "a")
    two = Read(other, tmp_path / "b")
    assert one.launches.equals(two.launches)
    assert one.configurations.equals(two.configurations)


# damage


def test_a_cut_trace_a_missing_column_and_a_folder_for_a_file(tmp_path):
    write_csv(make_run(), tmp_path / "csv")
    path = tmp_path / "csv/4242_kernel_trace.csv"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    export = Read(path, tmp_path / "a")
    assert (export.status, export.capabilities["tables"]["launches"]) == (
        "partial",
        content[: len(content) // 2].count(b"\n") - 1,
    )
    assert "line" in export.error["found"]
    export = Read(tmp_path / "csv", tmp_path / "b")
    assert (export.status, export.capabilities["tables"]["calls"]) == ("partial", 48)
    path.write_bytes(content.replace(b"End_Timestamp", b"End"))
    assert Read(path, tmp_path / "c", form="rocprofv3").status == "refused"
    path.write_bytes(content.replace(b'"Agent_Id",', b'"Agent",'))
    export = Read(path, tmp_path / "d", form="rocprofv3")
    assert (export.status, export.count("device_assumed")) == ("read", 1)
    path.unlink()
    path.mkdir()
    assert Read(path, tmp_path / "e", form="rocprofv3").status == "refused"


def test_a_compressed_file_cut_short(tmp_path):
    write_csv(make_run(n=3000), tmp_path / "csv")
    whole = gzip.compress((tmp_path / "csv/4242_kernel_trace.csv").read_bytes())
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    export = Read(path, tmp_path / "t")
    assert export.status == "partial"
    assert 500 < export.launches.num_rows < 2500


def test_odd_cells_cost_their_rows(tmp_path):
    write_csv(make_run(), tmp_path / "csv")
    path = tmp_path / "csv/4242_kernel_trace.csv"
    lines = path.read_text().splitlines()
    start = lines[1].split('","')[9]
    lines[1] = lines[1].replace(start, str(10**30))
    lines[2] = lines[2].replace("Agent", "\x00Agent")
    lines[3] = lines[3].replace('"Agent 1"', '""').replace('"Agent 2"', '""')
    lines[4] = lines[4][:60]
    path.write_text("\n".join(lines) + "\n")
    export = Read(path, tmp_path / "t", form="rocprofv3")
    assert export.launches.num_rows == 38
    assert (export.count("out_of_range"), export.count("no_time"), export.count("unreadable_rows")) == (1, 1, 1)


def test_every_prefix_of_a_file_is_read_or_refused(tmp_path):
    write_csv(make_run(n=3), tmp_path / "csv")
    content = (tmp_path / "csv/4242_counter_collection.csv").read_bytes()
    path = tmp_path / "4242_counter_collection.csv"
    for keep in range(0, len(content), 47):
        path.write_bytes(content[:keep])
        export = Read(path, tmp_path / "t", form="rocprofv3")
        assert export.status in ("read", "partial", "refused")
        assert "foresee" not in str(export.error)


def test_secrets_stay_behind(tmp_path, caplog):
    folder = tmp_path / "csv"
    write_csv(make_run(), folder)
    (folder / "config.json").write_text(f'{{"command": "{SECRET}"}}')
    with open(folder / "4242_agent_info.csv", "a") as handle:
        handle.write(f'"9","9","{SECRET}","1","1","x","y"\n')
    text = (folder / "4242_kernel_trace.csv").read_text().splitlines()
    text = [text[0] + ',"Host_Name"', *(line + f',"{SECRET}"' for line in text[1:])]
    (folder / "4242_kernel_trace.csv").write_text("\n".join(text) + "\n")
    export = Read(folder, tmp_path / "t")
    assert set(export.kernels.column("name").to_pylist()) == {name for name, *_ in KERNELS.values()}
    assert SECRET not in export.texts() + caplog.text


def spoilt(folder, **cells):
    """Write a kernel trace of 20 launches, some of their cells replaced, and markers, of which two have no end."""
    folder.mkdir()
    names = "Kernel_Name,Correlation_Id,Agent_Id,Queue_Id,Dispatch_Id,Start_Timestamp,End_Timestamp"
    rows = []
    for at in range(20):
        row = {"name": "k", "id": at, "agent": 1, "queue": 1, "number": at + 1}
        row |= {"start": 10**15 + 1000 * at, "end": 10**15 + 1000 * at + 307}
        rows.append(",".join(str(value) for value in (row | {key: of(row) for key, of in cells.items()}).values()))
    (folder / "x_kernel_trace.csv").write_text("\n".join([names, *rows]) + "\n")
    names = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
    rows = [("zero", 10**15, 0), ("none", 10**15 + 5, ""), ("ended", 10**15 + 7, 10**15 + 900)]
    marks = [f"MARKER_CORE_API,{name},1,1,{at},{start},{end}" for at, (name, start, end) in enumerate(rows)]
    (folder / "x_marker_api_trace.csv").write_text("\n".join([names, *marks]) + "\n")
    return folder


def test_a_range_without_an_end_lasts_to_the_end_of_the_recording(tmp_path):
    """roctxRangePush of a program that was stopped: an end of 0, or none."""
    export = Read(spoilt(tmp_path / "x"), tmp_path / "t")
    last = 19_307
    assert [(row["name"], row["duration_ns"]) for row in export.ranges.to_pylist()] == [
        ("zero", last),
        ("none", last - 5),
        ("ended", 893),
    ]
    assert (export.status, export.count("open_events"), export.count("end_before_start")) == ("read", 2, 0)


def test_launches_whose_times_a_spreadsheet_spoilt_are_not_said_to_be_absent(tmp_path):
    """1,000,000,000,000,000 and 1.00000E+15 are what spreadsheets make of nanoseconds."""
    for name, how in (("comma", lambda row: f'"{row["start"]:,}"'), ("power", lambda row: f"{row['start']:.5E}")):
        path = spoilt(tmp_path / name, start=how, end=how) / "x_kernel_trace.csv"
        error = Read(path, tmp_path / f"t{name}").error
        assert error["found"].startswith("none of its 20 launches can be used: ")
        assert "spreadsheet" in error["advice"]
