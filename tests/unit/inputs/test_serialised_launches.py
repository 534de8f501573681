"""Launches that a collection of counters alone gives: the profiler lets one kernel run at a time, so that the time
between them is none of the program's. Their durations and counters stay.
"""

import pytest
from layouts import LAYOUTS
from layouts.rocprofv3_samples import make_run, write_csv
from reading import Read
from test_filters import reduce

from causeway.comparison.runs.run_totals import measure
from causeway.core.reduced import EFFICIENCY, STRAGGLERS
from causeway.core.tables import read_json, read_table, table_metadata, write_json
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.efficiency.ranks.find_stragglers import find_stragglers
from causeway.efficiency.steps.find_steps import find_steps
from causeway.inputs.quality import check
from causeway.inputs.session_clocks import align
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.graph.linked_graph import linked_graph

N = 40
DURATION = 1000
GAP = 50_000
TRACE_GAP = 2_000
RULED_OUT = {"time_line", "queue_delay", "overlap", EFFICIENCY, STRAGGLERS}
CHOICES = {"bins": 10, "regions": 2}
COUNTED = (
    "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Name,Workgroup_Size,"
    "Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
)
TRACED = "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp"


def counted(path):
    """Write counters of `N` launches that the profiler ran one after the other."""
    rows = [COUNTED]
    for number in range(1, N + 1):
        start = 10**9 + number * (DURATION + GAP)
        rows.append(f"{number},{number},Agent 1,1,7,8,64,k(),64,SQ_WAVES,{number},{start},{start + DURATION}")
    path.write_text("\n".join(rows) + "\n")
    return path


def traced(path, gap=TRACE_GAP):
    """Write the trace of the same launches, of another execution unless the gap is that of the counters."""
    rows = [TRACED]
    for number in range(1, N + 1):
        start = 10**9 + number * (DURATION + gap)
        rows.append(f"KERNEL_DISPATCH,Agent 1,1,8,{number},k(),{number},{start},{start + DURATION}")
    path.write_text("\n".join(rows) + "\n")
    return path


def results(folder, exports):
    """Return what is said of the time between launches of exports (name, folder of tables)."""
    folder.mkdir()
    clocks = folder / "clocks.json"
    folders = list(exports)
    write_json(align("d", folders), clocks, schema="clocks")
    measure_efficiency("d", folders, clocks, CHOICES, folder / "efficiency.json", folder / "efficiency.parquet")
    find_steps("d", folders, clocks, 1, folder / "steps.json", folder / "steps.parquet", folder / "causes.parquet")
    find_stragglers("d", folders, clocks, 1, folder / "stragglers.json", folder / "stragglers.parquet")
    explain_waiting("d", folders, clocks, folder / "steps.parquet", folder / "waiting.parquet")
    return {name: read_json(folder / f"{name}.json") for name in ("efficiency", "steps", "stragglers")} | {
        "waiting": read_table(folder / "waiting.parquet", "waiting").to_pylist(),
        "why": table_metadata(folder / "waiting.parquet").get("why"),
        "graph": linked_graph(folders, clocks, []),
    }


def export_of(path, place, name, position=0):
    found = Read(path, place / name, position=position)
    document = found.capabilities | {"export": name}
    write_json(document, place / name / "capabilities.json", schema="capabilities")
    return found


def test_beside_a_trace_the_time_line_is_the_traces(tmp_path):
    export_of(traced(tmp_path / "a_kernel_trace.csv"), tmp_path, "0")
    export_of(counted(tmp_path / "b_counter_collection.csv"), tmp_path, "1", position=1)
    alone = results(tmp_path / "alone", [tmp_path / "0"])
    both = results(tmp_path / "both", [tmp_path / "0", tmp_path / "1"])
    assert both["efficiency"]["why"] is None
    assert both["efficiency"]["elapsed_ns"] == alone["efficiency"]["elapsed_ns"] == N * DURATION + (N - 1) * TRACE_GAP
    assert both["waiting"] == alone["waiting"]
    assert sum(row["wait_ns"] for row in both["waiting"] if row["step"] is None) == (N - 1) * TRACE_GAP
    assert both["graph"][1] is None
    analyses = check("d", [tmp_path / "0", tmp_path / "1"])["analyses"]
    assert analyses["time_line"]["possible"]
    assert analyses.get(EFFICIENCY, {"possible": True})["possible"]


def test_a_comparison_takes_durations_of_all_but_the_span_of_a_trace_alone(tmp_path):
    export_of(traced(tmp_path / "a_kernel_trace.csv"), tmp_path, "0")
    export_of(counted(tmp_path / "b_counter_collection.csv"), tmp_path, "1", position=1)
    spans = {
        exports: measure("d", [tmp_path / name for name in exports]).span_ns for exports in (("0",), ("1",), ("0", "1"))
    }
    span = N * DURATION + (N - 1) * TRACE_GAP
    assert spans == {("0",): span, ("1",): None, ("0", "1"): span}
    alone = measure("d", [tmp_path / "1"])
    assert (alone.launches, alone.total_ns) == (N, N * DURATION)


