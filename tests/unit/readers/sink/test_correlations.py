"""Correlations of 64 bits, as some profilers write them with the process in the upper half."""

import json

import numpy as np
import pytest
from reading import Read, kernel

from causeway.readers.common.constants import NULL
from causeway.readers.sink.records import FittingCorrelations


def trace(path, correlations):
    """Write a trace of one launch and its call for each correlation, of rank 0 and of rank 1, 5 us after the call."""
    events = []
    for rank in (0, 1):
        for at, correlation in enumerate(correlations):
            args = {"correlation": correlation, "rank": rank}
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 8}
            events.append(call | {"ts": 100 * at + 50 * rank, "dur": 5 + rank, "args": args})
            events.append(kernel(100 * at + 50 * rank + 10 + rank, 3, **args))
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.mark.parametrize("process", [0, 1, 300, 1_234_567, (1 << 31) - 1])
def test_launches_find_their_calls_whatever_the_upper_half_holds(process, tmp_path):
    correlations = [process << 32 | number for number in (1, 2, (1 << 32) - 1)]
    read = Read(trace(tmp_path / "trace.json", correlations), tmp_path / "tables")
    assert read.launches.column("queue_ns").to_pylist() == [5000] * 6
    assert read.count("no_launch_calls") == read.count("out_of_range") == 0
    calls = {row["call"]: row for row in read.calls.to_pylist()}
    for row in read.launches.to_pylist():
        call = calls[row["call"]]
        assert (call["rank"], call["correlation"]) == (row["rank"], row["correlation"])
        assert call["start_ns"] == row["call_start_ns"] == row["start_ns"] - 10_000 - 1000 * row["rank"]
        assert call["start_ns"] + call["duration_ns"] == row["call_end_ns"] == row["start_ns"] - 5000
        assert call["thread"] == row["thread"]
    assert len(calls) == 6


def test_fitting_correlations_keep_apart_what_was_apart():
    rng = np.random.default_rng(5)
    halves = rng.integers(0, 1 << 31, 200)
    values = rng.choice(halves, 5000) << 32 | rng.integers(0, 1 << 32, 5000)
    values[::7] = rng.integers(0, 1 << 32, values[::7].size)
    values[::11] = NULL
    values[1::11] = -1
    fitting = FittingCorrelations()
    found = np.concatenate([fitting.of(part) for part in np.array_split(values, 3)])
    pairs = dict(zip(values.tolist(), found.tolist(), strict=True))
    assert len(set(pairs.values())) == len(pairs)
    assert all(pairs[value] == value for value in pairs if value < 1 << 32)
    assert found.max() < 1 << 40
    assert fitting.lost == 0


def test_upper_halves_beyond_the_last_number_are_counted(tmp_path):
    read = Read(trace(tmp_path / "trace.json", [(at + 1) << 32 | 5 for at in range(260)]), tmp_path / "tables")
    known = read.launches.column("queue_ns").to_pylist()
    assert (known.count(5000), known.count(None)) == (2 * 255, 2 * 5)
    assert read.count("out_of_range") == 20  # of launches and of calls
