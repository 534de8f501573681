"""Sizes that only the calls of a trace state, as PyTorch on AMD's devices wrote them until 2024: an event of the device
gets the grid, the block and the bytes of the one call that made it. What waits for that takes bounded memory.
"""

import random
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from reading import Read, write_trace

from causeway.readers.common.constants import NULL
from causeway.readers.pytorch import call_sizes, kineto
from causeway.readers.pytorch.call_sizes import WaitingEvents

DEVICE = {"device": 2, "stream": 0}


def call(name, at, correlation, **args):
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": name,
        "pid": 70,
        "tid": 70,
        "ts": at,
        "dur": 1,
        "args": {"cid": 1, "correlation": correlation, **args},
    }


def event(category, name, at, correlation, **args):
    args = DEVICE | {"correlation": correlation} | args
    return {"ph": "X", "cat": category, "name": name, "pid": 2, "tid": 0, "ts": at, "dur": 2, "args": args}


def sizes(export):
    """Return grid and block of each launch, in order of their starts."""
    rows = {row["configuration"]: row for row in export.configurations.to_pylist()}
    names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    return [tuple(rows[one][name] for name in names) for one in export.launches.column("configuration").to_pylist()]


def test_launches_and_copies_have_the_sizes_of_their_calls(tmp_path):
    events = [
        call("hipLaunchKernel", 10, 1, grid=[4, 2, 1], block=[256, 1, 1], **{"shared memory": 0}),
        call("hipLaunchKernel", 20, 2, grid=[9, 1, 1], block=[64, 2, 1], **{"shared memory": 0}),
        call("hipMemcpyWithStream", 30, 3, size="2560", kind="1"),
        call("hipMemcpyAsync", 40, 4, bytes="60", kind="3"),
        call("hipMalloc", 50, 5, bytes=1 << 20),
        event("kernel", "k", 100, 1, kind="Dispatch Kernel"),
        event("kernel", "k", 110, 2, kind="Dispatch Kernel"),
        event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 120, 3, kind="HtoD"),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 130, 4, kind="DtoD"),
        event("gpu_memset", "Memset (Device)", 140, 9),
    ]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "t")
    assert sizes(export) == [(4, 2, 1, 256, 1, 1), (9, 1, 1, 64, 2, 1)]
    assert export.configurations.num_rows == 2
    assert export.transfers.column("bytes").to_pylist() == [2560, 60, None]
    assert export.count("no_launch_configuration") == 0
    assert export.calls.num_rows == 5


def test_what_the_event_states_counts_and_of_several_events_of_a_call_none_has_its_size(tmp_path):
    events = [
        call("hipLaunchKernel", 10, 1, grid=[4, 1, 1], block=[256, 1, 1]),
        call("hipExtLaunchMultiKernelMultiDevice", 15, 2, grid=[5, 1, 1], block=[128, 1, 1]),
        call("hipMemcpyAsync", 20, 3, size="1000"),
        call("hipMemcpyAsync", 30, 4, size="7"),
        call("hipMemcpyAsync", 31, 4, size="8"),
        call("hipLaunchKernel", 40, 0, grid=[6, 1, 1], block=[32, 1, 1]),
        event("kernel", "k", 100, 1, grid=[3, 1, 1], block=[64, 1, 1]),
        event("kernel", "k", 110, 2),
        event("kernel", "k", 120, 2),
        event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 130, 3),
        event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 140, 3),
        event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 150, 4),
        event("kernel", "k", 160, 0),  # 0 is no number of a call
    ]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "t")
    nothing = (None,) * 6
    assert sizes(export) == [(3, 1, 1, 64, 1, 1), nothing, nothing, nothing]
    assert export.transfers.column("bytes").to_pylist() == [None, None, None]
    assert export.launches.num_rows == 4


@pytest.mark.parametrize("batch", [1 << 13, 16])
def test_sizes_are_those_that_a_search_of_the_whole_trace_finds(batch, tmp_path, monkeypatch):
    monkeypatch.setattr(kineto, "BATCH", batch)
    draw = random.Random(5)
    calls = []
    events = []
    for rank in range(3):  # the same numbers on each
        for number in range(1, 120):
            grid = [draw.randrange(1, 4), 1, 1]
            if draw.random() < 0.5:
                calls.append(call("hipLaunchKernel", number, number, grid=grid, block=[64, 1, 1], rank=rank))
            elif draw.random() < 0.8:
                calls.append(call("hipMemcpyAsync", number, number, size=str(draw.randrange(9)), rank=rank))
            for _ in range(draw.choice((0, 1, 1, 1, 2))):
                category = "kernel" if "grid" in calls[-1]["args"] else "gpu_memcpy"
                events.append(event(category, "k", 1000 * (rank + 1) + len(events), number, rank=rank))
    stated = {(one["args"]["rank"], one["args"]["correlation"]): one["args"] for one in calls}
    made = Counter((one["cat"], one["args"]["rank"], one["args"]["correlation"]) for one in events)
    wanted = {"kernel": [], "gpu_memcpy": []}
    for one in events:
        key = (one["args"]["rank"], one["args"]["correlation"])
        found = stated.get(key, {}) if made[one["cat"], *key] == 1 else {}
        wanted[one["cat"]].append(found.get("grid", [None])[0] if one["cat"] == "kernel" else found.get("size"))
    export = Read(write_trace(tmp_path / "t.json", calls + events), tmp_path / "t")
    assert [one[0] for one in sizes(export)] == wanted["kernel"]
    copied = [None if one is None else str(one) for one in export.transfers.column("bytes").to_pylist()]
    assert copied == wanted["gpu_memcpy"]
    assert set(wanted["kernel"]) == {None, 1, 2, 3}
    assert len(set(wanted["gpu_memcpy"]) - {None}) > 4
    assert None in wanted["gpu_memcpy"]


