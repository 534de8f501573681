"""Steps from annotations: which ranges they are, their windows, and the launches that belong to them."""

import gzip
import json
import statistics

import pytest
from efficiency_samples import export
from step_samples import found

from causeway.efficiency.steps.annotated import annotated_steps, choose_family, form_of, step_ranges
from causeway.readers.normalise import normalise


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("ProfilerStep#12", 0),
        ("step 12", 1),
        ("Iteration#3", 1),
        ("iter_7", 1),
        ("train_step", 2),
        ("CG_Single_Iteration", 2),
        ("Optimizer.step#Adam.step", None),
        ("TSL:XlaCompile:#module=jit_train_step,program_id=12#", None),
        ("TSL:XlaModule:#hlo_module=jit_train_step,program_id=12#", 1),
        ("GpuLower::Lower::validateIterDomainUse", None),
        ("forward", None),
        ("footstep", None),
    ],
)
def test_names_that_name_a_step(name, form):
    assert form_of(name) == form


@pytest.mark.parametrize(("last", "ends"), [(330, 350), (365, 365), (500, 370)])  # at most 20 longer, as the first is
def test_windows_last_until_the_next_number_that_follows(tmp_path, last, ends):
    ranges = [(0, 80, {"name": "step 3"}), (100, 190, {"name": "step 4"}), (300, 350, {"name": "step 9"})]
    ranges += [(s, s + 10, {"name": "train_step"}) for s in (0, 20, 40)]  # what counts comes first
    folder = export(tmp_path / "0", kernels=[(10, 20), (120, 130), (320, last)], ranges=ranges)
    family = choose_family([step_ranges(folder)], 1)
    steps = annotated_steps(folder, family)[0]
    assert family.name == "step *"
    assert steps.number.tolist() == [3, 4, 9]
    assert steps.start.tolist() == [0, 100, 300]
    assert steps.end.tolist() == [100, 190, ends]
    assert steps.of([-1, 0, 99, 100, 190, 310]).tolist() == [-1, 0, 0, 1, -1, 2]


def test_ranges_inside_others_and_other_threads_are_left_out(tmp_path):
    names = {"name": "train_step"}
    ranges = [(0, 90, names), (10, 50, names), (100, 190, names), (5, 95, names | {"thread": 7})]
    folder = export(tmp_path / "0", kernels=[(10, 20), (120, 130)], ranges=ranges)
    steps = annotated_steps(folder, choose_family([step_ranges(folder)], 1))[0]
    assert list(zip(steps.start.tolist(), steps.end.tolist(), strict=True)) == [(0, 100), (100, 190)]


def test_a_launch_belongs_to_the_step_of_its_call_and_time_to_the_window(tmp_path):
    ranges = [(0, 100, {"name": "step 0"}), (100, 200, {"name": "step 1"}), (200, 250, {"name": "step 2"})]
    kernels = [(50, 60, {"correlation": 1}), (90, 130, {"correlation": 2}), (150, 160, {"correlation": 3})]
    calls = [(10, 15, {"correlation": 1}), (20, 25, {"correlation": 2}), (95, 99, {"correlation": 3})]
    folder = export(tmp_path / "0", kernels=kernels, calls=calls, ranges=ranges)
    document, rows, _ = found(tmp_path, [folder], **{"0": 1000})
    assert document["source"] == "annotations"
    (row,) = rows  # no launch belongs to steps 1 and 2
    assert row == {
        "rank": 0,
        "step": 0,
        "start_ns": 1000,
        "duration_ns": 100,
        "warm_up": False,
        "busy_ns": 20,
        "exposed_communication_ns": 0,
        "exposed_copies_ns": 0,
        "idle_ns": 80,
        "launches": 3,
        "called_ns": None,
        "called_duration_ns": None,
    }


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("batch 3", [(0, 40), (100, 140), (200, 240)]),
        ("decode_token", [(0, 40), (100, 140), (200, 240)]),
        ("epoch", None),
    ],
)
def test_ranges_of_inputs_that_hold_the_launches_are_steps(tmp_path, name, steps):
    """Each lasts as long as its range: a server waits for the next request. A part of them, and what holds few
    launches, is none.
    """
    ranges = [(at, at + 40, {"name": name}) for at in (0, 100, 200)]
    ranges += [(at + 30, at + 40, {"name": "copy_batch"}) for at in (0, 100, 200)]
    kernels = [(at + first, at + first + 5) for at in (0, 100, 200) for first in (0, 8, 16, 24, 32)]
    folder = export(tmp_path / "0", kernels=kernels, ranges=ranges)
    family = choose_family([step_ranges(folder)], 1)
    if steps is None:
        assert family is None
    else:
        found_steps = annotated_steps(folder, family)[0]
        assert list(zip(found_steps.start.tolist(), found_steps.end.tolist(), strict=True)) == steps


def test_ranges_of_inputs_are_parts_of_what_is_called_a_step(tmp_path):
    ranges = [(at, at + 10, {"name": "micro_batch"}) for at in range(0, 60, 10)]
    ranges += [(0, 30, {"name": "step 0"}), (30, 60, {"name": "step 1"})]
    folder = export(tmp_path / "0", kernels=[(at, at + 5) for at in range(0, 60, 10)], ranges=ranges)
    assert choose_family([step_ranges(folder)], 1).name == "step *"


TRACES = ("hta/nccl_data", "hta/sampled_rank-0", "hta/sampled_rank-1", "hta/trace_diff_control")


@pytest.mark.parametrize("name", TRACES)
def test_real_traces_agree_with_a_plain_reading(data, tmp_path, name):
    path = data / "kineto" / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    ranges = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    ranges = sorted((e["ts"], e["dur"], int(e["name"].split("#")[1])) for e in ranges)
    calls = {e["args"]["correlation"]: e["ts"] for e in events if e.get("cat") == "cuda_runtime" and e["ph"] == "X"}
    kernels = [e["args"]["correlation"] for e in events if e.get("cat") == "kernel"]
    begins = [ts for ts, _, _ in ranges[1:]]
    pauses = [begin - ts - length for begin, (ts, length, _) in zip(begins, ranges, strict=False)]
    last = ranges[-1][0] + ranges[-1][1]
    worked = max(e["ts"] + e["dur"] for e in events if e.get("cat") == "kernel")
    ends = [*begins, max(last, min(last + statistics.median(pauses), worked))]
    launches = [
        sum(start <= calls[number] < end for number in kernels) for (start, _, _), end in zip(ranges, ends, strict=True)
    ]
    normalise(path, tmp_path / "0", export="0", source=name)
    document, rows, _ = found(tmp_path, [tmp_path / "0"])
    assert document["ranges"] == "ProfilerStep#*"
    assert [row["step"] for row in rows] == [number for _, _, number in ranges]
    assert [row["launches"] for row in rows] == launches
    for row, (start, _, _), end in zip(rows, ranges, ends, strict=True):
        assert abs(row["duration_ns"] - 1000 * (end - start)) <= 600  # doubles of 10^15 us keep a quarter of one
        assert row["busy_ns"] + row["idle_ns"] == row["duration_ns"]
