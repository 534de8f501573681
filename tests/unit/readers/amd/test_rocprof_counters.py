"""Passes of counters: joined against a join by hand, in any order and block size; rows of CSV files against the csv
module.
"""

import csv
import io
import math
import resource
from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading import Read

from causeway.readers.amd import counter_passes
from causeway.readers.amd.counter_passes import CounterStore
from causeway.readers.amd.counter_values import CounterValues
from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.containers import csv_batches
from causeway.readers.containers.csv_batches import CsvFile
from causeway.readers.sink.sink import Sink
from causeway.readers.sink.star_writer import write_star

value = st.one_of(st.none(), st.integers(0, 9).map(float))
part = st.tuples(st.integers(0, 5), st.sampled_from(["k", "m"]), value, value, st.one_of(st.none(), st.integers(1, 50)))
"""Launch number, kernel, values of two counters, start."""


def joined(passes, launches):
    """Return what the store should give, by hand: {(start, launch): (A, B, C, duration)}; and how many values were
    measured again.
    """
    groups = defaultdict(list)
    repeated = 0
    for names, rows in passes:
        for number, kernel, *cells, start in rows:
            groups[number, kernel].append((dict(zip(names, cells, strict=True)), start))
    order = sorted(range(len(launches)), key=lambda at: launches[at][2])
    place = {}
    for at, (number, kernel, start) in enumerate(launches):
        place.setdefault((number, kernel), (order.index(at), start))
    found = []
    for (number, kernel), parts in groups.items():
        values = {}
        for cells, _ in parts:
            for name, one in cells.items():
                if one is not None:
                    repeated += name in values
                    values.setdefault(name, one)
        start = next((start for _, start in parts if start is not None), None)
        launch, linked = place.get((number, kernel), (None, None))
        start = linked if start is None else start
        found.append((number, kernel, start, launch, values))
    return found, repeated


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    passes=st.lists(
        st.tuples(st.sampled_from([("A", "B"), ("B", "C"), ("C", "A")]), st.lists(part, max_size=12)),
        min_size=1,
        max_size=3,
    ),
    launches=st.lists(  # two of one kernel at one time would be one launch that stands twice
        st.tuples(st.integers(0, 5), st.sampled_from(["k", "m"]), st.integers(1, 99)),
        max_size=8,
        unique_by=lambda one: one[1:],
    ),
    block=st.sampled_from([1, 3, 1 << 14]),
)
def test_passes_are_joined_as_by_hand(passes, launches, block, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counter_passes, "BLOCK_ROWS", block)
        sink = Sink(folder, {"source": "x", "source_sha256": "0"}, 0, 0)
        store = CounterStore(sink, {}, "end - start")
        process = sink.processes.code(0)
        codes = {name: sink.kernel(name) for name in ("k", "m")}
        if launches:
            columns = {
                "number": np.array([number for number, *_ in launches]),
                "kernel": np.array([codes[kernel] for _, kernel, _ in launches]),
                "start": np.array([start for *_, start in launches]),
                "stop": np.array([start + 5 for *_, start in launches]),
                "process": process,
            }
            sink.launches(columns | {"start_ns": columns["start"], "end_ns": columns["stop"], "process": process})
            store.launches(columns)
        for names, rows in passes:
            if rows:
                start = np.array([NULL if row[-1] is None else row[-1] for row in rows])
                columns = {
                    "number": np.array([row[0] for row in rows]),
                    "kernel": np.array([codes[row[1]] for row in rows]),
                    "start": start,
                    "stop": np.where(start == NULL, NULL, start + 7),
                    "process": process,
                }
                cells = np.array([[math.nan if cell is None else cell for cell in row[2:4]] for row in rows])
                store.take(columns, store.layout(names), cells)
        store.hand_over()
        expected, repeated = joined(passes, launches)
        if not any(values for *_, values in expected):
            sink.close()
            return
        write_star(sink)
        sink.close()
    table = pq.read_table(folder / "counters.parquet")
    rows = table.to_pylist()
    assert len(rows) == len(expected)
    timed = all(start is not None for _, _, start, _, _ in expected)
    kernel_of = {
        row["configuration"]: row["kernel"] for row in pq.read_table(folder / "configurations.parquet").to_pylist()
    }
    name_of = {row["kernel"]: row["name"] for row in pq.read_table(folder / "kernels.parquet").to_pylist()}
    got = sorted(
        (
            name_of[kernel_of[row["configuration"]]],
            row["start_ns"] or 0,
            *(-1.0 if row.get(name) is None else row[name] for name in "ABC"),
        )
        for row in rows
    )
    wanted = sorted(
        (kernel, start or 0, *(values.get(name, -1.0) for name in "ABC")) for _, kernel, start, _, values in expected
    )
    assert got == wanted
    if timed:
        starts = [row["start_ns"] for row in rows]
        assert starts == sorted(starts)
    if launches:
        assert sorted(row["launch"] for row in rows if row["launch"] < len(launches)) == sorted(
            launch for *_, launch, _ in expected if launch is not None
        )
        beyond = [row["launch"] for row in rows if row["launch"] >= len(launches)]
        assert beyond == list(range(len(launches), len(launches) + len(beyond)))
    assert sink.issues.count("repeated_counters") == repeated
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_bad_times_keep_their_counters(tmp_path):
    sink = Sink(tmp_path, {"source": "x", "source_sha256": "0"}, 0, 0)
    start = np.array([5, 9, NULL, 1])
    stop = np.array([7, 3, 4, 200 * 86_400 * 10**9])
    start, stop = counter_passes.checked(sink, start, stop, np.zeros(4, bool))
    assert start.tolist() == [5, NULL, NULL, NULL]
    assert stop.tolist() == [7, NULL, NULL, NULL]
    assert (sink.issues.count("end_before_start"), sink.issues.count("implausible_time")) == (1, 1)
    assert sink.issues.left_out == {"end_before_start": 1, "implausible_time": 1, "no_time": 1}