def test_calls_that_are_few_are_taken_before_a_full_batch_of_launches(tmp_path, monkeypatch):
    """A graph's launch makes many kernels, so that their batch is full before that of the calls."""
    monkeypatch.setattr(kineto, "BATCH", 8)
    events = [call("hipGraphLaunch", 1, 1), call("hipLaunchKernel", 2, 2, grid=[7, 1, 1], block=[64, 1, 1])]
    events += [event("kernel", "k", 100 + 10 * number, 1) for number in range(20)] + [event("kernel", "k", 900, 2)]
    export = Read(write_trace(tmp_path / "t.json", events), tmp_path / "t")
    assert sizes(export) == [(None,) * 6] * 20 + [(7, 1, 1, 64, 1, 1)]


@pytest.mark.parametrize("window", [8, 64, 1 << 16])
def test_pairs_are_those_that_a_search_of_all_finds(tmp_path, monkeypatch, window):
    monkeypatch.setattr(call_sizes, "WINDOW_ROWS", window)
    draw = random.Random(7)
    for trial in range(20):
        calls = []
        events = []
        folder = tmp_path / str(trial)
        folder.mkdir()
        waiting = WaitingEvents(folder, "launches")
        numbers = [NULL, 5 << 32 | 1, *range(1, 60)]
        for _ in range(30):
            if draw.random() < 0.5:
                made = [(draw.randrange(2), draw.choice(numbers[1:]), draw.randrange(99)) for _ in range(6)]
                calls += made
                waiting.note_calls(*np.array(made).T)
            else:
                # some calls make many events
                many = draw.choice(numbers) if draw.random() < 0.2 else None
                made = [
                    (draw.randrange(2), draw.choice(numbers) if many is None else many)
                    for _ in range(draw.choice([1, 6, 90]))
                ]
                process, correlation = np.array(made).T
                start = np.array([draw.randrange(1000) for _ in made])
                events += zip(*np.array(made).T.tolist(), start.tolist(), strict=True)
                waiting.add({"process": process, "correlation": correlation, "start_ns": start})
        stated = {one[:2]: one[2] for one in calls}
        of_calls = Counter(one[:2] for one in calls)
        of_events = Counter(one[:2] for one in events)
        wanted = [
            stated[one[:2]] if one[1] != NULL and of_calls[one[:2]] == of_events[one[:2]] == 1 else NULL
            for one in events
        ]
        found = list(waiting.resolved())
        given = [
            row
            for columns, _ in found
            for row in zip(*(columns[name].tolist() for name in ("process", "correlation", "start_ns")), strict=True)
        ]
        assert given == events
        assert [number for _, part in found for number in part.tolist()] == wanted
        waiting.close()
        assert not list(folder.iterdir())


def peak_of(folder, blocks):
    """Return the most memory, in bytes, that blocks of 8,192 events take that wait for their calls; all get their size."""
    rows = 1 << 13
    names = [f"column {number}" for number in range(22)]
    waiting = WaitingEvents(folder, "launches")
    matched = 0
    tracemalloc.start()
    try:
        for block in range(blocks):
            number = np.arange(block * rows, (block + 1) * rows)
            waiting.note_calls(np.zeros(rows, np.int64), number, number % 7)
            columns = dict.fromkeys(names, number + 1)
            waiting.add({"process": number * 0, "correlation": number[::-1], "start_ns": number, **columns})
        for columns, stated in waiting.resolved():
            matched += int((stated == columns["correlation"] % 7).sum())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        waiting.close()
    assert matched == rows * blocks
    return peak


def test_memory_does_not_grow_with_the_events(tmp_path):
    """Of 25 columns a row takes 200 bytes; a quarter of that for each further row is more than what threads still hold
    of blocks that are written: a window of each file, 13 MB. It depends on when they run. What is measured has run
    once before: the first use loads code.
    """
    peak_of(tmp_path, 1 << 3)
    few, many = (peak_of(tmp_path, blocks) for blocks in (1 << 4, 1 << 7))
    assert many - few < 50 * ((1 << 7) - (1 << 4)) * (1 << 13)
