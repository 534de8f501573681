"""Recordings that begin while the device runs what was launched long before: by hand, and a real export."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from efficiency_samples import export
from step_samples import found

from causeway.core.tables import table_metadata
from causeway.efficiency.steps import step_parts
from causeway.efficiency.steps.launch_moments import called_since
from causeway.efficiency.steps.rank_steps import RankSteps
from causeway.readers.normalise import normalise

STEP_NS = 10_000
SEQUENCE = ["softmax"] + ["gemm"] * 12 + ["ncclDevKernel_AllReduce"] * 7
LAUNCHES = len(SEQUENCE)


def late_recording(folder, behind, steps=12, ranges=()):
    """Write an export whose device is `behind` launches behind its host when the recording begins: a step takes 10 us
    on both; the host makes its calls at the beginning of each, 50 ns apart, the device runs 300 of every 400 ns.
    """
    started = [STEP_NS * step + 400 * at for step in range(steps) for at in range(LAUNCHES)]
    called = [STEP_NS * step + 50 * at for step in range(steps) for at in range(LAUNCHES)]
    kernels = [
        (start, start + 300, {"kernel": SEQUENCE[at % LAUNCHES], "correlation": at}) for at, start in enumerate(started)
    ]
    calls = [(called[at - behind], called[at - behind] + 20, {"correlation": at}) for at in range(behind, len(started))]
    return export(folder, kernels=kernels, calls=calls, ranges=ranges)


def test_steps_of_a_device_far_behind_its_host_are_those_of_the_device(tmp_path):
    """The calls of more than a tenth of the launches are not known: in the order of calls and starts together, launches
    of two steps would take turns.
    """
    folder = late_recording(tmp_path / "0", behind=5 * LAUNCHES)
    assert called_since(folder, annotated=False) == {}
    document, rows, _ = found(tmp_path, [folder])
    assert document["ranks"][0]["period"] == LAUNCHES
    assert document["ranks"][0]["confidence"] == 1
    assert [row["launches"] for row in rows] == [LAUNCHES] * 12
    assert {row["duration_ns"] for row in rows[1:-1]} == {STEP_NS}
    assert json.loads(table_metadata(tmp_path / "steps.parquet")["called_since"]) == {}


def test_few_launches_from_before_the_recording_are_in_no_step(tmp_path):
    """The device begins each step when the host has ended it: steps are those of the device, by their starts."""
    folder = late_recording(tmp_path / "0", behind=LAUNCHES)
    assert called_since(folder, annotated=False) == {0: STEP_NS}
    document, rows, _ = found(tmp_path, [folder], **{"0": 7})
    assert document["ranks"][0]["confidence"] == 1
    assert [row["launches"] for row in rows] == [LAUNCHES] * 11
    assert document["ranks"][0]["on_device"]
    assert rows[0]["start_ns"] == STEP_NS + 7, "the first launch whose call was recorded"
    assert json.loads(table_metadata(tmp_path / "steps.parquet")["called_since"]) == {}


def test_of_annotated_steps_the_starts_say_nothing(tmp_path):
    ranges = [(STEP_NS * at, STEP_NS * (at + 1), {"name": f"step {at}"}) for at in range(6)]
    folder = late_recording(tmp_path / "0", behind=5 * LAUNCHES, ranges=ranges)
    assert called_since(folder, annotated=True) == {0: 5 * STEP_NS}
    _, rows, _ = found(tmp_path, [folder])
    assert [row["launches"] for row in rows] == [LAUNCHES] * 6


def ahead(folder, late=None, copies=(), annotated=True):
    """Write an export whose device takes 8 us for each of 40 equal steps, the host 1 us until 32 are in flight; then it
    waits for one. The device begins step `late` and all after it 4 us later. `copies` are step, start and end in the
    step's 8 us on the device, and are called in that step. Without annotations the launches repeat.
    """
    begun = [0]
    while len(begun) < 40:
        at = len(begun)
        begun.append(max(begun[-1] + 1000, 8000 * (at - 31)))
    first = [500 + 8000 * step + (4000 if late is not None and step >= late else 0) for step in range(40)]
    started = [first[step] + 400 * at for step in range(40) for at in range(LAUNCHES)]
    kernels = [
        (start, start + 300, {"kernel": SEQUENCE[at % LAUNCHES], "correlation": at}) for at, start in enumerate(started)
    ]
    called = [start + 100 + 20 * at for start in begun for at in range(LAUNCHES)]
    calls = [(one, one + 10, {"correlation": at}) for at, one in enumerate(called)]
    calls += [(begun[step] + 600, begun[step] + 610, {"correlation": 10_000 + step}) for step, _, _ in copies]
    moved = [
        (first[step] + start, first[step] + end, {"correlation": 10_000 + step, "copy_kind": 2, "stream": 9})
        for step, start, end in copies
    ]
    ranges = [(start, start + 900, {"name": f"train (step {at})"}) for at, start in enumerate(begun) if annotated]
    return export(folder, kernels=kernels, calls=sorted(calls, key=lambda one: one[0]), ranges=ranges, copies=moved)


WORK = 400 * (LAUNCHES - 1) + 300
"""From the start of a step's first launch to the end of its last one, ns."""


