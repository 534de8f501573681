"""Every idle nanosecond has one reason: against a search nanosecond by nanosecond, and against the efficiency's idle
time on real exports.
"""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from waiting_samples import CALLS, explained, random_export, write_export

from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.events.outer_ranges import outer_ranges
from causeway.waiting import explain_waiting as program
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.idle import activities, export_pass
from causeway.waiting.idle.activities import Activities
from causeway.waiting.idle.reason_words import AFTER_LAST, BEFORE_FIRST, NAMES
from causeway.waiting.idle.stack_sweep import CAUSE, OPERATOR
from support import few

RANKS = 100


def by_rank(found):
    """Return ns by reason and detail of each rank with one device."""
    each = {}
    for (device, reason, detail), ns in found.totals.whole.items():
        assert ns > 0
        if reason not in (BEFORE_FIRST, AFTER_LAST):
            each.setdefault(found.devices[device][0], Counter())[NAMES[reason], found.texts[detail]] += ns
    return each


@pytest.mark.parametrize("seed", few(range(21), 7))
def test_random_ranks_agree_with_the_definition_in_each_nanosecond(tmp_path, monkeypatch, seed):
    bound = seed % 7
    longest = bound + seed % 4
    each = random_export(tmp_path / "e0", seed, RANKS)
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: bound)
    monkeypatch.setattr(export_pass, "MOST_START_UP_NS", longest)
    if seed % 3 == 0:  # pieces come in several parts
        monkeypatch.setattr(export_pass, "FIRST_PIECES", 20)
    if seed % 2 == 0:  # as of a large export
        monkeypatch.setattr(export_pass, "CHUNK_ROWS", 0)
    found = by_rank(export_pass.explain_export(tmp_path / "e0", {}))
    for rank, tables in enumerate(each):
        assert found.get(rank, Counter()) == explained(tables, bound, longest, has_calls=True), rank


def test_the_sums_of_steps_are_the_idle_time_within_them(tmp_path, monkeypatch):
    each = random_export(tmp_path / "e0", 77, 40)
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 3)
    low = np.array([0, 25, 40])
    high = np.array([20, 40, 10_000])
    number = np.array([5, 6, 9])
    found = export_pass.explain_export(tmp_path / "e0", dict.fromkeys(range(0, 40, 2), (low, high, number)))
    assert {found.devices[device][0] % 2 for device, *_ in found.totals.steps} == {0}
    for device, (rank, _) in enumerate(found.devices):
        busy = np.zeros(2_000, bool)
        for name in ("launches", "transfers", "graphs"):  # a graph that was traced as a whole is no idle time
            for row in each[rank][name]:
                busy[row["start_ns"] : row["start_ns"] + row["duration_ns"]] = True
        ends = np.flatnonzero(busy)[[0, -1]]
        for begin, end, step in zip(low, high, number, strict=True) if rank % 2 == 0 else ():
            inside = slice(max(min(ends), begin), min(max(ends) + 1, end))
            expected = int((~busy[inside]).sum()) if inside.start < inside.stop else 0
            assert sum(ns for key, ns in found.totals.steps.items() if key[:2] == (device, step)) == expected


def test_the_start_up_latency_is_the_median_of_launches_on_an_idle_device(tmp_path):
    calls = []
    launches = []
    latencies = [*range(100, 125), 60_000, 70_000]  # a few work items that waited for something else
    for number, latency in enumerate(latencies):
        at = 1_000_000 * number
        calls.append(
            {"start_ns": at, "duration_ns": 50, "rank": 0, "thread": 1, "name": CALLS[0], "correlation": number}
        )
        event = {"start_ns": at + 50 + latency, "duration_ns": 10, "rank": 0, "stream": 0, "configuration": 0}
        launches.append(event | {"correlation": number})
    write_export(tmp_path / "e0", {"calls": calls, "launches": launches})
    assert export_pass.start_up_bound(tmp_path / "e0") == int(np.median(latencies[1:])) == 113  # the first ends no gap
    few = tmp_path / "few"
    write_export(few, {"calls": calls[:9], "launches": launches[:9]})
    assert export_pass.start_up_bound(few) == export_pass.DEFAULT_START_UP_NS


