"""Nsight Systems as folders, Arrow files, JSON lines and recipe output: each real export against a direct count,
form against form.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS
from reading import Read

from support import DATA

KERNEL, MEMCPY, MEMSET = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
VIDEO = ("NVVIDEO_DECODER_API", "NVVIDEO_ENCODER_API", "NVVIDEO_JPEG_API")
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGE_EVENTS = (59, 60, 70, 71)


def exports(form: str, suffix: str = "") -> list:
    """Return the real exports of a form as parameters; one that says why not, where the data are absent."""
    found = sorted(path for path in (DATA / form).glob(f"*/*{suffix}")) if DATA.is_dir() else []
    first = {path.parent: path for path in reversed(found)}  # one of each origin in every run
    slow = [() if first[path.parent] == path else pytest.mark.slow for path in found]
    marked = zip(found, slow, strict=True)
    return [pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=mark) for path, mark in marked] or [
        pytest.param(None, marks=pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent"))
    ]


# counts by other means


def from_columns(tables: dict[str, pa.Table]) -> dict:
    """Return what a direct look at the export's own tables gives."""
    empty = pa.table({"start": pa.array([], pa.int64()), "end": pa.array([], pa.int64())})

    def total(name: str) -> int:
        table = tables.get(name, empty).to_pydict()
        return sum(end - start for start, end in zip(table["start"], table["end"], strict=True))

    rows = {name: tables.get(name, empty).num_rows for name in (KERNEL, MEMCPY, MEMSET, RUNTIME, GRAPHS)}
    ranges = tables["NVTX_EVENTS"].to_pydict() if "NVTX_EVENTS" in tables else {"start": [], "end": [], "eventType": []}
    kept = [
        end - start
        for start, end, kind in zip(ranges["start"], ranges["end"], ranges["eventType"], strict=True)
        if end is not None and kind in RANGE_EVENTS
    ]
    video = [
        int(end) - int(start)
        for name in VIDEO
        for start, end in zip(
            *(tables.get(name, empty).column(side).to_pylist() for side in ("start", "end")), strict=True
        )
        if end > start  # else a mark of when tracing began
    ]
    return {
        "launches": (rows[KERNEL], total(KERNEL)),
        "transfers": (rows[MEMCPY] + rows[MEMSET], total(MEMCPY) + total(MEMSET)),
        "calls": (rows[RUNTIME] + len(video), total(RUNTIME) + sum(video)),
        "ranges": (len(kept) + rows[GRAPHS], sum(kept) + total(GRAPHS)),
        "samples": (tables["GPU_METRICS"].num_rows if "GPU_METRICS" in tables else 0, None),
        "bytes": sum(sum(tables[name].column("bytes").to_pylist()) for name in (MEMCPY, MEMSET) if name in tables),
    }


WANTED = (KERNEL, MEMCPY, MEMSET, RUNTIME, GRAPHS, "NVTX_EVENTS", "GPU_METRICS", *VIDEO)


def parquet_folder(path: Path) -> dict:
    return from_columns(
        {name: pq.read_table(path / f"{name}.parquet") for name in WANTED if (path / f"{name}.parquet").exists()}
    )


def arrow_folder(path: Path) -> dict:
    tables = {}
    for name in WANTED:
        if (path / f"{name}.arrow").exists():
            with pa.OSFile(str(path / f"{name}.arrow")) as file:
                tables[name] = pa.ipc.open_stream(file).read_all()
    return from_columns(tables)


def arrow_file(path: Path) -> dict:
    tables = {}
    size = path.stat().st_size
    with pa.memory_map(str(path)) as file:
        while file.tell() < size:
            reader = pa.ipc.open_stream(file)
            tables[reader.schema.metadata[b"table_name"].decode()] = reader.read_all()
    return from_columns({name: table for name, table in tables.items() if name in WANTED})


def database(path: Path) -> dict:
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        tables = {}
        for name in present & set(WANTED):
            cursor = connection.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in cursor.description]
            tables[name] = pa.table(
                {key: list(values) for key, values in zip(names, zip(*cursor, strict=True), strict=True)}
            )
    connection.close()
    return from_columns(tables)