@pytest.mark.parametrize("annotated", [True, False])
def test_steps_of_a_host_that_runs_ahead_are_as_long_as_on_the_device(tmp_path, annotated):
    """Each lasts from the end of the one before to its own; the first from its first launch."""
    document, rows, causes = found(tmp_path, [ahead(tmp_path / "0", annotated=annotated)])
    assert document["source"] == ("annotations" if annotated else "repeats")
    assert document["ranks"][0]["on_device"]
    assert document["slow"] == causes == []
    ends = [500 + 8000 * step + WORK for step in range(40)]
    assert [row["start_ns"] for row in rows] == [500, *ends[:-1]]
    assert [row["start_ns"] + row["duration_ns"] for row in rows] == ends
    assert [row["launches"] for row in rows] == [LAUNCHES] * 40
    assert {row["duration_ns"] for row in rows[1:]} == {8000}
    assert {row["busy_ns"] for row in rows} == {300 * LAUNCHES}
    assert json.loads(table_metadata(tmp_path / "steps.parquet")["called_since"]) == {}


@pytest.mark.parametrize("annotated", [True, False])
def test_a_step_whose_first_launch_comes_late_on_the_device_is_the_slow_one(tmp_path, annotated):
    document, _, causes = found(tmp_path, [ahead(tmp_path / "0", late=20, annotated=annotated)])
    assert document["ranks"][0]["on_device"]
    (slow,) = document["slow"]
    assert (slow["step"], slow["cause"], slow["excess_ns"]) == (20, "idle_before_first_launch", 4000)
    (cause,) = [one for one in causes if one["verdict"] == "supported"]
    assert cause["excess_ns"] == 4000


def test_a_copy_at_the_end_of_a_step_of_the_device_is_in_the_step_that_called_it(tmp_path):
    """It ends 50 ns before the next step begins to launch."""
    document, rows, _ = found(tmp_path, [ahead(tmp_path / "0", copies=[(20, WORK, 7950)])])
    assert document["ranks"][0]["on_device"]
    long = 7950 - WORK
    assert rows[20]["duration_ns"] == 8000 + long
    assert rows[21]["duration_ns"] == 8000 - long
    assert [row["exposed_copies_ns"] for row in rows] == [long if step == 20 else 0 for step in range(40)]


def test_far_ahead_launches_belong_to_steps_by_their_starts_whatever_step_has_none(tmp_path):
    """Each fourth range launches nothing; the device begins all others after the host has ended them."""
    steps = [step for step in range(40) if step % 4]
    kernels = [(20_000 + 1000 * at, 20_900 + 1000 * at, {"correlation": step}) for at, step in enumerate(steps)]
    calls = [(100 * step + 10, 100 * step + 20, {"correlation": step}) for step in steps]
    ranges = [(100 * step, 100 * step + 100, {"name": f"step {step}"}) for step in range(40)]
    document, rows, _ = found(tmp_path, [export(tmp_path / "0", kernels=kernels, calls=calls, ranges=ranges)])
    assert document["ranks"][0]["on_device"]
    assert [row["step"] for row in rows] == steps
    assert {row["called_ns"] for row in rows} == {None}
    assert {row["launches"] for row in rows} == {1}
    assert json.loads(table_metadata(tmp_path / "steps.parquet")["called_since"]) == {}