def test_a_whole_graph_is_work_that_its_own_call_launched(tmp_path, monkeypatch):
    """A kernel ends at 10; a graph, called from 12 to 20, runs from 30 to 60 on the same stream: behind no kernel, and
    longer than usual in starting. A kernel, called while the graph runs, begins at 70: it is queued behind it.
    """
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 4)
    work = {"rank": 0, "device": 0, "stream": 7}
    call = {"rank": 0, "thread": 1}
    tables = {
        "launches": [
            work | {"start_ns": 0, "duration_ns": 10, "configuration": 0},
            work | {"start_ns": 70, "duration_ns": 5, "configuration": 0, "correlation": 2},
        ],
        "graphs": [work | {"start_ns": 30, "duration_ns": 30, "correlation": 1}],
        "calls": [
            call | {"start_ns": 12, "duration_ns": 8, "name": "cudaGraphLaunch", "correlation": 1},
            call | {"start_ns": 40, "duration_ns": 1, "name": "cudaLaunchKernel", "correlation": 2},
        ],
    }
    write_export(tmp_path / "e0", tables)
    assert by_rank(export_pass.explain_export(tmp_path / "e0", {}))[0] == {
        ("launch_starved", "host code not recorded"): 2,
        ("launch_starved", "in cudaGraphLaunch"): 8,
        ("start_up", "from the end of the launch call to the start"): 4 + 6,
        ("start_up", "between queued work"): 4,
        ("dependency_stalled", "queued behind a graph of its own stream; events are not recorded"): 6,
    }


@pytest.mark.parametrize(("fills", "said"), [(900, "operator: aten::argmax"), (300, "range: part *")])
def test_a_range_around_all_work_says_less_than_an_operator(tmp_path, monkeypatch, fills, said):
    """Kernels from 0 to 100 and from 900 to 1,000; between them an operator, within a range that fills much or little
    of the run.
    """
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 0)
    work = {"rank": 0, "device": 0, "stream": 7, "configuration": 0, "duration_ns": 100}
    host = {"rank": 0, "thread": 1}
    tables = {
        "launches": [work | {"start_ns": 0}, work | {"start_ns": 900, "correlation": 1}],
        "calls": [host | {"start_ns": 890, "duration_ns": 10, "name": "cudaLaunchKernel", "correlation": 1}],
        "ranges": [host | {"start_ns": 100, "duration_ns": fills, "kind": "annotation", "name": "part 7"}],
        "host_operators": [host | {"start_ns": 100, "duration_ns": 300, "name": "aten::argmax"}],
    }
    write_export(tmp_path / "e0", tables)
    path = tmp_path / "e0" / "capabilities.json"
    document = json.loads(path.read_text()) | {"time": {"first_ns": 0, "last_ns": 1000}}
    path.write_text(json.dumps(document))
    found = by_rank(export_pass.explain_export(tmp_path / "e0", {}))[0]
    assert found["launch_starved", said] == 300


@pytest.mark.parametrize("vendor", ["calls", "queue times"])
@pytest.mark.parametrize(
    ("enqueued", "begins", "expected"),
    [
        # before the first kernel ends, at 10: queued behind it
        (9, 90_000, {"between queued work": 4, "queued": 90_000 - 14}),
        (10, 90_000, {"between queued work": 4, "queued": 90_000 - 14}),
        # after it: the host's time until it was enqueued, the launch's own latency from then on, however long
        (11, 30, {"host": 1, "latency": 19}),
        (25, 26, {"host": 15, "latency": 1}),
        (1_010, 51_010, {"host": 1_000, "latency": 50_000}),
        # but for what no launch takes
        (1_010, 51_011, {"host": 1_000, "latency": 50_000, "held": 1}),
        (1_010, 90_000, {"host": 1_000, "latency": 50_000, "held": 90_000 - 51_010}),
    ],
)
def test_work_enqueued_after_all_earlier_work_is_queued_behind_none(
    tmp_path, monkeypatch, vendor, enqueued, begins, expected
):
    """Whether an export has calls, as those of CUDA, or the dispatch of each launch alone, as AMD's queues."""
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 4)
    work = {"duration_ns": 10, "rank": 0, "stream": 0, "configuration": 0}
    called = {"correlation": 5} if vendor == "calls" else {"queue_ns": begins - enqueued}
    call = {"start_ns": 0, "duration_ns": enqueued, "rank": 0, "thread": 1, "name": CALLS[0], "correlation": 5}
    tables = {"launches": [work | {"start_ns": 0}, work | {"start_ns": begins} | called]}
    write_export(tmp_path / "e0", tables | ({"calls": [call]} if vendor == "calls" else {}))
    words = {
        "host": ("launch_starved", f"in {CALLS[0]}" if vendor == "calls" else "the launching thread is not recorded"),
        "latency": ("start_up", "from the end of the launch call to the start"),
        "held": ("unknown", "enqueued on an idle device, held back by what is not recorded"),
        "between queued work": ("start_up", "between queued work"),
        "queued": ("dependency_stalled", "queued behind a kernel of its own stream; events are not recorded"),
    }
    assert by_rank(export_pass.explain_export(tmp_path / "e0", {})) == {
        0: Counter({words[name]: ns for name, ns in expected.items()})
    }