def test_with_a_trace_in_the_folder_the_launches_are_the_traces(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    traced(folder / "a_kernel_trace.csv")
    counted(folder / "a_counter_collection.csv")
    export = Read(folder, tmp_path / "t")
    assert export.count("serialised_launches") == 0
    assert export.capabilities["analyses"]["time_line"]["possible"]
    assert EFFICIENCY not in export.capabilities["analyses"]
    assert export.launches.column("start_ns").to_pylist()[1] - 10**9 == 2 * (DURATION + TRACE_GAP)


def test_a_trace_of_the_execution_that_was_counted_has_no_time_line(tmp_path):
    """As `rocprofv3 --kernel-trace --pmc` writes it: the kernels that are traced ran one at a time."""
    folder = tmp_path / "run"
    folder.mkdir()
    traced(folder / "7_kernel_trace.csv", GAP)
    counted(folder / "7_counter_collection.csv")
    export = Read(folder, tmp_path / "t")
    assert export.count("serialised_launches") == export.launches.num_rows == N
    analyses = export.capabilities["analyses"]
    assert not any(analyses[name]["possible"] for name in RULED_OUT)
    assert analyses["counter_deviation"]["possible"]
    assert export.counters.column("launch").to_pylist() == list(range(N))


@pytest.mark.parametrize(("name", "serialised"), [("7", N), ("a", 0)])
def test_counters_without_times_are_of_the_trace_of_their_process(name, serialised, tmp_path):
    """The counters of 2024 have no times; `-o a` may name files of two executions, a process id does not."""
    folder = tmp_path / "run"
    folder.mkdir()
    traced(folder / f"{name}_kernel_trace.csv")
    path = counted(folder / f"{name}_counter_collection.csv")
    path.write_text("".join(line.rsplit(",", 2)[0] + "\n" for line in path.read_text().splitlines()))
    export = Read(folder, tmp_path / "t")
    assert export.count("serialised_launches") == serialised
    assert export.capabilities["analyses"]["time_line"]["possible"] == (not serialised)


def test_times_that_are_copied_beside_counters_say_nothing(tmp_path):
    """Omniperf writes the times of its timing run into the table of the counters of other executions."""
    folder = tmp_path / "MI200"
    folder.mkdir()
    header = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,Start_Timestamp,End_Timestamp"
    rows = [f"{at},k(),2,64,64,{1000 * at + 1000},{1000 * at + 1500}" for at in range(3)]
    (folder / "timestamps.csv").write_text("\n".join([header, *rows]) + "\n")
    (folder / "pmc_perf.csv").write_text("\n".join([f"{header},SQ_WAVES", *[f"{one},7" for one in rows]]) + "\n")
    export = Read(folder, tmp_path / "t")
    assert export.counters.column("sq_waves").to_pylist() == [7.0] * 3
    assert export.count("serialised_launches") == 0
    assert export.capabilities["analyses"]["time_line"]["possible"]


@pytest.mark.parametrize(
    ("layout", "serialised"),
    [
        ("rocprofiler-compute", True),
        ("rocprof folder", False),
        ("rocprofv3 csv", True),  # of both, the counters are those of the traced launches
        ("rocpd 3", True),
        ("rocprofv3.json", True),
        ("perfetto-trace.proto", False),
    ],
)
def test_what_gives_the_launches_decides(layout, serialised, tmp_path):
    export = Read(LAYOUTS[layout](tmp_path, "k()", 8), tmp_path / "t")
    assert bool(export.count("serialised_launches")) == serialised
    assert export.capabilities["analyses"]["time_line"]["possible"] != serialised


def test_passes_without_a_trace_are_serialised_and_a_filter_does_not_change_that(tmp_path):
    run = make_run(n=12)
    write_csv(run, tmp_path / "csv")
    for path in (tmp_path / "csv").iterdir():
        if not path.name.endswith("counter_collection.csv"):
            path.unlink()
    export = export_of(tmp_path / "csv", tmp_path, "0")
    assert export.count("serialised_launches") == 12
    (tmp_path / "reduced").mkdir()
    reduce(tmp_path / "0", tmp_path / "reduced" / "0", [{"min_duration_us": 0}])
    analyses = read_json(tmp_path / "reduced" / "0" / "capabilities.json")["analyses"]
    assert {name for name in RULED_OUT if not analyses[name]["possible"]} == RULED_OUT
    assert analyses["context_features"]["possible"]
