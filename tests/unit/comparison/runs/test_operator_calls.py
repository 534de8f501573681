"""Calls of operators of real traces against pandas on their JSON; what a call is, of events written by hand."""

import gzip
import json
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from causeway.comparison.runs.operator_calls import OperatorCalls
from causeway.core.tables import read_json
from causeway.readers.normalise import normalise
from support import DATA

KINETO = DATA / "kineto"
TRACES = {
    "MI300X": KINETO / "tracelens" / "mi300x_sglang_qwen3-8b.json.gz",
    "MI300X, compiled": KINETO / "tracelens" / "mi300x_torch_compile_triton.json.gz",
    "B200": KINETO / "tracelens" / "b200_rank0_of_8.json.gz",
    "MI250": KINETO / "hta" / "mi250_minitoy_train_ROCm6_2.json.gz",
    "A100": KINETO / "hta" / "trace_diff_control.json.gz",
    "A100, no shapes": KINETO / "hta" / "nccl_data.json.gz",
    "2021": KINETO / "kineto-samples" / "resnet50_num_workers_0.pt.trace.json.gz",
}


def nanoseconds(column):
    return (column * 1000).round().astype("int64")


def enclosing(calls, operators):
    """Return for each call the operators of its thread around it, the innermost last, as positions of rows."""
    start = operators["start"].to_numpy()
    end = operators["end"].to_numpy()
    threads = {
        thread: np.array(sorted(rows, key=lambda row: (start[row], -end[row])))
        for thread, rows in operators.groupby(["pid", "tid"]).indices.items()
    }
    found = []
    for pid, tid, moment in zip(calls["pid"], calls["tid"], calls["start"], strict=True):
        rows = threads.get((pid, tid), np.empty(0, int))
        found.append(rows[(start[rows] <= moment) & (moment < end[rows])])
    return found


def inputs(arguments):
    """Return the sizes of an operator's inputs, as text, without those at the end that have none; None: not recorded."""
    sizes = arguments.get("Input Dims", arguments.get("Input dims"))
    if sizes is None:
        return None
    while len(sizes) > 1 and not sizes[-1]:
        sizes = sizes[:-1]
    return " ".join(json.dumps(size, separators=(",", ":")) for size in sizes).replace("],[", "] [")


def by_pandas(path):
    """Return calls, kernels and their time, ns, by operator and sizes of its inputs."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    frame = pd.DataFrame(
        [
            (one["cat"].lower(), one["name"], str(one["pid"]), str(one["tid"]), one["ts"], one["dur"], one["args"])
            for one in events
            if one.get("cat", "").lower() in {"kernel", "cpu_op", "operator", "cuda_runtime", "cuda_driver", "runtime"}
        ],
        columns=["cat", "name", "pid", "tid", "ts", "dur", "args"],
    )
    frame["start"] = nanoseconds(frame["ts"])
    frame["end"] = frame["start"] + nanoseconds(frame["dur"])
    frame["correlation"] = [args.get("correlation") for args in frame["args"]]
    operators = frame[frame["cat"].isin(["cpu_op", "operator"])].reset_index(drop=True)
    calls = frame[frame["cat"].isin(["cuda_runtime", "cuda_driver", "runtime"])].drop_duplicates("correlation")
    kernels = frame[frame["cat"] == "kernel"]
    launches = kernels.merge(calls[["correlation", "pid", "tid", "start"]], on="correlation", suffixes=("_device", ""))
    rows = []
    for around, length in zip(enclosing(launches, operators), nanoseconds(launches["dur"]), strict=True):
        if len(around):
            told = [text for row in around if (text := inputs(operators["args"][row])) and text.strip("[] ")]
            sizes = told[-1] if told else None
            rows.append((operators["name"][around[-1]], sizes, around[-1], length))
    table = pd.DataFrame(rows, columns=["name", "dims", "call", "ns"])
    sums = table.groupby(["name", "dims"], dropna=False).agg(calls=("call", "nunique"), ns=("ns", "sum"))
    return {
        (name, None if pd.isna(dims) else dims): tuple(row)
        for (name, dims), row in zip(sums.index, sums.itertuples(index=False), strict=True)
    }


def by_causeway(folder, dataset="a"):
    """Return the same, without types: groups with other types are summed."""
    found = {}
    with closing(OperatorCalls(dataset, [folder], read_json(folder / "capabilities.json")["ranks"])) as calls:
        facts, batches = calls.grouped(by_shape=True, by_type=False)
        for batch in batches():
            for group, length in zip(batch.configuration.tolist(), batch.duration.tolist(), strict=True):
                kernel, (dims, _) = facts.configurations[group]
                number, total = found.get((facts.names[kernel], dims), (0, 0))
                found[facts.names[kernel], dims] = number + 1, total + length
    return found


LARGE = ("A100", "2021")
"""Of these two, `A100, no shapes` and `MI250` have the categories and are smaller."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in TRACES]
)
def test_calls_and_times_of_each_operator_and_input_are_those_of_the_trace(name, data, tmp_path):
    folder = tmp_path / "tables" / "e0"
    normalise(TRACES[name], folder, export="e0", source=TRACES[name].name)
    expected = by_pandas(TRACES[name])
    assert len(expected) >= 5
    assert by_causeway(folder) == expected


def test_calls_of_the_ranks_that_both_sides_have_are_taken(tmp_path):
    folder = tmp_path / "e0"
    normalise(TRACES["MI250"], folder, export="e0", source="e0")
    (rank,) = read_json(folder / "capabilities.json")["ranks"]
    numbers = []
    for ranks in ([rank], [rank + 1], [rank, rank + 1]):
        with closing(OperatorCalls("a", [folder], ranks)) as calls:
            numbers.append(calls.calls)
    assert numbers == [numbers[2], 0, numbers[2]]
    assert numbers[2] > 0