@pytest.mark.parametrize(("source", "stream"), [(9, "stream 9"), (None, "a stream that is not recorded")])
def test_work_on_an_idle_device_stalls_where_its_stream_waits_for_an_event(tmp_path, monkeypatch, source, stream):
    """Enqueued at 20, usual latency 4, begins at 60,030: all beyond 24 is the event's, also what no launch takes."""
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 4)
    work = {"duration_ns": 10, "rank": 0, "stream": 7, "configuration": 0}
    call = {"rank": 0, "thread": 1, "name": CALLS[0], "duration_ns": 8}
    tables = {
        "launches": [
            work | {"start_ns": 0, "correlation": 4},
            work | {"start_ns": 60_030, "correlation": 5},
            work | {"start_ns": 120_050, "correlation": 6},
        ],
        "calls": [call | {"start_ns": at, "correlation": of} for at, of in ((-20, 4), (12, 5), (60_042, 6))],
        "dependencies": [{"start_ns": 11, "rank": 0, "kind": "wait", "stream": 7, "source_stream": source}],
    }
    write_export(tmp_path / "e0", tables)
    assert by_rank(export_pass.explain_export(tmp_path / "e0", {}))[0] == {
        ("launch_starved", "host code not recorded"): 2 + 2,
        ("launch_starved", f"in {CALLS[0]}"): 8 + 8,
        ("start_up", "from the end of the launch call to the start"): 4 + 50_000,
        ("dependency_stalled", f"event wait on {stream}"): 60_030 - 24,
        ("unknown", "enqueued on an idle device, held back by what is not recorded"): 10_000,
    }


def test_work_without_calls_is_unknown_and_says_so(tmp_path):
    launches = [{"start_ns": at, "duration_ns": 10, "rank": 0, "configuration": 0} for at in (0, 30)]
    write_export(tmp_path / "e0", {"launches": launches})
    assert by_rank(export_pass.explain_export(tmp_path / "e0", {})) == {
        0: Counter({("unknown", "the export has no runtime calls"): 20})
    }


@pytest.mark.parametrize(
    ("name", "compiles"),
    [
        ("_compile.compile_inner (dynamo_timed)", True),
        ("GraphLowering.run (dynamo_timed)", True),
        ("entire_frame_compile", True),
        ("OutputGraph.call_user_compiler", True),
        ("Compiling model", True),
        ("XlaCompile: jit_step", True),
        ("recompilation", True),
        ("CompileDevice", True),
        ("triton autotune", True),
        ("Autotuning", True),
        ("inductor_codegen", True),
        ("## Call CompiledFxGraph fud7jsrxcxliekg4lptyw ##", False),
        ("Torch-Compiled Region: 2/0", False),
        ("CompiledFunction", False),
        ("CompiledFunctionBackward0", False),
        ("autograd::engine::evaluate_function: CompiledFunctionBackward", False),
        ("inductor::_reinterpret_tensor", False),
        ("Inductor run", False),
        ("run precompiled graph", False),
        ("COMPILED STEP", False),
        ("autotuned kernel", False),
        ("forward", False),
    ],
)
def test_a_host_that_runs_compiled_code_does_not_compile(tmp_path, monkeypatch, name, compiles):
    """Idle from 10 to 110: inside the range up to 90, then inside the launch call."""
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 0)
    host = {"rank": 0, "thread": 1}
    calls = [host | {"start_ns": 90, "duration_ns": 20, "name": CALLS[0], "correlation": 5}]
    ranges = [host | {"start_ns": 0, "duration_ns": 200, "name": name, "kind": "annotation"}]
    work = {"duration_ns": 10, "rank": 0, "configuration": 0}
    launches = [work | {"start_ns": 0}, work | {"start_ns": 110, "correlation": 5}]
    write_export(tmp_path / "e0", {"calls": calls, "ranges": ranges, "launches": launches})
    (found,) = by_rank(export_pass.explain_export(tmp_path / "e0", {})).values()
    words = re.sub(r"\d+", "*", name)
    assert found == Counter(
        {("launch_starved", f"compilation: {words}"): 100}
        if compiles
        else {("launch_starved", f"range: {words}"): 80, ("launch_starved", f"in {CALLS[0]}"): 20}
    )


