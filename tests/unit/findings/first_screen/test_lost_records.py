"""What is told of copies of several kinds, of launches that the profiler lost, and of ranks that it recorded later."""

from dataclasses import replace

import duckdb
import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, gain, run, tables

from causeway.findings.first_screen.device_differences import UnusedFact
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.losses import LossFact
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.run_facts import recording_facts
from causeway.findings.first_screen.words import run_words
from causeway.findings.first_screen.words.recording_words import of_recording


def answers(given, question):
    return [line.answer for line in plan(DatasetFacts(given)) if line.question == question]


def test_calls_whose_launches_the_profiler_lost_leave_idle_time_unknown():
    """320 of 1,000 launches of a run were lost: the host was told to wait less for the device."""
    counts = {"calls_without_launch": 320, "dropped_events": 2}
    issues = [{"kind": kind, "count": count, "export": "e0", "detail": ""} for kind, count in counts.items()]
    given = tables(quality=made.quality(issues=issues), waiting=[made.wait(800)])
    assert answers(given, "Recording") == [
        "The profiler lost events: 320 launch calls beside 4,000 recorded launches have none, so idle time is not known."
    ]
    (said,) = answers(given, "Run")
    assert "nothing recorded 40 %" in said
    assert "idle" not in said
    assert not [one for one in answers(given, "Where") if one.startswith("Idle")]
    assert answers(given, "What to do")[0] == "Record fewer steps, or with larger buffers."
    assert recording_facts(tables(quality=made.quality(issues=issues[:1]))) == []


def test_of_one_recording_under_two_names_nothing_is_told():
    """Two files of one rank, named as two: "2 GPUs, 2 ranks", and record all ranks to see who is waited for."""
    issues = [{"kind": "same_recording", "count": 2, "export": None, "detail": ""}]
    (line,) = plan(DatasetFacts(tables(quality=made.quality(issues=issues), waiting=[made.wait(800)])))
    said = "2 exports hold the same recording, which every number counts 2 times: keep one."
    assert (line.question, line.answer) == ("Recording", said)


def test_kernels_without_names_may_be_communication():
    """An export without its table of strings: its exchanges counted as compute, and nothing said so."""
    issues = [{"kind": "missing_name", "count": 4000, "export": "e0", "detail": ""}]
    given = tables(quality=made.quality(issues=issues))
    said = ["4,000 launches without a kernel name: communication cannot be distinguished from compute."]
    assert answers(given, "Recording") == said


def recorded(folder, calls, answered, pace=4):
    """Write calls of a host, one after another, and work of those whose index is in `answered`, which takes `pace`
    times as long.
    """
    names = [{"start_ns": 10 * at, "call": at, "rank": 0, "name": name} for at, name in enumerate(calls)]
    pq.write_table(pa.Table.from_pylist(names), folder / "calls.parquet")
    work = {"call": pa.array(list(answered), pa.int64())}
    work |= {name: pa.array([0] * len(work["call"])) for name in ("rank", "device", "duration_ns")}
    work["start_ns"] = pa.array([10 * pace * (at or 0) for at in answered], pa.int64())
    pq.write_table(pa.table(work), folder / "graphs.parquet")
    given = tables(folders=[folder], waiting=[made.wait(800)])
    return given, [(fact.fault, fact.count) for fact in recording_facts(given)]


def test_calls_whose_work_is_not_recorded_leave_idle_time_unknown(tmp_path):
    """A third of the kernels were not in a trace, nor any graph in another; the profiler was silent, and the host was
    told to wait less often.
    """
    launch = ["cudaLaunchKernel"] * 100
    given, faults = recorded(tmp_path, launch, {*range(30), *range(90, 100)})
    assert faults == [("unanswered_calls", 60)]
    assert answers(given, "Recording") == [
        "60 launch calls beside 4,000 recorded launches have no kernel in the recording: records are missing, so idle"
        " time is not known."
    ]
    assert not [one for one in answers(given, "Where") if one.startswith("Idle")]
    assert answers(given, "What to do")[0] == "Record fewer steps, or with larger buffers."
    # single calls without a kernel, the last ones, and those that a graph captures, are nothing that is lost
    assert recorded(tmp_path, launch, range(0, 100, 2))[1] == []
    assert recorded(tmp_path, launch, range(30))[1] == []
    # a device that waits for each call would have done theirs
    assert recorded(tmp_path, launch, range(30), pace=1)[1] == [("unanswered_calls", 69)]
    captured = ["cudaLaunchKernel", "cudaStreamBeginCapture_v10000", *launch, "cudaStreamEndCapture", launch[0]]
    assert recorded(tmp_path, captured, {0, 103})[1] == []
    graphs = ["cudaLaunchKernel", "cudaGraphLaunch_v10000"] * 50 + ["cudaLaunchKernel"]
    given, faults = recorded(tmp_path, graphs, range(0, 101, 2))
    assert faults == [("unrecorded_graphs", 50)]
    assert answers(given, "Recording")[0].startswith("50 launches of graphs have no work of a device in the recording")
    assert recorded(tmp_path, graphs, range(101))[1] == []
    # kernels of graphs whose call is not known are recorded all the same
    assert recorded(tmp_path, graphs, [*range(0, 101, 2), *[None] * 60])[1] == []


