"""Operators around launches in Kineto traces, beside a plain script: the innermost and the outermost `cpu_op` around
the launching call, on its thread.
"""

import gzip
import json
import re
from decimal import Decimal

import numpy as np
import pytest
from reading import Read

from causeway.readers.common.input_layouts import CONTIGUOUS, MOST_DESCRIBED, input_layout
from support import DATA, ROOT

FILES = {path.name: path for path in sorted((DATA / "kineto").rglob("*.json.gz"))} if DATA.is_dir() else {}
CHECKED = sorted(set(FILES) - {"cupti_profiler.json.gz", "rank_non_gpu.json.gz"})  # those without a launch
LARGE = ("merged_4ranks_all_events", "resnet50_num_workers_4", "trace_diff_control")
"""Traces of which a smaller one of the same program, or of the same version of PyTorch, is read in every run."""
CALLS = {"cuda_runtime", "runtime", "cuda_driver", "hip_runtime"}


def expected(path):
    """Return for each launch, in the order of their starts, its innermost and outermost operator's name."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    calls = {}
    operators = {}
    kernels = []
    for event in events:
        category = (event.get("cat") or "").lower()
        args = event.get("args", {})
        if event.get("ph") != "X":
            continue
        start = round(event["ts"] * 1000)
        end = start + round(event["dur"] * 1000)
        thread = (args.get("rank"), int(event["tid"])) if str(event["tid"]).lstrip("-").isdigit() else None
        if category in CALLS and "correlation" in args:
            key = args.get("rank"), args["correlation"]
            calls[key] = max(calls.get(key, (0,)), (end, start, thread))
        elif category == "cpu_op" or (category == "operator" and "#" not in event["name"]):  # else a range
            operators.setdefault(thread, []).append((start, -end, event["name"]))
        elif category == "kernel":
            kernels.append((start, (args.get("rank"), args.get("correlation"))))
    for thread, found in operators.items():
        found.sort(key=lambda one: one[:2])
        starts, ends, names = zip(*found, strict=True)
        operators[thread] = np.array(starts), -np.array(ends), names
    answers = []
    for _, key in sorted(kernels, key=lambda one: one[0]):
        _, start, thread = calls.get(key, (None, None, None))
        around = []
        if start is not None:
            starts, ends, names = operators.get(thread, (np.empty(0), np.empty(0), ()))
            around = [names[at] for at in np.flatnonzero((starts <= start) & (start < ends))]
        answers.append((around[-1], around[0]) if around else (None, None))
    return answers


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name.startswith(LARGE) else ()) for name in CHECKED]
)
def test_every_launch_has_the_operators_around_its_call(name, tmp_path):
    read = Read(FILES[name], tmp_path / "out")
    rows = read.operators.to_pylist() if "operators" in read.names else []
    ours = [
        (None, None) if number is None else (rows[number]["name"], rows[number]["outermost"])
        for number in read.launches.column("operator").to_pylist()
    ]
    assert ours == [tuple(one and one.strip() for one in pair) for pair in expected(FILES[name])]


def event(category, name, start, duration, thread, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def test_names_modules_phases_and_input_sizes_are_taken_from_the_stack(tmp_path):
    sizes = {"Input Dims": [[4, 8], [8, 2], []], "Input type": ["float", "float", "Scalar"], "Sequence number": 3}
    events = [
        event("user_annotation", "ProfilerStep#12", 0, 100, 7),
        event("python_function", "nn.Module: Linear_0", 1, 40, 7),
        event("python_function", "model.py(3): forward", 1, 40, 7),
        event("cpu_op", "aten::mm", 2, 10, 7, **sizes),  # starts with the one around it, and is written first
        event("cpu_op", "aten::linear", 2, 20, 7),
        event("cuda_runtime", "cudaLaunchKernel", 3, 1, 7, correlation=1),
        event("kernel", "gemm", 10, 5, 0, device=0, stream=7, correlation=1),
        event("cpu_op", "AddmmBackward0", 50, 10, 7),
        event("cuda_runtime", "cudaLaunchKernel", 55, 1, 7, correlation=2),
        event("kernel", "gemm", 60, 5, 0, device=0, stream=7, correlation=2),
        event("cuda_runtime", "cudaLaunchKernel", 55, 1, 8, correlation=3),  # on another thread
        event("kernel", "gemm", 70, 5, 0, device=0, stream=7, correlation=3),
        event("kernel", "gemm", 80, 5, 0, device=0, stream=7, correlation=4),  # without its call
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    read = Read(path, tmp_path / "out")
    assert read.launches.column("operator").to_pylist() == [0, 1, None, None]
    assert read.launches.column("shape").to_pylist() == [0, None, None, None]
    assert read.operators.to_pylist() == [
        {
            "operator": 0,
            "name": "aten::mm",
            "outermost": "aten::linear",
            "module": "ProfilerStep/Linear_0",
            "phase": "forward",
        },
        {
            "operator": 1,
            "name": "AddmmBackward0",
            "outermost": "AddmmBackward0",
            "module": "ProfilerStep",
            "phase": "backward",
        },
    ]
    assert read.shapes.to_pylist() == [
        {
            "shape": 0,
            "dims": "[4,8] [8,2] []",
            "types": "float float Scalar",
            "elements": 48,
            "bytes": 192,
            "layout": None,
        }
    ]


@pytest.mark.parametrize(
    ("strides", "layout"),
    [
        ([[8, 1], [2, 1], []], "contiguous inputs"),
        ([[8, 1], [1, 8], []], "input 2 transposed"),
        ([[16, 2], [2, 1], []], "input 1 in steps of 2"),
        ([[8, 1]], None),
        ("[[8, 1], [2, 1], []]", None),
        ([[8, 1], [2, "1"], []], None),
        ([[8, 1], [2, 1], [[[[]]]]], None),
        ([[8, 1], [2, 1.5], []], None),
        (None, None),
    ],
)
def test_strides_that_cannot_be_read_lose_the_layout_alone(strides, layout, tmp_path):
    sizes = {"Input Dims": [[4, 8], [8, 2], []], "Input type": ["float", "float", "Scalar"], "Input Strides": strides}
    events = [
        event("cpu_op", "aten::mm", 2, 10, 7, **sizes),
        event("cuda_runtime", "cudaLaunchKernel", 3, 1, 7, correlation=1),
        event("kernel", "gemm", 10, 5, 0, device=0, stream=7, correlation=1),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (row,) = Read(path, tmp_path / "out").shapes.to_pylist()
    assert (row["dims"], row["bytes"], row["layout"]) == ("[4,8] [8,2] []", 192, layout)


def test_launches_of_two_layouts_have_two_shapes(tmp_path):
    events = []
    for at, strides in enumerate([[8, 1], [1, 4], [8, 1]]):
        sizes = {"Input Dims": [[4, 8]], "Input type": ["float"], "Input Strides": [strides]}
        events += [
            event("cpu_op", "aten::sum", 100 * at, 50, 7, **sizes),
            event("cuda_runtime", "cudaLaunchKernel", 100 * at + 3, 1, 7, correlation=at + 1),
            event("kernel", "reduce", 100 * at + 10, 5, 0, device=0, stream=7, correlation=at + 1),
        ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    read = Read(path, tmp_path / "out")
    assert read.launches.column("shape").to_pylist() == [0, 1, 0]
    assert read.shapes.column("layout").to_pylist() == ["contiguous inputs", "input 1 transposed"]


def test_layouts_of_a_real_trace_agree_with_a_count_of_what_is_dense(data):
    """Of one rank of eight B200: an input is contiguous if each stride is the product of the sizes after it."""
    path = data / "kineto" / "tracelens" / "b200_rank0_of_8.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path} beside this checkout")
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    checked = 0
    for one in events:
        args = one.get("args", {})
        sizes = args.get("Input Dims")
        strides = args.get("Input Strides")
        if sizes is None or strides is None or any(isinstance(part, list) for own in sizes for part in own):
            continue
        found = input_layout(sizes, strides)
        dense = [is_dense(*pair) for pair in zip(sizes, strides, strict=True)]
        assert (found in (None, CONTIGUOUS)) == all(dense)
        numbers = [int(word) for word in re.findall(r"input (\d+)", found or "")]
        assert numbers == [at for at, one in enumerate(dense, 1) if not one][:MOST_DESCRIBED]
        checked += not all(dense)
    assert checked > 100


def is_dense(sizes, strides):
    """Tell whether elements follow each other in the order of their indices."""
    expected = 1
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if 0 in sizes:
            return True
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def test_compilations_are_ranges_of_the_host(tmp_path):
    """A recorded program that is compiled again for new sizes: launches wait for that, and no operator around one tells."""
    path = ROOT / "tests" / "data" / "experiments" / "libraries" / "recompiled.json.gz"
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    expected = sorted(
        (round(one["dur"] * 1000), one["name"])
        for one in events
        if one.get("cat") == "cpu_op" and one["name"].endswith("compile_inner (dynamo_timed)")
    )
    ranges = Read(path, tmp_path).ranges
    found = sorted(
        (row["duration_ns"], row["name"]) for row in ranges.to_pylist() if row["name"].endswith("(dynamo_timed)")
    )
    assert found == expected
    assert len(found) > 5, "at first, and for five new sizes"


def test_annotations_of_old_traces_are_the_ranges_that_newer_versions_write(tmp_path):
    """The same program by PyTorch 1.8 (one category for all) and later, and only annotations in a block of events."""
    annotations = [
        event("user_annotation", "ProfilerStep#5", 0, 100, 7),
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 20, 7),
        event("user_annotation", "DistributedDataParallel.forward", 25, 30, 7),
        event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 60, 10, 7),
        event("user_annotation", "Optimizer.step#SGD.step", 70, 20, 7),
        event("user_annotation", "## my part ##", 92, 5, 7),
    ]
    operators = [
        event("cpu_op", "aten::mm", 30, 10, 7),
        event("cpu_op", "torch::autograd::AccumulateGrad", 45, 4, 7),
        event("cpu_op", "DistributedDataParallel.forwarded", 50, 4, 7),
    ]
    work = [
        event("cuda_runtime", "cudaLaunchKernel", 33, 1, 7, correlation=1),
        event("kernel", "gemm", 40, 5, 0, device=0, stream=7, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 72, 1, 7, correlation=2),
        event("kernel", "gemm", 80, 5, 0, device=0, stream=7, correlation=2),
    ]
    old = [one | {"cat": "Operator"} for one in (*annotations, *operators)]
    between = [one | {"cat": "cpu_op"} for one in (*annotations, *operators)]
    tables = []
    every = {"new": [*annotations, *operators, *work], "between": [*between, *work], "old": [*old, *work]}
    for name, events in every.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"traceEvents": events}))
        read = Read(path, tmp_path / name)
        tables.append({table: getattr(read, table).to_pylist() for table in sorted(read.names)})
    assert tables[0] == tables[1] == tables[2]
    assert [row["name"] for row in tables[1]["ranges"]] == [one["name"] for one in annotations]
    assert {row["kind"] for row in tables[1]["ranges"]} == {"annotation"}
    assert [row["name"] for row in tables[1]["operators"]] == ["aten::mm", None]
    assert tables[1]["operators"][1]["phase"] == "optimizer"
    path.write_text(json.dumps({"traceEvents": [*old[:6], *work]}))
    assert len(Read(path, tmp_path / "alone").ranges) == 6


def test_operators_of_the_host_are_rows_of_their_own_and_modules_are_not(tmp_path):
    """Also those after the last call, those of a thread without calls, and where no call is in the trace."""
    operators = [
        event("cpu_op", "aten::linear", 2, 20, 7),
        event("cpu_op", "aten::mm", 3, 10, 7),
        event("cpu_op", "aten::sort", 4, 3, 9),
        event("cpu_op", "aten::relu", 900, 5, 7),
    ]
    others = [
        event("user_annotation", "ProfilerStep#12", 0, 100, 7),
        event("python_function", "nn.Module: Linear_0", 1, 40, 7),
        event("kernel", "gemm", 10, 5, 0, device=0, stream=7, correlation=1),
    ]
    call = event("cuda_runtime", "cudaLaunchKernel", 5, 1, 7, correlation=1)
    path = tmp_path / "trace.json"
    for name, events in (("calls", [*operators, *others, call]), ("no_calls", [*operators, *others])):
        path.write_text(json.dumps({"traceEvents": events}))
        read = Read(path, tmp_path / name)
        rows = read.host_operators.to_pylist()
        assert [(row["name"], row["start_ns"], row["duration_ns"], row["rank"]) for row in rows] == [
            (one["name"], 1000 * one["ts"], 1000 * one["dur"], 0) for one in operators
        ]
        assert [row["thread"] for row in rows] == [7, 7, 9, 7]
        assert read.capabilities["tables"]["host_operators"] == 4
    path.write_text(json.dumps({"traceEvents": [*others, call]}))
    assert "host_operators" not in Read(path, tmp_path / "none").names