def test_a_host_that_waits_in_every_second_step_has_no_slow_steps(tmp_path):
    """The device takes 8 us for each of 40 equal steps; the host launches two within 2 us and waits for both in the
    second: its windows are 1 and 15 us long. Launches belong to the step in whose window they were called.
    """
    started = [500 + 8000 * step + 400 * at for step in range(40) for at in range(LAUNCHES)]
    kernels = [
        (start, start + 300, {"kernel": SEQUENCE[at % LAUNCHES], "correlation": at}) for at, start in enumerate(started)
    ]
    begun = [16_000 * (step // 2) + 1000 * (step % 2) for step in range(40)]
    called = [start + 100 + 20 * at for start in begun for at in range(LAUNCHES)]
    calls = [(one, one + 10, {"correlation": at}) for at, one in enumerate(called)]
    lengths = [1000, 15_000] * 20
    ranges = [(start, start + lengths[at], {"name": f"train (step {at})"}) for at, start in enumerate(begun)]
    document, rows, causes = found(tmp_path, [export(tmp_path / "0", kernels=kernels, calls=calls, ranges=ranges)])
    assert document["ranks"][0]["on_device"]
    assert document["slow"] == causes == []
    assert [row["launches"] for row in rows] == [LAUNCHES] * 40
    assert [(row["called_ns"], row["called_duration_ns"]) for row in rows] == list(zip(begun, lengths, strict=True))
    ends = [500 + 8000 * step + WORK for step in range(40)]
    assert [row["start_ns"] + row["duration_ns"] for row in rows] == ends
    assert json.loads(table_metadata(tmp_path / "steps.parquet")["called_since"]) == {"0": 500}


def test_of_fewer_than_ten_steps_the_windows_are_the_hosts(tmp_path):
    kernels = [(1000 * step + 500, 1000 * step + 1100, {"correlation": step}) for step in range(9)]
    calls = [(1000 * step + 10, 1000 * step + 20, {"correlation": step}) for step in range(9)]
    ranges = [(1000 * step, 1000 * step + 1000, {"name": f"step {step}"}) for step in range(9)]
    document, rows, _ = found(tmp_path, [export(tmp_path / "0", kernels=kernels, calls=calls, ranges=ranges)])
    assert not document["ranks"][0]["on_device"]
    assert [row["called_ns"] for row in rows] == [None] * 9


def test_a_host_that_waits_for_each_step_keeps_its_windows(tmp_path):
    ranges = [(STEP_NS * at, STEP_NS * (at + 1), {"name": f"step {at}"}) for at in range(12)]
    folder = late_recording(tmp_path / "0", behind=0, ranges=ranges)
    document, rows, _ = found(tmp_path, [folder])
    assert not document["ranks"][0]["on_device"]
    assert [row["start_ns"] for row in rows] == [STEP_NS * at for at in range(12)]


def test_the_device_of_a_real_export_is_half_a_second_behind(data, tmp_path):
    """Of each rank some 900 of 1,720 launches run before the first one whose call is known."""
    path = data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"
    normalise(path, tmp_path / "0", export="0", source=path.name)
    assert called_since(tmp_path / "0", annotated=False) == {}
    document, rows, _ = found(tmp_path, [tmp_path / "0"])
    for rank in document["ranks"]:
        mine = np.array([row["duration_ns"] for row in rows if row["rank"] == rank["rank"]])
        assert np.median(np.abs(mine / np.median(mine) - 1)) < 0.05, "steps took 6 and 23 ms in turn"
        assert rank["confidence"] > 0.95


def test_steps_of_a_device_never_overlap():
    """Of ranges with pauses between them the next step began before the one before had ended, and its idle time was
    wrong.
    """
    random = np.random.default_rng(7)
    least = np.iinfo(np.int64).min
    for _ in range(2_000):
        n = int(random.integers(2, 7))
        start = np.cumsum(random.integers(1, 30, n))
        end = np.minimum(start + random.integers(1, 40, n), np.append(start[1:], 10**6))
        first = np.maximum.accumulate(start + random.integers(0, 60, n))
        last = first + random.integers(1, 90, n)
        done = np.where(random.random(n) < 0.2, least, last - random.integers(0, 20, n))
        tally = SimpleNamespace(
            steps=RankSteps(rank=0, number=np.arange(n), start=start, end=end), first=first, last=last,
            count=np.ones((n, 1)),
        )  # fmt: skip
        steps = step_parts._on_device(tally, done)
        assert (steps.end[:-1] <= steps.start[1:]).all(), (start, end, first, last, done)


def test_a_stream_that_is_ahead_does_not_shorten_steps(tmp_path):
    """One stream needs 1,000 ns a step, the other 700: they drift, and the last step was told to last three times as
    long as the others.
    """
    steps = 12
    length = {7: 1000, 20: 700}
    kernels = [
        (
            step * ns,
            (step + 1) * ns,
            {"kernel": {7: "gemm", 20: "softmax"}[stream], "stream": stream, "correlation": 2 * step + (stream == 20)},
        )
        for step in range(steps)
        for stream, ns in length.items()
    ]
    calls = [(10 * number, 10 * number + 5, {"correlation": number}) for number in range(2 * steps)]
    ranges = [(20 * step, 20 * step + 18, {"name": f"step {step}"}) for step in range(steps)]
    folder = export(tmp_path / "0", kernels=sorted(kernels, key=lambda row: row[:2]), calls=calls, ranges=ranges)
    document, rows, _ = found(tmp_path, [folder])
    assert document["ranks"][0]["on_device"]
    assert {row["duration_ns"] for row in rows} == {1000}