cell = st.text(alphabet='ab1, "\n<>;é', max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(cell.map(str.strip), min_size=3, max_size=3), max_size=12),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_rows_equal_those_of_the_csv_module(rows, quoting, tmp_path):
    # a lone empty or blank row is no row; line ends inside of cells are kept unless a line is a row by itself
    rows = [row for row in rows if any(row) and not any("\n" in one and one.count(",") >= 2 for one in [",".join(row)])]
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator="\n")
    writer.writerows([["x", "y", "z"], *rows])
    path = tmp_path / "a.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    issues = Issues()
    with CsvFile(path, "a.csv", "a", issues) as file:
        found = [row for batch in file.batches() for row in batch.rows]
    assert found == rows
    assert issues.as_list() == []


def test_line_ends_inside_of_cells_are_kept(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y\n1,"two\nlines"\n2,"plain"\n')
    with CsvFile(path, "a.csv", "a", Issues()) as file:
        assert [row for batch in file.batches() for row in batch.rows] == [["1", "two\nlines"], ["2", "plain"]]


def test_a_quote_that_is_never_closed_costs_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_batches, "FIELD_CHARS", 2000)
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n" + '0,"open,1\n' + "".join(f'{at},"k({at}, int)",{at}\n' for at in range(1, 500)))
    issues = Issues()
    with CsvFile(path, "a.csv", "a", issues) as file:
        found = [row for batch in file.batches() for row in batch.rows]
    assert [row[0] for row in found] == [str(at) for at in range(1, 500)]
    assert issues.count("unreadable_rows") == 1
    assert "line 2" in issues.as_list()[0]["detail"]


@pytest.mark.parametrize(
    ("end", "rows"),
    [
        ("3,c,1234\n", 3),
        ("3,c,1234", 3),
        ("3,c,12", 2),
        ("3,c", 2),
        ('3,c,"12"', 3),
        ("3,c,99999", 3),
        ("3,c,1234\n\n\n", 3),
    ],
)
def test_a_last_row_without_line_end_is_kept_if_it_looks_whole(end, rows, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n1,a,1200\n2,b,1230\n" + end)
    issues = Issues()
    with CsvFile(path, "a.csv", "a", issues) as file:
        assert len([row for batch in file.batches() for row in batch.rows]) == rows
        assert (file.failure is None) == (rows == 3)
    assert issues.count("truncated") == 3 - rows


def test_files_of_the_same_counters_in_one_folder_are_said_to_be_further_runs(tmp_path):
    header = "Correlation_Id,Dispatch_Id,Agent_Id,Process_Id,Grid_Size,Kernel_Name,Counter_Name,Counter_Value"
    for at, (name, counters) in enumerate({"pinned": "AB", "managed": "AB", "other_pass": "BC"}.items()):
        rows = [f"{one},{one},4,{at},64,k,{counter},{at}" for one in (1, 2) for counter in counters]
        (tmp_path / f"{name}_counter_collection.csv").write_text("\n".join([header, *rows]) + "\n")
    export = Read(tmp_path, tmp_path.with_name("t"))
    assert export.count("repeated_run") == 1
    assert export.issue("repeated_run")["detail"].endswith("pinned_counter_collection.csv")  # the last by name
    assert export.counters.column("A").to_pylist() == [1.0, 1.0]


def test_what_a_full_disk_did_not_take_is_dropped(tmp_path):
    """The clear error of the first write that failed is not replaced by another of the end."""
    sink = Sink(tmp_path, {"source": "x", "source_sha256": "0"}, 0, 0)
    values = CounterValues(sink)
    values.write([values.layout(["a", "b"])], np.ones((3, 2)))
    rows = sink.sorted_rows("few")
    rows._open().write(b"few")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        sink.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
