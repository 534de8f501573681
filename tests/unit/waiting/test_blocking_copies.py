"""Which calls that are asynchronous by their name wait for their own copy."""

import numpy as np
import pytest
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import write_json
from causeway.waiting.graph.blocking_copies import OTHER_MEMORY, PAGEABLE, UNKNOWN_MEMORY, wait_for_own_copies
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.nodes import ALL_STREAMS, NO_SCOPE
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

US = 1000
CASES = {  # copy's start and end after the call's begin, call's length, in us; memory; whether the call waits
    "to the host, whole in the call": (20, 900, 950, PAGEABLE, True),
    "the last of it leaves the buffer behind the call": (170, 9700, 9685, PAGEABLE, True),
    "longer behind the call than a buffer takes": (20, 400, 250, PAGEABLE, False),
    "as long behind the call as a buffer takes": (20, 350, 250, PAGEABLE, True),
    "small, staged at once and copied afterwards": (12, 20, 8, PAGEABLE, False),
    "half of it behind the call": (4, 10, 7, PAGEABLE, True),
    "more than half of it behind the call": (4, 10, 6, PAGEABLE, False),
    "read by the host, a number": (30, 31, 40, PAGEABLE, True),
    "pinned": (10, 40, 60, OTHER_MEMORY, False),
    "of unknown memory, within the call": (10, 40, 60, UNKNOWN_MEMORY, True),
    "of unknown memory, behind the call by a little": (10, 61, 60, UNKNOWN_MEMORY, False),
    "of unknown memory and short": (10, 29, 60, UNKNOWN_MEMORY, False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_waits_for_a_copy_that_it_carries_out(name):
    start, end, length, memory, waits = CASES[name]
    begin = 5_000_000
    work = {
        "start": np.array([0, begin + start * US]), "end": np.array([10, begin + end * US]),
        "stream": np.array([3, 2], np.int32), "memory": np.array([OTHER_MEMORY, memory], np.uint8),
    }  # fmt: skip
    calls = {
        "start": np.array([0, begin]), "end": np.array([5, begin + length * US]),
        "scope": np.array([NO_SCOPE, NO_SCOPE], np.int32),
    }  # fmt: skip
    wait_for_own_copies(work, np.array([0, 1], np.int32), calls, 0, Scratch())
    assert calls["scope"].tolist() == [NO_SCOPE, 2 if waits else NO_SCOPE]


def test_what_a_call_waits_for_by_its_name_stays_and_a_copy_without_a_call_changes_nothing():
    work = {
        "start": np.array([10, 10]), "end": np.array([90 * US, 90 * US]), "stream": np.array([1, 1], np.int32),
        "memory": np.array([PAGEABLE, PAGEABLE], np.uint8),
    }  # fmt: skip
    calls = {"start": np.array([0]), "end": np.array([100 * US]), "scope": np.array([ALL_STREAMS], np.int32)}
    wait_for_own_copies(work, np.array([0, -1], np.int32), calls, 0, Scratch())
    assert calls["scope"].tolist() == [ALL_STREAMS]


def graph_of(folder, memory):
    """Return graph and links of a kernel of 200 us, a copy to the host behind it in its stream, and a kernel after it;
    the copy's call is asynchronous by name and returns 50 us after the copy.
    """
    calls = [(0, 5, "cudaLaunchKernel", 1), (10, 440, "cudaMemcpyAsync", 2), (460, 5, "cudaLaunchKernel", 3)]
    launches = [(10, 200, 1), (470, 100, 3)]
    both = {"rank": 0, "device": 0, "stream": 7}
    tables = {
        "launches": [
            both | {"start_ns": US * start, "duration_ns": US * length, "configuration": 0, "correlation": number}
            for start, length, number in launches
        ],
        "transfers": [
            both | {"start_ns": US * 215, "duration_ns": US * 185, "copy_kind": 2, "bytes": 4, "correlation": 2}
            | {"src_kind": 2, "dst_kind": memory}
        ],
        "calls": [
            {"rank": 0, "thread": 1, "start_ns": US * start, "duration_ns": US * length, "name": name}
            | {"correlation": number}
            for start, length, name, number in calls
        ],
    }  # fmt: skip
    write_export(folder / "e0", tables)
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, folder / "clocks.json")
    return linked_graph([folder / "e0"], folder / "clocks.json", [])[0]


PAGEABLE_KIND = 0
PINNED_KIND = 1


@pytest.mark.parametrize(
    ("memory", "word", "expected"),
    [
        # the copy is over at 215, its call 50 later, at 265; 10 of host code, a call of 5, 5 to the start, 100
        (PAGEABLE_KIND, "copies_free", 265 + 10 + 5 + 5 + 100),
        # the call takes no time: the copy and then the kernel start behind the first kernel, each by the usual 1
        (PINNED_KIND, "copies_free", 210 + 1 + 1 + 100),
        # the first kernel ends at 205, the copy begins 5 later and takes 185, its call returns 50 later
        (PAGEABLE_KIND, "host_free", 205 + 5 + 185 + 50 + 5 + 100),
        (PINNED_KIND, "host_free", 205 + 1 + 185 + 1 + 100),
    ],
)
def test_a_replay_keeps_what_a_blocking_copy_makes_the_host_wait_for(tmp_path, memory, word, expected):
    graph, links = graph_of(tmp_path, memory)
    paths = CriticalPaths(graph, links)
    runs = paths.runs(measured(graph, links))
    plain = durations_of(graph, links)
    (change,) = (one for one in changes(graph, links, plain, np.zeros(len(graph.texts), np.int64)) if one.word == word)
    assert paths.run_time(replayed(graph, links, plain), runs) == 570 * US
    assert paths.run_time(replayed(graph, links, change.durations), runs) == expected * US
    assert graph.texts[graph.work.name[1]] == (
        "copy (device to host, pageable memory)" if memory == PAGEABLE_KIND else "copy (device to host)"
    )