def test_missing_launches_silence_unanswered_calls_of_their_export_alone_and_no_graphs(tmp_path, monkeypatch):
    """Missing dispatches of any export silenced what all others lack, and launches of graphs, which are none of them."""
    monkeypatch.chdir(tmp_path)
    kernels = ["cudaLaunchKernel"] * 80
    graphs = ["cudaGraphLaunch"] * 50
    # of the last no call of a launch is known, so none of its calls lacks one
    for name, calls, unlinked in (("e0", [*kernels, *graphs], 1), ("e1", kernels, 1), ("e2", kernels, 200)):
        (tmp_path / "results/demo" / name).mkdir(parents=True)
        recorded(tmp_path / "results/demo" / name, [*calls, "cudaLaunchKernel"], [len(calls), *[None] * unlinked])
    folders = [tmp_path / "results/demo" / name for name in ("e0", "e1", "e2")]

    def told(*exports, count=500):
        issues = [{"kind": "missing_dispatches", "count": count, "export": name, "detail": ""} for name in exports]
        facts = recording_facts(tables(folders=folders, quality=made.quality(issues=issues)))
        facts = [fact for fact in facts if fact.fault != "missing_dispatches"]
        for fact in facts:
            assert duckdb.execute(fact.query).fetchall() == [(fact.count,)]
        return {fact.fault: fact.count for fact in facts}

    assert told() == told("e0", count=3) == {"unrecorded_graphs": 50, "unanswered_calls": 160}
    assert told("e0") == {"unrecorded_graphs": 50, "unanswered_calls": 80}
    assert told("e0", "e1", "e2") == {"unrecorded_graphs": 50}


def test_durations_that_run_over_later_launches_of_a_queue_are_no_outliers():
    """12 of 250 launches were stamped with 14 ms instead of 160 µs: "12 launches take 174 % of the run"."""
    issues = [{"kind": "overlapping_launches", "count": 80, "export": "e0", "detail": ""}]
    rows = [made.kernel("attention", 800, 100, cost_ms=400) | {"value_median": 2.0 * MS}, made.kernel("moe_topk", 300)]
    given = tables(quality=made.quality(issues=issues), targets={"kernel_variability": rows})
    assert answers(given, "Recording") == [
        "80 launches end after later ones of their queue: their durations may be too long, and with them the shares of"
        " kernels."
    ]
    assert answers(given, "What varies") == []
    assert answers(given, "What fills the time")[0].startswith(
        "At their medians 500 ms of kernels: routing of experts 60 %, attention 40 %."
    )


@pytest.mark.parametrize(
    ("common_ms", "said"),
    [(137, ["Recordings share 137 ms of 211 ms: what is lost is told of the shared time."]), (200, [])],
)
def test_a_rank_that_is_recorded_later_is_said(common_ms, said):
    """20 steps of 10.6 ms stood beside a loss of 12 of 137 ms per GPU, without a word on rank 2, recorded from step 7."""
    recordings = {"are_apart": False, "held_ns": {}, "begins_ns": 74 * MS}
    recordings |= {"common_ns": common_ms * MS, "whole_ns": 211 * MS}
    assert answers(tables(efficiency=made.efficiency(recordings=recordings)), "Recording") == said


