"""rocprofv3 with `-i counters.txt --kernel-trace`: every pass is an execution with process ids and a trace of its own."""

import pytest
from layouts.rocprofv3_samples import make_run, write_csv
from reading import Read

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
