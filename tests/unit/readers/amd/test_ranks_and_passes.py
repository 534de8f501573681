"""Files of a job's ranks in one folder: which rank each is, and when files are of several ranks, not of passes. With
`-i counters.txt --kernel-trace` every pass is an execution with process ids and a trace of its own.
"""

import itertools
import random

import pytest
from layouts.rocprofv3_samples import make_run, write_csv
from reading import Read

from causeway.readers.amd.executions import Span, at_the_same_time
from causeway.readers.common.name_ranks import ranks_in_names

V3 = (
    "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,"
    "LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,"
    "End_Timestamp"
)
V1 = "Index,KernelName,gpu-id,queue-id,pid,tid,grd,wgr,SQ_WAVES,DispatchNs,BeginNs,EndNs,CompleteNs"
LAUNCHES = 4
APART_NS = 1_000


def counters(path, pid, device, value, begin, counter="SQ_WAVES"):
    """Write counters of rocprofv3: as many launches, `APART_NS` apart, of 400 ns, each with the same value."""
    rows = [
        f'{at},{at},"Agent {device}",1,{pid},{pid},1024,8,"k",64,0,0,8,0,16,"{counter}",{value},'
        f"{begin + APART_NS * at},{begin + APART_NS * at + 400}"
        for at in range(1, LAUNCHES + 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([V3, *rows]) + "\n", encoding="utf-8")


def counters_v1(path, pid, device, value, begin, counter="SQ_WAVES"):
    """Write the same as rocprof v1 does."""
    rows = []
    for at in range(LAUNCHES):
        start = begin + APART_NS * (at + 1)
        rows.append(f'{at},"k",{device},0,{pid},{pid},1024,64,{value},{start - 50},{start},{start + 400},{start + 450}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([V1.replace("SQ_WAVES", counter), *rows]) + "\n", encoding="utf-8")


WRITERS = pytest.mark.parametrize(
    ("write", "ending"), [(counters, "_counter_collection.csv"), (counters_v1, ".csv")], ids=["v3", "v1"]
)


@WRITERS
@pytest.mark.parametrize(
    ("names", "stated"),
    [
        ([f"results_{rank}" for rank in range(12)], True),
        (["rank_0", "rank_1"], True),
        (["profile-1", "profile-0"], True),
        (["results_1", "results_2", "results_10"], False),
        (["one", "two"], False),
    ],
)
def test_counters_of_ranks_are_those_of_several_processes(tmp_path, write, ending, names, stated):
    """The n-th name in the order of its number is of device n, and its counters have the value 100 + n."""
    in_order = sorted(names, key=lambda name: (len(name), name))
    for name in names:
        number = in_order.index(name)
        write(tmp_path / "x" / f"{name}{ending}", 500 - number, number, 100 + number, 1_000_000 + 37 * number)
    export = Read(tmp_path / "x", tmp_path / "t")
    found = sorted((row["rank"], row["device"], row["sq_waves"]) for row in export.counters.to_pylist())
    assert found == [(number, number, 100.0 + number) for number in range(len(names)) for _ in range(LAUNCHES)]
    assert export.count("several_processes") == (0 if stated else len(names))
    assert (export.count("other_execution"), export.count("repeated_run")) == (0, 0)


@WRITERS
@pytest.mark.parametrize("names", [("results_0", "results_1"), ("one", "two")])
def test_counters_one_after_the_other_are_passes(tmp_path, write, ending, names):
    """The second pass begins when the first has ended: the launches are the same, and have both counters."""
    end = 1_000_000 + APART_NS * LAUNCHES + 400
    write(tmp_path / "x" / f"{names[0]}{ending}", 71, 0, 5, 1_000_000)
    write(tmp_path / "x" / f"{names[1]}{ending}", 72, 0, 7, end - APART_NS, "GRBM_COUNT")
    export = Read(tmp_path / "x", tmp_path / "t")
    rows = export.counters.to_pylist()
    measured = next(name for name in rows[0] if name.lower() == "grbm_count")
    assert [(row["rank"], row["sq_waves"], row[measured]) for row in rows] == [(0, 5.0, 7.0)] * LAUNCHES
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == ([0], "position")


@WRITERS
def test_ranks_in_several_passes(tmp_path, write, ending):
    """Two ranks at the same time, and both again later with another counter."""
    for number, (name, counter) in enumerate([("a", "SQ_WAVES"), ("b", "GRBM_COUNT")]):
        for rank in (0, 1):
            begin = 1_000_000 * (1 + number) + 11 * rank
            path = tmp_path / "x" / f"{name}_{rank}{ending}"
            write(path, 90 + 10 * number + rank, rank, 100 * rank + number, begin, counter)
    export = Read(tmp_path / "x", tmp_path / "t")
    rows = export.counters.to_pylist()
    measured = next(name for name in rows[0] if name.lower() == "grbm_count")
    found = sorted((row["rank"], row["sq_waves"], row[measured]) for row in rows)
    assert found == [(0, 0.0, 1.0)] * LAUNCHES + [(1, 100.0, 101.0)] * LAUNCHES


def test_files_at_the_same_time_against_all_pairs():
    """Chains of overlaps, found by joining any two that overlap until nothing changes."""
    draw = random.Random(7)
    for _ in range(300):
        spans = {}
        for name in "abcdefg"[: draw.randint(1, 7)]:
            begin = draw.randint(0, 40)
            known = draw.random() < 0.9
            spans[name] = Span(draw.randint(1, 30), begin, begin + draw.randint(1, 9)) if known else None
        chains = [{name} for name, span in spans.items() if span]
        for _ in spans:
            for one, other in itertools.combinations(chains, 2):
                pairs = itertools.product(one, other)
                if any(spans[a].begin < spans[b].end and spans[b].begin < spans[a].end for a, b in pairs):
                    chains = [chain for chain in chains if chain not in (one, other)] + [one | other]
                    break
        expected = [one for one in chains if 1 < len(one) == len({spans[name].process for name in one})]
        assert sorted(map(sorted, at_the_same_time(spans))) == sorted(map(sorted, expected))


@pytest.mark.parametrize(
    ("groups", "ranks"),
    [
        ([(".", f"results_{rank}") for rank in range(12)], list(range(12))),
        ([(".", "out-1"), (".", "out.0")], [1, 0]),
        ([("n00.3000.0/n00", "3000"), ("n00.3001.1/n00", "3005"), ("n01.9.2/n01", "7")], [0, 1, 2]),
        ([("n00.3000.0/n00", "3000"), ("n00.3000.0/n00", "3001"), ("n01.9.1/n01", "7")], [None] * 3),
        ([(".", "0"), (".", "1")], [0, 1]),
        ([(".", "4711"), (".", "4712")], [None, None]),
        ([(".", "host_4711"), (".", "host_4712")], [None, None]),
        ([(".", "results_1"), (".", "results_2")], [None, None]),
        ([(".", "results_0"), (".", "results_2")], [None, None]),
        ([(".", "results0"), (".", "results1")], [None, None]),
        ([("a", "results_0"), ("b", "results_0"), ("a", "results_1")], [None] * 3),
        ([("pmc_0", "9"), ("pmc_1", "8")], [None, None]),
        ([(".", "results_0")], [None]),
        ([(".", "rank3_0"), (".", "rank7_1")], [3, 7]),
        ([("1", "x_0"), ("0", "x_1")], [1, 0]),
        ([], []),
    ],
)
def test_numbers_that_are_ranks(groups, ranks):
    assert list(ranks_in_names(groups).values()) == ranks


def test_traces_of_twelve_ranks_are_ranks_by_their_numbers(tmp_path):
    """All launch on one device: nothing but the names orders them, and as text 10 comes before 2."""
    runs = [make_run(n=3, pid=1, seed=rank) for rank in range(12)]
    for rank, run in enumerate(runs):
        write_csv(run, tmp_path / "csv", prefix=f"results_{rank}")
    for file in (tmp_path / "csv").rglob("*.csv"):
        if "kernel_trace" not in file.name:
            file.unlink()
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == (list(range(12)), "export")
    for rank, run in enumerate(runs):
        starts = sorted(row["start_ns"] for row in export.launches.to_pylist() if row["rank"] == rank)
        assert starts == sorted(one["start"] for one in run["launches"])


@pytest.mark.parametrize(("pause", "in_turn"), [(0, 0), (10**9, 1)])
def test_runs_whose_names_end_in_numbers_are_cautioned_about(tmp_path, pause, in_turn):
    """Numbers may be those of runs, one after the other: that ranks do not overlap is said."""
    for rank in (0, 1):
        run = make_run(n=3, pid=1 + rank, seed=1)
        for one in run["launches"]:
            one["start"] += pause * rank
            one["stop"] += pause * rank
        write_csv(run, tmp_path / "csv", prefix=f"run_{rank}")
    export = Read(tmp_path / "csv", tmp_path / "t")
    assert (export.capabilities["ranks"], export.count("processes_in_turn")) == ([0, 1], in_turn)


COUNTERS = ("SQ_WAVES", "TCC_HIT_sum")
PAUSE_NS = 5_000_000_000


def write_passes(folder, processes):
    """Write two passes of a program, each with other process ids; return the runs by pass and process."""
    runs = {}
    for number, counter in enumerate(COUNTERS):
        for process in range(processes):
            run = make_run(n=6, pid=4000 + 100 * number + process, seed=process)
            for one in run["launches"]:
                one["start"] += number * PAUSE_NS
                one["stop"] += number * PAUSE_NS
            run["counters"] = [(one, {counter: found[counter]}) for one, found in run["counters"]]
            write_csv(run, folder / f"pmc_{number + 1}" / "node01")
            runs[number, process] = run
    for path in folder.rglob("*.csv"):
        if not path.name.endswith(("kernel_trace.csv", "counter_collection.csv")):
            path.unlink()
    return runs


@pytest.mark.parametrize("processes", [1, 2])
def test_passes_with_a_trace_each_are_executions_of_their_processes(processes, tmp_path):
    runs = write_passes(tmp_path / "csv", processes)
    export = Read(tmp_path / "csv", tmp_path / "tables")
    assert export.capabilities["ranks"] == list(range(processes))
    assert export.count("executions_in_turn") == processes
    assert export.issue("processes_in_turn") is None
    launches = [(row["rank"], row["start_ns"]) for row in export.launches.to_pylist()]
    rows = export.counters.to_pylist()
    assert len(launches) == 12 * processes
    assert len(rows) == 6 * processes
    found = {}
    for row in rows:
        found.setdefault(launches[row["launch"]][0], []).append((row["sq_waves"], row["tcc_hit"]))
    for rank, values in found.items():
        waves, hits = (runs[number, rank]["counters"] for number in range(2))
        assert sorted(values) == sorted(
            (sum(wave["SQ_WAVES"]), hit["TCC_HIT_sum"][0]) for (_, wave), (_, hit) in zip(waves, hits, strict=True)
        )


def test_passes_that_hold_different_numbers_of_processes_are_not_paired(tmp_path):
    write_passes(tmp_path / "csv", 2)
    for path in (tmp_path / "csv/pmc_2").rglob("4101_*"):
        path.unlink()
    export = Read(tmp_path / "csv", tmp_path / "tables")
    assert export.capabilities["ranks"] == [0, 1, 2]
    assert export.issue("executions_in_turn") is None
    assert export.count("processes_in_turn") == 1


@pytest.mark.parametrize("folders", [("pmc_1", "pmc_2"), ("pmc_1",), (".",)])
def test_what_accumulates_the_counter_before_it_is_another_in_each_folder_of_passes(tmp_path, folders):
    head = "Dispatch_Id,Agent_Id,Process_Id,Kernel_Name,Grid_Size,Workgroup_Size,Counter_Name,Counter_Value"
    head += ",Start_Timestamp,End_Timestamp"
    of_pass = ("SQ_IFETCH_LEVEL", "SQ_LEVEL_WAVES")
    values = {}
    for number, folder in enumerate(folders):
        lines = [head]
        for at in range(1, 4):
            values[number, at] = (10 * at + number, 100 * at + number)
            for name, value in zip((of_pass[number], "SQ_ACCUM_PREV_HIRES"), values[number, at], strict=True):
                begin = 10**9 * (1 + number) + 1000 * at
                lines.append(f'{at},Agent 1,7,"k(int)",256,64,{name},{value},{begin},{begin + 100}')
        (tmp_path / "run" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / folder / "7_counter_collection.csv").write_text("\n".join(lines) + "\n")
    table = Read(tmp_path / "run", tmp_path / "t").counters
    for number, folder in enumerate(folders):
        accumulated = f"{folder}_SQ_ACCUM_PREV_HIRES" if len(folders) > 1 else "SQ_ACCUM_PREV_HIRES"
        found = zip(table.column(of_pass[number]).to_pylist(), table.column(accumulated).to_pylist(), strict=True)
        assert list(found) == [values[number, at] for at in range(1, 4)]
    assert sum(name.endswith("HIRES") for name in table.column_names) == len(folders)
