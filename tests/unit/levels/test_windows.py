"""Windows for other viewers: the same events in every format, by the formats' own rules."""

import gzip
import json
import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from levels_reference import write_run

from causeway.core.errors import CausewayError
from causeway.core.tables import read_json, read_table, write_json, write_table
from causeway.inputs.session_clocks import align
from causeway.levels.windows.chrome import write_chrome
from causeway.levels.windows.nsys_sqlite import write_nsys
from causeway.levels.windows.paraver import SAMPLE_SCALE, SAMPLES, STATES, write_paraver
from causeway.levels.windows.viewer_rows import ViewerEvent, spread
from causeway.levels.windows.window import NAMES, read_window, span_of
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run as simulate

WHOLE = "whole"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return folders, clocks and nodes of a small simulated run of two ranks with every kind of event."""
    home = tmp_path_factory.mktemp("run") / "demo"
    simulate({"kind": "trace", "ranks": 2, "nodes": 2, "iterations": 12, "seed": 3}, home.parent / "sim")
    folders = {str(rank): home / "tables" / str(rank) for rank in range(2)}
    for rank, folder in enumerate(folders.values()):
        source = home.parent / "sim" / f"rank{rank}.sqlite"
        normalise(
            source, folder, export=str(rank), source=source.name, rank=rank, position=rank, form="nsys", node=f"n{rank}"
        )
    return home, folders, align("demo", folders.values()), {str(rank): f"n{rank}" for rank in range(2)}


@pytest.fixture(scope="module")
def whole(run):
    home, folders, clocks, nodes = run
    return read_window(WHOLE, home, folders, clocks, nodes)


def totals(folders, table="launches"):
    """Return rows and ns of a table over all exports."""
    read = [read_table(folder / f"{table}.parquet", table) for folder in folders.values()]
    return sum(rows.num_rows for rows in read), sum(pc.sum(rows["duration_ns"]).as_py() for rows in read)


@pytest.fixture(scope="module")
def chrome(whole, tmp_path_factory):
    path = tmp_path_factory.mktemp("chrome") / "w.json.gz"
    write_chrome(whole, path)
    with gzip.open(path, "rt") as file:
        return json.load(file)["traceEvents"]


REQUIRED = {
    "X": {"name": str, "cat": str, "ts": (int, float), "dur": (int, float), "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
    "s": {"name": str, "cat": str, "id": int, "ts": (int, float), "pid": int, "tid": int},
    "f": {"name": str, "cat": str, "id": int, "ts": (int, float), "pid": int, "tid": int, "bp": str},
    "C": {"name": str, "ts": (int, float), "pid": int, "args": dict},
}
"""What each phase must have by the trace-event format."""


def test_chrome_events_have_what_their_phase_asks_for(chrome):
    assert {event["ph"] for event in chrome} == set(REQUIRED)
    for event in chrome:
        for key, kind in REQUIRED[event["ph"]].items():
            assert isinstance(event[key], kind), event
        assert event.get("dur", 0) >= 0
    assert all(
        isinstance(value, (int, float)) for event in chrome if event["ph"] == "C" for value in event["args"].values()
    )
    named = {(event["pid"], event["tid"]) for event in chrome if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in chrome if event["ph"] in "Xsf"} <= named


def test_chrome_holds_the_same_launches_transfers_and_calls_to_the_nanosecond(chrome, run):
    by_class = defaultdict(list)
    for event in chrome:
        if event["ph"] == "X":
            by_class[event["cat"]].append(round(event["dur"] * 1000))
    kernels = by_class["compute"] + by_class["communication"] + by_class["memory"]
    assert (len(kernels), sum(kernels)) == totals(run[1])
    copies = by_class["copy"] + by_class["memset"]
    assert (len(copies), sum(copies)) == totals(run[1], "transfers")
    assert (len(by_class["range"]), sum(by_class["range"])) == totals(run[1], "ranges")
    samples = sum(read_table(folder / "samples.parquet", "samples").num_rows for folder in run[1].values())
    assert sum(event["ph"] == "C" for event in chrome) == samples > 0


def test_chrome_bars_of_a_line_do_not_overlap_and_flows_lead_from_a_call_to_what_it_launched(chrome):
    lines = defaultdict(list)
    for event in chrome:
        if event["ph"] == "X":
            lines[event["pid"], event["tid"]].append(event)
    for events in lines.values():
        ends = -(1 << 62)
        for event in sorted(events, key=lambda event: (event["ts"], event["dur"])):
            assert round(event["ts"] * 1000) >= ends
            ends = round(event["ts"] * 1000) + round(event["dur"] * 1000)
    starts = {event["id"]: event for event in chrome if event["ph"] == "s"}
    finishes = {event["id"]: event for event in chrome if event["ph"] == "f"}
    assert starts.keys() == finishes.keys()
    assert len(starts) > 100
    bars = {(event["pid"], event["tid"], event["ts"]): event for event in chrome if event["ph"] == "X"}
    for key, start in starts.items():
        call = bars[start["pid"], start["tid"], start["ts"]]
        launched = bars[finishes[key]["pid"], finishes[key]["tid"], finishes[key]["ts"]]
        assert call["cat"] == "call"
        assert call["args"]["correlation"] == launched["args"]["correlation"]
        assert launched["ts"] >= call["ts"]


HEADER = re.compile(r"#Paraver \(\d\d/\d\d/\d{4} at \d\d:\d\d\):(\d+)_ns:(\d+)\(([\d,]+)\):1:(\d+)\(([\d:,]+)\)")
STATE = re.compile(r"1:(\d+):1:(\d+):(\d+):(\d+):(\d+):(\d+)")
EVENT = re.compile(r"2:(\d+):1:(\d+):(\d+):(\d+)((?::\d+:-?\d+)+)")
COMMUNICATION = re.compile(r"3:(\d+):1:(\d+):(\d+):(\d+):(\d+):(\d+):1:(\d+):(\d+):(\d+):(\d+):(\d+):(\d+)")


def test_paraver_traces_parse_by_the_grammar_with_equal_totals(whole, run, tmp_path):
    write_paraver(whole, tmp_path / "w.prv")
    lines = (tmp_path / "w.prv").read_text(encoding="utf-8").splitlines()
    length, nodes, cpus, tasks, threads = HEADER.fullmatch(lines[0]).groups()
    per_task = [tuple(map(int, part.split(":"))) for part in threads.split(",")]
    assert (int(nodes), int(tasks)) == (2, 2) == (len(cpus.split(",")), len(per_task))
    assert sum(map(int, cpus.split(","))) == sum(count for count, _ in per_task)
    before = 0
    found = defaultdict(list)
    flows = 0
    free = {}
    for line in lines[1:]:
        if match := STATE.fullmatch(line):
            cpu, task, thread, begin, end, state = map(int, match.groups())
            assert free.get(cpu, 0) <= begin <= end <= int(length)
            free[cpu] = end
            found[state].append(end - begin)
            time = begin
        elif match := EVENT.fullmatch(line):
            cpu, task, thread, time = map(int, match.groups()[:4])
        else:
            values = list(map(int, COMMUNICATION.fullmatch(line).groups()))
            cpu, task, thread, time = values[:4]
            assert values[4] == time
            assert values[8] >= time
            flows += 1
        assert before <= time <= int(length)
        before = time
        assert 1 <= thread <= per_task[task - 1][0]
    kernels = [ns for kind in ("compute", "communication", "memory") for ns in found[STATES[kind][0]]]
    assert (len(kernels), sum(kernels)) == totals(run[1])
    copies = [ns for kind in ("copy", "memset") for ns in found[STATES[kind][0]]]
    assert (len(copies), sum(copies)) == totals(run[1], "transfers")
    assert flows > 100
    sampled = sum(int(part) >= SAMPLES for line in lines for part in line.split(":")[6:7] if line.startswith("2:"))
    assert sampled == sum(read_table(folder / "samples.parquet", "samples").num_rows for folder in run[1].values())
    assert SAMPLE_SCALE == 1000
    pcf = (tmp_path / "w.pcf").read_text(encoding="utf-8")
    assert all(name in pcf for name in ("STATES", "EVENT_TYPE", "VALUES", "Compute kernel"))
    rows = (tmp_path / "w.row").read_text(encoding="utf-8").splitlines()
    for start, text in enumerate(rows):
        if match := re.fullmatch(r"LEVEL (\w+) SIZE (\d+)", text):
            assert all(rows[start + 1 : start + 1 + int(match[2])])
            assert match[1] in ("CPU", "NODE", "APPL", "TASK", "THREAD")


def test_paraver_gives_each_rank_the_processors_of_its_node(run, tmp_path):
    """The header counts processors node by node, in the order of names; here rank 0 runs on the second node."""
    home, folders, clocks, _ = run
    window = read_window(WHOLE, home, folders, clocks, {"0": "nodeB", "1": "nodeA"})
    write_paraver(window, tmp_path / "w.prv")
    lines = (tmp_path / "w.prv").read_text(encoding="utf-8").splitlines()
    _, _, cpus, _, tasks = HEADER.fullmatch(lines[0]).groups()
    of_a, of_b = map(int, cpus.split(","))
    assert [int(part.split(":")[1]) for part in tasks.split(",")] == [2, 1]
    used = {task: {int(line.split(":")[1]) for line in lines[1:] if line.split(":")[3] == task} for task in "12"}
    assert used == {"1": set(range(of_a + 1, of_a + of_b + 1)), "2": set(range(1, of_a + 1))}
    rows = (tmp_path / "w.row").read_text(encoding="utf-8").splitlines()
    assert [text[:6] for text in rows[1 : 1 + of_a + of_b]] == ["rank 1"] * of_a + ["rank 0"] * of_b
    assert rows[rows.index("LEVEL NODE SIZE 2") + 1 :][:2] == ["nodeA", "nodeB"]


def comparable(table, name, kernels=None):
    """Return the rows of a table without what a second reading numbers anew."""
    rows = table.to_pylist()
    for row in rows:
        row.pop("range", None)
        row.pop("call", None)
        if kernels is not None:
            row["configuration"] = kernels[row["configuration"]]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def shapes(folder):
    kernels = {row["kernel"]: row["name"] for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
    rows = read_table(folder / "configurations.parquet", "configurations").to_pylist()
    return {
        row["configuration"]: [
            kernels[row["kernel"]],
            *(row[name] for name in row if name not in ("configuration", "kernel")),
        ]
        for row in rows
    }


def test_the_database_is_read_back_into_equal_tables(whole, run, tmp_path):
    write_nsys(whole, tmp_path / "w.sqlite")
    document = normalise(tmp_path / "w.sqlite", tmp_path / "back", export="e0", source="w.sqlite", form="nsys")
    assert (document["status"], document["ranks"], document["ranks_from"]) == ("read", [0, 1], "export")
    back = tmp_path / "back"
    _, folders, clocks, _ = run
    for name in ("launches", "transfers", "calls", "ranges", "samples"):
        wanted = []
        for export, folder in folders.items():
            rows = read_table(folder / f"{name}.parquet", name)
            of_clock = {"time_ns", "start_ns", "call_start_ns", "call_end_ns"}
            for column in of_clock & set(rows.column_names):
                shifted = pc.add(rows[column], clocks["exports"][export]["shift_ns"])
                rows = rows.set_column(rows.column_names.index(column), rows.schema.field(column), shifted)
            rows = comparable(rows, name, shapes(folder) if name == "launches" else None)
            wanted += rows
        found = comparable(
            read_table(back / f"{name}.parquet", name), name, shapes(back) if name == "launches" else None
        )
        assert len(found) == len(wanted) > 0
        assert found == sorted(wanted, key=lambda row: json.dumps(row, sort_keys=True, default=str)), name


def test_a_window_holds_what_begins_in_it_and_the_calls_that_launched_it(run):
    home, folders, clocks, nodes = run
    first = read_window(WHOLE, home, folders, clocks, nodes).events["0"]["launches"]["start_ns"][100].as_py()
    begin = (
        first
        - clocks["exports"]["0"]["shift_ns"]
        - read_table(folders["0"] / "launches.parquet", "launches")["start_ns"][0].as_py()
    )
    begin //= 1000
    window = read_window(f"at_{begin}us_{begin + 10000}us", home, folders, clocks, nodes)
    for export, folder in folders.items():
        rows = read_table(folder / "launches.parquet", "launches")
        start = pc.add(rows["start_ns"], clocks["exports"][export]["shift_ns"] - window.origin_ns).to_numpy()
        assert (
            window.events[export]["launches"].num_rows
            == ((start >= begin * 1000) & (start < (begin + 10_000) * 1000)).sum()
            > 0
        )
        called = {row["correlation"] for row in window.events[export]["calls"].to_pylist()}
        assert {row["correlation"] for row in window.events[export]["launches"].to_pylist()} <= called
    assert window.earliest_ns < window.begin_ns


def test_a_window_in_which_nothing_begins_is_refused(run):
    """Its files would open in a viewer without a word of why they are empty."""
    home, *rest = run
    with pytest.raises(CausewayError, match="no event begins in it; times count in microseconds from the first launch"):
        read_window("at_900000000us_900000001us", home, *rest)


def test_equal_windows_give_equal_bytes(whole, tmp_path):
    for name in ("a", "b"):
        write_chrome(whole, tmp_path / f"{name}.json.gz")
        write_paraver(whole, tmp_path / f"{name}.prv")
        write_nsys(whole, tmp_path / f"{name}.sqlite")
    for ending in ("json.gz", "prv", "pcf", "row", "sqlite"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_every_class_has_a_state_and_null_columns_stay_null(tmp_path):
    folders, clocks = write_run(tmp_path / "d", 50, 1, 1)
    time = {"first_ns": 5000, "last_ns": 1, "session_start_ns": None, "has_start": True}
    (folders["0"] / "capabilities.json").write_text(json.dumps({"ranks": [0, 1], "time": time}), encoding="utf-8")
    window = read_window(WHOLE, tmp_path / "d", folders, clocks, {})
    write_paraver(window, tmp_path / "w.prv")
    write_nsys(window, tmp_path / "w.sqlite")
    with closing(sqlite3.connect(tmp_path / "w.sqlite")) as base:
        kept = Counter(row["bytes"] is None for row in window.rows("transfers") if row["copy_kind"] != 255)
        query = "SELECT bytes IS NULL, count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY GROUP BY 1"
        assert {bool(empty): count for empty, count in base.execute(query)} == kept


def test_overlapping_events_take_as_many_lines_as_overlap_at_once():
    events = [ViewerEvent(start, 10, "compute", "k", 0, None, {}) for start in (0, 5, 10, 12, 30)]
    lines = spread(events)
    assert [[event.start_ns for event in line] for line in lines] == [[0, 10], [5, 30], [12]]
    assert sum(map(len, lines)) == 5
    assert all(a.end_ns <= b.start_ns for line in lines for a, b in pairwise(line))


def test_windows_of_bins_and_findings_and_names_that_say_nothing(tmp_path):
    home = tmp_path / "demo"
    target = home / "kernel_variability"
    target.mkdir(parents=True)
    from variability_tables import table_of

    bins = table_of("bins", {"rank": [0], "bin": [3], "start_ns": [0], "count": [1]})
    write_table(bins, target / "bins.parquet", "bins", (), {"bin_width": "1000", "bin_unit": "ns"})
    kept = {"rank": [0, 0, 1], "bin": [3, 4, 4], "kernel": ["a", "a", "b"], "target": [1.0, 2.0, 9.0]}
    write_table(table_of("kept", kept | {"launch": [0, 1, 2]}), target / "kept.parquet", "kept")
    findings = [{"dataset": "demo", "target": "kernel_variability", "scope": scope} for scope in ("a", "dataset")]
    write_json(
        {"findings": [*findings, {"dataset": "other", "target": None, "scope": "dataset"}]}, tmp_path / "findings.json"
    )
    assert span_of("bin_kernel_variability_r0_3", home, 500) == (3500, 4500)
    assert span_of("finding_0", home, 0) == (4000, 5000)
    assert span_of("finding_1", home, 0) == (4000, 5000)
    assert span_of("at_1us_2us", home, 10) == (1010, 2010)
    assert span_of(f"at_0us_{2**61 // 1000}us", home, 0) == (0, 2**61 // 1000 * 1000)
    for name, reason in (
        ("at_2us_2us", "ends before"),
        ("later", "expected whole, at_"),
        (f"at_{'1' * 30}us_{'2' * 30}us", "ends later than any trace"),
        (f"at_0us_{2**61 // 1000 + 1}us", "ends later than any trace"),
        (f"bin_kernel_variability_r0_{'9' * 30}", "ends later than any trace"),
        ("finding_2", "is about other"),
        ("finding_9", "has 3"),
        ("bin_nothing_r0_1", r"nothing/bins\.parquet does not exist; targets with bins: kernel_variability"),
        ("bin_kernel_variability_r7_3", r"has no rank 7; it has \[0\]"),
        ("bin_kernel_variability_r0_4", "no launch of rank 0 begins in bin 4; it has bins from 3 to 3"),
        (f"bin_kernel_variability_r{'9' * 12}_3", "has no rank 999999999999"),
    ):
        with pytest.raises(CausewayError, match=reason):
            span_of(name, home, 0)
    assert NAMES.fullmatch("bin_memory_stall_r12_7")["target"] == "memory_stall"
    assert read_json(tmp_path / "findings.json")
    assert pa.types.is_integer(kept_type(target))


def kept_type(folder):
    return read_table(folder / "kept.parquet", "kept").schema.field("bin").type
