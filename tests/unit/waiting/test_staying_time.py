"""A host without cost still waits in MPI, and loses what the profiler itself did: worked by hand."""

import numpy as np
import pytest
from path_pieces import pieces_of
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import write_json
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.path.path_table import PathSums, last_ranks_of
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

US = 1000
SHIFT = 5_000 * US


def linked(folder, mpi, profiler):
    """Return the graph and its links: a kernel called from 0 to 5 us runs from 5 to 25, one called from 300 to 400 from
    400 to 420.
    """
    work = {"rank": 0, "device": 0, "stream": 7, "configuration": 0}
    call = {"rank": 0, "thread": 1, "name": "cudaLaunchKernel"}
    tables = {
        "launches": [
            work | {"start_ns": US * start, "duration_ns": 20 * US, "correlation": number}
            for number, start in enumerate((5, 400))
        ],
        "calls": [
            call | {"start_ns": US * start, "duration_ns": US * length, "correlation": number}
            for number, (start, length) in enumerate(((0, 5), (300, 100)))
        ],
        "mpi": [
            {"rank": 0, "thread": thread, "name": "MPI_Recv", "start_ns": US * start, "duration_ns": US * (end - start)}
            for thread, start, end in mpi
        ],
        "profiler_overhead": [
            {"rank": rank, "name": "flush", "start_ns": US * start, "duration_ns": US * (end - start)}
            for rank, start, end in profiler
        ],
    }
    write_export(folder / "e0", tables)
    write_json({"exports": {"e0": {"shift_ns": SHIFT, "ranks": [0]}}}, folder / "clocks.json")
    return linked_graph([folder / "e0"], folder / "clocks.json", [])[0]


def run_time(folder, mpi, profiler):
    """Return the time of the run of `linked` as it was, and with a free host, us."""
    graph, links = linked(folder, mpi, profiler)
    paths = CriticalPaths(graph, links)
    runs = paths.runs(measured(graph, links))
    plain = durations_of(graph, links)
    found = {one.word: one for one in changes(graph, links, plain, np.zeros(len(graph.texts), np.int64))}
    times = [paths.run_time(replayed(graph, links, one), runs) for one in (plain, found["host_free"].durations)]
    assert times[0] - times[1] <= found["host_free"].naive_ns
    return [time / US for time in times]


@pytest.mark.parametrize(
    ("mpi", "profiler", "in_mpi"),
    [
        ([], [], 0),
        ([(1, 50, 90)], [], 40),
        ([(2, 50, 90)], [], 0),  # another thread's
        ([(1, 0, 90), (1, 80, 120), (1, 290, 350)], [], 115 + 10),  # between the calls alone
        ([(1, 50, 90)], [(0, 80, 100)], 40),  # the profiler's time is no MPI
        ([(1, 1, 310)], [], 295),
    ],
)
def test_mpi_between_calls_is_no_host_code(tmp_path, mpi, profiler, in_mpi):
    graph, links = linked(tmp_path, mpi, profiler)
    paths = CriticalPaths(graph, links)
    schedule = measured(graph, links)
    sums = PathSums(graph, last_ranks_of(graph, schedule))
    for pieces in paths.chunks(schedule, 0):
        sums.take(pieces)
    found = {name: ns // US for (kind, name, _), ns in sums.whole().items() if kind == "host"}
    between = {"host code between calls": 295 - in_mpi, "MPI": in_mpi}
    assert found == {name: time for name, time in between.items() if time}
    assert sum(sums.whole().values()) == 420 * US
    pieces = pieces_of(paths, schedule, 0)
    assert (pieces[1:, 0] == pieces[:-1, 1]).all()


@pytest.mark.parametrize(
    ("mpi", "profiler", "stays"),
    [
        ([], [], 0),
        ([(1, 50, 90)], [], 40),
        ([(2, 50, 90)], [], 0),  # another thread's
        ([(1, 50, 90), (1, 80, 120)], [], 70),  # nested or overlapping calls count once
        ([], [(0, 200, 260)], 60),
        ([], [(1, 200, 260)], 0),  # another rank's
        ([(1, 50, 90)], [(0, 80, 100)], 50),
        ([], [(0, 290, 340)], 50),  # 10 before the second call, 40 inside of it
    ],
)
def test_of_a_free_host_calls_of_mpi_and_the_profilers_own_work_stay(tmp_path, mpi, profiler, stays):
    """The first kernel begins at the earliest, at 0, and takes 20; the second begins behind it, by the usual time, or
    when what stays before its launch is over.
    """
    before, after = run_time(tmp_path, mpi, profiler)
    free = run_time(tmp_path / "free", [], [])[1]
    assert before == 420
    assert after == max(free, 20 + stays)
