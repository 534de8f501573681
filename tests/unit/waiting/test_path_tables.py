"""Critical paths and replays of real exports, and as parts of the overview."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.waiting.test_real_exports import CLOVERLEAF, EVENTS, tables_of
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import read_table, table_metadata, write_json, write_table
from causeway.plotting.overview.device_tables import what_limits
from causeway.waiting import find_critical_paths as program
from causeway.waiting.find_critical_paths import find_critical_paths
from causeway.waiting.graph import linked_graph
from causeway.waiting.graph.scratch import Scratch

SOURCES = (
    CLOVERLEAF,
    EVENTS,
    "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite",
    "kineto/tracelens/mi300x_sglang_qwen3-8b.json.gz",
)


def tables(folder, source, steps=None):
    exported = tables_of(source, folder)
    ranks = np.unique(read_table(exported / "launches.parquet", "launches", ["rank"]).column(0)).tolist()
    write_json({"exports": {"e0": {"shift_ns": 7, "ranks": ranks}}}, folder / "clocks.json")
    outs = tuple(folder / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces"))
    find_critical_paths("d", [exported], folder / "clocks.json", steps, [], *outs)
    _check_pieces(outs[2], outs[0])
    return outs[:2], exported, ranks


def _check_pieces(pieces, path):
    """Check that the pieces of each rank adjoin, change their kind, and add up to the path, by kind."""
    sums = Counter()
    before = None
    for row in read_table(pieces, "path_pieces").to_pylist():
        if before is not None and before["rank"] == row["rank"]:
            assert row["start_ns"] == before["start_ns"] + before["duration_ns"]
            assert row["kind"] != before["kind"]
        else:
            assert before is None or before["rank"] < row["rank"]
        sums[row["rank"], row["kind"]] += row["duration_ns"]
        before = row
    for row in read_table(path, "critical_path").to_pylist():
        sums[row["rank"], row["kind"]] -= row["path_ns"] if row["step"] is None else 0
    assert not any(sums.values())


@pytest.mark.parametrize("source", SOURCES)
def test_paths_of_real_exports_add_up_and_a_replay_without_change_gives_the_measured_time(tmp_path, source):
    (path, replay), exported, ranks = tables(tmp_path, source)
    total = Counter()
    for row in read_table(path, "critical_path").to_pylist():
        assert row["path_ns"] > 0
        total[row["rank"]] += row["path_ns"]
    for rank in ranks:
        begins = []
        ends = []
        for table in ("launches", "transfers", "calls"):
            if (exported / f"{table}.parquet").is_file():
                part = read_table(exported / f"{table}.parquet", table, ["start_ns", "duration_ns", "rank"])
                start, length, own = (column.to_numpy() for column in part.columns)
                begins += start[own == rank].tolist()
                ends += (start + length)[own == rank].tolist()
        for row in _graphs(exported, rank):
            begins.append(row[0])
            ends.append(row[1])
        assert total[rank] == max(ends) - min(begins)
    rows = {(row["change"], row["name"]): row for row in read_table(replay, "replay").to_pylist()}
    same = rows["nothing", None]
    assert same["predicted_ns"] == same["time_ns"]
    assert same["predicted_device_time_ns"] == same["device_time_ns"] == _device_time(exported)
    for (change, _), row in rows.items():
        assert 0 <= row["predicted_ns"] <= row["time_ns"], change
        assert 0 <= row["naive_ns"] <= row["time_ns"], change
        assert 0 < row["predicted_device_time_ns"] <= row["predicted_ns"], change
        assert row["time_ns"] - row["predicted_ns"] <= row["naive_ns"] or change in ("launches_free", "host_free")


def _device_time(folder):
    """Return the time from the first work of a device to the end of the last, of all ranks."""
    begins = []
    ends = []
    for table in ("launches", "transfers"):
        if (folder / f"{table}.parquet").is_file():
            part = read_table(folder / f"{table}.parquet", table, ["start_ns", "duration_ns"])
            start, length = (column.to_numpy() for column in part.columns)
            begins += start.tolist()
            ends += (start + length).tolist()
    graphs = [one for rank in range(8) for one in _graphs(folder, rank)]
    return max([*ends, *(row[1] for row in graphs)]) - min([*begins, *(row[0] for row in graphs)])


def _graphs(folder, rank):
    if not (folder / "graphs.parquet").is_file():
        return []
    rows = read_table(folder / "graphs.parquet", "graphs", ["start_ns", "duration_ns", "rank"]).to_pylist()
    return [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows if row["rank"] == rank]


def test_a_benchmark_that_waits_for_each_launch_is_limited_by_its_kernels(tmp_path):
    """Kernels and fills run for 1,837,699,354 of 1,876,265,856 ns, as sums of rocprof's own columns say; of no call of
    the host anything is recorded but when it enqueued.
    """
    (path, replay), *_ = tables(tmp_path, "rocprof_v1/seismic-stencils/run0_03052024_113034")
    found = Counter()
    for row in read_table(path, "critical_path").to_pylist():
        found[row["kind"]] += row["path_ns"]
    assert found["kernel"] + found["copy"] == 1_837_699_354
    assert found["host"] + found["launch"] + found["wait"] < 0.03 * found["kernel"]
    rows = read_table(replay, "replay").to_pylist()
    (faster,) = [row for row in rows if row["name"] == "compute_fd_z_kernel"]
    assert faster["time_ns"] - faster["predicted_ns"] == pytest.approx(546_863_066 / 10, abs=100), "a tenth of its time"


@pytest.mark.parametrize("source", ["rpd/rocm-profile-data/matmul_result.rpd", "nsys_sqlite/fuser/report1_h100.sqlite"])
def test_what_limits_a_run_lies_between_the_first_and_the_last_work_of_its_devices(tmp_path, source):
    """Without host code the work runs back to back: the longer of kernels and copies limits it, not the 345 ms of the
    call, or the 6 ms of host code, that lie before or behind it all.
    """
    (_, replay), exported, _ = tables(tmp_path, source)
    sums = {
        kind: sum(read_table(exported / f"{table}.parquet", table, ["duration_ns"]).column(0).to_pylist())
        for kind, table in (("kernel", "launches"), ("copy", "transfers"))
    }
    (row,) = [row for row in read_table(replay, "replay").to_pylist() if row["change"] == "host_free"]
    assert row["limited_by"] == max(sums, key=sums.get)
    assert row["predicted_device_time_ns"] < 1.2 * sum(sums.values())


def test_an_export_of_launches_alone_has_a_path_through_them(tmp_path):
    """Two launches on one stream with a gap of 30 ns, and one on another device: neither calls nor queue times."""
    rows = [(100, 50, 0), (180, 20, 0), (110, 40, 1)]
    launches = [
        {"start_ns": start, "duration_ns": length, "device": device, "configuration": 0}
        for start, length, device in rows
    ]
    write_export(tmp_path / "e0", {"launches": [row | {"rank": 0, "stream": 7} for row in launches]})
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    outs = [tmp_path / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", [tmp_path / "e0"], tmp_path / "clocks.json", None, [], *outs)
    rows = read_table(outs[0], "critical_path").to_pylist()
    assert sum(row["path_ns"] for row in rows) == 100
    assert sum(row["path_ns"] for row in rows if row["kind"] == "kernel") == 70
    pieces = read_table(outs[2], "path_pieces").to_pylist()
    assert [(row["start_ns"], row["duration_ns"], row["kind"]) for row in pieces] == [
        (100, 50, "kernel"), (150, 30, "wait"), (180, 20, "kernel"),
    ]  # fmt: skip


def test_no_change_is_said_to_save_more_than_the_run_takes(tmp_path):
    """Two threads and two streams at work for all of 1,000 ns: their sums are twice the run, a bound is the run."""
    calls = [{"start_ns": 0, "duration_ns": 990, "correlation": at, "thread": at, "rank": 0} for at in (1, 2)]
    copies = [
        {"start_ns": 100, "duration_ns": 900, "correlation": at, "stream": at, "rank": 0, "copy_kind": 1}
        for at in (1, 2)
    ]
    launches = [{"start_ns": 50, "duration_ns": 10, "correlation": 1, "stream": 1, "rank": 0, "configuration": 0}]
    tables = {"launches": launches, "transfers": copies}
    tables["calls"] = [row | {"name": "cudaLaunchKernel"} for row in calls]
    write_export(tmp_path / "e0", tables)
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    outs = [tmp_path / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", [tmp_path / "e0"], tmp_path / "clocks.json", None, [], *outs)
    rows = {row["change"]: row for row in read_table(outs[1], "replay").to_pylist()}
    assert {rows[change]["time_ns"] for change in ("copies_free", "launches_free", "host_free")} == {1000}
    bounds = {change: rows[change]["naive_ns"] for change in ("copies_free", "launches_free", "host_free")}
    assert bounds == {"copies_free": 1000, "launches_free": 1000, "host_free": 1000}


@pytest.mark.parametrize(
    ("shift", "time"),
    [
        (0, 1000),
        (700, 1700),  # the second begins while the first runs: one run from 0 to 1,700
        (1001, 1000),  # it begins when the first is over: two runs, the longest of 1,000
        (12_000_000_000_000, 1000),
    ],
)
def test_recordings_that_were_made_one_after_the_other_are_no_one_run(tmp_path, shift, time):
    """Two ranks, one launch from 0 to 400 and one from 600 to 1,000 on each; `shift` is the second one's clock."""
    for rank in (0, 1):
        rows = [
            {"start_ns": start, "duration_ns": 400, "stream": 1, "rank": rank, "configuration": 0} for start in (0, 600)
        ]
        write_export(tmp_path / f"e{rank}", {"launches": rows}, f"e{rank}")
    clocks = {f"e{rank}": {"shift_ns": rank * shift, "ranks": [rank]} for rank in (0, 1)}
    write_json({"exports": clocks}, tmp_path / "clocks.json")
    outs = [tmp_path / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", [tmp_path / "e0", tmp_path / "e1"], tmp_path / "clocks.json", None, [], *outs)
    rows = read_table(outs[1], "replay").to_pylist()
    assert {row["time_ns"] for row in rows} == {time}
    assert next(row for row in rows if row["change"] == "nothing")["predicted_ns"] == time


def test_too_many_events_leave_tables_without_rows_that_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr(linked_graph, "MOST_EVENTS", 5)
    (path, replay), _, _ = tables(tmp_path, CLOVERLEAF)
    for file, name in ((path, "critical_path"), (replay, "replay")):
        assert read_table(file, name).num_rows == 0
        assert "5 at most" in table_metadata(file)["why"]


def test_a_disk_without_room_for_the_graph_leaves_tables_without_rows_that_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr(Scratch, "free", lambda _: 1_500)
    (path, replay), _, _ = tables(tmp_path, CLOVERLEAF)
    for file, name in ((path, "critical_path"), (replay, "replay")):
        assert read_table(file, name).num_rows == 0
        assert "GB of the disk of results, more than it had free" in table_metadata(file)["why"]


def test_the_overview_escapes_names_and_gives_the_numbers_of_its_tables(tmp_path):
    hostile = "<script>alert(1)</script>'; DROP TABLE t"
    path = [(0, None, "kernel", hostile, None, 700), (0, None, "host", "x", None, 300), (0, 1, "host", "x", None, 9)]
    replay = [("kernel_faster", hostile, None, 1000, 930, "kernel", hostile, 70, 900, 830)]
    tables = []
    for name, rows in (("critical_path", path), ("replay", replay)):
        schema = program.SCHEMAS[name]
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        write_table(table, tmp_path / f"{name}.parquet", name)
        tables.append(table)
    page = what_limits(*tables, "d")
    assert "<script>" not in page
    assert [words in page for words in ("70 %", "930 ns")] == [True, True]
    assert what_limits(tables[0].slice(0, 0), tables[1], "d") is None


@pytest.mark.parametrize("later", [[], [(10, 4000, 1)]], ids=["one rank", "another rank's device ends last"])
def test_a_host_that_goes_on_behind_the_work_limits_nothing(tmp_path, later):
    """One call of rank 0 lasts from 100 to 5,000; the devices are at work from 10 to 1,000 or 4,010, in kernels alone."""
    kernels = [(10, 990, 0), *later]
    launches = [
        {"start_ns": begin, "duration_ns": ns, "correlation": number, "stream": 7, "device": 0, "rank": rank}
        | {"configuration": 0}
        for number, (begin, ns, rank) in enumerate(kernels)
    ]
    calls = [
        {"start_ns": begin, "duration_ns": ns, "correlation": number, "thread": 1, "rank": rank, "name": name}
        for begin, ns, number, rank, name in [
            (100, 4900, 9, 0, "cudaMalloc"),
            *((0, 5, number, rank, "cudaLaunchKernel") for number, (_, _, rank) in enumerate(kernels)),
        ]
    ]
    calls.sort(key=lambda call: (call["rank"], call["start_ns"]))
    write_export(tmp_path / "e0", {"launches": launches, "calls": calls})
    ranks = sorted({rank for _, _, rank in kernels})
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": ranks}}}, tmp_path / "clocks.json")
    outs = [tmp_path / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", [tmp_path / "e0"], tmp_path / "clocks.json", None, [], *outs)
    replay = read_table(outs[1], "replay").to_pylist()
    assert {row["device_time_ns"] for row in replay} == {max(begin + ns for begin, ns, _ in kernels) - 10}
    assert {(row["limited_by"], row["limited_name"]) for row in replay} == {("kernel", "gemm")}