def test_where_no_call_and_no_range_tells_what_the_host_did_its_operator_does(tmp_path, monkeypatch):
    """Idle from 10 to 110, by hand: operators of the launching thread alone, the innermost, below calls and ranges."""
    monkeypatch.setattr(export_pass, "usual_start_up", lambda latencies: 0)
    host = {"rank": 0, "thread": 1}

    def on_host(begin, end, name, **more):
        return host | {"start_ns": begin, "duration_ns": end - begin, "name": name} | more

    tables = {
        "calls": [on_host(100, 111, CALLS[0], correlation=5), on_host(42, 44, "cudaGetDevice")],
        "ranges": [
            on_host(0, 105, "ProfilerStep#7", kind="annotation"),  # says no more than that it is a step
            on_host(50, 60, "forward", kind="annotation"),
        ],
        "host_operators": [
            on_host(20, 90, "aten::conv2d"),
            on_host(30, 45, "aten::copy_"),
            on_host(52, 58, "aten::mm"),
            on_host(92, 99, "aten::sort", thread=2),
        ],
    }
    work = {"duration_ns": 10, "rank": 0, "configuration": 0}
    tables["launches"] = [work | {"start_ns": 0}, work | {"start_ns": 110, "correlation": 5}]
    write_export(tmp_path / "e0", tables)
    (found,) = by_rank(export_pass.explain_export(tmp_path / "e0", {})).values()
    assert {reason for reason, _ in found} == {"launch_starved"}
    assert {detail: ns for (_, detail), ns in found.items()} == {
        "range: ProfilerStep#*": 10 + 10,
        "operator: aten::conv2d": 10 + 5 + 30,
        "operator: aten::copy_": 12 + 1,
        "in cudaGetDevice": 2,
        "range: forward": 10,
        f"in {CALLS[0]}": 10,
    }


def test_many_operators_leave_room_for_the_names_of_calls_and_ranges(monkeypatch):
    monkeypatch.setattr(activities, "MOST_TEXTS", 3)
    names = Activities()
    codes = [names.of("host_operators", f"aten::op{number}") for number in range(5)]
    codes += [names.of("calls", f"cudaCall{number}") for number in range(5)]
    assert [names.texts[code] for code in codes] == [
        *(f"operator: aten::op{number}" for number in range(3)),
        *["other operators"] * 2,
        *(f"in cudaCall{number}" for number in range(2)),  # beside what is not recorded
        *["other"] * 3,
    ]


def _many_named(each):
    """Return tables of a thread in whose every gap another range, then another operator is open; two devices, of which
    the second has one launch, at the beginning.
    """
    tables = {name: [] for name in ("launches", "calls", "ranges", "host_operators")}
    who = {"rank": 0, "thread": 1}
    for number in range(2 * each):
        at = 20 * number
        name = "of" + "".join(chr(ord("a") + int(digit)) for digit in str(number))  # digits of ranges do not count
        table = "ranges" if number < each else "host_operators"
        row = who | {"start_ns": at, "duration_ns": 20, "name": name}
        tables[table].append(row | ({"kind": "nvtx"} if table == "ranges" else {}))
        tables["calls"].append(who | {"start_ns": at + 10, "duration_ns": 2, "name": CALLS[0], "correlation": number})
        launch = {"start_ns": at + 13, "duration_ns": 3, "rank": 0, "stream": 0, "configuration": 0}
        tables["launches"].append(launch | {"device": 0, "correlation": number})
    tables["launches"].append(tables["launches"][0] | {"device": 1})
    return tables


def _reasons_by_the_nanosecond(tables):
    """Return ns by device, reason and detail of `_many_named`: in plain Python, each nanosecond by itself."""
    found = Counter()
    end = max(row["start_ns"] + row["duration_ns"] for row in tables["launches"])
    doing = ["host code not recorded"] * end
    for table, words in (("ranges", "range: "), ("host_operators", "operator: "), ("calls", "in ")):
        for row in tables[table]:  # calls last: they are inside
            for moment in range(row["start_ns"], min(row["start_ns"] + row["duration_ns"], end)):
                doing[moment] = words + row["name"]
    returned = {row["correlation"]: row["start_ns"] + row["duration_ns"] for row in tables["calls"]}
    for device in (0, 1):
        launches = [row for row in tables["launches"] if row["device"] == device]
        begun = launches[0]["start_ns"]
        for row in launches:
            for moment in range(begun, row["start_ns"]):
                is_host = moment < returned[row["correlation"]]
                latency = "from the end of the launch call to the start"
                found[(device, "launch_starved", doing[moment]) if is_host else (device, "start_up", latency)] += 1
            begun = row["start_ns"] + row["duration_ns"]
        if end > begun:
            found[device, "after_last", ""] += end - begun
    return found


