"""Steps of which nothing is recorded: in traces made up by hand."""

import pytest
from reading import Read, kernel, write_trace

from causeway.efficiency.steps.find_steps import steps_by_calls


def host(cat, name, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur, "args": args}


def step(number, *, length=1000, is_lost=False, operators=3, name="step[DECODE n={}]"):
    """Return the events of a step, with two launches and their calls unless it is lost."""
    start = 10_000 * number
    events = [host("user_annotation", name.format(number), start, length)]
    events += [host("cpu_op", "aten::mm", start + 100 * at + 1, 50) for at in range(operators)]
    for at in () if is_lost else (0, 1):
        correlation = 2 * number + at + 1
        events.append(host("cuda_runtime", "cudaLaunchKernel", start + 100 * at + 5, 10, correlation=correlation))
        events.append(kernel(start + 100 * at + 20, 50, correlation=correlation))
    return events


def read(path, steps):
    events = [event for one in steps for event in one]
    return Read(write_trace(path / "trace.json", events), path / "t")


@pytest.mark.parametrize("operators", [0, 3])
def test_steps_without_a_call_and_a_launch_are_unrecorded(operators, tmp_path):
    steps = [step(at, is_lost=at in (2, 3, 4), operators=operators if at in (2, 3, 4) else 3) for at in range(7)]
    export = read(tmp_path, steps)
    assert export.count("unrecorded_steps") == 3
    assert export.issue("unrecorded_steps")["detail"].endswith("3 of 7 steps, 3.000 of 7.000 ms")
    assert not export.capabilities["analyses"]["time_line"]["possible"]
    assert not export.capabilities["analyses"]["efficiency"]["possible"]
    assert export.capabilities["analyses"]["kernel_variability"]["possible"]
    (found,) = steps_by_calls(export.folder)
    assert (found["steps"], found["empty"], found["launches"]) == (7, 3, [0, 2, 2])
    assert found["kernel_ns"] == [0, 100_000, 100_000]


def test_a_step_in_which_the_host_does_much_less_has_nothing_for_a_device(tmp_path):
    export = read(tmp_path, [step(at, is_lost=at == 2, operators=1 if at == 2 else 8) for at in range(5)])
    assert export.count("unrecorded_steps") == 0
    assert export.capabilities["analyses"]["time_line"]["possible"]


def test_a_little_that_is_unrecorded_rules_nothing_out(tmp_path):
    export = read(tmp_path, [step(at, is_lost=at == 2) for at in range(120)])
    assert (export.count("unrecorded_steps"), export.count("few_unrecorded_steps")) == (0, 1)
    assert export.capabilities["analyses"]["time_line"]["possible"]


def test_a_short_step_that_the_end_of_the_recording_cut_is_no_issue(tmp_path):
    steps = [step(at) for at in range(3)] + [step(3, is_lost=True, operators=0, length=49)]
    export = read(tmp_path, steps)
    assert (export.count("unrecorded_steps"), export.count("few_unrecorded_steps")) == (0, 0)


@pytest.mark.parametrize("name", ["step[DECODE n={}]", "forward {}"])
def test_steps_that_all_hold_work_and_ranges_that_are_none_are_no_issue(name, tmp_path):
    export = read(tmp_path, [step(at, is_lost=name == "forward {}" and at == 2, name=name) for at in range(5)])
    assert not {"unrecorded_steps", "few_unrecorded_steps"} & {one["kind"] for one in export.capabilities["issues"]}


def test_without_any_call_no_step_is_called_unrecorded(tmp_path):
    steps = [[event for event in step(at, is_lost=at == 2) if event["cat"] != "cuda_runtime"] for at in range(5)]
    assert read(tmp_path, steps).count("unrecorded_steps") == 0


def test_a_step_in_which_long_work_of_another_runs_is_not_without_work(tmp_path):
    steps = [step(at, is_lost=at == 1) for at in range(3)]
    steps[0][-1]["dur"] = 10_500
    assert read(tmp_path, steps).count("unrecorded_steps") == 0