def test_copies_are_told_by_both_directions_and_those_of_kernels(both_ways):
    """1.49 GB went each way, and 46 of 54 ms of copies were a kernel's: the first screen said one part for all."""
    (where,) = answers(both_ways, "Where")
    assert ", mostly 1.5 GB device to host in 60 copies at 5 GB/s, and 1.2 GB host to device at 6 GB/s." in where
    row = made.kernel("__amd_rocclr_copyBuffer", 400, 100, kind="memory")
    by_kernel = replace(both_ways, targets={"kernel_variability": [made.kernel(), row]})
    (where,) = answers(by_kernel, "Where")
    assert ", mostly 400 ms by the kernel __amd_rocclr_copyBuffer in 100 copies, and 1.5 GB device to host" in where
    assert answers(by_kernel, "What to do") == [
        "Move less, or keep data in place: most copies and memsets run as kernels."
    ]
    assert "copies 33 %" in answers(by_kernel, "What fills the time")[0]


@pytest.fixture
def both_ways():
    copies = [
        {"kind": kind, "bytes": size, "copies": 60, "duration_ns": ms * MS, "sized_ns": ms * MS, "limit_gb_per_s": None}
        for kind, size, ms in ((1, 1_200_000_000, 200), (2, 1_500_000_000, 300))
    ]
    parts = {"useful": 200, "communication": 0, "transfers": 800, "orchestration": 0, "outside": 0}
    return tables(
        efficiency=made.efficiency(
            copies=copies,
            device={"n_devices": 1, "ranks": {"0": {}}},
            breakdown={"0/0": made.device(200, 0, 800)},
            waterfall_ns={part: ms * MS for part, ms in parts.items()},
        )
    )


def test_pages_that_move_while_kernels_run_are_told_with_what_to_do():
    """46 % of the kernels' time lay under migrations, and nothing was advised."""
    device = made.device(400) | {"under_migrations_ns": 184 * MS, "kernel_ns": 400 * MS}
    parts = {"useful": 2000, "communication": 0, "transfers": 0, "orchestration": 0, "outside": 0}
    efficiency = made.efficiency(
        breakdown={"0/0": device, "1/0": device},
        waterfall_ns={part: ms * MS for part, ms in parts.items()},
        migrations={"kernels": [{"name": "gather_kernel"}]},
    )
    given = tables(efficiency=efficiency)
    assert answers(given, "Where")[0].startswith("Pages of managed memory move during 46 % of the kernels' time")
    assert answers(given, "What to do") == [
        "Prefetch managed memory (cudaMemPrefetchAsync) before kernels use it, or work on less data at once where it"
        " does not fit the GPU."
    ]


def test_recordings_of_other_times_are_told_where_no_collective_tells_it():
    """Two ranks that were recorded 5 ms apart, 1 ms each: "compute 100 %" of one time line was all that was said."""
    issue = {"kind": "not_concurrent", "count": 1, "detail": "gaps of up to 0.0 s"}
    of = made.tables(quality=made.quality(issues=[issue]))
    (fact,) = recording_facts(of)
    assert of_recording(fact) == "Recordings of the ranks do not overlap in time: nothing tells who waits for whom."


def test_what_is_told_of_whole_recordings_is_a_share_of_them():
    """Of a rank that ended after a third of the others' time, its GPU had no work in "1.88 s of 969 ms (194 %)"."""
    whole = run(whole_ns=2000 * MS)
    fact = UnusedFact(rank=0, device=0, ns=1500 * MS, is_behind=True, query="")
    assert run_words.of_unused(fact, whole).endswith("in the last 1.5 s of 2 s (75 %).")
    lost = LossFact(part="transfers", lost_ns=1000 * MS, gain=gain(1000))
    assert (
        run_words.gain_of(lost, whole)
        == "Without this the recording of 2 s is 1 s (50 %) shorter; then kernels limit it."
    )
    alike = run_words.gain_of(lost, run(whole_ns=1001 * MS))
    assert "the recording" not in alike
    assert run_words.gain_of(lost, run()).startswith("Without this and the waits that it causes")


def test_events_that_equal_others_are_said_as_they_count_once():
    """72 kernels that all begin at 0 were 5, without a word."""
    given = tables()
    given = replace(given, quality=given.quality | {"issues": [{"kind": "repeated_events", "count": 67}]})
    (fact,) = recording_facts(given)
    assert of_recording(fact) == "67 events equal another one in every column, times included: such count once."
