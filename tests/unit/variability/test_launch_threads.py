"""Threads of a launch where grids count work-items (AMD), blocks (NVIDIA), both in one dataset, or nobody knows what."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from layouts import FAMILY, LAYOUTS
from reading import kernel, write_trace
from whole_way import binned, tables_of

from causeway.core.files.yaml_files import COLUMN_MAPS, column_map
from causeway.core.schemas.launch_threads import launch_threads
from causeway.core.tables import read_table, table_metadata
from causeway.efficiency.steps.launch_moments import MOST_THREADS, threads_of

HEAD = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
    "End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
)
GRIDS = [(64, (64, 1, 1)), (64, (640, 2, 1)), (256, (1024, 1, 1)), (256, (2560, 3, 2)), (128, (4096, 1, 1))]
"""Blocks along x and grids in work-items."""


def ns(threads):
    return 1000 + threads // 4


def dispatches(path, grids):
    """Write a kernel trace of rocprofv3 with three launches of each grid, whose time is a line in their threads."""
    lines = [HEAD]
    for number in range(3 * len(grids)):
        block, grid = grids[number % len(grids)]
        start = 10**9 + number * 10**6
        stop = start + ns(grid[0] * grid[1] * grid[2])
        lines.append(
            f"KERNEL_DISPATCH,Agent 1,1,1,7,{number + 1},1,work(float*),{number + 1},{start},{stop},{block},1,1,"
            + ",".join(map(str, grid))
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def of_blocks(path, grids):
    """Write the same launches as a trace whose grids count blocks."""
    events = []
    for number in range(3 * len(grids)):
        block, grid = grids[number % len(grids)]
        threads = grid[0] * grid[1] * grid[2]
        events.append(
            kernel(
                number * 1000,
                ns(threads) / 1000,
                "work(float*)",
                grid=[grid[0] // block, *grid[1:]],
                block=[block, 1, 1],
            )
        )
    return write_trace(path, events)


@pytest.mark.parametrize("vendors", ["work-items", "blocks", "both"])
def test_threads_do_not_depend_on_what_grids_count(vendors, tmp_path):
    files = []
    if vendors != "blocks":
        files.append(dispatches(tmp_path / "amd_kernel_trace.csv", GRIDS))
    if vendors != "work-items":
        files.append(of_blocks(tmp_path / "nvidia.json", GRIDS))
    names, folder = binned(tmp_path / "out", files, "kernel_variability")
    (row,) = read_table(folder / "kernels.parquet", "kernel_summary").to_pylist()
    assert row["configurations"] == len(GRIDS) * len(files)
    for name in names:
        assert threads_of(tmp_path / "out" / "tables" / name).tolist() == [64, 1280, 1024, 15360, 4096]


def test_what_grids_count_stands_in_the_tables_of_every_export_of_amd(tmp_path):
    stated = {path.stem: column_map(path.stem)["grid"] for path in COLUMN_MAPS.glob("*.yaml") if _states(path.stem)}
    assert set(stated) == {"rocprof", "rocprof_compute", "rocprofv3", "rocm_perfetto", "rocpd", "rpd"}
    made = {layout: make for layout, make in LAYOUTS.items() if FAMILY[layout] in ("rocprof", "rocprofv3", "rocpd")}
    assert len(made) == 11
    for layout, make in made.items():
        source = tmp_path / layout
        source.mkdir()
        path = make(source, "work", 4)
        (name,) = tables_of(tmp_path / f"{layout}_out", [path], one_each=False)
        folder = tmp_path / f"{layout}_out" / "tables" / name
        counts = table_metadata(folder / "configurations.parquet")["grid"]
        assert counts == ("as launched" if layout == "rpd" else "work-items"), layout
        table = read_table(folder / "configurations.parquet", "configurations")
        expected = [
            None if counts == "as launched" or row["grid_x"] is None else _volume(row) for row in table.to_pylist()
        ]
        assert launch_threads(table) == expected, layout
        assert threads_of(folder).tolist() == [one or 0 for one in expected], layout
        assert any(expected) != (layout == "rpd"), layout


@pytest.mark.parametrize(
    ("calls", "top", "counts"),
    [
        (["cudaLaunchKernel"], {}, "blocks"),
        ([], {}, "blocks"),
        (["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtLaunchKernel"], {"roctracer_version": 4.1}, "blocks"),
        ([], {"roctracer_version": 4.1}, "as launched"),
        (["hipMemcpyWithStream"], {"hip_runtime_version": 70253211}, "blocks"),
        ([], {"hip_runtime_version": 70253211}, "as launched"),
    ],
)
def test_pytorch_writes_what_the_launch_call_was_given(tmp_path, calls, top, counts):
    """By RoctracerLogger.cpp and RocprofLogger.cpp of libkineto: blocks, but of calls with a global size work-items."""
    events = [kernel(100 + at, 1, grid=[6, 1, 1], block=[64, 2, 1], correlation=at + 1) for at in range(3)]
    events += [
        kernel(10 + at, 1, name) | {"cat": "cuda_runtime", "pid": 9, "args": {"correlation": at + 1}}
        for at, name in enumerate(calls)
    ]
    (name,) = tables_of(tmp_path / "out", [write_trace(tmp_path / "t.json", events, **top)], one_each=False)
    folder = tmp_path / "out" / "tables" / name
    assert table_metadata(folder / "configurations.parquet").get("grid", "blocks") == counts
    expected = 6 * 64 * 2 if counts == "blocks" else None
    assert launch_threads(read_table(folder / "configurations.parquet", "configurations")) == [expected]


@pytest.mark.parametrize("call", ["hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"])
def test_a_grid_in_work_items_is_of_its_own_launches_alone(tmp_path, call):
    """Of the same sizes, by the call: blocks, work-items, and work-items that are no whole blocks; one has no call."""
    made = [  # the call, grid and block: grid in blocks and threads by hand
        ("hipLaunchKernel", [512, 4, 1], [256, 2, 1], (512, 4, 1), 512 * 4 * 256 * 2),
        (call, [512, 4, 1], [256, 2, 1], (2, 2, 1), 512 * 4),
        (call, [512, 3, 1], [256, 2, 1], (None, None, None), None),
        (call, [512], [256], (2, None, None), 512),
        (None, [512, 4, 1], [256, 2, 1], (None, None, None), None),
        (call, [512, 4, 1], [256, 2, 1], (2, 2, 1), 512 * 4),
        ("hipLaunchKernel", [2, 2, 1], [256, 2, 1], (2, 2, 1), 512 * 4),
    ]
    events = []
    for at, (name, grid, block, _, _) in enumerate(made):
        events.append(kernel(100 + 2 * at, 1, grid=grid, block=block, correlation=at + 1))
        if name:
            own = {"cat": "cuda_runtime", "pid": 9, "args": {"correlation": at + 1}}
            events.append(kernel(10 + 2 * at, 1, name) | own)
    (name,) = tables_of(tmp_path / "out", [write_trace(tmp_path / "t.json", events)], one_each=False)
    folder = tmp_path / "out" / "tables" / name
    assert table_metadata(folder / "configurations.parquet").get("grid", "blocks") == "blocks"
    known = read_table(folder / "configurations.parquet", "configurations")
    codes = read_table(folder / "launches.parquet", "launches").column("configuration").to_pylist()
    threads = launch_threads(known)
    assert [threads[code] for code in codes] == [one[4] for one in made]
    grids = list(zip(*(known.column(f"grid_{axis}").to_pylist() for axis in "xyz"), strict=True))
    assert [grids[code] for code in codes] == [one[3] for one in made]
    assert codes == [0, 1, 2, 3, 2, 1, 1]
    (issue,) = (
        one
        for one in json.loads((folder / "capabilities.json").read_text())["issues"]
        if one["kind"] == "grids_of_unknown_unit"
    )
    assert issue["count"] == 2


REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "kineto" / "tracelens"


def test_real_products_of_matrices_are_given_work_items(tmp_path):
    """By the file itself: of 527 launches 145 by hipExtModuleLaunchKernel, whose grids are whole blocks."""
    source = REAL / "mi300x_sglang_qwen3-8b.json.gz"
    if not source.is_file():
        pytest.skip(f"no {source.name} beside this checkout")
    with gzip.open(source) as file:
        events = json.load(file)["traceEvents"]
    called = {one["args"]["correlation"]: one["name"] for one in events if one.get("cat") == "cuda_runtime"}
    grids = [one["args"] for one in sorted(events, key=lambda one: one.get("ts", 0)) if one.get("cat") == "kernel"]
    items = [one for one in grids if called.get(one["correlation"]) == "hipExtModuleLaunchKernel"]
    assert (len(grids), len(items)) == (527, 145)
    assert all(one["grid"][0] % one["block"][0] == 0 for one in items)
    (name,) = tables_of(tmp_path / "out", [source], one_each=False)
    folder = tmp_path / "out" / "tables" / name
    threads = launch_threads(read_table(folder / "configurations.parquet", "configurations"))
    codes = read_table(folder / "launches.parquet", "launches").column("configuration").to_pylist()
    expected = [
        math.prod(one["grid"])
        if called[one["correlation"]] == "hipExtModuleLaunchKernel"
        else math.prod(one["grid"] + one["block"])
        for one in grids
    ]
    assert [threads[code] for code in codes] == expected


def _states(name):
    return isinstance(column_map(name).get("grid"), str)


def _volume(row):
    return int(np.prod([row[f"grid_{axis}"] or 1 for axis in "xyz"]))


def table(counts, **columns):
    names = [f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz"]
    values = {name: pa.array(columns.get(name, [None]), pa.int64()) for name in names}
    return pa.table(values).replace_schema_metadata({"causeway.grid": counts} if counts else None)


@pytest.mark.parametrize(
    ("counts", "threads"), [(None, 6 * 128), ("blocks", 6 * 128), ("work-items", 6), ("as launched", None)]
)
def test_threads_of_one_launch(counts, threads):
    assert launch_threads(table(counts, grid_x=[2], grid_y=[3], block_x=[128])) == [threads]
    assert launch_threads(table(counts, block_x=[128])) == [None]


def test_threads_beyond_what_sums_of_steps_hold(tmp_path):
    path = dispatches(tmp_path / "amd_kernel_trace.csv", [(64, (1 << 30, 1 << 20, 1))])
    path.write_text(path.read_text().replace(str(10**9 + ns(1 << 50)), str(10**9 + 5000)))
    (name,) = tables_of(tmp_path / "out", [path], one_each=False)
    folder = tmp_path / "out" / "tables" / name
    assert threads_of(folder).tolist() == [MOST_THREADS]