def json_lines(path: Path) -> dict:
    rows = {name: [] for name in WANTED}
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if cuda := event.get("CudaEvent"):
            for key, table in (("kernel", KERNEL), ("memcpy", MEMCPY), ("memset", MEMSET)):
                if key in cuda:
                    size = int(cuda[key].get("sizebytes", 0))
                    rows[table].append({"start": int(cuda["startNs"]), "end": int(cuda["endNs"]), "bytes": size})
        elif (call := event.get("TraceProcessEvent")) and call["eventClass"] in (0, 1):
            rows[RUNTIME].append({"start": int(call["startNs"]), "end": int(call["endNs"])})
        elif note := event.get("NvtxEvent"):
            end = int(note["EndTimestamp"]) if "EndTimestamp" in note else None
            rows["NVTX_EVENTS"].append({"start": int(note["Timestamp"]), "end": end, "eventType": note["Type"]})
    return from_columns({name: pa.Table.from_pylist(values) for name, values in rows.items() if values})


def check(read: Read, expected: dict) -> None:
    """Compare a read export with the direct count."""
    assert read.status == "read", read.error
    for table, (rows, total) in (
        expected.items() if "bytes" not in expected else [item for item in expected.items() if item[0] != "bytes"]
    ):
        assert read.capabilities["tables"].get(table, 0) == rows, table
        if rows and total is not None:
            assert read.total(table) == total, table
    if expected["transfers"][0]:
        assert sum(read.transfers.column("bytes").to_pylist()) == expected["bytes"]


@pytest.mark.parametrize("path", exports("nsys_parquetdir"))
def test_parquet_folders(path, read_once):
    check(read_once(path), parquet_folder(path))


@pytest.mark.parametrize("path", exports("nsys_arrowdir"))
def test_arrow_folders(path, read_once):
    check(read_once(path), arrow_folder(path))


@pytest.mark.parametrize("path", exports("nsys_arrow", ".arrow"))
def test_arrow_files(path, read_once):
    check(read_once(path), arrow_file(path))


@pytest.mark.parametrize("path", exports("nsys_jsonlines", ".jsonl"))
def test_json_lines(path, read_once):
    check(read_once(path), json_lines(path))


@pytest.mark.parametrize(
    "name",
    [
        "jax-toolbox-cuda-graphs/pdl_2p2c_gh200",
        "jax-toolbox-cuda-graphs/graph_benchmark_gb200",
        "nemo-gpu-metrics/report2",
        "nukexc/report1",
    ],
)
def test_databases_with_graphs_and_metrics(data, name, read_once):
    path = data / "nsys_sqlite" / f"{name}.sqlite"
    check(read_once(path), database(path))


@pytest.mark.parametrize("path", exports("nsys_hdf", ".h5"))
def test_hdf5_is_refused_with_the_reason(path, tmp_path):
    read = Read(path, tmp_path / "e")
    assert (read.status, read.names) == ("refused", set())
    assert "writes 0 for every absent value" in read.error["found"]
    assert "--type sqlite" in read.error["advice"]


# one run in two forms


