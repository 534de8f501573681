"""What a call does after the work it waits for: freeing memory is the host's own time, a late return may not be."""

import numpy as np
import pytest
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import write_json
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

US = 1000
FREED = 14_000
"""How long the call lasts beyond the kernel it waits for, us."""


def saved_us(folder, name):
    """Return what a free host saves of five times: a kernel of 200 us, a call that waits for it and goes on, and a
    kernel of 100 us behind it.
    """
    calls = []
    launches = []
    for turn in range(5):
        begin = turn * (FREED + 400)
        calls += [(begin, 5, "cudaLaunchKernel", 2 * turn + 1), (begin + 10, 200 + FREED, name, -1)]
        calls += [(begin + 220 + FREED, 5, "cudaLaunchKernel", 2 * turn + 2)]
        launches += [(begin + 10, 200, 2 * turn + 1), (begin + 230 + FREED, 100, 2 * turn + 2)]
    tables = {
        "launches": [
            {"rank": 0, "device": 0, "stream": 7, "start_ns": US * start, "duration_ns": US * length}
            | {"configuration": 0, "correlation": number}
            for start, length, number in launches
        ],
        "calls": [
            {"rank": 0, "thread": 1, "start_ns": US * start, "duration_ns": US * length, "name": text}
            | {"correlation": number}
            for start, length, text, number in calls
        ],
    }
    write_export(folder / "e0", tables)
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, folder / "clocks.json")
    graph, links = linked_graph([folder / "e0"], folder / "clocks.json", [])[0]
    paths = CriticalPaths(graph, links)
    runs = paths.runs(measured(graph, links))
    plain = durations_of(graph, links)
    every = {one.word: one for one in changes(graph, links, plain, np.zeros(len(graph.texts), np.int64))}
    before, after = (
        paths.run_time(replayed(graph, links, durations), runs) for durations in (plain, every["host_free"].durations)
    )
    return (before - after) / US


@pytest.mark.parametrize("name", ["cudaFree", "hipFree", "cuMemFree_v2"])
def test_without_the_host_memory_is_freed_in_no_time(tmp_path, name):
    assert saved_us(tmp_path, name) == pytest.approx(5 * FREED, rel=0.02)


@pytest.mark.parametrize("name", ["cudaDeviceSynchronize", "hipDeviceSynchronize"])
def test_a_wait_that_goes_on_stays_as_it_may_be_for_work_that_is_not_recorded(tmp_path, name):
    assert saved_us(tmp_path, name) < 0.02 * 5 * FREED
