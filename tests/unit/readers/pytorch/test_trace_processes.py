"""Traces of several ranks in one file: each launch is linked to the call of its own process, though all processes
count their correlations from the same number.
"""

import pytest
from reading import Read, kernel, write_trace

from causeway.readers.containers import chrome_json

QUEUED_US = {0: 10, 1: 30, 2: 70}
"""How long a launch of each rank waits for the device."""


def call(ts, pid, correlation):
    """Return the event of a call of 5 us that launches a kernel."""
    args = {"correlation": correlation}
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": pid,
        "tid": 1,
        "ts": ts,
        "dur": 5,
        "args": args,
    }


def of_rank(rank, host, gpu, device, launches=3):
    """Return the events of one rank, those of the host first: an operator, and one call each 1,000 us, whose launch
    begins `QUEUED_US` after it returned.
    """
    operator = call(7 * rank, host, 0) | {"cat": "cpu_op", "name": "aten::mm", "args": {}}
    starts = [1000 * number + 7 * rank for number in range(launches)]
    calls = [call(start, host, number) for number, start in enumerate(starts, 1)]
    kernels = [
        kernel(start + 5 + QUEUED_US[rank], 4, device=device, correlation=number) | {"pid": gpu}
        for number, start in enumerate(starts, 1)
    ]
    return [operator, *calls, *kernels]


def queues(export):
    """Return the queue delays of each rank, in us."""
    rows = export.launches.to_pylist()
    return {
        rank: sorted({row["queue_ns"] and row["queue_ns"] // 1000 for row in rows if row["rank"] == rank})
        for rank in sorted({row["rank"] for row in rows})
    }


def test_labels_before_processes_are_ranks(tmp_path):
    """SGLang writes the label before each process, changes nothing else, and keeps the facts of the first trace."""
    events = [
        event for rank in (2, 0, 1) for event in of_rank(rank, f"[TP0{rank}] {500 + rank}", f"[TP0{rank}] {rank}", rank)
    ]
    export = Read(write_trace(tmp_path / "x.json", events, distributedInfo={"rank": 2}), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}
    assert export.capabilities["ranks_from"] == "export"


def test_labels_of_several_numbers_are_numbered(tmp_path):
    """Of two ways of being parallel neither number alone is the rank."""
    labels = ["[TP00-DP00]", "[TP01-DP00]", "[TP00-DP01]"]
    events = [event for rank in range(3) for event in of_rank(rank, f"{labels[rank]} 9", f"{labels[rank]} 0", rank)]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}
    assert export.count("several_processes") == 3


@pytest.mark.parametrize("label", ["python 12", "[python3] 12", "GPU 0", "gpu1"])
def test_other_text_is_no_label(tmp_path, label):
    events = of_rank(0, "12", label, 0) + of_rank(0, label, 0, 0)[:4]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert queues(export) == {0: [10]}


@pytest.mark.parametrize("form", ["{0} (rank {1})", "{0}_rank{1}", "node-a {0} Rank:{1}"])
def test_ranks_behind_processes_are_ranks(form, tmp_path):
    """As people's own scripts write them; the events of the ranks may alternate."""
    parts = [of_rank(rank, form.format(500, rank), form.format(0, rank), 0) for rank in (2, 0, 1)]
    events = [event for three in zip(*parts, strict=True) for event in three]
    export = Read(write_trace(tmp_path / "x.json", events, distributedInfo={"rank": 2}), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}
    assert export.launches.num_rows == 9


def test_processes_whose_names_have_no_rank_are_told_apart_by_their_order(tmp_path):
    """The trace of one host after that of another, whose names stand before their process ids."""
    events = [event for rank in range(3) for event in of_rank(rank, f"node-{'abc'[rank]}: 500", "0", 0)]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}
    assert export.count("several_processes") == 3


def test_names_of_processes_before_all_events_change_nothing(tmp_path, monkeypatch):
    """A window of names alone shows all processes; which of them are hosts shows later."""
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 1000)
    named = [
        {"ph": "M", "name": "process_name", "pid": 500 + at % 3, "args": {"name": "python" * 20}} for at in range(60)
    ]
    events = [event for rank in range(3) for event in of_rank(rank, 500 + rank, 0, 0, 8)]
    export = Read(write_trace(tmp_path / "x.json", named + events), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}


@pytest.mark.parametrize("shift", [0, 1_000_000])
@pytest.mark.parametrize("same_device", [False, True])
def test_traces_one_after_the_other_are_processes(tmp_path, shift, same_device):
    """People append the events of one trace to those of another, with numbers of processes moved apart or not."""
    events = [
        event
        for rank in range(3)
        for device in [0 if same_device else rank]
        for event in of_rank(rank, 500 + rank + shift * rank, device + shift * rank, device)
    ]
    export = Read(write_trace(tmp_path / "x.json", events, distributedInfo={"rank": 0}), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30], 2: [70]}
    assert export.count("several_processes") == 3
    assert export.count("mixed_processes") == 0


def test_mixed_processes_have_no_links(tmp_path):
    """Sorted by time, nothing says whose a device's event is: no link is better than that to another process."""
    events = [event for rank in range(2) for event in of_rank(rank, 500 + rank, rank, rank, launches=300)]
    events.sort(key=lambda event: event["ts"])
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert export.launches.num_rows == 600
    assert queues(export) == {0: [None]}
    assert export.count("mixed_processes") == 1


def test_traces_without_operators_have_no_links(tmp_path):
    """They may begin with events of the device, which then follow the last call of the trace before."""
    events = [event for rank in range(2) for event in of_rank(rank, 500 + rank, rank, rank)[1:]]
    events = events[:3] + events[6:] + events[3:6]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert export.launches.column("queue_ns").to_pylist() == [None] * 6
    assert export.count("mixed_processes") == 1


def test_ranks_in_the_arguments_need_no_order(tmp_path):
    """TraceLens writes the rank into each event, so that the order does not matter."""
    events = [
        event | {"args": event["args"] | {"rank": rank}}
        for rank in range(2)
        for event in of_rank(rank, 500 + rank, rank, rank, launches=300)
    ]
    events.sort(key=lambda event: event["ts"])
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert queues(export) == {0: [10], 1: [30]}
    assert export.count("mixed_processes") == 0