def same(first: Read, second: Read, but: tuple[str, ...] = (), lacks: tuple[str, ...] = ()) -> None:
    """Compare all tables, value by value; `lacks` are tables and tables of the export that the second does not give."""
    assert first.names - set(lacks) == second.names
    for table in sorted(first.names - {*but, *lacks}):
        assert getattr(first, table).equals(getattr(second, table)), table
    for key in ("tables", "rows_in", "ranks", "analyses"):
        known = first.capabilities[key]
        known = {name: rows for name, rows in known.items() if name not in lacks} if isinstance(known, dict) else known
        assert known == second.capabilities[key], key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("nsys_sqlite/fuser/report1_h100.sqlite", "nsys_parquetdir/fuser/report1_h100"),
        ("nsys_sqlite/fuser/report2_h100.sqlite", "nsys_parquetdir/fuser/report2_h100"),
        ("nsys_sqlite/fuser/report1_h200.sqlite", "nsys_parquetdir/fuser/report1_h200"),
        ("nsys_sqlite/nukexc/report1.sqlite", "nsys_parquetdir/nukexc/report1"),
        ("nsys_sqlite/nemo-gpu-metrics/report2.sqlite", "nsys_parquetdir/nemo-gpu-metrics/report2"),
        (
            "nsys_sqlite/jax-toolbox-cuda-graphs/graph_benchmark_gb200.sqlite",
            "nsys_parquetdir/jax-toolbox-cuda-graphs/graph_benchmark_gb200",
        ),
        (
            "nsys_sqlite/jax-toolbox-cuda-graphs/pdl_2p2c_gh200.sqlite",
            "nsys_parquetdir/jax-toolbox-cuda-graphs/pdl_2p2c_gh200",
        ),
        (
            "nsys_parquetdir/jax-toolbox-cuda-graphs/pdl_2p2c_gh200",
            "nsys_arrowdir/jax-toolbox-cuda-graphs/pdl_2p2c_gh200",
        ),
        (
            "nsys_arrowdir/jax-toolbox-cuda-graphs/pdl_2p2c_gh200",
            "nsys_arrow/jax-toolbox-cuda-graphs/pdl_2p2c_gh200.arrow",
        ),
        ("nsys_parquetdir/fuser/report1_h100", "nsys_arrowdir/fuser/report1_h100"),
    ],
)
def test_the_same_run_in_two_forms_gives_equal_tables(data, first, second, read_once):
    one = read_once(data / first)
    other = read_once(data / second)
    sampled = ("cpu_samples", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS")  # not among the tables of the folder
    same(one, other, lacks=sampled if "nukexc" in first else ())
    assert one.capabilities["time"] == other.capabilities["time"]


@pytest.mark.parametrize("form", ["nsys parquetdir", "nsys arrowdir", "nsys.arrow"])
def test_a_made_up_run_with_every_table_is_the_same_in_every_form(form, tmp_path):
    one, other = (
        Read(LAYOUTS[name](tmp_path, "kernel(int)", 500), tmp_path / "t" / name) for name in ("nsys.sqlite", form)
    )
    tables = "launches transfers calls ranges samples operators configurations kernels devices profiler_overhead"
    assert one.names == {*tables.split(), "cpu_samples"}
    same(one, other)
    assert one.capabilities["time"] == other.capabilities["time"]
    assert one.capabilities["issues"] == other.capabilities["issues"]


@pytest.mark.parametrize("name", ["fuser/report1_h100", "jax-toolbox-cuda-graphs/pdl_2p2c_gh200"])
def test_json_lines_give_the_tables_of_the_folder_but_for_what_they_lack(data, name, read_once):
    folder = read_once(data / "nsys_parquetdir" / name)
    lines = read_once(data / "nsys_jsonlines" / f"{name}.jsonl")
    synchronisations = ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT")  # not read from lines
    same(folder, lines, but=("devices",), lacks=("dependencies", *synchronisations))  # no table of GPUs ...
    assert folder.devices.column("name").to_pylist() != [None]
    assert lines.devices.column("name").to_pylist() == [None]
    assert folder.capabilities["time"]["session_start_ns"] > 10**18
    assert lines.capabilities["time"]["session_start_ns"] is None  # ... and do not say when the session began


# what is special


def test_kernels_of_graphs_are_launches_and_share_a_launch_call(data, read_once):
    read = read_once(data / "nsys_parquetdir/jax-toolbox-cuda-graphs/pdl_two_consumers_gb200")
    assert (read.launches.num_rows, read.count("graph_launches")) == (150, 75)
    read = read_once(data / "nsys_parquetdir/jax-toolbox-cuda-graphs/pdl_2p2c_gh200")
    assert len(set(read.launches.column("correlation").to_pylist())) == 25


def test_whole_graphs_are_ranges_and_no_launches(data, read_once):
    read = read_once(data / "nsys_parquetdir/jax-toolbox-cuda-graphs/graph_benchmark_gb200")
    graphs = read.ranges.filter(pa.compute.equal(read.ranges.column("kind"), "cuda_graph"))
    assert graphs.num_rows == read.count("graphs_without_launches") == 1000
    assert sum(graphs.column("duration_ns").to_pylist()) == 3_029_632
    assert set(graphs.column("name").to_pylist()) == {"CUDA graph 1"}
    assert graphs.column("thread").null_count == 1000  # so that no launch lies within one
    assert "3029632 ns" in read.issue("graphs_without_launches")["detail"]
    assert read.launches.column("range").null_count == 3000
    rows = read.graphs.to_pylist()
    calls = {row["correlation"]: row["name"] for row in read.calls.to_pylist()}
    assert [calls[row["correlation"]] for row in rows] == ["cudaGraphLaunch"] * 1000
    assert {(row["rank"], row["device"]) for row in rows} == {(0, 0)}
    assert sum(row["duration_ns"] for row in rows) == 3_029_632


def test_an_export_without_launches_keeps_what_it_has(data, read_once):
    read = read_once(data / "nsys_parquetdir/alpa/report1")
    assert read.capabilities["kind"] == "none"
    assert read.transfers.num_rows == 34 + 66
    assert read.count("no_launches") == 1
    assert not read.capabilities["analyses"]["kernel_variability"]["possible"]


def test_metrics_of_each_gpu_with_their_own_names_and_units(data, read_once):
    read = read_once(data / "nsys_parquetdir/nemo-gpu-metrics/report2")
    samples = read.samples.to_pandas()
    assert samples.groupby("device").size().to_dict() == {0: 39_382, 1: 94_917}
    assert samples.metric.nunique() == 29
    mean = samples.groupby(["device", "metric"], observed=True).value.mean()
    assert mean[0, "gpc_clock_frequency_hz"] == pytest.approx(209_999_997.54)  # labelled [MHz], in Hz
    assert mean[0, "gpu_active_ratio"] == 1.0
    assert mean[1, "gpu_active_ratio"] == 0.0
    assert mean[0, "pcie_rx_throughput_ratio"] == pytest.approx(0.0003829160530191458)
    assert samples.time_ns.is_monotonic_increasing
    assert samples.time_ns.min() == -11_002_495  # sampling began before the session


def test_recipe_output_is_projected_ranges_with_the_rank_from_the_device(data, read_once):
    for rank, rows in enumerate((14305, 14299, 14299, 14299)):
        path = data / f"nsys_parquet/jax-toolbox-pax-fsdp4/proc{rank}"
        read = read_once(path)
        raw = pq.read_table(path / "trace.parquet")
        assert (read.status, read.capabilities["kind"], read.names) == ("read", "none", {"ranges"})
        assert read.ranges.num_rows == raw.num_rows == rows
        assert read.total("ranges") == sum(raw.column("Projected Duration").to_pylist())
        assert set(read.ranges.column("rank").to_pylist()) == {rank}  # the column Rank is 0 in all four
        assert set(read.ranges.column("kind").to_pylist()) == {"nvtx_projected"}
        assert read.capabilities["ranks"] == [rank]
        assert read.issue("projected_ranges")["severity"] == "caution"
        assert {name for name, can in read.capabilities["analyses"].items() if can["possible"]} == {"ranges"}


def test_recipe_ranks_from_the_folder_and_from_several_reports(data, tmp_path):
    source = data / "nsys_parquet/jax-toolbox-pax-fsdp4/proc2/trace.parquet"
    (tmp_path / "rank_7/nvtx_gpu_proj_trace").mkdir(parents=True)
    shutil.copy(source, tmp_path / "rank_7/nvtx_gpu_proj_trace/trace.parquet")
    read = Read(tmp_path / "rank_7", tmp_path / "e")
    assert set(read.ranges.column("rank").to_pylist()) == {7}
    table = pq.read_table(source)
    rank = pa.array([row % 3 for row in range(table.num_rows)])
    table = table.set_column(table.column_names.index("Rank"), "Rank", rank)
    (tmp_path / "several").mkdir()
    pq.write_table(table, tmp_path / "several/trace.parquet")
    read = Read(tmp_path / "several", tmp_path / "f")
    assert set(read.ranges.column("rank").to_pylist()) == {0, 1, 2}