@pytest.mark.parametrize("each", [100, 380, 450])
def test_details_are_as_many_as_an_export_has_texts(tmp_path, monkeypatch, each):
    """380 ranges and 380 operators are within `MOST_TEXTS` of each; more may come with a larger limit."""
    monkeypatch.setattr(activities, "MOST_TEXTS", max(activities.MOST_TEXTS, each + 10))
    tables = _many_named(each)
    write_export(tmp_path / "e0", tables)
    found = export_pass.explain_export(tmp_path / "e0", {})
    assert len(found.texts) >= 2 * each + 2
    whole = found.totals.whole.items()
    assert {
        (found.devices[device][1], NAMES[reason], found.texts[code]): ns for (device, reason, code), ns in whole
    } == _reasons_by_the_nanosecond(tables)


def test_steps_are_brought_to_the_clock_of_the_export_of_their_rank_alone(tmp_path, monkeypatch):
    """With a thousand exports of a rank each, all steps on all clocks would be a million pairs."""
    launch = {"start_ns": 100, "duration_ns": 50, "device": 0, "configuration": 0, "stream": 7}
    names = [f"e{rank}" for rank in range(4)]
    for rank, name in enumerate(names):
        write_export(tmp_path / name, {"launches": [launch | {"rank": rank}]}, name)
    clocks = {name: {"shift_ns": rank, "ranks": [rank]} for rank, name in enumerate(names)}
    write_json({"exports": clocks}, tmp_path / "clocks.json")
    steps = [{"rank": rank, "step": 0, "start_ns": 100, "duration_ns": 50} for rank in range(4)]
    schema = SCHEMAS["steps"]
    kinds = {"bool": False, "string": "x"}
    empty = {field.name: None if field.nullable else kinds.get(str(field.type), 0) for field in schema}
    write_table(pa.Table.from_pylist([empty | row for row in steps], schema), tmp_path / "steps.parquet", "steps")
    seen = []
    own = program._own
    monkeypatch.setattr(program, "_own", lambda rows, clock: seen.append(clock) or own(rows, clock))
    folders = [tmp_path / name for name in names]
    explain_waiting("d", folders, tmp_path / "clocks.json", tmp_path / "steps.parquet", tmp_path / "waiting.parquet")
    assert len(seen) == 4


@pytest.mark.parametrize(("calls_inside", "is_outer"), [(True, True), (False, False)])
def test_a_range_is_around_all_work_only_if_it_holds_most_calls(tmp_path, calls_inside, is_outer):
    """A range that fills four fifths of the run because nothing else happens was said not to be recorded."""
    row = {"rank": 0, "thread": 1}
    call = 500 if calls_inside else 5
    tables = {
        "launches": [{"start_ns": 10 + at, "duration_ns": 1, "rank": 0, "correlation": at} for at in (0, 990)],
        "calls": [row | {"start_ns": call, "duration_ns": 1, "name": CALLS[0], "correlation": at} for at in (0, 990)],
        "ranges": [row | {"start_ns": 100, "duration_ns": 850, "kind": "nvtx", "name": "save 7"}],
    }
    write_export(tmp_path / "e0", tables)
    document = json.loads((tmp_path / "e0/capabilities.json").read_text())
    document["time"] |= {"first_ns": 10, "last_ns": 1_001}
    write_json(document, tmp_path / "e0/capabilities.json")
    assert outer_ranges(tmp_path / "e0") == ({"save *"} if is_outer else set())


def test_an_operator_that_compiles_is_named_within_another_of_equal_times():
    names = Activities()
    codes = [names.of("host_operators", name) for name in ("Torch-Compiled Region: 0/1", "CachingAutotuner.benchmark")]
    assert names.priorities()[codes].tolist() == [OPERATOR, CAUSE]
    assert names.texts[codes[1]] == "compilation: CachingAutotuner.benchmark"
